"""An example as a third party has it: a copy outside of the tree, built with its own configure against the installed prefix."""
import shutil

from report import KOPI, SOURCE, check, command, finish


def copy_example(name, folder):
    shutil.copytree(SOURCE / "examples" / name, folder)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)  # a dist tree is read-only


def build(folder, name):
    """Builds what is in the folder, lets kopi prove it right, and returns the plugin."""
    for step in (["autoreconf", "-fi"], ["./configure", "CFLAGS=-O2 -Werror"], ["make"], ["make", "check", f"KOPI={KOPI}"]):
        done = command(*step, cwd=folder, timeout=600)
        if not check(done.returncode == 0, f"{name}: {' '.join(step)}", (done.stdout + done.stderr).decode()[-3000:]):
            finish()
    return folder / ".libs" / f"kopi-{name}.so"
