"""The OpenBLAS example as a third party has it, where OpenBLAS is installed. Called by `make installcheck`; arguments: models with F16
and with F32 weights."""
import math
import os
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import KOPI, check, command, finish, skip  # noqa: E402
from outside import build, copy_example  # noqa: E402

IDS = ",".join(str(i * 7 % 64) for i in range(40))


def logits(folder, model, *options):
    out = folder / "rows.npy"
    done = command(KOPI, "logits", "-m", model, "--ids", IDS, "-o", out, *options, cwd=folder)
    if not check(done.returncode == 0, f"logits of {Path(model).name} {options}", done.stderr.decode()):
        finish()
    b = out.read_bytes()
    begin = 10 + struct.unpack_from("<H", b, 8)[0]
    return struct.unpack(f"<{(len(b) - begin) // 4}f", b[begin:]), done.stderr.decode()


def error(want, have):
    """Root of the mean squared difference, over that of the values."""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(want, have)) / sum(x * x for x in want))


if command("pkg-config", "--exists", "openblas").returncode:
    skip("examples/backend-blas", "OpenBLAS is not installed (on Debian: apt-get install libopenblas-dev)")
    finish()
os.environ["OPENBLAS_NUM_THREADS"] = "1"
with tempfile.TemporaryDirectory() as tmp:
    top = Path(tmp)
    copy_example("backend-blas", top / "blas")
    plugin = build(top / "blas", "blas")
    for model in sys.argv[1:]:
        model = Path(model).resolve()
        want, _ = logits(top, model, "-b", "cpu")
        for options in ("-t", 1), ("-t", 3), ("-t", 2, "--chunk", 1):
            have, said = logits(top, model, "--backend-path", plugin, *options)
            check(len(have) == len(want) and error(want, have) < 1e-3, f"{model.name} {options}: near to cpu", f"{error(want, have):.3g}")
            check("lacks" in said and "LINEAR" not in said, f"{model.name}: LINEAR is computed by OpenBLAS", said)
finish()
