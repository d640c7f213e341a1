# Unit tests: one program per folder, each a Check suite. Scripts: rules (of the sources) and e2e (the built command). All run by
# `make check`; each test program counts its checks in its log.
AM_TESTS_ENVIRONMENT = \
	KOPI_SOURCE='$(abs_top_srcdir)'; KOPI_BUILD='$(abs_builddir)'; KOPI='$(abs_builddir)/kopi$(EXEEXT)'; \
	KOPI_PLUGINS='$(abs_builddir)/.libs'; KOPI_SANITIZED='$(SANITIZED)'; KOPI_CC='$(CC)'; KOPI_NO_SIMDE='$(NO_SIMDE)'; PYTHONDONTWRITEBYTECODE=1; \
	ASAN_OPTIONS=allocator_may_return_null=1; TSAN_OPTIONS=allocator_may_return_null=1; \
	CK_TIMEOUT_MULTIPLIER=1$${KOPI_SANITIZED:+0}; \
	export KOPI_SOURCE KOPI_BUILD KOPI KOPI_PLUGINS KOPI_SANITIZED KOPI_CC KOPI_NO_SIMDE PYTHONDONTWRITEBYTECODE ASAN_OPTIONS TSAN_OPTIONS CK_TIMEOUT_MULTIPLIER;
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(PYTHON3)
if HAVE_PYTHON3
include tests/rules.mk
include tests/e2e/local.mk
endif
include tests/sanitizers.mk
include tests/support/local.mk
include tests/fuzz/local.mk
include tests/e2e/example.mk
include tests/install/local.mk
if HAVE_CHECK
TEST_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
TEST_LIBS = libcore.la $(CHECK_LIBS)
include tests/unit/base.mk
include tests/unit/model.mk
include tests/unit/text.mk
include tests/unit/kernels.mk
include tests/unit/run.mk
include tests/unit/gguf.mk
include tests/unit/config.mk
include tests/unit/data.mk
include tests/unit/linear.mk
include tests/unit/threaded.mk
include tests/unit/jinja.mk
include tests/simde/local.mk
endif
include tests/abi/local.mk
include tests/backend/local.mk
include tests/backend/broken/local.mk
