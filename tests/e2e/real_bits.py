"""Equal bits on the real models that were fetched: the logits of 200 tokens are the same file for both backends, any number of threads,
any split of the prompt and every level of the instruction set that the machine has. bits.py does the same on tiny models, always."""
import hashlib
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import levels, real, test_ids  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, check, finish, skip  # noqa: E402

MODELS = ["smollm2", "qwen2.5-coder-0.5b", "gemma3-270m"]
N_IDS = 200


def variants():
    """(what, options), the first is what the others are compared with."""
    yield "cpu", ["-b", "cpu", "--chunk", 0]
    for threads, chunk in (1, 0), (1, 64), (2, 7), (2, 1), (3, 0), (3, 64):
        yield f"cpu-threaded, {threads} threads, chunk {chunk}", ["-b", "cpu-threaded", "-t", threads, "--chunk", chunk]
    for level, here in levels("cpu-threaded"):
        if here:
            yield f"cpu-threaded, isa {level}", ["-b", "cpu-threaded", "--set", f"backend.options.cpu-threaded.isa={level}", "--chunk", 100]


def sha256(model, options):
    """Of what kopi logits writes, which is too large to keep; or its message."""
    command = [KOPI, "logits", "--plugin-dir", PLUGINS, "-m", model, "--fallback", "none", "--ids", test_ids(N_IDS), "-o", "-", *options]
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        digest = hashlib.sha256()
        while block := process.stdout.read(1 << 20):
            digest.update(block)
        message = process.stderr.read().decode(errors="replace").strip()
    return digest.hexdigest() if process.returncode == 0 else message or f"exit {process.returncode}"


for name in MODELS:
    path = real(name)
    if SANITIZED or not path:
        skip(f"bits of {name}", "a sanitizer runs" if SANITIZED else f"not fetched: scripts/fetch-model {name}")
        continue
    first = None
    for what, options in variants():
        got = sha256(path, options)
        first = first or got
        check(len(got) == 64 and got == first, f"{name}: {what}", got)
finish()
