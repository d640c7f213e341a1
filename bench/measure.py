"""What bench/peers, bench/cold and bench/costs share: both sides, the bandwidth, the bytes that a token has to read, results."""
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kopi"
PEER = "llama-cpp-python==0.3.36"
# Environment of each build of the peer: as the package builds it here ("auto"), with no more than AVX2, and without AMX, for machines
# that announce AMX and fault on its instructions.
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
PEER_BUILDS = {"auto": {}, "noamx": {"CFLAGS": NO_AMX, "CXXFLAGS": NO_AMX},
               "avx2": {"CMAKE_ARGS": "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON -DLLAVA_BUILD=OFF"}}
LEVELS = ["auto", "avx2"]
MODELS = ["smollm2", "qwen2.5-coder-0.5b", "gemma3-270m"]


def options(p):
    """The options that all of these programs have."""
    p.add_argument("models", nargs="*", default=MODELS, help="GGUF files, or names of scripts/fetch-model")
    p.add_argument("--kopi", required=True, help="the program, e.g. out/bin/kopi")
    p.add_argument("--plugin-dir")
    p.add_argument("--backend", default="cpu-threaded")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--isa", default="auto", help="levels of kopi, and builds of the peer: auto, avx2 or auto,avx2 (auto)")
    p.add_argument("--kv", default="f16", choices=["f16", "f32"])
    p.add_argument("--bandwidth", default=str(HERE.parent / "build" / "bench" / "bandwidth"), help="the program (make -C build bench/bandwidth)")
    p.add_argument("--results", default=str(HERE / "results"))


def parse(p):
    """Arguments with `threads` and `isa` as lists; refuses what could only fail later."""
    a = p.parse_args()
    a.threads = [int(t) for t in a.threads.split(",")]
    a.isa = a.isa.split(",")
    for isa in a.isa:
        if isa not in LEVELS:
            raise SystemExit(f"--isa {isa}: allowed are {', '.join(LEVELS)}")
    if not os.access(a.bandwidth, os.X_OK):
        raise SystemExit(f"{a.bandwidth} is not there: make -C build bench/bandwidth")
    return a


def model_path(name):
    return name if os.path.exists(name) else str(CACHE / "models" / f"{name}.gguf")


def output(cmd):
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        raise SystemExit(f"{' '.join(cmd)}: exit {p.returncode}: {p.stderr.strip()[-400:]}")
    return p.stdout


def run(cmd):
    """The JSON lines that a command prints."""
    return [json.loads(line) for line in output(cmd).splitlines() if line.strip().startswith("{")]


# ---- the two sides


def build_peer(build):
    """The interpreter of a peer's environment, built on the first call (10 minutes on two cores)."""
    venv = CACHE / "peers" / (PEER.replace("==", "-") + ("" if build == "auto" else f"-{build}"))
    python = venv / "bin" / "python"
    if not (venv / "ready").exists():
        print(f"building {PEER} ({build}) in {venv} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        cache = ["--no-cache-dir"] if PEER_BUILDS[build] else []
        env = dict(os.environ, **PEER_BUILDS[build])
        subprocess.run([str(python), "-m", "pip", "install", "-q", *cache, PEER], check=True, env=env)
        (venv / "ready").touch()
    return str(python)


def peer_python(isa, model):
    """Interpreter and name of the peer's build for a level. One that is killed by a signal is replaced by the one without AMX."""
    if isa != "auto":
        return build_peer(isa), isa
    python = build_peer("auto")
    tried = subprocess.run([python, str(HERE / "peer_llama.py"), model, "--prompt", "32", "--gen", "1"], capture_output=True)
    return (build_peer("noamx"), "noamx") if tried.returncode < 0 else (python, "auto")


def kopi_options(a, model, threads, isa):
    """Options of `kopi bench` and `kopi run` that say what computes."""
    out = ["-m", model, "-b", a.backend, "-t", str(threads), "-ctk", a.kv, "-ctv", a.kv]
    if a.plugin_dir:
        out += ["--plugin-dir", a.plugin_dir]
    for s in a.set + ([f"backend.options.{a.backend}.isa={isa}"] if isa != "auto" else []):
        out += ["--set", s]
    return out


def kopi_bench(a, model, threads, isa, prompt=0, gen=0, depth=0, batch=512, more=()):
    """One test of `kopi bench`: {"pp": t/s, "tg": t/s, "system": level}."""
    out = {}
    cmd = [a.kopi, "bench", *kopi_options(a, model, threads, isa), "-p", str(prompt), "-n", str(gen), "-d", str(depth), "-r", "1",
           "--batch-size", str(batch), "-o", "jsonl", "-c", str(depth + max(prompt, gen) + 64), *more]
    for r in run(cmd):
        out["pp" if r["n_prompt"] else "tg"] = r["avg_ts"]
        out["system"] = r["cpu_info"]
    return out


def peer_bench(a, python, model, threads, prompt=0, gen=0, depth=0, batch=512):
    return run([python, str(HERE / "peer_llama.py"), model, "--threads", str(threads), "--prompt", str(prompt), "--gen", str(gen),
                "--depth", str(depth), "--batch", str(batch), "--kv", a.kv])[0]


# ---- bytes and bandwidth


class Sizes:
    """What generation of one token has to read at least."""

    def __init__(self, a, model):
        j = json.loads(output([a.kopi, "inspect", "--json", model]))
        meta, names = j["metadata"], {t["name"] for t in j["tensors"]}
        arch = meta["general.architecture"]
        get = lambda key, default=None: meta.get(f"{arch}.{key}", default)
        tied = "output.weight" not in names
        self.weights = sum(t["bytes"] for t in j["tensors"] if tied or t["name"] != "token_embd.weight")
        heads = get("attention.head_count")
        dim = get("attention.key_length", get("embedding_length") // heads)
        size = {"f16": 2, "f32": 4}[a.kv]
        per_layer = get("attention.head_count_kv", heads) * (dim + get("attention.value_length", dim)) * size
        window, layers = get("attention.sliding_window"), get("block_count")
        # Gemma 3: five layers with a window, then one without.
        self.global_layers = layers // 6 if window and arch == "gemma3" else layers
        self.window, self.window_layers, self.per_layer = window, layers - self.global_layers, per_layer

    def kv(self, depth):
        """Bytes of keys and values that a token at this depth reads."""
        near = min(depth, self.window) if self.window else depth
        return self.per_layer * (self.global_layers * depth + self.window_layers * near)


def bandwidth(a, sizes, threads):
    """GB/s of reading as many bytes as the weights have, with as many threads."""
    return run([a.bandwidth, str(sizes.weights), str(threads)])[0]["gbs"]


# ---- figures and files


def quartiles(x):
    q = statistics.quantiles(x, n=4, method="inclusive") if len(x) > 1 else [x[0]] * 3
    return q[0], statistics.median(x), q[2]


def cpu():
    """(name, "family-model"): virtual machines all say the same name."""
    found = {}
    for line in open("/proc/cpuinfo", encoding="utf-8", errors="replace"):
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    number = f"{found['cpu family']}-{found['model']}" if "cpu family" in found and "model" in found else platform.machine()
    return f"{found.get('model name') or platform.processor()} ({number})", number


def heading(a, kind):
    return {"kind": kind, "date": time.strftime("%Y-%m-%d"), "cpu": cpu()[0], "backend": a.backend, "set": a.set, "kv": a.kv}


def write(a, report, name):
    out = Path(a.results)
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{name}-cpu{cpu()[1]}.json"
    file.write_text(json.dumps(report, indent=1) + "\n")
    print(f"written to {file}")
