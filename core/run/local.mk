# core/run
