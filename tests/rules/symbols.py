"""libkopi exports kopi_* and nothing else, a plugin exactly its entry symbol; plugins call no libm function but fmaf."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import PLUGINS, SANITIZED, SOURCE, check, command, finish  # noqa: E402

ENTRY = "kopi_plugin_v1"
LIBM_ALLOWED = {"fmaf"}
SANITIZER = re.compile(r"_*(asan|tsan|ubsan|lsan|sanitizer|odr_asan)_")  # what -fsanitize adds to a library


def symbols(library, which):
    done = command("nm", "-D", which, "--format=posix", library)
    check(done.returncode == 0, f"nm {library}", done.stderr.decode())
    names = {line.split()[0].split("@")[0] for line in done.stdout.decode().splitlines() if line.split()}
    return {n for n in names if not SANITIZER.match(n)} if SANITIZED else names


def libm_functions():
    path = command("gcc", "-print-file-name=libm.so.6").stdout.decode().strip()
    return symbols(path, "--defined-only")


def declared():
    """The functions that kopi.h declares."""
    text = "".join((SOURCE / "include" / "kopi" / h).read_text() for h in ("kopi.h", "abi.h"))
    return set(re.findall(r"KOPI_EXPORT[^;(]*?\**(kopi_\w+)\(", text))


exported = symbols(f"{PLUGINS}/libkopi.so", "--defined-only")
strange = {n for n in exported if not re.match(r"kopi_[a-z]", n)}
check(not strange, "libkopi.so exports only kopi_*", ", ".join(sorted(strange)))
missing = declared() - exported
check(len(declared()) > 20 and not missing, "libkopi.so exports what kopi.h declares", ", ".join(sorted(missing)))
extra = exported - declared()
check(not extra, "libkopi.so exports only what kopi.h declares", ", ".join(sorted(extra)))

libm = libm_functions()
check("expf" in libm and "fmaf" in libm, "libm's functions are known")
plugins = sorted(Path(PLUGINS).glob("kopi-*.so"))
check(plugins, f"there are plugins in {PLUGINS}")
for plugin in plugins:
    names = symbols(plugin, "--defined-only")
    check(names == {ENTRY}, f"{plugin.name} exports exactly {ENTRY}", ", ".join(sorted(names)))
    called = symbols(plugin, "--undefined-only") & libm - LIBM_ALLOWED
    check(not called, f"{plugin.name} calls no libm function but fmaf", ", ".join(sorted(called)))
finish()
