# C API programs, built and tried by `make check`: linked with the shared library, so with what it exports.
check_PROGRAMS += examples/generate
examples_generate_SOURCES = examples/generate.c
examples_generate_CPPFLAGS = -I$(top_srcdir)/include
examples_generate_LDADD = libkopi.la
EXTRA_DIST += examples/kopi.yaml
EXTRA_DIST += examples/backend-blas/Makefile.am examples/backend-blas/README.md examples/backend-blas/configure.ac \
	examples/backend-blas/kopi-blas.c
