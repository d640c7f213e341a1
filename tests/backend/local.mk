# A device with a memory of its own, in two forms: with a KV layout of its own, and with the canonical one. Its chip is the reference
# backend, compiled in under another name.
FAKE_SOURCES = tests/backend/fake-device.c tests/backend/fake-device.h tests/backend/fake-memory.c tests/backend/fake-memory.h \
	tests/backend/fake-plan.c
FAKE_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -export-symbols-regex '^kopi_plugin_v1$$'
FAKE_LIBADD = tests/backend/libchip.la $(kopi_cpu_la_LIBADD)

check_LTLIBRARIES += tests/backend/libchip.la tests/backend/kopi-fake-device.la tests/backend/kopi-fake-canonical.la
tests_backend_libchip_la_SOURCES = plugins/cpu/plugin.c plugins/cpu/kernels.h
tests_backend_libchip_la_CPPFLAGS = $(kopi_cpu_la_CPPFLAGS) -Dkopi_plugin_v1=fake_chip_v1
tests_backend_kopi_fake_device_la_SOURCES = $(FAKE_SOURCES)
tests_backend_kopi_fake_device_la_CPPFLAGS = -I$(top_srcdir)/include
tests_backend_kopi_fake_device_la_LDFLAGS = $(FAKE_LDFLAGS)
tests_backend_kopi_fake_device_la_LIBADD = $(FAKE_LIBADD)
tests_backend_kopi_fake_canonical_la_SOURCES = $(FAKE_SOURCES)
tests_backend_kopi_fake_canonical_la_CPPFLAGS = -I$(top_srcdir)/include -DFAKE_CANONICAL
tests_backend_kopi_fake_canonical_la_LDFLAGS = $(FAKE_LDFLAGS)
tests_backend_kopi_fake_canonical_la_LIBADD = $(FAKE_LIBADD)

# A backend with a weight type of its own.
check_LTLIBRARIES += tests/backend/kopi-toy-type.la
tests_backend_kopi_toy_type_la_SOURCES = tests/backend/toy-type.c
tests_backend_kopi_toy_type_la_CPPFLAGS = -I$(top_srcdir)/include
tests_backend_kopi_toy_type_la_CFLAGS = $(AM_CFLAGS)
tests_backend_kopi_toy_type_la_LDFLAGS = $(FAKE_LDFLAGS)
tests_backend_kopi_toy_type_la_LIBADD = $(LIBM)

if HAVE_CHECK
check_PROGRAMS += tests/backend/test_device
TESTS += tests/backend/test_device
tests_backend_test_device_SOURCES = tests/backend/test_device.c
tests_backend_test_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) -DBUILD='"$(abs_builddir)"' -DSOURCE='"$(abs_top_srcdir)"'
tests_backend_test_device_CFLAGS = $(TEST_CFLAGS)
tests_backend_test_device_LDADD = $(TINY_LIBS) $(TEST_LIBS)
endif
if HAVE_PYTHON3
TESTS += tests/backend/conforms.py tests/backend/toy_type.py
endif
EXTRA_DIST += tests/backend/conforms.py tests/backend/toy_type.py
