check_PROGRAMS += tests/unit/test_gguf tests/unit/test_gguf_bad
TESTS += tests/unit/test_gguf tests/unit/test_gguf_bad
tests_unit_test_gguf_SOURCES = tests/unit/gguf_build.c tests/unit/gguf_build.h tests/unit/test_gguf.c
tests_unit_test_gguf_CFLAGS = $(TEST_CFLAGS) -I$(top_srcdir)
tests_unit_test_gguf_LDADD = $(TINY_LIBS) $(TEST_LIBS)
tests_unit_test_gguf_bad_SOURCES = tests/unit/gguf_build.c tests/unit/gguf_build.h tests/unit/test_gguf_bad.c
tests_unit_test_gguf_bad_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_gguf_bad_LDADD = $(TEST_LIBS)
