libcore_la_SOURCES += \
	core/run/random.c core/run/random.h core/run/sampler.c core/run/sampler.h core/run/stop.c core/run/stop.h
