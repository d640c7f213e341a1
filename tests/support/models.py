"""The tiny models of tests/data (random weights, made for this project), and where real models lie if they were fetched."""
import os
from pathlib import Path

from report import SOURCE

DATA = SOURCE / "tests" / "data"
TINY = sorted(p.name[:-len(".gguf")] for p in DATA.glob("*.gguf"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kopi" / "models"
BACKENDS = ["cpu", "cpu-threaded"]

# backend: its levels (option isa), slowest first, with the processor flags that each needs
LEVELS = {
    "cpu": {"baseline": set(), "v3": {"avx2", "fma"}},
    "cpu-threaded": {"c": set(), "avx2": {"avx2", "fma", "f16c"},
                     "avx512vnni": {"avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"}},
}


def tiny(name):
    return DATA / f"{name}.gguf"


def real(name):
    """Path of a real model in the cache, or None."""
    path = CACHE / f"{name}.gguf"
    return path if path.is_file() else None


def processor_flags():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


def levels(backend):
    """(level, whether this machine has it) of a backend."""
    flags = processor_flags()
    return [(name, needs <= flags) for name, needs in LEVELS[backend].items()]


def test_ids(n):
    """n token ids below 300 that depend on nothing."""
    return ",".join(str((i * 7919 + 13) % 300) for i in range(n))
