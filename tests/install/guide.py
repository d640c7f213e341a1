"""docs/backend-guide.md as a reader follows it: its C code goes where the text says, and compiles. With --run (make installcheck)
its commands are run with the installed kopi, one after the other; argument then: a model with Q8_0 weights."""
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import CC, KOPI, SOURCE, check, command, finish  # noqa: E402

GUIDE = (SOURCE / "docs" / "backend-guide.md").read_text()
BLOCKS = re.findall(r"^```(\w+) ?(\w*)\n(.*?)^```$", GUIDE, re.S | re.M)
FLAGS = "-std=gnu11 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -ffp-contract=off".split()


def insert(text, before, what):
    check(text.count(before) == 1, f"the place '{before}' is in the file once")
    return text.replace(before, what + before)


def apply(text, place, code):
    """The file with a block of code where the guide says."""
    if place == "function":
        return insert(text, "/* What this backend can do", code + "\n")
    if place == "row":
        return insert(text, "    {KOPI_OP_LINEAR, 1, q8_0, a8_32, 1, 1, linear_q8_0, NULL},\n", code)
    if place == "field":
        return insert(text, "    .kernels = kernels,\n", code)
    return text


def compiles(text, what, *flags):
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "kopi-mine.c"
        path.write_text(text)
        done = command(*CC, *FLAGS, *flags, "-I", SOURCE / "include", "-c", path, "-o", path.with_suffix(".o"))
        check(done.returncode == 0, what, done.stderr.decode()[-2000:])


def compile_all():
    text = (SOURCE / "examples" / "backend-demo" / "kopi-demo.c").read_text()
    compiles(text, "the example compiles")
    for language, place, code in BLOCKS:
        if place == "compile":
            compiles(text + "#include <stdbool.h>\n" + code, f"compiles: {code.splitlines()[0]}", "-Wno-unused-function",
                     "-Wno-unused-const-variable", "-Wno-unused-variable")
        else:
            text = apply(text, place, code)
    compiles(text, "the file with everything in its place compiles")


def run_all(model):
    """Runs the shell blocks in one shell; between them the code is put into the file."""
    with tempfile.TemporaryDirectory() as tmp:
        here = Path(tmp) / "here"  # the folder that the last commands ended in
        env = {**os.environ, "MODEL": str(model), "HERE": str(here), "PATH": f"{Path(KOPI).parent}:{os.environ['PATH']}"}
        folder = Path(tmp)
        for language, place, code in BLOCKS:
            if language == "sh":
                done = command("sh", "-e", "-c", code + '\npwd > "$HERE"', cwd=folder, env=env, timeout=300)
                what = f"the commands run: {code.splitlines()[0]}"
                if not check(done.returncode == 0, what, (done.stdout[-3000:] + done.stderr[-3000:]).decode()):
                    return
                folder = Path(here.read_text().strip())
            elif place in ("function", "row", "field"):
                path = folder / "kopi-mine.c"
                path.write_text(apply(path.read_text(), place, code))
        check(folder.name == "mine", "the commands went into the new folder", str(folder))


check(sum(language == "c" for language, _, _ in BLOCKS) >= 8, "the guide has its code")
check(all(place in ("function", "row", "field", "compile") for language, place, _ in BLOCKS if language == "c"), "each block has its place")
if "--run" in sys.argv:
    run_all(Path(sys.argv[-1]).resolve())
else:
    compile_all()
finish()
