"""Weights are never expanded: peak memory is at most the larger of file and imported weights + KV cache + 120 MB, and while the
model answers at most 1.1 times the file + KV cache + 60 MB. Real models that were fetched, on every backend."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, real  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, check, finish, skip  # noqa: E402

MODELS = ["smollm2", "gemma3-270m", "qwen2.5-coder-0.5b"]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MB = 1e6


def resident(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def measure(path, backend):
    """(peak bytes, bytes while it answers, bytes of the KV cache, message)"""
    args = [KOPI, "run", "--plugin-dir", PLUGINS, "-m", path, "-b", backend, "-v", "--raw", "--ignore-eos", "-p", "Once upon a time",
            "-n", "8", "-c", "2048", "--temp", "0"]
    process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read1(1)
    now = resident(process.pid)
    process.stdout.read()
    log = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    kv = re.search(r"KV cache ([0-9.]+) (\w+)", log)
    if process.returncode or not kv:
        return 0, 0, 0, f"exit {process.returncode}: {log}"
    return usage.ru_maxrss * 1024, now, float(kv[1]) * UNITS[kv[2]], ""


for name in MODELS:
    path = real(name)
    if SANITIZED or not path:
        skip(f"memory of {name}", "a sanitizer runs" if SANITIZED else f"not fetched: scripts/fetch-model {name}")
        continue
    size = path.stat().st_size
    for backend in BACKENDS:
        peak, now, kv, message = measure(path, backend)
        if check(peak, f"{name} with {backend}", message):
            figures = f"peak {peak / MB:.0f} MB, answering {now / MB:.0f} MB; file {size / MB:.0f} MB, KV cache {kv / MB:.0f} MB"
            print(f"{name} with {backend}: {figures}")
            check(peak <= size + kv + 120 * MB, f"{name} with {backend}: peak", figures)
            check(now <= 1.1 * size + kv + 60 * MB, f"{name} with {backend}: while it answers", figures)
finish()
