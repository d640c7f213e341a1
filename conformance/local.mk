# The conformance library, for the unit tests and `kopi backends check`. It knows the plugin headers, nothing else of kopi.
noinst_LTLIBRARIES += libconformance.la
libconformance_la_SOURCES = \
	conformance/cases.c conformance/cases.h conformance/compare.c conformance/conform.h conformance/drive.c \
	conformance/drive.h conformance/host.c conformance/host.h conformance/life.c conformance/load.c \
	conformance/memory.c conformance/memory.h conformance/program.c conformance/program.h conformance/values.c \
	conformance/values.h
libconformance_la_CPPFLAGS = -I$(top_srcdir)/include
libconformance_la_CFLAGS = $(AM_CFLAGS) -pthread
libconformance_la_LIBADD = $(LIBM)
