# Fuzz targets, replayed over their corpora (fuzz.h says how to fuzz).
FUZZ_CFLAGS = $(AM_CFLAGS) -I$(top_srcdir)/tests/fuzz
FUZZ_CORPUS = $(top_srcdir)/tests/fuzz/corpus
EXTRA_DIST += tests/fuzz/corpus

check_PROGRAMS += tests/fuzz/fuzz_gguf
TESTS += tests/fuzz/fuzz_gguf
tests_fuzz_fuzz_gguf_SOURCES = tests/fuzz/fuzz.h tests/fuzz/fuzz_gguf.c tests/fuzz/replay.c
tests_fuzz_fuzz_gguf_CFLAGS = $(FUZZ_CFLAGS) -DKOPI_FUZZ_CORPUS='"$(FUZZ_CORPUS)/gguf"'
tests_fuzz_fuzz_gguf_LDADD = libcore.la

check_PROGRAMS += tests/fuzz/fuzz_yaml
TESTS += tests/fuzz/fuzz_yaml
tests_fuzz_fuzz_yaml_SOURCES = tests/fuzz/fuzz.h tests/fuzz/fuzz_yaml.c tests/fuzz/replay.c
tests_fuzz_fuzz_yaml_CFLAGS = $(FUZZ_CFLAGS) -DKOPI_FUZZ_CORPUS='"$(FUZZ_CORPUS)/yaml"'
tests_fuzz_fuzz_yaml_LDADD = libcore.la

check_PROGRAMS += tests/fuzz/fuzz_jinja
TESTS += tests/fuzz/fuzz_jinja
tests_fuzz_fuzz_jinja_SOURCES = tests/fuzz/fuzz.h tests/fuzz/fuzz_jinja.c tests/fuzz/replay.c
tests_fuzz_fuzz_jinja_CFLAGS = $(FUZZ_CFLAGS) $(JANSSON_CFLAGS) -DKOPI_FUZZ_CORPUS='"$(FUZZ_CORPUS)/jinja"'
tests_fuzz_fuzz_jinja_LDADD = libcore.la $(JANSSON_LIBS)
