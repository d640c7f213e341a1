# make check-asan, make check-tsan: everything, plugins too, built again with a sanitizer in a folder of this build, and its tests
# run. A tree that was configured in place can't be built from elsewhere; then a copy of what `make dist` packs serves.
sanitizer_source = $(abs_builddir)/sanitizer-source
.PHONY: check-asan check-tsan
check-asan:
	$(MAKE) check-sanitizer SANITIZER=address
check-tsan:
	$(MAKE) check-sanitizer SANITIZER=thread
check-sanitizer:
	@source='$(abs_top_srcdir)'; \
	if test -f "$$source/config.status"; then \
	    $(MAKE) distdir distdir=sanitizer-source && source='$(sanitizer_source)' || exit 1; \
	fi; \
	$(MKDIR_P) sanitizer-$(SANITIZER) && cd sanitizer-$(SANITIZER) && \
	{ test -f Makefile || "$$source/configure" --enable-sanitizer=$(SANITIZER) CC='$(CC)' --silent; } && \
	$(MAKE) check
clean-local: clean-sanitizers
clean-sanitizers:
	-rm -rf sanitizer-address sanitizer-thread
	-test ! -d sanitizer-source || { chmod -R u+w sanitizer-source && rm -rf sanitizer-source; }
.PHONY: check-sanitizer clean-sanitizers

# make check-aarch64: cross-built, under qemu-aarch64.
.PHONY: check-aarch64
check-aarch64:
	$(top_srcdir)/scripts/check-aarch64 $(abs_builddir)/aarch64
