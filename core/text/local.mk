libcore_la_SOURCES += \
	core/text/bpe.c core/text/bpe.h core/text/chat.h core/text/detok.c core/text/merge.c core/text/merge.h core/text/pretok.c \
	core/text/pretok.h core/text/special.c core/text/special.h core/text/spm.c core/text/spm.h core/text/tokenizer.c \
	core/text/tokenizer.h core/text/vocab.c core/text/vocab.h
