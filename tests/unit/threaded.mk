check_PROGRAMS += tests/unit/test_threaded
TESTS += tests/unit/test_threaded
tests_unit_test_threaded_SOURCES = tests/unit/decoder_rig.c tests/unit/decoder_rig.h tests/unit/test_threaded.c tests/support/plugin.h
tests_unit_test_threaded_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) -DPLUGIN_CPU='"$(abs_builddir)/.libs/kopi-cpu.so"' \
	-DPLUGIN_THREADED='"$(abs_builddir)/.libs/kopi-cpu-threaded.so"'
tests_unit_test_threaded_CFLAGS = $(TEST_CFLAGS) -pthread
tests_unit_test_threaded_LDADD = $(TINY_LIBS) libconformance.la $(TEST_LIBS) $(LIBM)
