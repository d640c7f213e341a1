libcore_la_SOURCES += \
	core/gguf/cursor.h core/gguf/directory.c core/gguf/gguf.c core/gguf/gguf.h core/gguf/guard.c core/gguf/guard.h \
	core/gguf/header.c core/gguf/index.c core/gguf/meta.c core/gguf/part.c core/gguf/part.h core/gguf/reader.h \
	core/gguf/split.c core/gguf/split.h core/gguf/value.c core/gguf/value.h
