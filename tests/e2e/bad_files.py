"""Malformed model files are refused with one line, within a second and 50 MB: those of ../shared/cases/make_bad_gguf.py where it is
there, and a tiny model cut off at many places. And a model that is changed while it answers."""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import TINY, tiny  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, SETTINGS, SOURCE, check, command, finish, skip  # noqa: E402

CASES = Path(SETTINGS.get("SHARED", SOURCE.parent / "shared")) / "cases" / "make_bad_gguf.py"
MAX_SECONDS, MAX_MB = 1.0, 50
CONTROL = "a00_good.gguf"


def inspect(path):
    """(exit code, stderr, seconds, peak MB) of kopi inspect --check."""
    started = time.monotonic()
    process = subprocess.Popen([KOPI, "inspect", "--check", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, out + err, time.monotonic() - started, usage.ru_maxrss / 1024


def check_refused(name, path):
    code, text, seconds, mb = inspect(path)
    check(code == 4 and text.startswith(b"kopi: ") and text.count(b"\n") == 1, f"{name} is refused", f"exit {code}: {text.decode(errors='replace')}")
    if not SANITIZED:
        check(seconds < MAX_SECONDS and mb < MAX_MB, f"{name} within {MAX_SECONDS} s and {MAX_MB} MB", f"{seconds:.2f} s, {mb:.0f} MB")


def bad_cases(folder):
    if not CASES.is_file():
        return skip("the malformed files of make_bad_gguf.py", f"{CASES} is not there")
    done = command(sys.executable, CASES, folder)
    files = sorted(folder.glob("*.gguf"))
    check(done.returncode == 0 and len(files) >= 50, "the malformed files are written", done.stderr.decode())
    for path in files:
        if path.name != CONTROL:
            check_refused(path.name, path)
    done = command(KOPI, "inspect", folder / CONTROL)
    check(done.returncode == 0 and b"1 tensors" in done.stdout, "the control file is read", done.stderr.decode())


def truncations(folder):
    """Whole at the end only. (tests/unit cuts at every 64 bytes, in one process.)"""
    data = tiny(TINY[0]).read_bytes()
    path = folder / "cut.gguf"
    for n in [0, 3, 4, 23, 24, 100, 1000, len(data) // 3, len(data) // 2, len(data) - 64, len(data) - 1]:
        path.write_bytes(data[:n])
        check_refused(f"{TINY[0]} cut at {n} bytes", path)
    path.write_bytes(data)
    code, text, _, _ = inspect(path)
    check(code == 0 and text == b"verdict: runs\n", f"{TINY[0]} as a whole", text.decode(errors="replace"))


def overwrite(path):
    with path.open("r+b") as f:
        f.seek(path.stat().st_size - 4096)
        f.write(bytes(4096))


def replace(path):
    new = path.with_suffix(".new")
    new.write_bytes(bytes(path.stat().st_size))
    new.rename(path)


def changes(folder):
    """Written to in place, a mapped file ends the answer; replaced or removed it does not, nor does one that was copied."""
    path, config = folder / "changed.gguf", folder / "changed.yaml"
    config.write_text(f"backend: cpu\nmodels: [{{path: {path}, context: {{size: 100000}}}}]\n")
    run = ["run", "--raw", "-p", "abc", "--ignore-eos", "--temp", "0"]
    enough = "50" if SANITIZED else "1000"  # tokens, so that the change comes while they are made
    logits = ["logits", "--ids", ",".join(["5"] * 3000), "--chunk", "1", "-o", folder / "out.npy"]
    for what, change, args, code in (
            ("written to", overwrite, [*run, "-n", "100000"], 4), ("written to, logits", overwrite, logits, 4),
            ("written to, copied", overwrite, [*run, "-n", enough, "--no-mmap"], 0),
            ("replaced", replace, [*run, "-n", enough], 0), ("removed", Path.unlink, [*run, "-n", enough], 0)):
        path.write_bytes(tiny("llama-gqa-Q4_K_M").read_bytes())
        os.utime(path, (1, 1))
        process = subprocess.Popen([KOPI, *map(str, args), "-q", "--plugin-dir", PLUGINS, "--config", config], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if args[0] == "run":
            process.stdout.read1(1)
        else:
            while process.poll() is None and not list(folder.glob(".kopi-*.tmp")):
                time.sleep(0.005)
        change(path)
        error = process.communicate(timeout=300 if SANITIZED else 60)[1].decode()
        good = process.returncode == code and (code == 0 or error == f"kopi: {path}: was changed while it was in use; start again\n")
        check(good, f"a model that is {what} while it answers", f"exit {process.returncode}: {error}")
    check(not (folder / "out.npy").exists(), "no logits of a changed model are written")


with tempfile.TemporaryDirectory() as name:
    bad_cases(Path(name))
    truncations(Path(name))
    changes(Path(name))
finish()
