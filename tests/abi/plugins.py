"""What the scripts of tests/abi share: compiling a plugin at test time, and whole-model logits."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import CC, KOPI, PLUGINS, SANITIZED, SOURCE, check, command, finish  # noqa: E402

SANITIZE = {"": [], "address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}[SANITIZED]
FLAGS = "-std=gnu11 -O1 -Wall -Wextra -Wno-override-init -shared -fPIC -fvisibility=hidden -ffp-contract=off".split()


def compile_to(path, source, *flags, include=SOURCE / "include"):
    done = command(*CC, *FLAGS, *SANITIZE, "-I", include, source, "-o", path, *flags, "-lm")
    if done.returncode:
        check(False, f"{path.name} compiles", done.stderr.decode()[-2000:])
        finish()
    return path


def logits(model, out, *options, ids="1,2,3,4,5"):
    """(bytes of the .npy file or None, what was said on stderr)"""
    out.unlink(missing_ok=True)
    done = command(KOPI, "logits", "--plugin-dir", PLUGINS, "-m", model, "--ids", ids, "-o", out, *options, timeout=300)
    return out.read_bytes() if out.exists() else None, done.stderr.decode()
