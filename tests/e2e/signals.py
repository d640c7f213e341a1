"""Ctrl-C while loading, in a long prompt and in the answer; a closed pipe; a full disk; an input that ends at once. Never a crash, a
hang, or a file that looks complete."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import TINY, test_ids, tiny  # noqa: E402
from report import KOPI, PLUGINS, SANITIZED, check, command, finish, kopi  # noqa: E402

MODEL = tiny(next(m for m in TINY if m.startswith("llama")))
BOUND = 60 if SANITIZED else 10  # seconds to end in


def start(*args, **more):
    return subprocess.Popen([KOPI, args[0], "--plugin-dir", PLUGINS, *map(str, args[1:])], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)


def interrupt(what, process, times=1, number=signal.SIGINT):
    """Sends the signal; the process must end in time with 130 and without being killed by it."""
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.05)
    started = time.monotonic()
    try:
        out, err = process.communicate(timeout=BOUND)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return check(False, what, f"still running {BOUND} s after the signal")
    return check(process.returncode == 130, what, f"exit {process.returncode} after {time.monotonic() - started:.1f} s: {err.decode()}")


def wait_until(condition):
    end = time.monotonic() + BOUND
    while time.monotonic() < end and not condition():
        time.sleep(0.005)
    return condition()


def interrupt_load(folder):
    """The model's SHA-256 is asked for, so that loading reads a file large enough to be interrupted in."""
    large = folder / "large.gguf"
    with large.open("wb") as f:
        f.write(MODEL.read_bytes())
        f.truncate(6 << 30)
    config = folder / "load.yaml"
    config.write_text(f"backend: cpu\nmodels: [{{path: {large}, sha256: {'0' * 64}}}]\n")
    process = start("run", "--config", config, "-p", "x", stdout=subprocess.PIPE)
    time.sleep(0.3)
    check(process.poll() is None, "the load is long enough")
    interrupt("Ctrl-C while loading", process)


def interrupt_prefill(folder):
    """A prompt of many tokens in chunks of one, so that it takes long."""
    out = folder / "prefill.npy"
    ids = folder / "ids.txt"
    ids.write_text(",".join([test_ids(2000)]))
    for number, times in (signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGHUP, 1), (signal.SIGHUP, 2):
        process = start("logits", "-m", MODEL, "-b", "cpu", "-c", 2000, "--chunk", 1, "--ids-file", ids, "-o", out, stdout=subprocess.PIPE)
        check(wait_until(lambda: list(folder.glob(".kopi-*.tmp"))), "the prompt has begun")
        what = f"{times} x {number.name} in a prompt"
        interrupt(what, process, times, number)
        check(not out.exists() and not list(folder.glob(".kopi-*.tmp")), f"{what}: no part of a file is left")


def interrupt_answer():
    for name, options in (("one answer", ["run", "-p", "abc", "--raw", "-n", "100000", "--ignore-eos", "-c", "100000"]),):
        for times in (1, 2):
            process = start(*options, "-m", MODEL, "-b", "cpu", "--temp", "0", stdout=subprocess.PIPE)
            first = process.stdout.read1(1)
            check(first, f"{name}: text comes as it is made", process.stderr.read1(500).decode() if not first else "")
            interrupt(f"{times} x Ctrl-C in {name}", process, times)


def terminate_answer():
    process = start("run", "-m", MODEL, "-b", "cpu", "--raw", "-p", "abc", "-n", "100000", "--ignore-eos", "-c", "100000", stdout=subprocess.PIPE)
    process.stdout.read1(1)
    interrupt("SIGTERM in an answer", process, number=signal.SIGTERM)


def no_hangup():
    """Under nohup."""
    process = start("run", "-m", MODEL, "-b", "cpu", "--raw", "-p", "abc", "-n", "2000", "--ignore-eos", "-c", "4000", stdout=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.stdout.read1(1)
    process.send_signal(signal.SIGHUP)
    process.communicate()
    check(process.returncode == 0, "an ignored SIGHUP stays ignored", f"exit {process.returncode}")


def closed_pipe():
    """The reader goes after one byte: kopi ends quietly and soon."""
    process = start("run", "-m", MODEL, "-b", "cpu", "--raw", "-p", "abc", "-n", "100000", "--ignore-eos", "-c", "100000", stdout=subprocess.PIPE)
    process.stdout.read1(1)
    process.stdout.close()
    try:
        process.wait(timeout=BOUND)
    except subprocess.TimeoutExpired:
        process.kill()
    err = process.stderr.read().decode()
    check(process.returncode == 1 and "write" not in err.lower(), "a closed pipe ends the answer quietly", f"{process.returncode}: {err}")


def full_disk():
    for name, args in (
            ("run", ["run", "-m", MODEL, "-b", "cpu", "--raw", "-p", "abc", "-n", "4"]),
            ("inspect", ["inspect", MODEL]), ("config init", ["config", "init"]), ("help", ["help"]), ("version", ["version"]),
            ("logits -o -", ["logits", "-m", MODEL, "-b", "cpu", "--ids", "1,2", "-o", "-"])):
        with open("/dev/full", "wb") as full:
            more = ["--plugin-dir", PLUGINS] if "-b" in args else []
            done = subprocess.run([KOPI, *map(str, args), *more], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=BOUND)
        check(done.returncode == 1 and b"No space left" in done.stderr, f"kopi {name} to a full disk", f"{done.returncode}: {done.stderr.decode()}")
    done = kopi("logits", "-m", MODEL, "-b", "cpu", "--ids", "1,2", "-o", "/dev/full")
    check(done.returncode == 1 and b"No space left" in done.stderr, "kopi logits -o /dev/full", done.stderr.decode())


def input_ends():
    done = kopi("run", "-m", MODEL, "-b", "cpu", "--raw", "-n", "2", stdin=b"")
    check(done.returncode == 2 and b"empty" in done.stderr, "an empty standard input is said to be empty", done.stderr.decode())
    done = kopi("run", "-m", MODEL, "-b", "cpu", "--raw", "-n", "2", "--temp", "0", stdin=b"abc")
    check(done.returncode == 0 and done.stdout.endswith(b"\n"), "a prompt on standard input", done.stderr.decode())
    again = kopi("run", "-m", MODEL, "-b", "cpu", "--raw", "-n", "2", "--temp", "0", "-p", "abc")
    check(again.stdout == done.stdout, "the same prompt by -p, the same answer")


def closed_descriptors():
    """No file that is opened takes the place of a closed standard one: what is printed would go into it."""
    args = "--plugin-dir", PLUGINS
    for what, command, closed, code in (
            ("check without stdout", ["backends", "check", "cpu", *args, "--group", "load"], [1], 1),
            ("check without stdin and stderr", ["backends", "check", "cpu", *args, "--group", "load"], [0, 2], 0),
            ("run without stdin", ["run", *args, "-m", MODEL, "-b", "cpu", "-p", "abc", "-n", "2"], [0], 0),
            ("run without any", ["run", *args, "-m", MODEL, "-b", "cpu", "-p", "abc", "-n", "2"], [0, 1, 2], 1)):
        shell = " ".join(["exec", '"$@"', *(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)])
        done = subprocess.run(["sh", "-c", shell, "sh", KOPI, *map(str, command)], capture_output=True, stdin=subprocess.DEVNULL, timeout=6 * BOUND)
        check(done.returncode == code, what, f"{done.returncode}: {done.stdout.decode(errors='replace')[-300:]}{done.stderr.decode()}")


def interrupt_pipes(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    for what, args in ("an output", ["-p", "4", "-n", "1", "--trace", pipe]), ("a prompt", ["-f", pipe]):
        process = start("run" if "-f" in args else "profile", "-m", MODEL, "-b", "cpu", *args, stdout=subprocess.DEVNULL)
        wchan = Path(f"/proc/{process.pid}/wchan")
        wait_until(lambda: "fifo" in wchan.read_text() or "pipe" in wchan.read_text())
        interrupt(f"Ctrl-C while {what} waits for the other end of its pipe", process)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    interrupt_load(folder)
    interrupt_prefill(folder)
    interrupt_answer()
    terminate_answer()
    no_hangup()
    closed_pipe()
    full_disk()
    closed_descriptors()
    interrupt_pipes(folder)
    input_ends()
finish()
