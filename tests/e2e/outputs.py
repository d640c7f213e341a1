"""Files that a command writes: complete or not at all, through links, never in place of an input or of what may not be written."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import tiny  # noqa: E402
from report import PLUGINS, KOPI, check, finish, kopi, skip  # noqa: E402

MODEL = tiny("llama-gqa-Q4_K_M")
BAD_ID = "4000000"  # found when the output is open


def logits(out, ids="1,2,3", model=MODEL, *more, **how):
    return kopi("logits", "-m", model, "-b", "cpu", "--ids", ids, "-o", out, *more, **how)


def left(folder):
    return list(folder.glob(".kopi-*"))


def links(folder):
    """A link stays; what it leads to is replaced only by a complete file, also over two links and from another folder."""
    (folder / "sub").mkdir()
    target, link, chain = folder / "sub" / "target.npy", folder / "link.npy", folder / "sub" / "chain.npy"
    link.symlink_to("sub/target.npy")
    chain.symlink_to(link)
    done = logits(link)
    check(done.returncode == 0 and target.read_bytes()[:6] == b"\x93NUMPY", "a link to nothing makes its target", done.stderr.decode())
    whole = target.read_bytes()
    target.write_text("kept")
    target.chmod(0o640)
    for path in link, chain:
        done = logits(path, BAD_ID)
        check(done.returncode == 2 and target.read_text() == "kept" and not left(folder / "sub"), f"{path.name}: a failed run keeps the target", done.stderr.decode())
    done = logits(chain)
    check(done.returncode == 0 and target.read_bytes() == whole and link.is_symlink() and chain.is_symlink(), "links stay", done.stderr.decode())
    check(target.stat().st_mode & 0o777 == 0o640 and not left(folder) and not left(folder / "sub"), "with its permissions")
    loop = folder / "loop"
    loop.symlink_to("loop")
    done = logits(loop)
    check(done.returncode == 1 and b"oo many" in done.stderr and done.stderr.count(b"\n") == 1, "a link to itself", done.stderr.decode())
    with (folder / "stdout").open("wb") as f:
        done = subprocess.run([KOPI, "logits", "--plugin-dir", PLUGINS, "-m", MODEL, "-b", "cpu", "--ids", "1,2,3", "-o", "/dev/stdout"], stdout=f, stderr=subprocess.PIPE)
        check(os.fstat(f.fileno()).st_nlink == 1 and os.fstat(f.fileno()).st_size == len(whole), "/dev/stdout is written directly", done.stderr.decode())


def names(folder):
    """A temporary file of another process of the same number stays; a new file obeys the umask."""
    process = subprocess.Popen(["sh", "-c", f'cd "$1"; echo mine >.kopi-$$.tmp; umask 027; exec "$2" logits --plugin-dir "$3" -m "$4" -b cpu --ids 1 -o new.npy',
                                "sh", folder, KOPI, PLUGINS, MODEL], stderr=subprocess.PIPE)
    error = process.communicate()[1].decode()
    other = folder / f".kopi-{process.pid}.tmp"
    check(process.returncode == 0 and other.exists() and other.read_text() == "mine\n", "the file of another one stays", error)
    other.unlink(missing_ok=True)
    check((folder / "new.npy").stat().st_mode & 0o777 == 0o640, "a new file obeys the umask")


def inputs(folder):
    """Nothing that a command reads is its output, by whatever name."""
    model, ids, text, config = (folder / n for n in ("own.gguf", "ids.txt", "text.txt", "own.yaml"))
    shutil.copy(MODEL, model)
    (folder / "other.gguf").symlink_to(model)
    os.link(model, folder / "hard.gguf")
    parts = [folder / f"part-0000{i}-of-00002.gguf" for i in (1, 2)]
    for p in parts:
        p.write_text("never read")
    ids.write_text("1,2,3")
    text.write_text("abc")
    config.write_text(f"backend: cpu\nmodel: {model}\n")
    before = {f: f.read_bytes() for f in (model, ids, text, config, *parts)}
    short = ["-p", "4", "-n", "1"]
    run = ["run", "--raw", "-f", text, "-n", "1"]
    for what, args in (
            ("the model", ["logits", "-m", model, "--ids", "1", "-o", model]),
            ("a link to it", ["logits", "-m", model, "--ids", "1", "-o", folder / "other.gguf"]),
            ("a second name of it", ["logits", "-m", model, "--ids", "1", "-o", folder / "hard.gguf"]),
            ("the model behind --trace", ["profile", "-m", model, *short, "--trace", model]),
            ("the ids", ["logits", "-m", MODEL, "--ids-file", ids, "-o", ids]),
            ("the configuration", ["logits", "--config", config, "--ids", "1", "-o", config]),
            ("the model of a configuration", ["logits", "--config", config, "--ids", "1", "-o", model]),
            ("the model as a log", [*run, "-m", model, "--log-file", model]),
            ("a draft model as a log", [*run, "-m", MODEL, "-md", model, "--log-file", model]),
            ("the prompt as a log", [*run, "-m", MODEL, "--log-file", text]),
            ("the configuration as a log", [*run, "--config", config, "--log-file", config]),
            ("an argument as a log", ["inspect", model, "--log-file", model]),
            ("another part as a log", ["inspect", parts[0], "--log-file", parts[1]]),
            ("the log as an output", ["logits", "-m", MODEL, "--ids", "1", "-o", folder / "log", "--log-file", folder / "log"])):
        done = kopi(*args)
        check(done.returncode == 2 and done.stderr.count(b"\n") == 1 and (b"is read by" in done.stderr or b"log file already" in done.stderr), f"{what} can't be an output", done.stderr.decode())
    check(all(f.read_bytes() == b for f, b in before.items()), "the inputs are as they were")
    check(not left(folder), "nothing is left")


def protected(folder):
    path = folder / "protected.npy"
    path.write_text("kept")
    path.chmod(0o444)
    drop = [] if os.geteuid() else [shutil.which("setpriv"), "--bounding-set=-dac_override"]
    if None in drop:
        return skip("a write-protected file", "no setpriv to be bound by permissions")
    done = subprocess.run([*drop, KOPI, "logits", "--plugin-dir", PLUGINS, "-m", MODEL, "-b", "cpu", "--ids", "1", "-o", path], capture_output=True)
    check(done.returncode == 1 and b"Permission denied" in done.stderr and path.read_text() == "kept", "a write-protected file stays", done.stderr.decode())


def size_limit(folder):
    """Python ignores SIGXFSZ; by default it kills."""
    out = folder / "large.npy"
    done = subprocess.run(["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", KOPI, "logits", "--plugin-dir", PLUGINS, "-m", MODEL, "-b", "cpu",
                           "--ids", ",".join("5" * 64), "-o", out], capture_output=True, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_DFL))
    check(done.returncode == 1 and b"large.npy: File too large" in done.stderr and done.stderr.count(b"\n") == 1, "a file past the limit of sizes", f"{done.returncode}: {done.stderr.decode()}")
    check(not out.exists() and not left(folder), "nothing of it is left")


def lost_log():
    for args, code in (["bench", "-m", MODEL, "-b", "cpu", "-p", "4", "-n", "0", "-r", "1", "-v"], 1), (["bench", "-m", "missing.gguf"], 4):
        for form in "text", "jsonl":
            done = kopi(*args, "--log-file", "/dev/full", "--log-format", form)
            lines = done.stderr.decode().splitlines()
            check(done.returncode == code and "--log-file /dev/full: No space left" in lines[-1], f"a lost log is said, {form}", f"{done.returncode}: {lines}")


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    links(folder)
    names(folder)
    inputs(folder)
    protected(folder)
    size_limit(folder)
lost_log()
finish()
