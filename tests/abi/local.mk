# The backend ABI: its layout (compiling layout.c is the test), and the loader with plugins that have one thing wrong each.
check_LTLIBRARIES += tests/abi/liblayout.la
tests_abi_liblayout_la_SOURCES = tests/abi/layout.c
tests_abi_liblayout_la_CPPFLAGS = -I$(top_srcdir)/include
if HAVE_PYTHON3
TESTS += tests/abi/layout.py tests/abi/loading.py
endif
EXTRA_DIST += tests/abi/layout.py tests/abi/loading.py tests/abi/variant.c
