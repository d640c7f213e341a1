# The house rules, read off the sources and the built libraries.
rules = tests/rules/headers.py tests/rules/includes.py tests/rules/style.py tests/rules/symbols.py
EXTRA_DIST += $(rules) tests/support/report.py
TESTS += $(rules)
