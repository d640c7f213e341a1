"""C in lines of at most 120 columns (headers that are installed: 132). No tabs, trailing blanks, carriage returns or invisible characters; no file over 1000 lines; each file ends with a newline."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import SOURCE, check, finish, sources  # noqa: E402

FOLDERS = ["include", "core", "plugins", "conformance", "cli", "server", "examples", "bench", "tests", "scripts", "docs", ".ci"]
SUFFIXES = {".c", ".h", ".py", ".sh", ".md", ".yaml", ".mk", ""}
MAX_LINES = 1000
RULES = [  # pattern, what it is, suffixes that may have it
    (re.compile(r"\t"), "a tab", {".mk"}),
    (re.compile(r"[ \t]$", re.M), "a trailing blank", set()),
    (re.compile(r"\r"), "a carriage return", set()),
    (re.compile("[\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]"), "an invisible character", set()),
]


def is_text(path):
    return "corpus" not in path.parts and "data" not in path.parts


def columns(path):
    """The longest line that a C file may have; None for other files."""
    if path.suffix not in {".c", ".h"} or "v0.9" in path.parts:
        return None
    return 132 if path.parts[0] == "include" else 120


def problems(path):
    text = (SOURCE / path).read_bytes().decode("utf-8", "replace")
    if "\ufffd" in text:
        yield "is not UTF-8"
    for pattern, what, allowed in RULES:
        if path.suffix not in allowed and (m := pattern.search(text)):
            yield f"line {text.count(chr(10), 0, m.start()) + 1}: {what}"
    if columns(path):
        yield from (f"line {i}: {len(line)} columns" for i, line in enumerate(text.split("\n"), 1) if len(line) > columns(path))
    if text and not text.endswith("\n"):
        yield "no newline at the end"
    if text.count("\n") > MAX_LINES:
        yield f"{text.count(chr(10))} lines; split it, {MAX_LINES} is the limit"


files = [p for p in sources(FOLDERS, SUFFIXES) if is_text(p)] + [Path("README.md"), Path("configure.ac")]
for path in files:
    found = list(problems(path))
    check(not found, str(path), "; ".join(found))
check(len(files) > 50, "there are files to look at")
check((SOURCE / ".clang-format").is_file(), ".clang-format is there")
check("MIT License" in (SOURCE / "LICENSE").read_text(), "LICENSE is MIT")
finish()
