# Programs that measure; built on request: make bench/kernels bench/bandwidth
EXTRA_PROGRAMS = bench/kernels bench/bandwidth
CLEANFILES += $(EXTRA_PROGRAMS)
bench_kernels_SOURCES = bench/kernels.c
bench_kernels_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)
bench_kernels_LDADD = $(KT_KERNELS) $(LIBM)
bench_bandwidth_SOURCES = bench/bandwidth.c
bench_bandwidth_CFLAGS = $(AM_CFLAGS) -O3
EXTRA_DIST += bench/cold bench/costs bench/measure.py bench/peer_llama.py bench/peers bench/report bench/speculation

# The kernels of cpu-threaded without its plan, for bench/kernels-only; tests/backend/conforms.py proves its bits.
check_LTLIBRARIES += bench/kopi-kernels-only.la bench/libkt_inside.la
bench_libkt_inside_la_SOURCES = $(kopi_cpu_threaded_la_SOURCES)
bench_libkt_inside_la_CPPFLAGS = $(kopi_cpu_threaded_la_CPPFLAGS) -Dkopi_plugin_v1=kt_plugin_v1
bench_kopi_kernels_only_la_SOURCES = bench/kernels_only.c
bench_kopi_kernels_only_la_CPPFLAGS = $(KT_CPPFLAGS) -I$(top_srcdir)
bench_kopi_kernels_only_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -export-symbols-regex '^kopi_plugin_v1$$'
bench_kopi_kernels_only_la_LIBADD = bench/libkt_inside.la $(kopi_cpu_threaded_la_LIBADD)
EXTRA_DIST += bench/kernels-only
