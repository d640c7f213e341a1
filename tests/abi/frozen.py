"""A plugin of ABI 0.9 with its own copy of that time's headers runs a model on today's kopi, and its folder has not changed."""
import hashlib
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from plugins import compile_to, logits  # noqa: E402
from report import BUILD, KOPI, PLUGINS, SOURCE, check, command, finish  # noqa: E402

FOLDER = SOURCE / "tests" / "abi" / "v0.9"
listed = {}
for line in (FOLDER / "SHA256SUMS").read_text().splitlines():
    digest, name = line.split(maxsplit=1)
    listed[Path(name).as_posix()] = digest
files = {p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*") if p.is_file()} - {"SHA256SUMS"}
check(files == set(listed), "v0.9 holds the listed files and no others", ", ".join(files ^ set(listed)))
for name in sorted(files & set(listed)):
    check(hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == listed[name], f"v0.9/{name} is unchanged")

with tempfile.TemporaryDirectory() as tmp:
    top = Path(tmp)
    model = top / "q8_0.gguf"
    check(command(BUILD / "tests/support/tinymodel", model, "q8_0").returncode == 0, "the model is written")
    plugin = compile_to(top / "kopi-frozen.so", FOLDER / "kopi-frozen.c", "-Werror", include=FOLDER / "include")
    want, errors = logits(model, top / "cpu.npy", "-b", "cpu")
    check(want, "cpu computes logits", errors)
    for threads in 1, 3:
        have, errors = logits(model, top / "frozen.npy", "--backend-path", plugin, "-t", threads, "-v")
        check(want and have == want, f"the frozen plugin gives the bytes of cpu on {threads} threads", errors)
        check("15 weights copied" in errors, "its weights were imported", errors)
    done = command(KOPI, "backends", "--plugin-dir", PLUGINS, "--plugin-dir", top, "-m", model, "-b", "frozen")
    check(b"frozen linear_q8_0_frozen" in done.stdout, "its kernel runs LINEAR", done.stdout.decode() + done.stderr.decode())
    have, errors = logits(model, top / "frozen.npy", "--backend-path", plugin, "--set", "backend.options.frozen.mood=wild")
    check(have is None and "option mood: allowed is calm" in errors, "its option is read", errors)
finish()
