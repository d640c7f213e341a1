"""Real models answer: the committed texts (tests/data/answers), byte for byte on every backend, from the example configurations;
swapping the backend is one name. Only models that were fetched (scripts/fetch-model)."""
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, DATA, real  # noqa: E402
from report import SANITIZED, SOURCE, check, finish, kopi, skip  # noqa: E402

# model: example configuration, prompt, what a right answer has in it
ANSWERS = {
    "smollm2": ("kopi.yaml", "What is gravity?", b"force"),
    "qwen2.5-coder-0.5b": ("qwen.yaml", "What is the capital of France?", b"Paris"),
}
FLAGS = ["-n", "48", "--temp", "0"]


def expected(model):
    return (DATA / "answers" / f"{model}.txt").read_bytes()


def check_answer(model, how, *options):
    done = kopi("run", *options, "-p", ANSWERS[model][1], *FLAGS, timeout=600)
    check(done.returncode == 0 and done.stdout == expected(model), f"{model} {how}",
          f"exit {done.returncode}: {done.stdout.decode(errors='replace')} {done.stderr.decode(errors='replace')}")


def swap_by_yaml(model, backend):
    """The example with nothing but its backend's name changed."""
    text = (SOURCE / "examples" / ANSWERS[model][0]).read_text()
    text, n = re.subn(r"^(backend|  name): cpu-threaded\b", rf"\1: {backend}", text, flags=re.M)
    check(n == 1, f"{ANSWERS[model][0]} names the backend once")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        check_answer(model, f"with {backend} in the YAML", "--config", f.name)


for model, (config, _, word) in ANSWERS.items():
    check(word in expected(model), f"the committed answer of {model} is right")
    if SANITIZED or not real(model):
        skip(f"answer of {model}", "a sanitizer runs" if SANITIZED else f"not fetched: scripts/fetch-model {model}")
        continue
    for backend in BACKENDS:
        check_answer(model, f"with -b {backend}", "--config", SOURCE / "examples" / config, "-b", backend)
    swap_by_yaml(model, BACKENDS[-1])
finish()
