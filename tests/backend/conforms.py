"""`kopi backends check` on the backends that are built for tests and benchmarks, and are right."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import BUILD, SANITIZED, check, finish, kopi  # noqa: E402

LIMIT = 600 if SANITIZED else 60  # seconds of a case; a sanitizer is slow, not wrong

for name in "tests/backend/.libs/kopi-fake-device", "tests/backend/.libs/kopi-fake-canonical", "bench/.libs/kopi-kernels-only":
    done = kopi("backends", "check", BUILD / f"{name}.so", "--time-limit", LIMIT, timeout=5 * LIMIT)
    text = done.stdout.decode()
    faults = text[max(text.find("\nnot ok "), 0):]
    check(done.returncode == 0, f"{name} conforms", (faults + done.stderr.decode())[:2000])
    passed = text.count("\nok ") - text.count("# SKIP")
    check(passed > 85, f"{name}: nearly all tests have something to test", f"{passed} passed")

# This seed draws a gather of no rows: nothing is left to do, and the host is asked all the same.
done = kopi("backends", "check", "cpu-threaded", "--reproduce", "cancel/plan:134757")
check(done.returncode == 0, "a run without a step can be cancelled", done.stdout.decode()[-1000:])

done = kopi("backends", "check", "cpu-threaded", "--group", "bench", "--time-limit", LIMIT, timeout=5 * LIMIT)
lines = [line for line in done.stdout.decode().splitlines() if line.startswith(("ok ", "not ok "))]
timed = [re.search(r"tokens ([0-9.]+) us, one ([0-9.]+) us; reference ([0-9.]+) us, ([0-9.]+) us", line) for line in lines]
check(done.returncode == 0 and sum(t is not None for t in timed) > 40, "--group bench times the operations", "\n".join(lines)[-1000:])
check(all(float(x) > 0 for t in timed if t for x in t.groups()), "no time is 0", "\n".join(lines)[-1000:])
check(any("bench/linear/q4_1" in line for line in lines) and not any("ops/" in line for line in lines), "and nothing else", "\n".join(lines)[-1000:])
finish()
