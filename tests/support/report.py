"""What the test scripts share: counted checks, and the places of a run from the environment that tests/local.mk sets.

A script ends with finish(): the last line is "N passed, N failed" (and ", N skipped"), each skipped check is named with its
reason, and the exit status is 0, 1, or 77 where nothing could be checked.
"""
import os
import signal
import subprocess
import sys
from pathlib import Path

# KOPI_X of the tests by X; kopi itself would warn of variables that it doesn't read, so that they go no further
SETTINGS = {name[5:]: os.environ.pop(name) for name in list(os.environ) if name.startswith("KOPI_") and name != "KOPI_PLUGIN_PATH"}
SOURCE = Path(SETTINGS.get("SOURCE", Path(__file__).resolve().parents[2]))
BUILD = Path(SETTINGS.get("BUILD", "."))
KOPI = os.environ.get("KOPI", str(BUILD / "kopi"))
PLUGINS = SETTINGS.get("PLUGINS", str(BUILD / ".libs"))
SANITIZED = SETTINGS.get("SANITIZED", "")
CC = SETTINGS.get("CC", "cc").split()

# A script that runs in the background of a shell, or under nohup, ignores these, and what it starts would inherit that.
for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(good, what, detail=""):
    """Counts one check; says what failed and why."""
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"FAILED: {what}{': ' if detail else ''}{detail}", flush=True)
    return good


def skip(what, why):
    counts["skipped"] += 1
    print(f"skipped: {what}: {why}", flush=True)


def finish():
    text = "{passed} passed, {failed} failed".format(**counts)
    print(text + (f", {counts['skipped']} skipped" if counts["skipped"] else ""))
    sys.exit(1 if counts["failed"] else 0 if counts["passed"] else 77)


def command(*args, stdin=b"", timeout=120, **more):
    """Runs a command to its end: the CompletedProcess, with bytes. A timeout counts as exit status 124."""
    try:
        return subprocess.run([str(a) for a in args], input=stdin, capture_output=True, timeout=timeout, **more)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(args, 124, e.stdout or b"", (e.stderr or b"") + b"\n(timed out)")


def kopi(*args, **more):
    """Runs kopi with the plugins of the build tree."""
    return command(KOPI, args[0], "--plugin-dir", PLUGINS, *args[1:], **more)


def sources(folders, suffixes):
    """Files below the folders of the source tree, as paths relative to it."""
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path.relative_to(SOURCE)
