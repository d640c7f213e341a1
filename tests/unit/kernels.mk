check_PROGRAMS += tests/unit/test_kernels
TESTS += tests/unit/test_kernels
tests_unit_test_kernels_SOURCES = tests/unit/test_kernels.c
tests_unit_test_kernels_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir) -DPLUGIN_CPU='"$(abs_builddir)/.libs/kopi-cpu.so"'
tests_unit_test_kernels_CFLAGS = $(TEST_CFLAGS) -pthread
tests_unit_test_kernels_LDADD = libconformance.la $(CHECK_LIBS) $(LIBM)
