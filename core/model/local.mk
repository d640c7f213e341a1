libcore_la_SOURCES += \
	core/model/arch/arch.h core/model/arch/gemma3.c core/model/arch/llama.c core/model/arch/qwen2.c \
	core/model/build.c core/model/build.h core/model/decoder.c core/model/decoder.h core/model/meta.c core/model/meta.h \
	core/model/program.c core/model/program.h core/model/rope.c core/model/rope.h
