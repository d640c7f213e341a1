"""Weights are never expanded: peak memory is at most the larger of file and imported weights + KV cache + 120 MB, and while the
model answers at most 1.1 times the file + KV cache + 60 MB. Real models that were fetched, on every backend. Logits are never held
all at once."""
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, real, test_ids, tiny  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, check, finish, skip  # noqa: E402

MODELS = ["smollm2", "gemma3-270m", "qwen2.5-coder-0.5b"]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MB = 1e6
N_IDS = 3000  # of which the logits take 4 MB


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


def logits(out, *options, n=N_IDS, space=resource.RLIM_INFINITY):
    """(exit status, message, peak bytes) of the logits of n ids with this much address space."""
    args = [KOPI, "logits", "-q", "--plugin-dir", PLUGINS, "-m", tiny("llama-gqa-Q4_K_M"), "-b", "cpu", "-c", N_IDS, "--ids", test_ids(n), "-o", out, *options]
    process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)))
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, message, usage.ru_maxrss * 1024


def check_logits(folder):
    """--chunk 0 is of as many rows in memory as a step has; what isn't there is refused."""
    whole, parts = folder / "whole.npy", folder / "parts.npy"
    code, message, most = logits(whole, "--chunk", 0)
    _, _, least = logits(parts, "--chunk", 512)
    check(code == 0 and whole.read_bytes() == parts.read_bytes(), "logits --chunk 0", message)
    check(most - least < whole.stat().st_size / 4, "logits --chunk 0 does not hold the file", f"{most / MB:.0f} MB, --chunk 512 {least / MB:.0f} MB")
    low, high = 0, 1 << 32
    while high - low > 1 << 20:  # the least space for one row
        middle = (low + high) // 2
        enough = logits(parts, "--batch-size", N_IDS, n=1, space=middle)[0] == 0
        low, high = (low, middle) if enough else (middle, high)
    code, message, _ = logits(parts, "--batch-size", N_IDS, "--chunk", 0, space=high)
    check(code == 1 and "lower --chunk" in message and message.count("\n") == 1, "logits that need more than there is", f"{code}: {message}")


with tempfile.TemporaryDirectory() as name:
    if SANITIZED:
        skip("memory of logits", "a sanitizer runs")
    else:
        check_logits(Path(name))
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
