libcore_la_SOURCES += \
	core/base/buf.c core/base/buf.h core/base/dmath.c core/base/dmath.h core/base/error.c core/base/error.h core/base/fpstate.c core/base/fpstate.h \
	core/base/hash.c core/base/hash.h \
	core/base/log.c core/base/log.h core/base/mem.c core/base/mem.h core/base/num.c core/base/num.h core/base/sha256.c core/base/sha256.h \
	core/base/sys.c core/base/sys.h core/base/team.c core/base/team.h core/base/utf8.c core/base/utf8.h \
	core/base/version.c
