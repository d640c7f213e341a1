check_PROGRAMS += tests/unit/test_linear
TESTS += tests/unit/test_linear
tests_unit_test_linear_SOURCES = tests/unit/test_linear.c
tests_unit_test_linear_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)
tests_unit_test_linear_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_linear_LDADD = $(KT_KERNELS) $(CHECK_LIBS) $(LIBM)
