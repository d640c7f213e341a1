# make installcheck: what a third party does with the installed prefix alone. The model is made here.
# FAULTS=: only the group of its case for each broken backend, as in make check; the whole matrix takes ten processor minutes.
FAULTS = --full
installcheck-local: tests/support/tinymodel$(EXEEXT)
if HAVE_PYTHON3
	tests/support/tinymodel$(EXEEXT) installcheck-q8_0.gguf q8_0
	tests/support/tinymodel$(EXEEXT) installcheck-f16.gguf f16
	tests/support/tinymodel$(EXEEXT) installcheck-f32.gguf f32
	KOPI_SOURCE='$(abs_top_srcdir)' KOPI_BUILD='$(abs_builddir)' KOPI='$(DESTDIR)$(bindir)/kopi$(EXEEXT)' \
	PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)' PYTHONDONTWRITEBYTECODE=1; export KOPI_SOURCE KOPI_BUILD KOPI \
	PKG_CONFIG_PATH PYTHONDONTWRITEBYTECODE; unset KOPI_PLUGIN_PATH; \
	$(PYTHON3) $(srcdir)/tests/install/demo.py installcheck-q8_0.gguf && \
	{ $(PYTHON3) $(srcdir)/tests/install/blas.py installcheck-f16.gguf installcheck-f32.gguf || test $$? = 77; } && \
	$(PYTHON3) $(srcdir)/tests/install/guide.py --run installcheck-q8_0.gguf && \
	KOPI_CC='$(CC)' KOPI_SANITIZED='$(SANITIZED)' $(PYTHON3) $(srcdir)/tests/backend/check.py $(FAULTS)
else
	@echo "make installcheck: not run, python3 is missing"
endif
CLEANFILES += installcheck-f16.gguf installcheck-f32.gguf installcheck-q8_0.gguf
EXTRA_DIST += tests/install/blas.py tests/install/demo.py tests/support/outside.py tests/install/guide.py
if HAVE_PYTHON3
TESTS += tests/install/guide.py
endif

EXTRA_DIST += tests/install/installed.py
installcheck-local: installcheck-command
installcheck-command:
	$(AM_TESTS_ENVIRONMENT) KOPI='$(DESTDIR)$(bindir)/kopi$(EXEEXT)' KOPI_PLUGINS='$(DESTDIR)$(backenddir)' KOPI_LIBDIR='$(libdir)' \
	DESTDIR='$(DESTDIR)' $(PYTHON3) $(srcdir)/tests/install/installed.py
.PHONY: installcheck-command
