# Backends with one thing wrong each, which `kopi backends check` must find. They are compiled when the test runs.
if HAVE_PYTHON3
TESTS += tests/backend/check.py
endif
EXTRA_DIST += docs/conformance.md tests/backend/check.py tests/backend/broken/attention.c tests/backend/broken/broken.c \
	tests/backend/broken/broken.h tests/backend/broken/faults.py tests/backend/broken/kernels.c tests/backend/broken/plan.c
