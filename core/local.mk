# libkopi. `libcore.la` holds everything, with internal symbols visible to the unit tests; libkopi.la exports kopi_* only.
noinst_LTLIBRARIES += libcore.la
libcore_la_SOURCES =
libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -DKOPI_BACKENDDIR='"$(backenddir)"'
libcore_la_CFLAGS = $(AM_CFLAGS) $(YAML_CFLAGS) $(PCRE2_CFLAGS) $(JANSSON_CFLAGS) $(NETTLE_CFLAGS) -pthread
libcore_la_LIBADD = $(YAML_LIBS) $(PCRE2_LIBS) $(JANSSON_LIBS) $(NETTLE_LIBS) $(LIBM)

lib_LTLIBRARIES += libkopi.la
libkopi_la_SOURCES =
libkopi_la_LIBADD = libcore.la
libkopi_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -export-symbols-regex '^kopi_[a-z]' -pthread

include core/base/local.mk
include core/gguf/local.mk
include core/config/local.mk
include core/text/local.mk
include core/model/local.mk
include core/backend/local.mk
include core/run/local.mk
