"""`kopi backends check` on the backends that are built for tests and benchmarks, and are right."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import BUILD, check, finish, kopi  # noqa: E402

for name in "tests/backend/.libs/kopi-fake-device", "tests/backend/.libs/kopi-fake-canonical", "bench/.libs/kopi-kernels-only":
    done = kopi("backends", "check", BUILD / f"{name}.so", timeout=300)
    text = done.stdout.decode()
    check(done.returncode == 0, f"{name} conforms", (text + done.stderr.decode())[-2000:])
    passed = text.count("\nok ") - text.count("# SKIP")
    check(passed > 85, f"{name}: nearly all tests have something to test", f"{passed} passed")
finish()
