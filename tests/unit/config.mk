check_PROGRAMS += tests/unit/test_config
TESTS += tests/unit/test_config
tests_unit_test_config_SOURCES = tests/unit/test_config.c
tests_unit_test_config_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_config_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
