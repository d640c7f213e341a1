"""libkopi's binary interface against its committed description: no function may go, and no type that a program sees may change.
`tests/abi/libkopi.py --update` writes the description anew, after a change that is meant (and noted in the release's text)."""
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import PLUGINS, SANITIZED, SOURCE, check, command, finish, skip  # noqa: E402

DESCRIPTION = Path(__file__).with_name("libkopi.abi")
LIBRARY = Path(PLUGINS) / "libkopi.so"
HEADERS = SOURCE / "include" / "kopi"
DESCRIBE = ["--headers-dir", HEADERS, "--drop-private-types", "--drop-undefined-syms", "--no-comp-dir-path",
            "--no-corpus-path", "--no-architecture", "--type-id-style", "hash", "--no-elf-needed"]


def reason_to_skip():
    if SANITIZED:
        return "a sanitizer adds symbols of its own"
    if not shutil.which("abidiff") or not shutil.which("abidw"):
        return "abidiff is not installed (on Debian: apt-get install abigail-tools)"
    if b".debug_info" not in LIBRARY.read_bytes():
        return "libkopi.so has no debug information (CFLAGS without -g)"
    return None


def difference(description):
    """0: none; else what abidiff says. Functions may be added."""
    done = command("abidiff", "--no-added-syms", "--no-architecture", "--harmless", "--headers-dir2", HEADERS, "--drop-private-types", "--no-show-locs",
                   description, LIBRARY)
    return done.returncode and (done.stdout + done.stderr).decode()


def changed(text, old, new):
    """What abidiff says of a description with one thing changed."""
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "changed.abi"
        path.write_text(text.replace(old, new))
        return text.count(old) and difference(path)


if why := reason_to_skip():
    skip("abidiff of libkopi.so", why)
    finish()
if sys.argv[1:] == ["--update"]:
    done = command("abidw", *DESCRIBE, "--out-file", DESCRIPTION, LIBRARY)
    check(done.returncode == 0, "abidw", done.stderr.decode())
    DESCRIPTION.write_text(DESCRIPTION.read_text().replace(f"{SOURCE}/", ""))
    finish()
text = DESCRIPTION.read_text()
said = difference(DESCRIPTION)
check(not said, "libkopi.so has the interface of tests/abi/libkopi.abi (if the change is meant: tests/abi/libkopi.py --update)", said)
said = changed(text, "kopi_cache_new", "kopi_cache_gone")
check(said and "kopi_cache_gone" in said, "a function that is gone is found", str(said))
said = changed(text, "layout-offset-in-bits='10304'", "layout-offset-in-bits='10336'")
check(said and "weight_bytes" in said, "a field in another place is found", str(said))
finish()
