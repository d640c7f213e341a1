libcore_la_SOURCES += \
	core/run/answer.c core/run/answer.h core/run/cache.c core/run/cache.h core/run/defaults.c core/run/engine.c core/run/engine.h core/run/drafter.c core/run/drafter.h core/run/generate.c core/run/guess.c core/run/guess.h core/run/kv.c core/run/kv.h core/run/load.c core/run/load.h core/run/model.c \
	core/run/model.h core/run/ngram.c core/run/ngram.h core/run/pace.c core/run/pace.h core/run/random.c core/run/random.h core/run/round.c core/run/round.h core/run/row.c core/run/row.h core/run/sampler.c \
	core/run/sampler.h core/run/scheduler.c core/run/speculate.c core/run/speculate.h core/run/step.c core/run/step.h core/run/stop.c core/run/stop.h core/run/text.c
