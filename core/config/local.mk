libcore_la_SOURCES += \
	core/config/config.c core/config/config.h core/config/entries.c core/config/expand.c core/config/expand.h \
	core/config/json_schema.c core/config/load.c core/config/nearest.c core/config/nearest.h core/config/print.c \
	core/config/schema.c core/config/schema.h core/config/set.c core/config/value.c core/config/value.h \
	core/config/view.c core/config/view.h core/config/write.c core/config/write.h core/config/yaml.c core/config/yaml.h
