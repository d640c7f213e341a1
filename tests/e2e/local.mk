# The built command, with the plugins of the build tree. What needs a model that was not fetched says so and is skipped.
e2e = tests/e2e/answers.py tests/e2e/bad_config.py tests/e2e/bad_files.py tests/e2e/bench.py tests/e2e/bits.py tests/e2e/chat.py tests/e2e/commands.py tests/e2e/golden.py tests/e2e/levels.py \
	tests/e2e/memory.py tests/e2e/outputs.py tests/e2e/profile.py tests/e2e/real_bits.py tests/e2e/signals.py tests/e2e/speculation.py
TESTS += $(e2e)
EXTRA_DIST += $(e2e) tests/support/models.py tests/data
