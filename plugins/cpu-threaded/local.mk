# The fast CPU backend. One library per level of the instruction set, each with its own flags; KT_KERNELS is all of them.
# -fno-trapping-math changes no value, it lets conditional expressions be computed in vectors.
KT_CPPFLAGS = -I$(top_srcdir)/include
KT_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -fno-trapping-math
KT_KERNELS = plugins/cpu-threaded/libkt_c.la
kt_kernel_headers = plugins/cpu-threaded/format.h plugins/cpu-threaded/level.h plugins/cpu-threaded/linear.h \
	plugins/cpu-threaded/linear_run.h plugins/cpu-threaded/linear_table.h plugins/cpu-threaded/linear_tile.h \
	plugins/cpu-threaded/quantize_tile.h
kt_row_kernels = plugins/cpu-threaded/attn.c plugins/cpu-threaded/kernels.h plugins/cpu-threaded/rows.c plugins/cpu-threaded/vec.h

noinst_LTLIBRARIES += plugins/cpu-threaded/libkt_c.la
plugins_cpu_threaded_libkt_c_la_SOURCES = plugins/cpu-threaded/level.c plugins/cpu-threaded/linear.c \
	plugins/cpu-threaded/linear_c.c plugins/cpu-threaded/repack.c plugins/cpu-threaded/simd_c.h $(kt_kernel_headers) \
	$(kt_row_kernels) plugins/cpu-threaded/vec_c.h
plugins_cpu_threaded_libkt_c_la_CPPFLAGS = $(KT_CPPFLAGS) -DKT_ISA=c
plugins_cpu_threaded_libkt_c_la_CFLAGS = $(KT_CFLAGS)
plugins_cpu_threaded_libkt_c_la_LIBADD = $(LIBM)

if X86
KT_KERNELS += plugins/cpu-threaded/libkt_avx2.la plugins/cpu-threaded/libkt_avx512vnni.la
KT_AVX2_FLAGS = -mavx2 -mfma -mf16c
KT_AVX512VNNI_FLAGS = $(KT_AVX2_FLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512

noinst_LTLIBRARIES += plugins/cpu-threaded/libkt_avx2.la
plugins_cpu_threaded_libkt_avx2_la_SOURCES = plugins/cpu-threaded/linear_avx2.c plugins/cpu-threaded/simd_avx2.h \
	$(kt_row_kernels) plugins/cpu-threaded/vec_avx2.h
plugins_cpu_threaded_libkt_avx2_la_CPPFLAGS = $(KT_CPPFLAGS) -DKT_ISA=avx2
plugins_cpu_threaded_libkt_avx2_la_CFLAGS = $(KT_CFLAGS) $(KT_AVX2_FLAGS)

noinst_LTLIBRARIES += plugins/cpu-threaded/libkt_avx512vnni.la
plugins_cpu_threaded_libkt_avx512vnni_la_SOURCES = plugins/cpu-threaded/linear_avx512vnni.c \
	plugins/cpu-threaded/simd_avx512vnni.h $(kt_row_kernels) plugins/cpu-threaded/vec_avx512.h
plugins_cpu_threaded_libkt_avx512vnni_la_CPPFLAGS = $(KT_CPPFLAGS) -DKT_ISA=avx512vnni
plugins_cpu_threaded_libkt_avx512vnni_la_CFLAGS = $(KT_CFLAGS) $(KT_AVX512VNNI_FLAGS)
endif

backend_LTLIBRARIES += kopi-cpu-threaded.la
kopi_cpu_threaded_la_SOURCES = plugins/cpu-threaded/graph.c plugins/cpu-threaded/graph.h plugins/cpu-threaded/kv.c \
	plugins/cpu-threaded/kv.h plugins/cpu-threaded/plan.c plugins/cpu-threaded/plan.h plugins/cpu-threaded/plugin.c \
	plugins/cpu-threaded/run.c plugins/cpu-threaded/schedule.c plugins/cpu-threaded/schedule.h plugins/cpu-threaded/step_attn.c \
	plugins/cpu-threaded/step_linear.c plugins/cpu-threaded/step_rows.c plugins/cpu-threaded/threaded.h \
	plugins/cpu-threaded/trace.c plugins/cpu-threaded/trace.h plugins/cpu-threaded/weights.c
kopi_cpu_threaded_la_CPPFLAGS = $(KT_CPPFLAGS) -DKT_VERSION='"$(VERSION)"'
kopi_cpu_threaded_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^kopi_plugin_v1$$'
kopi_cpu_threaded_la_LIBADD = $(KT_KERNELS) $(LIBM)
