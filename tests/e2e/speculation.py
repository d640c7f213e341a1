"""Speculation on the command line: the same output with every kind of it, the counts in --show-timings and --json, and what is
refused. (Token by token: tests/unit/test_speculate.c.)"""
import json
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, TINY, tiny  # noqa: E402
from report import check, finish, kopi  # noqa: E402

PROMPT = "a b c a b c a b c a b"
SAMPLING = {"greedy": ["--temp", "0"], "sampled": ["--temp", "0.1", "--seed", "5", "--repeat-penalty", "1.1"]}


def run(model, *args):
    return kopi("run", "-m", tiny(model), "--raw", "-p", PROMPT, "-n", "40", "-c", "128", "--ignore-eos", *args)


def answer(what, model, *args):
    """The object of --json, or None."""
    done = run(model, "--json", *args)
    return json.loads(done.stdout) if check(done.returncode == 0, what, done.stderr.decode()) else None


totals = {}
for model in TINY:
    for backend in BACKENDS:
        for name, sampling in SAMPLING.items():
            plain = answer(f"{model}, {backend}, {name}", model, "-b", backend, *sampling)
            kinds = {"ngram": ["--spec-type", "ngram", "--no-spec-adaptive"], "draft": ["-md", tiny(model), "--no-spec-adaptive", "--draft-max", "5"],
                     "adaptive": ["--spec-type", "ngram"]}
            for kind, flags in kinds.items():
                what = f"{model}, {backend}, {name}, {kind}"
                got = answer(what, model, "-b", backend, *sampling, *flags)
                if not plain or not got:
                    continue
                check(got["text"] == plain["text"] and got["finish_reason"] == plain["finish_reason"], f"{what}: the same answer", f"{got}\n{plain}")
                t = got["timings"]
                check(0 <= t["draft_n_accepted"] <= t["draft_n"] and t["predicted_n"] == 40, f"{what}: counts", str(t))
                totals[kind] = totals.get(kind, 0) + t["draft_n_accepted"]
            if plain:
                check(plain["timings"]["draft_n"] == 0, f"{model}, {backend}, {name}: no guesses unasked")
check(totals.get("ngram", 0) > 100 and totals.get("draft", 0) > 100, "guesses came true", str(totals))

done = run(TINY[0], "--temp", "0", "-md", tiny(TINY[0]), "--no-spec-adaptive", "--show-timings")
counts = re.search(rb"guesses: (\d+) tokens, (\d+) accepted, (\d+) rejected", done.stderr)
check(counts and int(counts[1]) == int(counts[2]) + int(counts[3]) and int(counts[2]) > 0, "--show-timings", done.stderr.decode())
done = run(TINY[0], "--temp", "0", "--show-timings")
check(done.returncode == 0 and b"guesses" not in done.stderr, "--show-timings without speculation", done.stderr.decode())

with tempfile.TemporaryDirectory() as folder:
    # By id, relative to the file, and one that --model hides; a flag switches it off.
    link = Path(folder) / "small.gguf"
    link.symlink_to(tiny(TINY[0]))
    for draft in ("helper", "small.gguf"):
        config = Path(folder) / "kopi.yaml"
        config.write_text(f"models:\n  - {{id: big, path: {tiny(TINY[0])}, speculation: {{draft_model: {draft}, adaptive: false}}}}\n"
                          f"  - {{id: helper, path: small.gguf, sha256: \"{'0' * 64}\"}}\n")
        for chosen in ([], ["-m", "big"]):
            done = kopi("run", "--config", config, *chosen, "--raw", "-p", PROMPT, "-n", "9", "--json", "--temp", "0")
            if draft == "helper":
                check(done.returncode == 4 and b"SHA-256" in done.stderr, f"draft model by id {chosen}: its own settings hold", done.stderr.decode())
            else:
                check(done.returncode == 0 and json.loads(done.stdout)["timings"]["draft_n"] > 0, f"draft model by file {chosen}", done.stderr.decode())
        done = kopi("run", "--config", config, "--spec-type", "none", "--raw", "-p", PROMPT, "-n", "9", "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["timings"]["draft_n"] == 0, "switched off by a flag", done.stderr.decode())
        done = kopi("bench", "--config", config, "-p", "4", "-n", "1", "-r", "1")
        check(done.returncode == 0, "bench loads no draft model", done.stderr.decode())

REFUSED = [(["--spec-type", "draft"], 2, "--model-draft"), (["--spec-type", "turbo"], 2, "ngram"), (["--draft-max", "0"], 2, "1 to 64"),
           (["-md", "/nowhere/small.gguf"], 4, "/nowhere/small.gguf"), (["--spec-type", "ngram", "--spec-ngram-min", "9"], 2, "ngram_max"),
           (["--draft-max", "8"], 2, "--draft-max means nothing where no tokens are guessed; it goes with --spec-type ngram or --model-draft"),
           (["--no-spec-adaptive"], 2, "--no-spec-adaptive"), (["--spec-type", "none", "--draft", "8"], 2, "--draft means nothing"),
           (["--spec-ngram-min", "3", "-md", tiny(TINY[0])], 2, "--spec-ngram-min means nothing with this --spec-type"),
           (["-md", tiny([t for t in TINY if t.startswith("gemma")][0])], 2, "vocabular")]
for flags, code, says in REFUSED:
    done = run([t for t in TINY if t.startswith("llama")][0], *flags)
    check(done.returncode == code and says in done.stderr.decode() and not done.stdout, f"{flags} is refused", f"{done.returncode} {done.stderr.decode()}")
done = kopi("logits", "-m", tiny(TINY[0]), "--ids", "1", "-md", "x.gguf")
check(done.returncode == 2, "a command without answers takes no draft model", done.stderr.decode())
finish()
