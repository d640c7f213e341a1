"""What `make install` put in place works by itself: the command finds its backends without being told, gives the committed bits, and a
program builds against the installed library as the pkg-config files say. Run by `make installcheck`; tests/install does the same for a backend."""
import hashlib
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import BACKENDS, DATA, TINY, test_ids, tiny  # noqa: E402
from report import CC, KOPI, PLUGINS, SETTINGS, SOURCE, check, command, finish  # noqa: E402

ROOT = os.environ.get("DESTDIR", "")
LIBDIR = SETTINGS["LIBDIR"]
ENVIRONMENT = dict(os.environ, PKG_CONFIG_PATH=f"{ROOT}{LIBDIR}/pkgconfig", PKG_CONFIG_SYSROOT_DIR=ROOT, LD_LIBRARY_PATH=f"{ROOT}{LIBDIR}")
FIND = ["--plugin-dir", PLUGINS] if ROOT else []  # under DESTDIR the folder that is compiled in is not the one

def pkg_config(*args):
    done = command("pkg-config", *args, env=ENVIRONMENT)
    check(done.returncode == 0, f"pkg-config {' '.join(args)}", done.stderr.decode())
    return done.stdout.decode().split()


def check_command(folder):
    sums = dict(reversed(line.split()) for line in (DATA / "logits.sha256").read_text().splitlines())
    for backend in BACKENDS:
        out = Path(folder) / "logits.npy"
        done = command(KOPI, "logits", *FIND, "-m", tiny(TINY[0]), "-b", backend, "--ids", test_ids(300), "-o", out, cwd="/")
        check(done.returncode == 0 and hashlib.sha256(out.read_bytes()).hexdigest() == sums[TINY[0]], f"logits with {backend}",
              done.stderr.decode())


def check_program(folder):
    program = Path(folder) / "generate"
    done = command(*CC, SOURCE / "examples" / "generate.c", "-o", program, *pkg_config("--cflags", "--libs", "kopi"))
    check(done.returncode == 0, "examples/generate.c builds", done.stderr.decode())
    config = Path(folder) / "kopi.yaml"
    config.write_text(f"plugin_dirs: [{PLUGINS}]\nbackend: cpu\nmodels: [{{path: {tiny(TINY[0])}, limits: {{max_tokens: 4}}}}]\n")
    done = command(program, config, "abc", env=ENVIRONMENT)
    check(done.returncode == 0, "examples/generate runs", done.stdout.decode(errors="replace") + done.stderr.decode())


check(command(KOPI, "version").returncode == 0, f"{KOPI} runs")
with tempfile.TemporaryDirectory() as name:
    check_command(name)
    check_program(name)
finish()
