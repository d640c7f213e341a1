# The backend ABI: its layout (compiling layout.c is the test), and the loader with plugins that have one thing wrong each.
check_LTLIBRARIES += tests/abi/liblayout.la
tests_abi_liblayout_la_SOURCES = tests/abi/layout.c
tests_abi_liblayout_la_CPPFLAGS = -I$(top_srcdir)/include
if HAVE_PYTHON3
TESTS += tests/abi/frozen.py tests/abi/layout.py tests/abi/libkopi.py tests/abi/loading.py
endif
EXTRA_DIST += tests/abi/frozen.py tests/abi/layout.py tests/abi/libkopi.abi tests/abi/libkopi.py tests/abi/loading.py tests/abi/plugins.py tests/abi/v0.9 tests/abi/variant.c

# Built from the example's own file with no more than it gets from pkg-config. -rpath makes libtool build a module.
check_LTLIBRARIES += tests/abi/kopi-demo.la
tests_abi_kopi_demo_la_SOURCES = examples/backend-demo/kopi-demo.c
tests_abi_kopi_demo_la_CPPFLAGS = -I$(top_srcdir)/include
tests_abi_kopi_demo_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -export-symbols-regex '^kopi_plugin_v1$$'
tests_abi_kopi_demo_la_LIBADD = $(LIBM)
if HAVE_CHECK
check_PROGRAMS += tests/abi/test_instances
TESTS += tests/abi/test_instances
tests_abi_test_instances_SOURCES = tests/abi/test_instances.c
tests_abi_test_instances_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) -DBUILD='"$(abs_builddir)"'
tests_abi_test_instances_CFLAGS = $(TEST_CFLAGS)
tests_abi_test_instances_LDADD = $(TINY_LIBS) $(TEST_LIBS)
endif
