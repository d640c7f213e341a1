check_PROGRAMS += tests/support/tinymodel
tests_support_tinymodel_SOURCES = tests/support/tinymodel.c
tests_support_tinymodel_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
tests_support_tinymodel_LDADD = tests/support/libtiny.la $(LIBM)
TESTS += tests/e2e/example.sh
EXTRA_DIST += tests/e2e/example.sh
