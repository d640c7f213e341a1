"""The commands that show something: kopi backends as a table and as JSON, the helps of commands below commands, the log."""
import json
import re
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import tiny  # noqa: E402
from report import KOPI, PLUGINS, check, command, finish, kopi  # noqa: E402

MODEL = tiny("llama-gqa-Q4_K_M")


def table(facts):
    """The table that says what the JSON says."""
    t, lines = facts["threads"], []
    lines.append(f"threads: {t['default']} by default ({t['why']}), team of {t['team']}")
    for b in facts["backends"]:
        if "hidden_by" in b:  # where kopi is installed already, its plugins come after those of the build
            lines.append(f"{b['name']}\n  file     {b['file']}\n  not used: {b['hidden_by']} comes first")
            continue
        lines.append(f"{b['name']} {b['version']} (backend ABI {b['abi']})\n  file     {b['file']}")
        d = b["device"]
        place = "works on host memory" if d["host_memory"] else "memory of its own"
        lines.append(f"  device   {d['name']}: {d['detail']}; {d['determinism']}, {place}")
        lines.append(f"  threads  {b['threads']}\n  options  {' '.join(b['options']) or 'none'}")
    if "model" in facts:
        lines.append(f"code that runs {facts['model']['id']}:")
        lines += [f"  {c['op']:24} x {c['count']:<4} {c['code']}" for c in facts["model"]["code"]]
    return "\n".join(lines) + "\n"


def backends():
    for options in [], ["-m", MODEL]:
        text, facts = kopi("backends", *options), kopi("backends", *options, "--json")
        facts = json.loads(facts.stdout)
        check({b["name"] for b in facts["backends"]} == {"cpu", "cpu-threaded"}, "both backends are listed", str(facts))
        check(table(facts) == text.stdout.decode(), "the table and the JSON agree", table(facts) + text.stdout.decode())
    for name in "cpu", "cpu-threaded":
        one = json.loads(kopi("backends", "info", name, "--json").stdout)["backends"]
        check({b["name"] for b in one} == {name} and "device" in one[0], "info lists one", str(one))
    done = command(KOPI, "backends", "--json", "--backend-path", "/nowhere.so", "--plugin-dir", PLUGINS)
    first = json.loads(done.stdout)["backends"][0]
    check(first["file"] == "/nowhere.so" and "nowhere" in first["unusable"], "what can't be used says why", str(first))
    done = kopi("backends", "info", "none", "--json")
    check(done.returncode == 5 and not done.stdout and f"tried {PLUGINS}/kopi-none.so".encode() in done.stderr, "one that isn't there", (done.stdout + done.stderr).decode())


def large_perplexity(folder):
    """Logits so far apart that no number holds the perplexity."""
    norm = next(t for t in json.loads(kopi("inspect", MODEL, "--json").stdout)["tensors"] if t["name"] == "output_norm.weight")
    data = bytearray(MODEL.read_bytes())
    data[norm["offset"]:norm["offset"] + norm["bytes"]] = struct.pack("<f", 1e9) * norm["shape"][0]
    (folder / "large.gguf").write_bytes(data)
    done = kopi("perplexity", "-m", folder / "large.gguf", "--ctx", "16", stdin=b"what is gravity? " * 20)
    check(done.returncode == 1 and b"the perplexity is too large for a number" in done.stderr, "an infinite perplexity", str(done))


def json_of_parts(folder):
    """--json of the short forms: the verdict, and ids with their pieces both ways."""
    done = kopi("inspect", MODEL, "--check", "--json")
    check(done.returncode == 0 and json.loads(done.stdout) == {"file": str(MODEL), "runs": True}, "inspect --check --json", done.stdout.decode())
    there = json.loads(command(KOPI, "tokenize", "-m", MODEL, "-p", "ab c", "--json").stdout)
    for ids in ",".join(str(t["id"]) for t in there), " " + ", ".join(str(t["id"]) for t in there) + "\n", " \n".join(str(t["id"]) for t in there):
        back = command(KOPI, "tokenize", "-m", MODEL, "--decode", ids, "--json")
        check(len(there) > 1 and back.returncode == 0 and json.loads(back.stdout) == there, f"tokenize --decode {ids!r} --json", (back.stdout + back.stderr).decode())
    lines = folder / "lines.gguf"
    lines.write_bytes(MODEL.read_bytes().replace(b"tiny-llama-gqa", b"tiny\nllama\\\x01gq"))
    done = kopi("inspect", lines)
    check("\n  general.name = tiny\\nllama\\\\\\x01gq\n" in done.stdout.decode(), "inspect shows newlines and control bytes", done.stdout.decode())
    for n, says in ("-1", b"kopi: the context of 9 tokens is full, so the answer ends here; raise --ctx-size\n"), ("2", b""):
        done = kopi("run", "-m", MODEL, "--raw", "-p", "ab", "-c", "9", "-n", n, "--ignore-eos")
        check(done.returncode == 0 and done.stderr == says, f"a full context is said, -n {n}", done.stderr.decode())
    done = kopi("run", "-m", MODEL, "--raw", "-p", "ab", "-n", "3", "--json")
    check(not re.search(r"\d\.?\d{11}", done.stdout.decode()), "numbers have sensible digits", done.stdout.decode())


def helps():
    for words in "backends new", "config init", "config schema":
        done = command(KOPI, *words.split(), "--help")
        options = re.findall(r"^  (-\S+)", done.stdout.decode(), re.M)
        check(options == ["-v,", "-q,", "--log-file", "--no-progress", "-h,"], f"{words} lists no options of others", str(options))
        check(done.stdout == command(KOPI, "help", *words.split()).stdout, f"kopi help {words}", done.stderr.decode())
        done = command(KOPI, *words.split()[:2], *(["x", "y"] if words == "backends new" else []), "-m", MODEL)
        check(done.returncode == 2 and b"has no option -m" in done.stderr, f"{words} takes no model", done.stderr.decode())
    text = command(KOPI, "backends", "check", "--help").stdout.decode()
    check("--rounds" in text and "--json" in text and "--ctx-size" not in text, "backends check lists its own", text)
    text = command(KOPI, "backends", "--help").stdout.decode()
    check("--rounds" not in text and "backends check FILE-or-NAME" in text, "backends names the commands below it", text)
    done = command(KOPI, "backends", "--plugin-dir", PLUGINS, "--group", "load", "check", "cpu")
    check(done.returncode == 0 and b"1.." in done.stdout, "options may come before the word", done.stderr.decode())


def logs(folder):
    run = ["bench", "-m", MODEL, "-p", "4", "-n", "0", "-r", "1", "-v"]
    done = kopi(*run, "--log-format", "jsonl")
    line = json.loads(done.stderr.decode().splitlines()[0])
    check(set(line) == {"time", "level", "message"} and line["level"] == "info" and "KV cache" in line["message"], "a log of JSON", str(line))
    done = kopi("run", "-m", MODEL, "--raw", "-p", "a", "-n", "1", "--set", "models[].context.parallel=4", "-v")
    check(b" x 1 sequences: KV cache" in done.stderr, "one answer has room for one sequence", done.stderr.decode())
    for n in 1, 2:
        done = kopi(*run, "--log-file", folder / "log")
        text = (folder / "log").read_text()
        check(not done.stderr and text.count("KV cache") == n and text.startswith("kopi: "), "the log goes to a file", text)
    wrong = ["bench", "-m", folder / "missing.gguf"]
    done = kopi(*wrong, "--log-format", "jsonl")
    line = json.loads(done.stderr)
    check(line["level"] == "error" and "missing.gguf" in line["message"], "an error is a line of JSON, too", str(line))
    done = kopi(*wrong, "--log-file", folder / "errors")
    text = (folder / "errors").read_text()
    check(done.stderr.decode() == text and "missing.gguf" in text, "an error is in the log file and on stderr", text)
    done = kopi(*run, "--log-file", folder / "none" / "log")
    check(done.returncode == 1 and b"No such file" in done.stderr, "a log that can't be opened", done.stderr.decode())


with tempfile.TemporaryDirectory() as tmp:
    backends()
    json_of_parts(Path(tmp))
    helps()
    logs(Path(tmp))
    large_perplexity(Path(tmp))
finish()
