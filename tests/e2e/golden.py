"""The golden files of ../shared (or $KOPI_SHARED), where they are there: kopi must not be further from truth than llama.cpp is.
KOPI_TEST_GOLDEN=1 adds those of the real models that were fetched; that takes many minutes."""
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, CACHE  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, SETTINGS, SOURCE, check, command, counts, finish, skip  # noqa: E402

CHECKER = Path(SETTINGS.get("SHARED", SOURCE.parent / "shared")) / "golden" / "check.py"
FILES = r"^(llama-(gqa|hd80)|llama3|qwen2-|gemma3|quants-(Q2_K|Q3|Q4|Q5|Q6|Q8)|smollm2|qwen2\.5)"
FULL = SETTINGS.get("TEST_GOLDEN") == "1"


def python_with_numpy():
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists() and command(python, "-c", "import numpy").returncode == 0:
            return python
    return None


def run(python, what, *options):
    done = command(python, CHECKER, "--quiet", "--filter", FILES, "--models-dir", CACHE, *options, timeout=3600,
                   env=dict(os.environ, KOPI_PLUGIN_PATH=PLUGINS))
    text = done.stdout.decode(errors="replace")
    found = re.search(r"^(\d+) passed, (\d+) failed$", text, re.M)
    passed, failed = map(int, found.groups()) if found else (0, 0)
    counts["passed"] += passed
    counts["failed"] += failed
    if failed or not check(found and passed, f"{what}: the checker counts", text + done.stderr.decode(errors="replace")):
        print(f"FAILED: {what}:\n{text}")


def main():
    python = CHECKER.is_file() and python_with_numpy()
    if SANITIZED or not python:
        skip("golden files", "a sanitizer runs" if SANITIZED else f"{CHECKER} is not there" if python is False else "numpy is missing")
        finish()
    exact = f"{KOPI} logits -m {{model}} --ids {{ids}} -o {{out}} -b cpu --set backend.options.cpu.linear=f32"
    parts = "tiny,tinytok"
    for backend in BACKENDS:
        more = {"cpu": ",tokenize,logits", "cpu-threaded": ",tokenize,logits,perplexity"}[backend] if FULL else ""
        run(python, backend, "--kopi", KOPI, "--backend", backend, "--only", parts + more)
        parts = "tiny"  # the tokenizer is the same for all
    run(python, "cpu with linear: f32", "--exact", "--logits-cmd", exact, "--only", "tiny" + (",logits" if FULL else ""))
    if not FULL:
        skip("golden files of the real models", "KOPI_TEST_GOLDEN=1 runs them")
    finish()


main()
