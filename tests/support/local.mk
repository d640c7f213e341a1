# What several test programs share: include "tests/support/tinygguf.h" or load.h with -I$(top_srcdir), link $(TINY_LIBS)
# before $(TEST_LIBS).
check_LTLIBRARIES += tests/support/libtiny.la
tests_support_libtiny_la_SOURCES = tests/support/load.c tests/support/load.h conformance/tinygguf.c \
	conformance/tinygguf.h tests/support/tinygguf.c tests/support/tinygguf.h
tests_support_libtiny_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) -DTINY_PLUGIN_DIR='"$(abs_top_builddir)/.libs"' \
	-DTINY_BACKENDS='"$(backend_LTLIBRARIES)"'
tests_support_libtiny_la_LIBADD = $(LIBM)
TINY_LIBS = tests/support/libtiny.la
