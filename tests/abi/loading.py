"""Plugins with one thing wrong each, through the real loader: refused with a message that names the file and the reason, while
the others go on. Then the search: its order, every path tried, owner and mode, the SHA-256 pin, never the working directory."""
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from plugins import compile_to, logits  # noqa: E402
from models import tiny  # noqa: E402
from report import KOPI, PLUGINS, SOURCE, check, command, finish, skip  # noqa: E402

X86 = os.uname().machine == "x86_64"

# name: (macros of variant.c, what the message must say after the file's name)
REFUSED = {
    "null": (["RESULT=NULL"], "kopi_plugin_v1 returned NULL"),
    "minor-up": (["ABI_MINOR=KOPI_ABI_MINOR+1"], "built for backend ABI 0.10, this kopi has 0.9"),
    "minor-down": (["ABI_MINOR=KOPI_ABI_MINOR-1"], "built for backend ABI 0.8, this kopi has 0.9"),
    "needs-newer": (["MIN_HOST_MINOR=KOPI_ABI_MINOR+1"], "needs backend ABI 0.10 or later, this kopi has 0.9"),
    "fingerprint": (["FINGERPRINT=KOPI_FINGERPRINT^4"], "struct layout"),
    "sanitizer": (["SANITIZER=KOPI_SANITIZER+1"], "they cannot share a process"),
    "short": (["STRUCT_SIZE=sizeof(kopi_plugin)-8"], "kopi_plugin has 96 bytes, at least 104 are needed"),
    "empty-struct": (["STRUCT_SIZE=0"], "kopi_plugin has 0 bytes, at least 104 are needed"),
    "short-ops": (["OPS_SIZE=64"], "kopi_backend_ops has 64 bytes, at least 168 are needed"),
    "no-ops": (["OPS=NULL"], "kopi_plugin lacks ops"),
    "no-device": (["DEVICE=NULL"], "kopi_plugin lacks device"),
    "no-name": (["PLUGIN_FIELDS=.name=NULL"], "kopi_plugin lacks name"),
    "no-version": (["PLUGIN_FIELDS=.version=NULL"], "kopi_plugin lacks version"),
    "bad-name": (["PLUGIN_FIELDS=.name=\"Bad\\nName\""], "its name is not made of"),
    "other-name": (["PLUGIN_FIELDS=.name=\"good\""], "calls itself \"good\", not \"other-name\""),
    "no-create": (["OPS_FIELDS=.create=NULL"], "its ops table lacks create"),
    "no-destroy": (["OPS_FIELDS=.destroy=NULL"], "its ops table lacks destroy"),
    "no-kernels": (["OPS_FIELDS=.n_kernels=0"], "its ops table lacks kernels or prepare"),
    "null-kernels": (["OPS_FIELDS=.kernels=NULL"], "its ops table lacks kernel table"),
    "no-stride": (["OPS_FIELDS=.kernel_stride=0"], "its ops table lacks kernel table"),
    "many-kernels": (["OPS_FIELDS=.n_kernels=0xffffffffu"], "4294967295 kernels, at most"),
    "null-kernel": (["OPS_FIELDS=.kernels=no_function"], "kernel row 0 has no function"),
    "half-plan": (["OPS_FIELDS=.prepare=prepare,.supports=supports"], "lacks execute, plan_free and supports beside prepare"),
    "half-weights": (["OPS_FIELDS=.weight_import=weight_import"], "lacks weight_free beside weight_import"),
    "half-kv": (["OPS_FIELDS=.kv_export=kv_export"], "lacks both kv_export and kv_import"),
    "half-buf": (["OPS_FIELDS=.buf_alloc=buf_alloc"], "lacks all five buf_ functions"),
    "type-taken": (["PLUGIN_FIELDS=.dtypes=types+1,.n_dtypes=1,.dtype_stride=sizeof*types"], "type 0x00000008 is outside of"),
    "type-empty": (["PLUGIN_FIELDS=.dtypes=types+2,.n_dtypes=1,.dtype_stride=sizeof*types"], "type 0x40000002 lacks"),
    "type-mute": (["PLUGIN_FIELDS=.dtypes=types+3,.n_dtypes=1,.dtype_stride=sizeof*types"], "type 0x40000003 lacks"),
    "type-twice": (["PLUGIN_FIELDS=.dtypes=types,.n_dtypes=2,.dtype_stride=0"], "dtype table"),
    "types-many": (["PLUGIN_FIELDS=.dtypes=types,.n_dtypes=0xffffffffu,.dtype_stride=sizeof*types"], "dtype table"),
}
# These load; their device or instance is what fails: (macros, text after "backend NAME: ")
UNUSABLE = {
    "none-here": (["DEVICE=no_device"], "finds no device on this machine"),
    "dead": (["DEVICE=broken_device"], "device: the card does not answer"),
    "crooked": (["DEVICE_FIELDS=out->align=3"], "device alignment 3"),
    "vast": (["DEVICE_FIELDS=out->align=0x80000000u"], "device alignment 2147483648"),
    "grown": (["DEVICE_FIELDS=out->struct_size=4000000000u"], "device has 4000000000 bytes"),
    "refuses": (["IN_CREATE=return host->fail(host->ctx,KOPI_E_INVALID,\"needs the moon\")"], "create: needs the moon"),
    "positive": (["IN_CREATE=return 7"], "create: "),
    "speechless": (["IN_CREATE=return KOPI_E_DEVICE_LOST"], "create: "),
}
# These work.
GOOD = {
    "good": [],
    "twin-a": [], "twin-b": [],
    "longer": ["STRUCT_SIZE=sizeof plugin", "OPS_SIZE=sizeof ops"],
    "minimal": ["OPS_SIZE=sizeof(kopi_backend_ops)"],
    "unterminated": ["DEVICE_FIELDS=__builtin_memset(out->name,97,sizeof out->name+sizeof out->detail)"],
    "types": ["PLUGIN_FIELDS=.dtypes=types,.n_dtypes=1,.dtype_stride=sizeof*types"],
}
FP = {
    "fp-load": (["IN_CONSTRUCTOR=SPOIL_FP"], "{file}: loading it changed the floating-point state"),
    "fp-entry": (["IN_ENTRY=SPOIL_FP"], "{file}: loading it changed the floating-point state"),
    "fp-create": (["IN_CREATE=SPOIL_FP"], "backend fp-create changed the floating-point state in create"),
    "fp-kernel": (["IN_KERNEL=SPOIL_FP"], "backend fp-kernel changed the floating-point state in ADD"),
    "fp-worker": (["IN_KERNEL=if(k->ith)SPOIL_FP"], "backend fp-worker changed the floating-point state in ADD"),
}

top = Path(tempfile.mkdtemp(prefix="kopi-loading-"))
os.environ.pop("KOPI_PLUGIN_PATH", None)


def variant(folder, name, *macros):
    folder.mkdir(exist_ok=True)
    defines = [f"-D{m}" for m in [f'NAME="{name}"', *macros]]
    return compile_to(folder / f"kopi-{name}.so", SOURCE / "tests" / "abi" / "variant.c", *defines)


def backends(*args, **more):
    done = command(KOPI, "backends", *args, **more)
    return done, done.stdout.decode(), done.stderr.decode()


def entry(text, name, file):
    """The lines of one plugin in the list of `kopi backends`."""
    blocks = text.split("\n" + name)
    for block in blocks[1:]:
        lines = block.split("\n")
        body = []
        for line in lines[1:]:
            if not line.startswith("  "):
                break
            body.append(line)
        if any(str(file) in line for line in body):
            return "\n".join(body)
    return ""


# ---- one thing wrong each ---------------------------------------------------------------------------------------------
bad = top / "bad"
bad.mkdir()
wrong = {}
for name, (macros, want) in {**REFUSED, **UNUSABLE}.items():
    variant(bad, name, *macros)
    wrong[name] = want
(bad / "empty.c").write_text("")
compile_to(bad / "kopi-empty.so", bad / "empty.c")
wrong["empty"] = "does not export kopi_plugin_v1"
(bad / "data.c").write_text('__attribute__((visibility("default"))) int kopi_plugin_v1 = 5;')
compile_to(bad / "kopi-data.so", bad / "data.c")
wrong["data"] = "kopi_plugin_v1 is not a function"
(bad / "open.c").write_text("int nowhere(void); __attribute__((visibility(\"default\"))) void *kopi_plugin_v1(void) { return nowhere() ? 0 : \"\"; }")
compile_to(bad / "kopi-unresolved.so", bad / "open.c")
wrong["unresolved"] = "nowhere"
compile_to(bad / "kopi-borrowed.so", bad / "empty.c", "-Wl,--no-as-needed", bad / "kopi-null.so", f"-Wl,-rpath,{bad}")
wrong["borrowed"] = "does not export kopi_plugin_v1"
(bad / "kopi-text.so").write_text("this is no library\n")
wrong["text"] = "cannot be loaded: it is not a shared library"
(bad / "kopi-zero.so").write_bytes(b"")
wrong["zero"] = "cannot be loaded: it is not a shared library"
(bad / "kopi-folder.so").mkdir()
wrong["folder"] = "is not a regular file"
cut = (bad / "kopi-null.so").read_bytes()
(bad / "kopi-cut.so").write_bytes(cut[:700])
wrong["cut"] = "cannot be loaded: it is cut off"
arch = bytearray(cut)
arch[18:20] = (22).to_bytes(2, "little")  # e_machine: S/390
(bad / "kopi-arch.so").write_bytes(arch)
wrong["arch"] = "cannot be loaded: it is for another kind of machine"
for name, macros in GOOD.items():
    variant(bad, name, *macros)

done, listing, errors = backends("--plugin-dir", bad, timeout=300)
check(done.returncode == 0, "the list is printed with every wrong plugin in it", f"{done.returncode} {errors[-500:]}")
for name, want in wrong.items():
    file = bad / f"kopi-{name}.so"
    text = entry("\n" + listing, name, file)
    check("present, unusable: " in text and want in text, f"{name}: {want}", text or listing[-300:])
    check(("backend " + name if name in UNUSABLE else str(file) + ": ") in text.split("unusable:")[-1], f"{name}: the message names it", text)
for name in GOOD:
    text = entry("\n" + listing, name, bad / f"kopi-{name}.so")
    check("device" in text and "unusable" not in text, f"{name} is usable among the wrong ones", text)
for name in ("null", "data", "none-here", "text", "folder"):
    done = command(KOPI, "logits", "--plugin-dir", bad, "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "-b", name)
    check(done.returncode == 5 and wrong[name] in done.stderr.decode(), f"-b {name} ends with 5 and the reason", done.stderr.decode())
    done, shown, said = backends("info", name, "--plugin-dir", bad)
    check(done.returncode == 5 and wrong[name] in shown and wrong[name] in said, f"info {name} ends with 5 and the reason", shown + said)


# ---- a model with a good one; floating-point state ------------------------------------------------------------------
def run(name, folder, threads=1):
    return logits(tiny("quants-Q4_1"), top / "logits.npy", "--plugin-dir", folder, "-b", name, "-t", threads)


want, errors = run("cpu", bad)
check(want, "cpu computes logits", errors)
for name in GOOD:
    have, errors = run(name, bad)
    check(want and have == want, f"{name} with fallback: the bytes of cpu", errors)
variant(top / "loose", "loose", "DEVICE_FIELDS=out->flags=KOPI_DEVICE_HOST_VISIBLE")
for promise in "any", "run", "exact":
    done = command(KOPI, "logits", "--plugin-dir", PLUGINS, "--plugin-dir", top / "loose", "-b", "loose", "--determinism", promise, "-m", tiny("quants-Q4_1"),
                   "--ids", "1", "-o", top / "x.npy")
    text = done.stderr.decode()
    check(done.returncode == 0 if promise == "any" else done.returncode == 5 and f'--determinism: determinism: {promise} is wanted, but backend loose promises only "any"' in text,
          f"a backend that promises nothing, {promise} wanted: exit status {done.returncode}", text)
if X86:
    fp = top / "fp"
    for name, (macros, message) in FP.items():
        file = variant(fp, name, *macros)
        have, errors = run(name, fp, threads=2)
        check(want and have == want, f"{name}: the state is undone, the bytes are those of cpu", errors)
        message = message.format(file=file)
        check(errors.count(message) == 1, f"{name}: named once: {message}", errors)
else:
    skip("floating-point state", "the plugins spoil MXCSR, which this machine has not")


# ---- the source of a weight given back while it is imported ------------------------------------------------------------
def released(name, code):
    fields = "OPS_FIELDS=.kernels=mute_norm,.weight_import=weight_import,.weight_free=weight_free"
    variant(top / "released", name, fields, f"IN_IMPORT={code}")
    return run(name, top / "released")


have, errors = released("elsewhere", "release->bytes(host->ctx,w->data,w->size+1),release->bytes(host->ctx,(char*)w->data-1,1)")
check(have, "bytes outside a weight are not given back", errors)
have, errors = released("promised", "release->bytes(host->ctx,w->data,w->size)")
check(not have and "backend promised: weight blk.0.attn_norm.weight: gave back its source, but has no copy for all its uses" in errors,
      "a source that was given back without a copy is refused", errors)


# ---- search -----------------------------------------------------------------------------------------------------------
one, two, three = top / "one", top / "two", top / "three"
for folder, version in (one, "from-one"), (two, "from-two"), (three, "from-three"):
    variant(folder, "where", f'VERSION="{version}"')
    variant(folder, folder.name)
ENV = {**os.environ, "KOPI_PLUGIN_PATH": f"{two}:{three}"}


def version_of(done):
    lines = [line for line in done[1].split("\n") if line.startswith("where ")]
    return lines[0].split()[1] if lines else done[1] + done[2]


done = backends("info", "where", "--plugin-dir", one, env=ENV)
check(version_of(done) == "from-one", "--plugin-dir comes before KOPI_PLUGIN_PATH", version_of(done))
check("comes first" in done[1], "the others are said to be hidden", done[1])
config = top / "kopi.yaml"
config.write_text(f"plugin_dirs: [{one}]\n")
done = backends("info", "where", "--config", config, env=ENV)
check(version_of(done) == "from-one", "plugin_dirs comes before KOPI_PLUGIN_PATH", version_of(done))
done = backends("info", "where", env=ENV)
check(version_of(done) == "from-two", "KOPI_PLUGIN_PATH is searched in order", version_of(done))

done = command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "-b", "nowhere", "--config", config,
               env={**ENV, "KOPI_PLUGIN_PATH": f"{two}:.::relative:{three}"})
text = done.stderr.decode()
places = [one, two, three]
check(done.returncode == 5, "a backend that is nowhere: exit status 5", str(done.returncode))
at = [text.find(f"{p}/kopi-nowhere.so") for p in places] + [text.find("backends-v1/kopi-nowhere.so")]
check(-1 not in at and at == sorted(at), "every path tried is listed, in order, the installed directory last", text)
check(". (not absolute)" in text and "relative (not absolute)" in text, "relative directories are named and not searched", text)

# A decoy in the working directory leaves a mark when it is loaded.
decoy = top / "cwd"
mark = top / "mark"
macro = f'IN_CONSTRUCTOR=fclose(fopen("{mark}","w"))'
variant(decoy, "decoy", macro)
for env in {}, {"KOPI_PLUGIN_PATH": "."}, {"KOPI_PLUGIN_PATH": ":"}, {"LD_LIBRARY_PATH": str(decoy)}:
    done = command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "-b", "decoy", cwd=decoy,
                   env={**os.environ, **env})
    check(done.returncode == 5 and not mark.exists(), f"the working directory is not searched ({env})", done.stderr.decode())
    backends(cwd=decoy, env={**os.environ, **env})
    check(not mark.exists(), f"nor when listing ({env})")
done, text, errors = backends("--plugin-dir", decoy)
check(mark.exists(), "the decoy does leave its mark when it is named", text + errors)

for name in ("../good", "Good", "a/b", "x" * 33):
    done = command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "-b", name, "--plugin-dir", bad)
    check(done.returncode in (2, 3, 5), f"the name {name[:12]} is refused", done.stderr.decode())

# ---- one file under two names, explicit paths, pins, owner and mode ---------------------------------------------------
file = variant(top / "own", "mine")
shutil.copy(file, top / "own" / "kopi-copy.so")
done = command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "--plugin-dir", PLUGINS, "--backend-path",
               top / "own" / "kopi-copy.so")
check(done.returncode == 0, "an explicit path may have any file name", done.stderr.decode())
done = command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "--backend-path", top / "own" / "no.so")
check(done.returncode == 5 and f"{top}/own/no.so: no such file" in done.stderr.decode(), "a path that is not there", done.stderr.decode())
digest = hashlib.sha256(file.read_bytes()).hexdigest()


def with_pin(pin, *place):
    return command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", "--plugin-dir", PLUGINS, *place, "--set",
                   f"backend.sha256={pin}")


by_name = ("--plugin-dir", top / "own", "-b", "mine")
for place in by_name, ("--backend-path", file):
    done = with_pin(digest.upper(), *place)
    check(done.returncode == 0, "a right SHA-256", done.stderr.decode())
    done = with_pin("0" * 64, *place)
    check(done.returncode == 5 and digest in done.stderr.decode() and "0" * 64 in done.stderr.decode(), "a wrong SHA-256 names both",
          done.stderr.decode())


def rights(what, *place):
    """(exit status, messages) of listing with the plugin in `own` searched by configuration, or trusted by --plugin-dir."""
    done = command(KOPI, "logits", "-m", tiny("quants-Q4_1"), "--ids", "1", "-o", top / "x.npy", *place, "-b", "mine",
                   env={**os.environ, "KOPI_PLUGIN_PATH": f"{top}/own:{PLUGINS}"})
    return done.returncode, done.stderr.decode()


def refused(what, reason):
    code, text = rights(what)
    check(code == 5 and str(file) in text and reason in text, f"{what} is refused", text)
    code, text = rights(what, "--plugin-dir", top / "own", "--plugin-dir", PLUGINS)
    check(code == 0 and reason in text, f"{what} is a warning with --plugin-dir", text)


os.chmod(top, 0o755)
check(rights("as it should be")[0] == 0, "right owner and mode", rights("")[1])
file.chmod(0o757)
refused("a plugin that everybody may write", "it is writable for everybody")
file.chmod(0o755)
(top / "own").chmod(0o777)
refused("a directory that everybody may write", "its directory is writable for everybody")
(top / "own").chmod(0o755)
if os.geteuid() == 0:
    os.chown(file, 12345, 0)
    refused("a plugin of another user", "it belongs to another user")
    os.chown(file, 0, 0)
    os.chown(top / "own", 12345, 0)
    refused("a directory of another user", "its directory belongs to another user")
    os.chown(top / "own", 0, 0)
    os.chown(file, 0, 12345)
    file.chmod(0o775)
    refused("a plugin that another group may write", "it is writable for another group")
    os.chown(file, 0, 0)
    file.chmod(0o755)
else:
    skip("owners", "only root can give files away")
    file.chmod(0)
    code, text = rights("")
    check(code == 5 and "Permission denied" in text, "an unreadable plugin", text)

shutil.rmtree(top)
finish()
