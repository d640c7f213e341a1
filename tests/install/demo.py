"""The example backend, and the one that `kopi backends new` writes, as a third party has them: built outside the tree with nothing
but what `pkg-config kopi-backend` says of the installed prefix, then run by the installed kopi. Called by `make installcheck`;
argument: a model with Q8_0 weights."""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import KOPI, SOURCE, check, command, finish  # noqa: E402
from outside import build, copy_example  # noqa: E402

MODEL = Path(sys.argv[1]).resolve()
IDS = ",".join(str(i * 7 % 64) for i in range(40))
FILLED = ["EMBED Q8_0", "NORM", "QUANTIZE x A8_32", "ROPE", "KV_WRITE F16", "ATTN F16", "ADD", "GLU", "GATHER"]


def logits(folder, name, *options, model=MODEL):
    out = folder / f"{name}.npy"
    done = command(KOPI, "logits", "-m", model, "--ids", IDS, "-o", out, *options, cwd=folder)
    return done, out.read_bytes() if done.returncode == 0 else None


with tempfile.TemporaryDirectory() as tmp:
    top = Path(tmp)
    copy_example("backend-demo", top / "demo")
    plugin = build(top / "demo", "demo")
    done, want = logits(top, "cpu", "-b", "cpu")
    check(want, "cpu computes logits", done.stderr.decode())
    for threads in 1, 3:
        done, have = logits(top, "demo", "--backend-path", plugin, "-t", threads)
        check(have and have == want, f"the same bytes as cpu's with the demo backend on {threads} threads", done.stderr.decode())
    for what in FILLED:
        check(what in done.stderr.decode(), f"the warning names {what}", done.stderr.decode())
    check("LINEAR" not in done.stderr.decode(), "LINEAR is computed by the demo backend", done.stderr.decode())

    other = SOURCE / "tests" / "data" / "llama-gqa-Q4_K_M.gguf"
    done, want_other = logits(top, "cpu-other", "-b", "cpu", model=other)
    done, have = logits(top, "demo-other", "--backend-path", plugin, model=other)
    check(have and have == want_other, "a model of types that the backend lacks: the same bytes", done.stderr.decode())

    done, have = logits(top, "none", "--backend-path", plugin, "--fallback", "none")
    check(done.returncode == 5, "without fallback the model is refused with exit status 5", str(done.returncode))
    for what in FILLED:
        check(what in done.stderr.decode(), f"the refusal names {what}", done.stderr.decode())

    done = command(KOPI, "backends", "new", "my-own_1", top / "own")
    check(done.returncode == 0, "kopi backends new", done.stderr.decode())
    written = list((top / "own").iterdir())
    check(len(written) == 4, "it writes four files", ", ".join(p.name for p in written))
    for mine in written:
        text = (SOURCE / "examples" / "backend-demo" / mine.name.replace("my-own_1", "demo")).read_text()
        check(mine.read_text() == text.replace("demo", "my-own_1"), f"{mine.name} is a renamed copy")
    done, have = logits(top, "own", "--backend-path", build(top / "own", "my-own_1"))
    check(have and have == want and "backend my-own_1 lacks" in done.stderr.decode(), "the copy runs the model", done.stderr.decode())
    again = command(KOPI, "backends", "new", "my-own_1", top / "own")
    check(again.returncode == 1 and b"is not empty" in again.stderr, "nothing is overwritten", again.stderr.decode())
    again = command(KOPI, "backends", "new", "My", top / "other")
    check(again.returncode == 2 and not (top / "other").exists(), "a bad name is refused", again.stderr.decode())

    installed = top / "backends"
    done = command("make", "install", f"backenddir={installed}", "DESTDIR=", cwd=top / "demo")
    check(done.returncode == 0, "make install", done.stderr.decode())
    (installed / "kopi-demo.la").unlink(missing_ok=True)
    done, have = logits(top, "by-name", "--plugin-dir", installed, "-b", "demo")
    check(have and have == want, "the same bytes by name", done.stderr.decode())
finish()
