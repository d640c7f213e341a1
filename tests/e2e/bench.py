"""`kopi bench`: what is measured, in each form of the output, and what is refused."""
import csv
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import tiny  # noqa: E402
from report import check, finish, kopi  # noqa: E402

MODEL = tiny("llama-gqa-Q4_K_M")
TESTS = ["-p", "8,16", "-n", "4", "-pg", "4,3", "-pg", "2,1", "-d", "0,5", "-r", "2", "--parallel", "1,3"]
# n_prompt, n_gen, n_depth, n_seq
EXPECTED = [(p, g, d, s) for d in (0, 5) for p, g, s in [(8, 0, 1), (16, 0, 1), (0, 4, 1), (0, 4, 3), (4, 3, 1), (2, 1, 1)]]
KEYS = {"build_version", "backends", "cpu_info", "model_filename", "model_type", "model_size", "n_batch", "n_threads", "type_k", "type_v", "n_prompt",
        "n_gen", "n_depth", "n_seq", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "avg_ts_per_seq"}


def bench(*args):
    return kopi("bench", "-m", MODEL, *args)


def check_records(what, records):
    check([tuple(int(r[k]) for k in ("n_prompt", "n_gen", "n_depth", "n_seq")) for r in records] == EXPECTED, f"{what}: the tests asked for")
    for r in records:
        check(KEYS <= set(r), f"{what}: keys", str(KEYS - set(r)))
        check(r["model_filename"] == str(MODEL), f"{what}: model_filename is the file", r["model_filename"])
        tokens = int(r["n_prompt"]) + int(r["n_gen"]) * int(r["n_seq"])
        # the mean of speeds is not the speed of the mean, but of two runs never less
        check(float(r["avg_ts"]) >= 0.99 * tokens * 1e9 / float(r["avg_ns"]), f"{what}: avg_ts is tokens of all sequences", str(r))
        check(abs(float(r["avg_ts_per_seq"]) * int(r["n_seq"]) / float(r["avg_ts"]) - 1) < 1e-3, f"{what}: avg_ts_per_seq", str(r))


for form in ("md", "csv", "json", "jsonl"):
    done = bench(*TESTS, "-o", form)
    text = done.stdout.decode()
    if not check(done.returncode == 0 and not done.stderr, f"-o {form}", done.stderr.decode()):
        continue
    if form == "md":
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()]
        names = [n for d in ("", " @ d5") for n in ("pp8" + d, "pp16" + d, "tg4 x 1" + d, "tg4 x 3" + d, "pp4+tg3" + d, "pp2+tg1" + d)]
        check([r[4] for r in rows[2:]] == names, "md: names of the tests", text)
        check(rows[0][-1] == "t/s per sequence" and all(len(r) == len(rows[0]) for r in rows), "md: columns", text)
    elif form == "csv":
        check_records(form, list(csv.DictReader(io.StringIO(text))))
    else:
        records = json.loads(text) if form == "json" else [json.loads(line) for line in text.splitlines()]
        check_records(form, records)
        check(all(len(r["samples_ns"]) == len(r["samples_ts"]) == 2 for r in records), f"{form}: samples")

done = bench("-p", "8", "-n", "2", "-r", "1", "-o", "json")
check([(r["n_prompt"], r["n_gen"], r["n_seq"]) for r in json.loads(done.stdout)] == [(8, 0, 1), (0, 2, 1)], "without --parallel")
done = bench("-p", "0", "-n", "2", "-r", "1")
check(b"t/s per sequence" not in done.stdout and b" tg2 " in done.stdout, "without --parallel: no column for it", done.stdout.decode())

REFUSED = {"-p -5": "-p", "-p abc": "-p", "-d 1,,2": "-d", "-d 1,": "-d", "-n ,": "-n", "--parallel 0": "--parallel", "--parallel 257": "--parallel",
           "--parallel 1,x": "--parallel", "-pg 5": "-pg", "-pg 1,2,3": "-pg", "-pg 1,-2": "-pg", "-r 0": "-r", "-r x": "-r", "-o xml": "-o",
           "-p 0 -n 0": "nothing", "-c 4": "--ctx-size", "-p": "-p", "--repeat 3": "--repe", "-p " + ",".join(["1"] * 65): "64"}
for args, says in REFUSED.items():
    done = bench(*args.split(" "))
    check(done.returncode == 2 and says in done.stderr.decode() and not done.stdout, f"{args} is refused", done.stderr.decode())
finish()
