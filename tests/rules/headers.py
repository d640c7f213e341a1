"""Each public header compiles alone, without a warning, as C99 and as C++17, with gcc and clang, and no struct has holes."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import SOURCE, check, command, finish, skip  # noqa: E402

FLAGS = "-Wall -Wextra -Wpedantic -Wpadded -Wundef -Werror -fsyntax-only".split()
COMPILERS = [("gcc", "c99", "c"), ("g++", "c++17", "c++"), ("clang", "c99", "c"), ("clang++", "c++17", "c++")]

headers = sorted((SOURCE / "include" / "kopi").rglob("*.h"))
check(len(headers) >= 6, "there are public headers")
for name, standard, language in COMPILERS:
    if not shutil.which(name):
        skip(f"{name} -std={standard}", "not installed")
        continue
    for header in headers:
        text = f"#include <{header.relative_to(SOURCE / 'include')}>\n".encode()
        done = command(name, f"-std={standard}", *FLAGS, "-I", SOURCE / "include", "-x", language, "-", stdin=text)
        check(done.returncode == 0, f"{header.name} with {name} -std={standard}", done.stderr.decode()[:600])
finish()
