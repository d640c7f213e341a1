# The sources of level avx512vnni of cpu-threaded, compiled through SIMDe (immintrin.h of this folder shadows the
# compiler's) and put in the level's place: in the test of the kernels, and in a plugin for the test of all operations. So
# the level's bits are checked on processors without AVX-512 too.
EXTRA_DIST += tests/simde/absent.sh
if HAVE_SIMDE
check_LTLIBRARIES += tests/simde/libkt_simde.la tests/simde/kopi-simde.la
tests_simde_libkt_simde_la_SOURCES = $(plugins_cpu_threaded_libkt_avx512vnni_la_SOURCES) tests/simde/immintrin.h
tests_simde_libkt_simde_la_CPPFLAGS = -I$(top_srcdir)/tests/simde $(KT_CPPFLAGS) -DKT_ISA=avx512vnni -D__AVX512F__=1
# With -O2 -g, the default, the unrolled kernels take six times as long to compile.
tests_simde_libkt_simde_la_CFLAGS = $(AM_CFLAGS) -O1 -g1 -Wno-psabi

SIMDE_KERNELS = plugins/cpu-threaded/libkt_c.la plugins/cpu-threaded/libkt_avx2.la tests/simde/libkt_simde.la
SIMDE_CPPFLAGS = $(KT_CPPFLAGS) -I$(top_srcdir) -Dkt_level_detect=kt_level_simde
tests_simde_kopi_simde_la_SOURCES = $(kopi_cpu_threaded_la_SOURCES) tests/simde/level.c
tests_simde_kopi_simde_la_CPPFLAGS = $(SIMDE_CPPFLAGS) -DKT_VERSION='"$(VERSION)"'
tests_simde_kopi_simde_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere \
	-export-symbols-regex '^kopi_plugin_v1$$'
tests_simde_kopi_simde_la_LIBADD = $(SIMDE_KERNELS) $(LIBM)

check_PROGRAMS += tests/simde/test_linear tests/simde/test_operations
TESTS += tests/simde/test_linear tests/simde/test_operations
tests_simde_test_linear_SOURCES = tests/unit/test_linear.c tests/simde/level.c
tests_simde_test_linear_CPPFLAGS = $(SIMDE_CPPFLAGS) -DFIRST_LEVEL=KT_AVX512VNNI
tests_simde_test_linear_CFLAGS = $(TEST_CFLAGS)
tests_simde_test_linear_LDADD = $(SIMDE_KERNELS) $(CHECK_LIBS) $(LIBM)
tests_simde_test_operations_SOURCES = tests/simde/test_operations.c tests/support/plugin.h
tests_simde_test_operations_CPPFLAGS = $(PLUGIN_TEST_CPPFLAGS) \
	-DPLUGIN_SIMDE='"$(abs_builddir)/tests/simde/.libs/kopi-simde.so"'
tests_simde_test_operations_CFLAGS = $(TEST_CFLAGS) -pthread
tests_simde_test_operations_LDADD = libconformance.la $(CHECK_LIBS) $(LIBM)
else
TESTS += tests/simde/absent.sh
endif
