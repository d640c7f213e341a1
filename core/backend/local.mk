libcore_la_SOURCES += \
	core/backend/assign.c core/backend/assign.h core/backend/check.c core/backend/check.h core/backend/cost.c core/backend/cost.h core/backend/device.c \
	core/backend/device.h core/backend/elf.c core/backend/elf.h core/backend/exec.c core/backend/exec.h core/backend/exec_run.c core/backend/exec_state.h core/backend/import.c \
	core/backend/import.h core/backend/instance.c core/backend/instance.h core/backend/plugin.c core/backend/plugin.h \
	core/backend/search.c core/backend/search.h core/backend/trace.c core/backend/trace.h
