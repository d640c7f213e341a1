# Unit tests: one program per folder, each a Check suite, run by `make check`.
include tests/support/local.mk
include tests/fuzz/local.mk
if HAVE_CHECK
TEST_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
TEST_LIBS = libcore.la $(CHECK_LIBS)
include tests/unit/base.mk
include tests/unit/kernels.mk
include tests/unit/run.mk
include tests/unit/gguf.mk
include tests/unit/config.mk
endif
