# The reference backend. Its kernels are built once per level of the instruction set, with the same bits: CPU_LEVEL names
# it. -fno-trapping-math changes no value, it lets conditional expressions be computed in vectors.
cpu_kernels = plugins/cpu/attn.c plugins/cpu/dequant.c plugins/cpu/dequant.h plugins/cpu/kernels.h plugins/cpu/level.c \
	plugins/cpu/linear.c plugins/cpu/quantize.c plugins/cpu/rows.c
CPU_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -fno-trapping-math

noinst_LTLIBRARIES += plugins/cpu/libbaseline.la
plugins_cpu_libbaseline_la_SOURCES = $(cpu_kernels)
plugins_cpu_libbaseline_la_CPPFLAGS = -I$(top_srcdir)/include -DCPU_LEVEL=baseline
plugins_cpu_libbaseline_la_CFLAGS = $(CPU_CFLAGS)

backend_LTLIBRARIES += kopi-cpu.la
kopi_cpu_la_SOURCES = plugins/cpu/plugin.c plugins/cpu/kernels.h
kopi_cpu_la_CPPFLAGS = -I$(top_srcdir)/include -DCPU_VERSION='"$(VERSION)"'
kopi_cpu_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^kopi_plugin_v1$$'
kopi_cpu_la_LIBADD = plugins/cpu/libbaseline.la $(LIBM)

if X86
noinst_LTLIBRARIES += plugins/cpu/libv3.la
plugins_cpu_libv3_la_SOURCES = $(cpu_kernels)
plugins_cpu_libv3_la_CPPFLAGS = -I$(top_srcdir)/include -DCPU_LEVEL=v3
plugins_cpu_libv3_la_CFLAGS = $(CPU_CFLAGS) -mavx2 -mfma
kopi_cpu_la_CPPFLAGS += -DCPU_HAVE_V3=1
kopi_cpu_la_LIBADD += plugins/cpu/libv3.la
endif
