"""Which code runs each operation: that of the chosen backend, at the level that was asked for or the best that the machine has.
A silent fallback would make every other comparison vain."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, TINY, levels, tiny  # noqa: E402
from report import check, finish, kopi, skip  # noqa: E402

LINE = re.compile(r"^  (\S+(?: \S+)*?) +x (\d+) +(\S+) (\S+)$", re.M)  # operation, how often, backend, code
OPERATIONS = {"EMBED", "NORM", "QUANTIZE", "LINEAR", "ROPE", "KV_WRITE", "ATTN", "ADD", "GLU"}


def code_that_runs(model, backend, *options):
    """[(operation, backend, code)] as `kopi backends` says, or None with its message."""
    done = kopi("backends", "-m", tiny(model), "-b", backend, *options)
    text = done.stdout.decode()
    if done.returncode or "code that runs" not in text:
        return None, done.stderr.decode() + text
    return [(op, who, code) for op, _, who, code in LINE.findall(text.split("code that runs")[1])], ""


def check_level(model, backend, level, options):
    rows, message = code_that_runs(model, backend, *options)
    where = f"{model}, {backend} at level {level}"
    if not check(rows, where, message):
        return
    missing = OPERATIONS - {op.split()[0] for op, _, _ in rows}
    check(not missing, f"{where}: operations are listed", ", ".join(sorted(missing)))
    for op, who, code in rows:
        check(who == backend and code.endswith(f"_{level}"), f"{where}: {op}", f"{who} {code}")


for backend in BACKENDS:
    best = None
    for level, here in levels(backend):
        option = ["--set", f"backend.options.{backend}.isa={level}"]
        if here:
            best = level
            for model in TINY:
                check_level(model, backend, level, option)
        else:
            done = kopi("backends", "-m", tiny(TINY[0]), "-b", backend, *option)
            check(done.returncode == 5 and b"isa" in done.stderr, f"{backend} at level {level} is refused here", done.stderr.decode())
            skip(f"{backend} at level {level}", "untested: this machine hasn't got it")
    check_level(TINY[0], backend, best, [])
    done = kopi("backends", "-m", tiny(TINY[0]), "-b", backend, "--set", f"backend.options.{backend}.isa=sse9")
    check(done.returncode == 5 and b"isa" in done.stderr, f"{backend} refuses an unknown level", done.stderr.decode())
finish()
