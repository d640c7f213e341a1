"""A mistake in the configuration, the model or the plugin ends in one line that names the place and the remedy, with the exit
code of its kind: 2 usage, 3 configuration, 4 model file, 5 backend."""
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import TINY, tiny  # noqa: E402
from report import CC, KOPI, PLUGINS, SOURCE, check, command, finish, kopi  # noqa: E402

MODEL = tiny(TINY[0])
NO_SYMBOL = "int nothing;\n"
WRONG_ABI = """#include <kopi/backend.h>
static const kopi_backend_ops ops = {.struct_size = sizeof ops};
static const kopi_plugin plugin = {.struct_size = sizeof plugin, .abi_minor = KOPI_ABI_MINOR + 1, .sanitizer = KOPI_SANITIZER,
                                   .fingerprint = KOPI_FINGERPRINT, .name = "wrongabi", .version = "1", .ops = &ops};
KOPI_EXPORT const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
"""

# what is written in the file, exit code, words that the message must have
CONFIGS = [
    ("misspelt key", "bakend: cpu\nmodel: {model}\n", 3, ["kopi.yaml:1:1", "bakend", "backend"]),
    ("misspelt deep key", "backend: cpu\nmodels:\n  - path: {model}\n    context: {{sise: 5}}\n", 3, ["kopi.yaml:4:", "sise", "size"]),
    ("misplaced key", "backend: cpu\nmodel: {model}\nthreads: 2\n", 3, ["kopi.yaml:3:1", "threads"]),
    ("wrong type", "backend: {{name: cpu, threads: two}}\nmodel: {model}\n", 3, ["kopi.yaml:1:", "threads", "two"]),
    ("fraction for a whole number", "backend: {{name: cpu, threads: 2.5}}\nmodel: {model}\n", 3, ["kopi.yaml:1:", "threads", "2.5"]),
    ("list for a text", "backend: cpu\nmodel: [{model}]\n", 3, ["kopi.yaml:2:"]),
    ("out of range", "backend: {{name: cpu, threads: 0}}\nmodel: {model}\n", 3, ["threads", "1"]),
    ("key twice", "backend: cpu\nbackend: cpu\nmodel: {model}\n", 3, ["kopi.yaml:2:1", "backend"]),
    ("unset variable", "backend: cpu\nmodel: ${{KOPI_NOT_SET}}\n", 3, ["kopi.yaml:2:", "KOPI_NOT_SET"]),
    ("tab", "backend:\n\tname: cpu\n", 3, ["kopi.yaml:2:"]),
    ("empty file", "", 3, ["kopi.yaml", "no value"]),
    ("missing model", "backend: cpu\nmodel: nowhere.gguf\n", 4, ["nowhere.gguf", "No such file"]),
    ("missing model of the cache", "backend: cpu\nmodel: {folder}/kopi/models/smollm2.gguf\n", 4, ["No such file", "scripts/fetch-model"]),
    ("model is a folder", "backend: cpu\nmodel: {folder}\n", 4, ["{folder}", "directory"]),
    ("model is a text file", "backend: cpu\nmodel: {text}\n", 4, ["{text}", "GGUF"]),
    ("wrong SHA-256", "backend: cpu\nmodels: [{{path: {model}, sha256: " + "0" * 64 + "}}]\n", 4, ["SHA-256", "0000"]),
    ("backend that isn't there", "backend: nosuch\nmodel: {model}\n", 5, ["nosuch", PLUGINS, "--plugin-dir"]),
    ("backend file that isn't there", "backend: {{path: {folder}/none.so}}\nmodel: {model}\n", 5, ["none.so", "no such file"]),
    ("plugin is a text file", "backend: textfile\nmodel: {model}\n", 5, ["kopi-textfile.so"]),
    ("plugin is empty", "backend: empty\nmodel: {model}\n", 5, ["kopi-empty.so"]),
    ("plugin is a folder", "backend: folder\nmodel: {model}\n", 5, ["kopi-folder.so", "regular file"]),
    ("plugin without the symbol", "backend: nosymbol\nmodel: {model}\n", 5, ["kopi-nosymbol.so", "kopi_plugin_v1"]),
    ("plugin of another ABI", "backend: wrongabi\nmodel: {model}\n", 5, ["kopi-wrongabi.so", "ABI"]),
    ("unknown option of a backend", "backend: {{name: cpu, options: {{cpu: {{izza: v3}}}}}}\nmodel: {model}\n", 5, ["kopi.yaml:1:", "izza", "isa"]),
    ("draft model that isn't there", "backend: cpu\nmodels: [{{path: {model}, speculation: {{draft_model: nowhere.gguf}}}}]\n", 4, ["nowhere.gguf", "No such file"]),
    ("template that isn't there", "backend: cpu\nmodels: [{{path: {model}, template: {{source: none.jinja}}}}]\n", 3, ["kopi.yaml:2:", "none.jinja"]),
    ("wrong option of a backend", "backend: {{name: cpu, options: {{cpu: {{isa: sse9}}}}}}\nmodel: {model}\n", 5, ["isa", "sse9", "baseline"]),
]

RUN = ["run", "-p", "x", "-m", str(MODEL), "-b", "cpu"]
# arguments, exit code, words
ARGUMENTS = [
    (RUN + ["--set", "backend.options.cpu.iza=v3"], 5, ["--set: backend.options.cpu.iza", "isa"]),
    (RUN + ["--spec-type", "draft"], 2, ["--spec-type: ", "--model-draft"]),
    (RUN + ["--spec-type", "ngram", "--spec-ngram-min", "8", "--spec-ngram-max", "2"], 2, ["--spec-ngram-min: ", "ngram_max"]),
    (RUN + ["--backend-path", "/x.so"], 2, ["--backend-path: ", "backend.name (-b)"]),
    (RUN + ["--chat-template-file", "/nowhere"], 2, ["--chat-template-file: ", "/nowhere: No such file"]),
    (RUN + ["--chat-template-file", __file__], 2, ["--chat-template-file: ", "bad_config.py: chat template line "]),
    (RUN + ["--chat-template-file", "/dev/null"], 2, ["--chat-template-file: ", "/dev/null: it leaves out what the user says"]),
    (RUN + ["--set", "models[1].context.size=9"], 2, ["--set: models[1].context.size", "too large"]),
    (["run", "-p", "x", "--set", "models[0].id=x"], 2, ["--set: models[0].id", "path"]),
    (RUN + ["--prompt", "y"], 2, ["-p, --prompt is given twice"]),
    (RUN + ["-np", "2"], 2, ["no option -np"]),
    (RUN + ["--alias", "x"], 2, ["no option --alias"]),
    (["tokenize", "-m", str(MODEL), "--decode", "1", "-p", "x"], 2, ["--decode and --prompt exclude"]),
    (["tokenize", "-m", str(MODEL), "--decode", "1", "--parse-special"], 2, ["--decode and --parse-special exclude"]),
    (["inspect", str(MODEL), "--check", "--tensors"], 2, ["--check and --tensors exclude"]),
    (["inspect", str(MODEL), "--check", "-b", "nosuch"], 5, ["nosuch", "not found; tried"]),
    (["logits", "--ids", "1", "--ids-file", "x", "-o", "out.npy"], 2, ["--ids and --ids-file exclude"]),
    (["logits", "-m", str(MODEL), "--ids", "1,,2", "-o", "out.npy"], 2, ["an id is missing beside a comma"]),
    (["logits", "-m", str(MODEL), "--ids", "1,2,", "-o", "out.npy"], 2, ["an id is missing beside a comma"]),
    (["logits", "-m", str(MODEL), "--ids", ",1", "-o", "out.npy"], 2, ["an id is missing beside a comma"]),
    (["help", "backends", "check", "foo"], 2, ["\"foo\""]),
    (["help", "run", "--json"], 2, ["\"--json\""]),
    (["run", "-n8"], 2, ["did you mean -n 8?"]),
    (["run", "-t0"], 2, ["did you mean -t 0?"]),
    (["bench", "-p512,64"], 2, ["did you mean -p 512,64?"]),
    (["run", "-s", "18446744073709551615"], 2, ["from -1 to 9223372036854775807"]),
    (RUN + ["--system", "x", "--chat-template-file", "none"], 2, ["the chat template is turned off (template.source: none)"]),
    (["perplexity", "-m", str(MODEL), "-f", str(MODEL), "-b", "cpu", "-c", "256"], 2, ["--ctx is 512", "raise --ctx-size, or give --ctx 256"]),
    (["run", "--thread", "2"], 2, ["--thread", "--threads"]),
    (["run", "-t", "many"], 2, ["-t", "many"]),
    (["run", "-p"], 2, ["-p", "needs a value"]),
    (["run", "What is it?"], 2, ["-p TEXT"]),
    (["run", "a.gguf"], 2, ["-m FILE"]),
    (["tokenize", "a.gguf"], 2, ["-m FILE"]),
    (["inspect", "-m", "a.gguf"], 2, ["no option -m; see kopi inspect --help"]),
    (["run", "--fallback"], 2, ["needs a value", "cpu|none"]),
    (["config", "init", "kopi.yaml"], 2, ["kopi.yaml", "standard output"]),
    (["config", "check", "/nowhere.yaml"], 3, ["/nowhere.yaml", "No such file"]),
    (["config", "check", "/nowhere.yaml", "--config", "/other.yaml"], 2, ["/nowhere.yaml", "one file at a time"]),
    (["run", "-p", "x"], 3, ["model", "--model"]),
    (["run", "-p", "x", "--set", "nonsense=1"], 2, ["nonsense", "backend"]),
    (["run", "-p", "x", "--set", "nonsense"], 2, ["nonsense", "key=value"]),
    (["run", "-p", "x", "-m", "a.gguf", "-b", "no/such"], 2, ["no/such"]),
    (["run", "-p", "", "-m", "a.gguf"], 2, ["empty"]),
    (["logits", "-m", str(MODEL), "--ids", "1,x", "-o", "out.npy"], 2, ["\"x\""]),
    (["logits", "-m", str(MODEL), "-b", "cpu", "--ids", "1,400", "-o", "out.npy"], 2, ["400"]),
    (["logits", "-m", str(MODEL), "-b", "cpu", "--ids", "1,2", "-c", "1", "-o", "out.npy"], 1, ["--ctx-size"]),
    (["logits", "-m", str(MODEL), "--ids", "1"], 2, ["-o"]),
    (["logits", "-m", str(MODEL), "-b", "cpu", "--ids", "1,2", "-o", ""], 2, ["output file", "empty"]),
    (["backends", "--seed", "0"], 2, ["--seed", "kopi backends check"]),
    (["backends", "check", "cpu", "-m", "a.gguf"], 2, ["-m"]),
    (["config", "init", "-m", "a.gguf"], 2, ["-m"]),
    (["backends", "info", "cpu", "--seed", "0"], 2, ["--seed", "kopi backends check"]),
    (["backends", "new", "name", "folder", "--rounds", "3"], 2, ["--rounds", "kopi backends check"]),
    (["backends", "new", "cpu", "folder"], 2, ["cpu is a backend of kopi"]),
    (["backends", "new", "cpu-threaded", "folder"], 2, ["cpu-threaded is a backend of kopi"]),
    (["run", "--raw", "-p", "a b c", "-m", str(MODEL), "-b", "cpu", "-c", "1"], 1, ["tokens, the context holds 1; raise --ctx-size"]),
    (["inspect"], 2, ["FILE"]),
    (["frobnicate"], 2, ["frobnicate", "help"]),
    (["config", "--config", "/nowhere.yaml", "check"], 3, ["/nowhere.yaml", "No such file"]),
]


def build_plugin(folder, name, text):
    source = folder / f"{name}.c"
    source.write_text(text)
    done = command(*CC, "-shared", "-fPIC", "-I", SOURCE / "include", source, "-o",
                   folder / f"kopi-{name}.so")
    check(done.returncode == 0, f"plugin {name} builds", done.stderr.decode()[:500])


def check_message(name, done, code, words):
    text = done.stderr.decode(errors="replace")
    check(done.returncode == code, f"{name}: exit code {code}", f"{done.returncode}: {text}")
    check(text.startswith("kopi: ") and text.count("\n") == 1 and text.endswith("\n"), f"{name}: one line on stderr", text)
    check(not done.stdout, f"{name}: nothing on stdout", done.stdout.decode(errors="replace"))
    missing = [w for w in words if w not in text]
    check(not missing, f"{name}: the message names {missing}", text)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    build_plugin(folder, "nosymbol", NO_SYMBOL)
    build_plugin(folder, "wrongabi", WRONG_ABI)
    text = folder / "kopi-textfile.so"
    text.write_text("this is no library\n" * 10)
    (folder / "kopi-empty.so").touch()
    (folder / "kopi-folder.so").mkdir()
    for what, yaml, code, words in CONFIGS:
        places = {"model": MODEL, "folder": folder, "text": text}
        config = folder / "kopi.yaml"
        config.write_text(yaml.format(**places))
        done = kopi("run", "--plugin-dir", folder, "--config", config, "-p", "x", "-n", "1")
        check_message(what, done, code, [w.format(**places) for w in words])
        if what != "wrong SHA-256":  # which takes reading all of the file
            done = command(KOPI, "config", "check", config, "--plugin-dir", PLUGINS, "--plugin-dir", folder)
            check_message(f"{what}, config check", done, code, [w.format(**places) for w in words if w != PLUGINS])
    for args, code, words in ARGUMENTS:
        done = command(KOPI, *args, "--plugin-dir", PLUGINS, cwd=folder) if "-b" in args else command(KOPI, *args, cwd=folder)
        check_message("kopi " + " ".join(args[:4]), done, code, words)
    check(not list(folder.glob("out.npy*")) + list(folder.glob(".kopi-*")), "no file is left by a command that failed")

    # the working directory is never searched
    shutil.copy(f"{PLUGINS}/kopi-cpu.so", folder / "kopi-decoy.so")
    done = command(KOPI, "run", "-m", MODEL, "-b", "decoy", "-p", "x", cwd=folder)
    check_message("decoy in the working directory", done, 5, ["decoy", "not found"])

    # a user's broken configuration stops what uses it, not the help
    (folder / "kopi").mkdir()
    (folder / "kopi" / "config.yaml").write_text("modle: x\n")
    there = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    for words in "help", "version", "config init", "config schema", "run --help":
        done = command(KOPI, *words.split(), env=there)
        check(done.returncode == 0 and done.stdout and not done.stderr, f"kopi {words} beside a broken configuration", done.stderr.decode())
    check_message("a broken configuration", command(KOPI, "run", "-m", MODEL, "-p", "x", env=there), 3, ["config.yaml:1:1", "modle", "model"])

    # a good configuration runs, and the name alone swaps the backend
    config = folder / "kopi.yaml"
    config.write_text(f"backend: cpu\nmodel: {MODEL}\nplugin_dirs: [{PLUGINS}]\n")
    done = command(KOPI, "config", "check", "--config", config)
    check(done.returncode == 0 and done.stdout == b"the configuration is valid; its backend and 1 model file are there\n", "config check of a good file", (done.stdout + done.stderr).decode())
    done = command(KOPI, "config", "print", config)
    check(done.returncode == 0 and f"path: {MODEL}".encode() in done.stdout, "config print FILE", (done.stdout + done.stderr).decode())

    # a model by its id or alias, with --set counting as the file does
    config.write_text(f"backend: cpu\nplugin_dirs: [{PLUGINS}]\nmodels:\n- path: nowhere.gguf\n- {{id: big, aliases: [other], path: {MODEL}}}\n")
    for name in "big", "other":
        done = command(KOPI, "run", "--config", config, "-m", name, "--set", "models[1].sampling.temperature=0", "--raw", "-p", "ab", "-n", "2")
        check(done.returncode == 0 and not done.stderr, f"-m {name} --set models[1]...", done.stderr.decode())

    # the file of the user guide, as pasted, where its models are
    guide = (SOURCE / "docs" / "user-guide.md").read_text().split("```yaml\n")[1].split("```")[0]
    config.write_text(guide)
    (folder / "models").mkdir()
    for name in "models/model.gguf", "small.gguf":
        shutil.copy(MODEL, folder / name)
    done = command(KOPI, "config", "check", config, env={**os.environ, "KOPI_PLUGIN_PATH": PLUGINS})
    check(done.returncode == 0 and b"is valid" in done.stdout, "the user guide's file is valid", done.stderr.decode())

    # a variable that nobody reads is named; what the file reads is
    config.write_text(f"backend: cpu\nplugin_dirs: [{PLUGINS}]\nmodel: ${{KOPI_HERE}}/{MODEL.name}\n")
    done = command(KOPI, "config", "check", config, env={**os.environ, "KOPI_HERE": str(MODEL.parent), "KOPI_TEMP": "0"})
    check(done.returncode == 0 and done.stderr == b"kopi: the environment variable KOPI_TEMP is not read; did you mean KOPI_TEMPERATURE?\n",
          "KOPI_TEMP is warned of, KOPI_HERE is read", done.stderr.decode())
    done = command(KOPI, "config", "print", "-q", env={**os.environ, "KOPI_TEMP": "0"})
    check(done.returncode == 0 and not done.stderr, "-q: no warning", done.stderr.decode())

    # a backend named by its file is listed, once, though no folder has it
    for more in (), ("--plugin-dir", PLUGINS):
        path = f"{PLUGINS}/kopi-cpu.so"
        text = command(KOPI, "backends", "--backend-path", path, *more, env={**os.environ, "KOPI_PLUGIN_PATH": ""}).stdout.decode()
        check(text.count(f"file     {path}\n") == 1 and "device" in text, "kopi backends lists --backend-path", text)

    # help names the values that are possible, both ways of a switch, and each option once
    text = command(KOPI, "bench", "--help").stdout.decode()
    check("--fallback cpu|none" in text and "--[no-]mmap" in text, "help names the values", text)
    check(text.count("-np, --parallel") == 1, "help has no option twice", text)
finish()
