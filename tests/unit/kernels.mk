check_PROGRAMS += tests/unit/test_kernels tests/unit/test_cpu tests/unit/test_math
TESTS += tests/unit/test_kernels tests/unit/test_cpu tests/unit/test_math
PLUGIN_TEST_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir) -DPLUGIN_CPU='"$(abs_builddir)/.libs/kopi-cpu.so"'
tests_unit_test_kernels_SOURCES = tests/unit/test_kernels.c tests/support/plugin.h
tests_unit_test_kernels_CPPFLAGS = $(PLUGIN_TEST_CPPFLAGS)
tests_unit_test_kernels_CFLAGS = $(TEST_CFLAGS) -pthread
tests_unit_test_kernels_LDADD = libconformance.la $(CHECK_LIBS) $(LIBM)
tests_unit_test_cpu_SOURCES = tests/unit/test_cpu.c tests/support/plugin.h
tests_unit_test_cpu_CPPFLAGS = $(PLUGIN_TEST_CPPFLAGS)
tests_unit_test_cpu_CFLAGS = $(TEST_CFLAGS) -pthread
tests_unit_test_cpu_LDADD = libconformance.la $(CHECK_LIBS) $(LIBM)
tests_unit_test_math_SOURCES = tests/unit/test_math.c
tests_unit_test_math_CPPFLAGS = -I$(top_srcdir)/include
tests_unit_test_math_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_math_LDADD = $(CHECK_LIBS) $(LIBM)
