# What several test programs share: include "tests/support/tinygguf.h", link $(TINY_LIBS).
check_LTLIBRARIES += tests/support/libtiny.la
tests_support_libtiny_la_SOURCES = tests/support/tinygguf.c tests/support/tinygguf.h
tests_support_libtiny_la_LIBADD = $(LIBM)
TINY_LIBS = tests/support/libtiny.la
