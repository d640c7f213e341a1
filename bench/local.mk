# Programs that measure; built on request: make bench/kernels
EXTRA_PROGRAMS = bench/kernels
CLEANFILES += $(EXTRA_PROGRAMS)
bench_kernels_SOURCES = bench/kernels.c
bench_kernels_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)
bench_kernels_LDADD = $(KT_KERNELS) $(LIBM)
EXTRA_DIST += bench/peers bench/peer_llama.py bench/report
