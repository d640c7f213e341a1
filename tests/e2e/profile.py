"""kopi profile: every millisecond is somewhere, the work that is counted does not depend on the backend, and the trace file tells the
same as the table."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, TINY, real, tiny  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, check, finish, kopi, skip  # noqa: E402

MODEL = tiny(next(m for m in TINY if m.startswith("llama")))
PROMPT, GEN = 40, 8


def profile(backend, *args, model=MODEL):
    done = kopi("profile", "-m", model, "-b", backend, "-p", PROMPT, "-n", GEN, "-o", "json", *args)
    if not check(done.returncode == 0, f"{backend}: runs", done.stderr.decode()):
        return []
    return json.loads(done.stdout)


def work(phase, kind):
    """Floating-point operations of all rows that are LINEAR or ATTN, with or without others."""
    return sum(o["flops"] for o in phase["operations"] if kind in o["operation"])


def check_times(backend, phases):
    for p in phases:
        total = sum(o["ms"] for o in p["operations"])
        check(abs(total - p["busy_ms"]) < 1e-3, f"{backend}, {p['phase']}: the rows add up", f"{total} {p['busy_ms']}")
        check(0 < p["busy_ms"] <= p["step_ms"] <= p["wall_ms"], f"{backend}, {p['phase']}: busy <= steps <= wall", str(p)[:300])
        check(p["n_steps"] == (1 if p["phase"] == "prompt" else GEN), f"{backend}, {p['phase']}: steps", str(p["n_steps"]))


def check_trace(backend):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        phases = profile(backend, "-t", 2, "--trace", path)
        events = json.loads(path.read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    busy = sum(p["busy_ms"] * p["n_threads"] for p in phases)
    # The file has microseconds with three digits; a rounding per span.
    check(abs(sum(e["dur"] for e in spans) / 1e3 - busy) < 1e-6 * len(spans) + 1e-3, f"{backend}: trace and table agree", str(busy))
    for worker in {e["tid"] for e in spans}:
        mine = sorted((e["ts"], e["dur"]) for e in spans if e["tid"] == worker)
        check(all(a + d <= b + 0.002 for (a, d), (b, _) in zip(mine, mine[1:])), f"{backend}: spans of worker {worker} don't overlap")
    labels = {o["operation"] for p in phases for o in p["operations"]}
    check({e["name"] for e in spans} == labels, f"{backend}: the names are the table's")


def check_sum(backend, model):
    """Within 5 % of the wall time, with one thread; the best of three, since the machine is not ours alone."""
    best = {}
    for _ in range(3):
        for p in profile(backend, "-t", 1, model=model):
            best[p["phase"]] = max(best.get(p["phase"], 0), p["busy_ms"] / p["wall_ms"])
    check(len(best) == 2 and min(best.values()) >= 0.95, f"{backend}: operations are at least 95 % of the wall time", str(best))


def check_trace_file():
    """An older file is replaced as a whole and keeps its permissions; a link stays one, and above all that of /dev/stdout."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        private, target, link, stdout = (folder / n for n in ("private", "target", "link", "stdout"))
        private.write_text("old")
        private.chmod(0o600)
        target.write_text("old")
        link.symlink_to("target")
        for path in private, link, folder / ("n" * 255):
            done = kopi("profile", "-m", MODEL, "-b", "cpu", "-p", 4, "-n", 1, "--trace", path)
            check(done.returncode == 0 and "traceEvents" in json.loads(path.read_text()), f"trace to {path.name[:9]}", done.stderr.decode())
        check(private.stat().st_mode & 0o777 == 0o600, "a private file stays private", oct(private.stat().st_mode))
        check(link.is_symlink() and "traceEvents" in json.loads(target.read_text()), "a link is followed")
        stdout.symlink_to("/proc/self/fd/1")
        for command, code in (["profile", "-p", "4", "-n", "1", "--trace", stdout], 2), (["logits", "--ids", "1,2", "-o", stdout], 0):
            with (folder / "out").open("wb") as out:
                done = subprocess.run([KOPI, *command, "-m", MODEL, "-b", "cpu", "--plugin-dir", PLUGINS], stdout=out, stderr=subprocess.PIPE)
            check(done.returncode == code and os.readlink(stdout) == "/proc/self/fd/1", f"{command[0]} leaves the link", done.stderr.decode())
        check((folder / "out").read_bytes().startswith(b"\x93NUMPY"), "and writes to where it leads")
        check(not list(folder.glob("*.tmp")) and not list(folder.glob(".*")), "nothing else is left")


runs = {b: profile(b, "-t", 1) for b in BACKENDS}
for backend, phases in runs.items():
    check([p["phase"] for p in phases] == ["prompt", "generation"], f"{backend}: two phases")
    check_times(backend, phases)
    check_trace(backend)
for kind in "LINEAR", "ATTN":
    done = {b: [work(p, kind) for p in phases] for b, phases in runs.items()}
    check(len({tuple(d) for d in done.values()}) == 1 and all(done[BACKENDS[0]]), f"{kind}: the same work on all backends", str(done))
check(any(" + " in o["operation"] for o in runs["cpu-threaded"][0]["operations"]), "fused operations are shown as such")
check(not any(" + " in o["operation"] for o in runs["cpu"][0]["operations"]), "kernels are shown one by one")

real_model = real("smollm2")
if SANITIZED or not real_model:
    skip("operations are 95 % of the wall time", "a sanitizer runs" if SANITIZED else "not fetched: scripts/fetch-model smollm2")
else:
    check_sum("cpu-threaded", real_model)

check_trace_file()
done = kopi("profile", "-m", MODEL, "-b", "cpu", "-p", 8, "-n", 2)
check(done.returncode == 0 and b"LINEAR" in done.stdout and b"| all " in done.stdout, "the table", done.stdout.decode())
for what, args, code, words in [("no such form", ["-o", "xml"], 2, "md, json"), ("nothing to do", ["-p", "0", "-n", "0"], 2, "nothing"),
                                ("full disk", ["--trace", "/dev/full"], 1, "/dev/full"), ("no folder", ["--trace", "/nowhere/t"], 1, "/nowhere/t"),
                                ("too small", ["-c", "16"], 2, "a test needs 32 positions, the context has 16"),
                                ("no name", ["--trace", ""], 2, "empty"), ("the table's place", ["--trace", "-"], 2, "standard output")]:
    done = kopi("profile", "-m", MODEL, "-b", "cpu", "-p", "24", "-n", "2", *args)  # a later flag replaces an earlier one
    text = done.stderr.decode()
    check(done.returncode == code and words in text and len(text.splitlines()) == 1, f"refused: {what}", f"{done.returncode}: {text}")
finish()
