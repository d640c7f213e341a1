check_PROGRAMS += tests/unit/test_jinja
TESTS += tests/unit/test_jinja
tests_unit_test_jinja_SOURCES = tests/unit/test_jinja.c
tests_unit_test_jinja_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS) -DKOPI_JINJA_CASES='"$(abs_top_srcdir)/tests/golden/jinja/cases.json"'
tests_unit_test_jinja_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
EXTRA_DIST += tests/golden/jinja/cases.json tests/golden/jinja/make.py
check_PROGRAMS += tests/unit/test_chat
TESTS += tests/unit/test_chat
tests_unit_test_chat_SOURCES = tests/unit/test_chat.c
tests_unit_test_chat_CFLAGS = $(TEST_CFLAGS)
tests_unit_test_chat_LDADD = $(TEST_LIBS)
