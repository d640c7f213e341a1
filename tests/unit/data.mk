check_PROGRAMS += tests/unit/test_truncation
TESTS += tests/unit/test_truncation
tests_unit_test_truncation_SOURCES = tests/unit/test_truncation.c
tests_unit_test_truncation_CPPFLAGS = $(AM_CPPFLAGS) -DKOPI_TEST_DATA='"$(abs_top_srcdir)/tests/data"'
tests_unit_test_truncation_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_truncation_LDADD = $(TEST_LIBS)
