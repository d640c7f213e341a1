"""Broken backends against `kopi backends check`: each has one thing wrong, and fails the one case that is meant for it and no other;
what builds on that case is skipped. In make check each runs the group of its case. With --full (make installcheck, with the
installed kopi) each runs all groups, and so does its repaired twin, which must pass. Then what the command itself promises:
options, output, exit status. docs/conformance.md must list exactly these faults."""
import concurrent.futures
import json
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "support"), str(Path(__file__).parents[1] / "abi"), str(Path(__file__).parent / "broken")]
from faults import FAULTS, case, flags  # noqa: E402
from plugins import FLAGS, CC, SANITIZE  # noqa: E402
from report import BUILD, KOPI, SANITIZED, SOURCE, check, command, finish, skip  # noqa: E402

FULL = "--full" in sys.argv
PLUGINS = [] if FULL else ["--plugin-dir", BUILD / ".libs"]
BROKEN = SOURCE / "tests" / "backend" / "broken"
KERNELS = BUILD / "plugins" / "cpu" / ".libs" / "libbaseline.a"
ALL_GROUPS = ["load", "abi", "life", "ops", "model", "cancel", "support"]
# A sanitizer ends the process before the case can see what is wrong, or has threads and files of its own.
NOT_SANITIZED = {"reads_past", "ignores_no_memory", "keeps_pointer", "leaks_malloc", "core_symbol", "load_thread", "fixed_stride", "stale_kv"}


def build(folder, name, repaired=False):
    path = folder / f"{name}{'-repaired' if repaired else ''}" / "kopi-broken.so"
    path.parent.mkdir(exist_ok=True)
    done = command(*CC, *FLAGS, *SANITIZE, "-I", SOURCE / "include", "-I", SOURCE, '-DCPU_VERSION="1"', *flags(name, repaired),
                   *sorted(BROKEN.glob("*.c")), KERNELS, "-o", path, "-lm", "-lpthread")
    return (path, "") if done.returncode == 0 else (None, done.stderr.decode()[-2000:])


def run_check(plugin, *options):
    """(exit status, the JSON object or None, stderr)"""
    done = command(KOPI, "backends", "check", plugin, *PLUGINS, "--json", "--rounds", 1, "--seed", 1, *options, timeout=600)
    try:
        return done.returncode, json.loads(done.stdout), done.stderr.decode()
    except ValueError:
        return done.returncode, None, f"no JSON: {done.stdout[:300]} {done.stderr[:300]}"


def try_one(folder, name, repaired):
    path, why = build(folder, name, repaired)
    if not path:
        return name, repaired, None, why
    limit = 10 if name == "hangs" and not repaired else 120
    options = ["--time-limit", limit] + ([] if FULL else ["--group", case(name).split("/")[0]])
    return name, repaired, run_check(path, *options), None


def judge(name, repaired, result, why):
    what = f"{name}{' (repaired)' if repaired else ''}"
    if not check(result is not None, f"{what} compiles", why):
        return
    status, said, stderr = result
    if not check(said is not None, f"{what}: {stderr}"):
        return
    failed = {c["case"]: c["text"] for c in said["cases"] if c["result"] == "fail"}
    skipped = {c["case"]: c["text"] for c in said["cases"] if c["result"] == "skip"}
    if repaired:
        check(status == 0 and not failed, f"{what} passes", f"exit status {status}, {failed}")
        check(not any("builds on" in text for text in skipped.values()), f"{what}: nothing is skipped for a failure", str(skipped))
        return
    check(list(failed) == [case(name)], f"{what} fails {case(name)} and nothing else", str(failed))
    check(status == 6, f"{what}: exit status 6", f"it is {status}")
    others = {c: t for c, t in skipped.items() if not t.startswith("builds on ") and t not in ("not claimed", "no operation is claimed", "it has no weight type of its own")
              and "kernels only" not in t}
    check(not others, f"{what}: the rest is skipped because it builds on that", str(others))


def matrix(folder):
    jobs = [(name, repaired) for name in FAULTS for repaired in ([False, True] if FULL else [False])]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda job: try_one(folder, *job), [j for j in jobs if not (SANITIZED and j[0] in NOT_SANITIZED)]):
            judge(*result)
    for name in NOT_SANITIZED if SANITIZED else ():
        skip(name, "the sanitizer is quicker")


def the_command(folder):
    """A failure can be reproduced by what it prints; TAP says the same as JSON; bad options are refused."""
    path, why = build(folder, "wrong_sign")
    if not check(path, "wrong_sign compiles", why):
        return
    tap = command(KOPI, "backends", "check", path, *PLUGINS, "--case", "ops/linear/q5_1,ops/head/q5_1,ops/add", "--seed", 5)
    text = tap.stdout.decode()
    check(tap.returncode == 6, "TAP: exit status 6", text)
    check(text.startswith("TAP version 13\n1..3\n"), "TAP: version and plan", text)
    check("\nnot ok 1 - ops/linear/q5_1\n" in text, "TAP: not ok", text)
    check(re.search(r"^ok \d - ops/head/q5_1 # SKIP builds on ops/linear/q5_1", text, re.M), "TAP: what builds on it is skipped", text)
    check(re.search(r"^ok \d - ops/add \(", text, re.M), "TAP: ok", text)
    check("# seed 5\n" in text and "\n# 1 passed, 1 failed, 1 skipped\n" in text, "TAP: the seed and the sums", text)
    again = re.search(r"--reproduce (ops/linear/q5_1:\d+)'", text)
    if check(again, "TAP: how to reproduce it", text):
        status, said, stderr = run_check(path, "--reproduce", again[1])
        first = re.search(r"message: '(.*)'", text)[1]
        check(first[0].isalnum(), "the message begins with a word", first)
        good = said and len(said["cases"]) == 1 and said["cases"][0]["programs"] == 1
        check(status == 6 and good and said["cases"][0]["text"] == first, "one program fails in the same way", str(said) + stderr)
    inside = command(KOPI, "backends", "check", path, *PLUGINS, "--in-process", "--case", "ops/linear/q5_1", "--seed", 5)
    check(inside.returncode == 6 and b"\nnot ok 1 - ops/linear/q5_1\n" in inside.stdout, "--in-process", inside.stdout.decode())
    for option in ("--group", "none"), ("--case", "ops/none"), ("--case", "ops/lin"), ("--case", ""), ("--reproduce", "ops/add"), \
            ("--reproduce", "ops/none:1"), ("--rounds", "0"), ("--time-limit", "0"):
        done = command(KOPI, "backends", "check", path, *PLUGINS, *option)
        check(done.returncode == 2 and done.stderr, f"{' '.join(option)} is refused", done.stderr.decode())
    bare = command(KOPI, "backends", "check", path.name, *PLUGINS, cwd=path.parent)
    check(bare.returncode == 2 and b"./kopi-broken.so" in bare.stderr, "a bare file name is refused with the remedy", bare.stderr.decode())
    missing = command(KOPI, "backends", "check", folder / "nothing.so", *PLUGINS)
    check(missing.returncode == 5, "a file that is not there: exit status 5", missing.stderr.decode())


# Plugins that nobody means to write, made of tests/abi/variant.c: (macros, the case that fails; None: whichever, or none).
HOSTILE = {
    "no-text": (['VERSION="\\xff\\xc0\\x80\\x1b[2J\\n"'], None),
    "bad-words": (['IN_CREATE=return host->fail(host->ctx,KOPI_E_NOMEM,"\\xed\\xa0\\x80\\n\\t\\x07")'], "life/create"),
    "no-words": (["IN_CREATE=return host->fail(host->ctx,KOPI_E_NOMEM,NULL)"], "life/create"),
    "floods": (['IN_CREATE=for(;;)fputs("flood\\xff\\n",stdout)'], "life/create"),
    "forks": (["IN_CREATE=if(!fork())for(;;)pause()"], None),
    "stops": (["IN_CREATE=raise(SIGSTOP)"], "life/create"),
    "closes": (["IN_CONSTRUCTOR=for(int i=0;i<64;i++)close(i)"], "load/process"),
    "dies-late": (["IN_CREATE=signal(SIGALRM,SIG_DFL);ualarm(1,0)"], None),
    "overflows": (["IN_CREATE=volatile char a[1<<30];a[0]=1"], None),
    "many-kernels": (["OPS_FIELDS=.n_kernels=0xffffffffu"], "abi/tables"),
    "null-kernels": (["OPS_FIELDS=.kernels=NULL"], "abi/tables"),
    "no-stride": (["OPS_FIELDS=.kernel_stride=0"], "abi/tables"),
    "null-kernel": (["OPS_FIELDS=.kernels=no_function"], "abi/tables"),
    "half-plan": (["OPS_FIELDS=.prepare=prepare,.supports=supports"], "abi/tables"),
    "type-taken": (["PLUGIN_FIELDS=.dtypes=types+1,.n_dtypes=1,.dtype_stride=sizeof*types"], "abi/tables"),
    "type-empty": (["PLUGIN_FIELDS=.dtypes=types+2,.n_dtypes=1,.dtype_stride=sizeof*types"], "abi/tables"),
    "types-many": (["PLUGIN_FIELDS=.dtypes=types,.n_dtypes=0xffffffffu,.dtype_stride=sizeof*types"], "abi/tables"),
    "no-ops": (["OPS=NULL"], "load/opens"),
    "null": (["RESULT=NULL"], "load/opens"),
    "wild": (["RESULT=(const kopi_plugin*)8"], "load/opens"),
    "hangs": (["IN_ENTRY=for(;;)pause()"], "load/opens"),
    "no-device": (["DEVICE=no_device"], "abi/device"),
}


def hostile(folder):
    """The tool says which case failed, ends by itself with a sound object, and leaves nothing running."""
    for name, (macros, wanted) in HOSTILE.items():
        path = folder / f"kopi-{name}.so"
        done = command(*CC, *FLAGS, *SANITIZE, "-I", SOURCE / "include", "-include", "signal.h", "-include", "unistd.h", f'-DNAME="{name}"',
                       *[f"-D{m}" for m in macros], SOURCE / "tests" / "abi" / "variant.c", "-o", path)
        if not check(done.returncode == 0, f"{name} compiles", done.stderr.decode()[-1000:]):
            continue
        status, said, stderr = run_check(path, "--time-limit", 5, "--group", "load,abi,life,support", "--case",
                                         "load/opens,load/process,load/silent,abi/tables,abi/device,life/create,life/process,support/matrix")
        if not check(said is not None and status in (0, 6), f"{name}: exit status {status}: {stderr}"):
            continue
        failed = [c["case"] for c in said["cases"] if c["result"] == "fail"]
        check(wanted is None or failed == [wanted], f"{name} fails {wanted}", str(failed))
        for _ in range(100):  # who was killed may take a moment to go
            left = [p for p in Path("/proc").glob("[0-9]*/maps") if str(path) in read(p)]
            if not left:
                break
            time.sleep(0.1)
        check(not left, f"{name} leaves no process", str(left))


def read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def groups():
    """The backends of the build tree, in the group that costs nothing: every group is known."""
    done = command(KOPI, "backends", "check", "cpu", *PLUGINS, "--json", "--rounds", 1, "--group", "load,support")
    names = {c["case"].split("/")[0] for c in json.loads(done.stdout)["cases"]} if done.returncode == 0 else set()
    check(names == {"load", "support"}, "--group leaves these groups", done.stderr.decode())
    for backend in ("cpu", "cpu-threaded") if FULL else ():
        status, said, stderr = run_check(backend)
        check(status == 0 and said["exact"], f"{backend} passes as exact", f"{status} {stderr}")
        check({c["case"].split("/")[0] for c in said["cases"]} == set(ALL_GROUPS), f"{backend}: every group is there")
        skipped = [c["case"] for c in said["cases"] if c["result"] == "skip"]
        allowed = {"cpu": {"cancel/plan"}, "cpu-threaded": set()}[backend]
        check({s for s in skipped if not s.startswith("ops/")} <= allowed, f"{backend}: nothing but {allowed} is skipped", str(skipped))


def documented():
    text = (SOURCE / "docs" / "conformance.md").read_text()
    table = re.findall(r"^\| `(\w+)` \| (.*?) \| `([\w/-]+)` \|$", text, re.M)
    want = [(name, row[1], row[0]) for name, row in FAULTS.items()]
    check(table == want, "docs/conformance.md has the table of faults", str(set(table) ^ set(want)))
    check(len(FAULTS) >= 34, "there are enough of them")
    enum = set(re.search(r"enum fault \{(.*?)\};", re.sub(r"/\*.*?\*/", "", (BROKEN / "broken.h").read_text()), re.S)[1].replace(",", " ").split())
    check(enum == set(FAULTS) | {"none"}, "broken.h has the same faults", str(enum ^ set(FAULTS)))


with tempfile.TemporaryDirectory() as tmp:
    documented()
    the_command(Path(tmp))
    hostile(Path(tmp))
    groups()
    matrix(Path(tmp))
finish()
