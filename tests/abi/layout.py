"""tests/abi/layout.c holds every struct, field and number of the backend headers: nothing may be added without a row there.
`layout.py --print` prints all rows as they are now, to append the new ones (never to change an old one)."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import SOURCE, check, finish  # noqa: E402

HEADERS = ["abi.h", "dtype.h", "op.h", "backend.h"]


def strip(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def structs(text):
    """[(type, [field])] of each `typedef struct ... { ... } type;`."""
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.S):
        fields = []
        for line in body.split(";"):
            line = " ".join(line.split())
            if not line:
                continue
            pointer = re.search(r"\(\*(\w+)\)\(", line)
            if pointer:
                fields.append(pointer[1])
            else:
                fields += [re.search(r"(\w+)(\[\d+\])?$", part.strip())[1] for part in line.split(",")]
        yield name, fields


def numbers(text):
    """Names of the constants: enumerators and value macros, without those that X-macros make."""
    for body in re.findall(r"^enum \{(.*?)\};", text, re.S | re.M):
        yield from re.findall(r"\b(KOPI_\w+) =", body)
    for name in re.findall(r"^#define (KOPI_\w+) [0-9(]", text, re.M):
        if not name.startswith(("KOPI_SANITIZER", "KOPI_GELU", "KOPI_EXP", "KOPI_TANH")):
            yield name


def listed(text, macro, prefix):
    """Names that an X-macro makes: KOPI_OPS, KOPI_DTYPES."""
    body = re.search(rf"#define {macro}\(X\)(.*?)\n\n", text, re.S)
    return [prefix + name for name in re.findall(r"X\((\w+),", body[1])]


text = "\n".join(strip((SOURCE / "include" / "kopi" / h).read_text()) for h in HEADERS)
all_structs = list(structs(text))
all_numbers = list(dict.fromkeys([*numbers(text), *listed(text, "KOPI_OPS", "KOPI_OP_"), *listed(text, "KOPI_DTYPES", "KOPI_DTYPE_")]))


def show():
    """The rows, by a program that asks the compiler."""
    lines = ["#include <kopi/backend.h>", "#include <stdio.h>", "int main(void) {"]
    for name, fields in all_structs:
        lines.append(f'printf("\\nSIZE({name}, %zu)\\n", sizeof({name}));')
        for f in fields:
            lines.append(f'printf("AT({name}, {f}, %zu, %zu)\\n", offsetof({name}, {f}), sizeof((({name} *)0)->{f}));')
    lines.append('puts("");')
    for n in all_numbers:
        lines.append(f'printf("IS({n}, %lld)\\n", (long long){n});')
    lines.append("}")
    with tempfile.TemporaryDirectory() as tmp:
        c = Path(tmp) / "t.c"
        c.write_text("\n".join(lines))
        subprocess.run(["cc", "-I", SOURCE / "include", c, "-o", c.with_suffix("")], check=True)
        print(subprocess.run([c.with_suffix("")], check=True, capture_output=True, text=True).stdout)


if "--print" in sys.argv:
    show()
    sys.exit()

rows = (SOURCE / "tests" / "abi" / "layout.c").read_text()
check(len(all_structs) > 20, "structs are found in the headers", str(len(all_structs)))
for name, fields in all_structs:
    check(f"SIZE({name}, " in rows, f"{name} has its size in layout.c")
    for f in fields:
        check(f"AT({name}, {f}, " in rows, f"{name}.{f} is in layout.c")
for n in all_numbers:
    check(f"IS({n}, " in rows, f"{n} is in layout.c")
finish()
