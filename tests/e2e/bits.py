"""Equal bits: the logits of a model depend on the token ids and on nothing else. Not on the backend, the threads, the split of the
prompt or the level of the instruction set. Their SHA-256 is committed (tests/data/logits.sha256, made with the backend cpu):

    KOPI=build/kopi KOPI_PLUGINS=$PWD/build/.libs python3 tests/e2e/bits.py --write
"""
import hashlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, DATA, TINY, levels, test_ids, tiny  # noqa: E402
from report import SANITIZED, check, finish, kopi, skip  # noqa: E402

N_IDS = 300  # more than one chunk of the attention
SUMS = DATA / "logits.sha256"
CHUNKS = [1, 7, 64, 0]
MODELS = TINY[:2] if SANITIZED else TINY  # sanitizers look for other faults, at a tenth of the speed


def logits(model, backend, *options):
    """(SHA-256 of the file that kopi logits writes, or None; its message)"""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "logits.npy"
        done = kopi("logits", "-m", tiny(model), "-b", backend, "--fallback", "none", "--ids", test_ids(N_IDS), "-o", out, *options)
        if done.returncode or not out.is_file():
            return None, done.stderr.decode(errors="replace").strip()
        return hashlib.sha256(out.read_bytes()).hexdigest(), ""


def variants(backend):
    """(name, options) of everything that must not matter."""
    threads = [1] if backend == "cpu" else [1, 2, 3]
    for n in threads:
        for chunk in CHUNKS:
            yield f"threads {n}, chunk {chunk}", ["-t", n, "--chunk", chunk]
    for level, here in levels(backend):
        for chunk in (1, 0) if here else ():
            yield f"isa {level}, chunk {chunk}", ["--set", f"backend.options.{backend}.isa={level}", "--chunk", chunk]
    yield "batch 5", ["--batch-size", 5, "--chunk", 0]
    yield "no mmap", ["--no-mmap"]


def committed():
    return {line.split()[1]: line.split()[0] for line in SUMS.read_text().splitlines()}


def write():
    SUMS.write_text("".join(f"{logits(m, 'cpu')[0]}  {m}\n" for m in TINY))


def main():
    sums = committed()
    check(sorted(sums) == TINY and len(TINY) >= 5, "every tiny model has its committed sum")
    for model in MODELS:
        for backend in BACKENDS:
            for name, options in variants(backend):
                got, message = logits(model, backend, *options)
                check(got == sums[model], f"{model} with {backend}, {name}", message or f"SHA-256 {got}, not {sums[model]}")
    for backend in BACKENDS:
        for level, here in levels(backend):
            if not here:
                skip(f"{backend} at level {level}", "untested: this machine hasn't got it")
    finish()


if sys.argv[1:] == ["--write"]:
    write()
else:
    main()
