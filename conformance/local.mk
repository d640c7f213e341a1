# The conformance library, for the unit tests and `kopi backends check`. It knows the plugin headers, nothing else of kopi.
noinst_LTLIBRARIES += libconformance.la
libconformance_la_SOURCES = \
	conformance/abi_tests.c conformance/agree.c conformance/agree.h conformance/bench_tests.c conformance/cancel_tests.c conformance/cases.c \
	conformance/cases.h conformance/child.c conformance/child.h conformance/clean.c conformance/clean.h \
	conformance/compare.c conformance/conform.h conformance/device.c conformance/device.h conformance/draws.c \
	conformance/draws.h conformance/drive.c conformance/drive.h conformance/elf.c \
	conformance/elf.h conformance/host.c conformance/host.h conformance/life.c conformance/load.c \
	conformance/load_tests.c conformance/memory.c conformance/memory.h conformance/ops_tests.c conformance/order.c conformance/order.h \
	conformance/own_types.c \
	conformance/process.c conformance/process.h conformance/program.c conformance/program.h conformance/quiet.c \
	conformance/quiet.h conformance/support_tests.c conformance/test.c conformance/test.h conformance/tinygguf.c \
	conformance/tinygguf.h conformance/values.c conformance/values.h
libconformance_la_CPPFLAGS = -I$(top_srcdir)/include
libconformance_la_CFLAGS = $(AM_CFLAGS) -pthread
libconformance_la_LIBADD = $(LIBM)
