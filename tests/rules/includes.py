"""Arrows between folders point one way (architecture: base <- gguf, config, text <- model <- backend <- run <- cli), and
plugins and examples know nothing of kopi but its public headers. Read off the #include lines."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import SOURCE, check, finish, sources  # noqa: E402

# folder of core/: folders whose headers it may include. text reads the vocabulary out of the file, so it may see gguf.
MAY_SEE = {
    "base": {"base"},
    "gguf": {"base", "gguf"},
    "config": {"base", "config"},
    "text": {"base", "gguf", "text"},
    "model": {"base", "gguf", "config", "text", "model"},
    "backend": {"base", "gguf", "config", "text", "model", "backend"},
    "run": {"base", "gguf", "config", "text", "model", "backend", "run"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def includes(path):
    return INCLUDE.findall((SOURCE / path).read_text())


def own(path, name):
    """A header that lies beside the file, or below the same plugin or example."""
    return (SOURCE / path.parent / name).is_file() or (SOURCE / path.parts[0] / path.parts[1] / name).is_file()


def core_rule(path, kind, name):
    folder = path.parts[1]
    if kind == "<":
        return not name.startswith("kopi/") or (SOURCE / "include" / name).is_file()
    return name.split("/")[0] in MAY_SEE[folder] and (SOURCE / "core" / name).is_file()


def outside_rule(path, kind, name):
    """For plugins: system headers, kopi/*.h for backends, own files."""
    if kind == "<":
        return name != "kopi/kopi.h"
    return own(path, name)


def example_rule(path, kind, name):
    return kind == "<" or own(path, name)


def cli_rule(path, kind, name):
    return kind == "<" or own(path, name) or name.split("/")[0] in MAY_SEE or (SOURCE / name).is_file() and name.startswith("conformance/")


RULES = [("core", core_rule), ("plugins", outside_rule), ("conformance", outside_rule), ("examples", example_rule), ("cli", cli_rule)]

for top, rule in RULES:
    seen = 0
    for path in sources([top], {".c", ".h"}):
        seen += 1
        bad = [name for kind, name in includes(path) if not rule(path, kind, name)]
        check(not bad, f"{path} must not include", ", ".join(bad))
    check(seen or top in ("cli", "examples"), f"{top}/ has C files")
finish()
