check_PROGRAMS += tests/unit/test_tokenizer
TESTS += tests/unit/test_tokenizer
tests_unit_test_tokenizer_SOURCES = tests/unit/test_tokenizer.c
tests_unit_test_tokenizer_CFLAGS = $(TEST_CFLAGS) -I$(top_srcdir)
tests_unit_test_tokenizer_LDADD = $(TINY_LIBS) $(TEST_LIBS)
