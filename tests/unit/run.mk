check_PROGRAMS += tests/unit/test_sampler tests/unit/test_stop
TESTS += tests/unit/test_sampler tests/unit/test_stop
tests_unit_test_sampler_SOURCES = tests/unit/test_sampler.c
tests_unit_test_sampler_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_sampler_LDADD = $(TEST_LIBS) $(LIBM)
tests_unit_test_stop_SOURCES = tests/unit/test_stop.c
tests_unit_test_stop_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_stop_LDADD = $(TEST_LIBS)
