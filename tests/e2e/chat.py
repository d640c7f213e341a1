"""A chat on a terminal: lines with editing, every command, Ctrl-C and Ctrl-D, on a pseudo-terminal."""
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from models import TINY, tiny  # noqa: E402
from report import BUILD, KOPI, PLUGINS, SANITIZED, check, command, finish  # noqa: E402

MODEL = tiny(next(m for m in TINY if m.startswith("llama")))
PROMPT = "\n> "  # at the start of a line: an answer of random text may have the rest of it
PATIENCE = 60 if SANITIZED else 20  # seconds to wait for an output


class Chat:
    """kopi run on a terminal of its own; everything that it printed, without terminal codes, is in `text`."""

    def __init__(self, home, *args, output=None, model=MODEL, shell='exec "$@"'):
        self.text = "\n"
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(HOME=home, TMPDIR=f"{home}/tmp", XDG_STATE_HOME=f"{home}/new/state", TERM="xterm", EDITOR=f"{home}/editor")
            os.environ.pop("VISUAL", None)
            if output:
                os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os.execv("/bin/sh", ["sh", "-c", shell, "sh", KOPI, "run", "--plugin-dir", PLUGINS, "-b", "cpu", "-m", str(model), "-n", "6", "--temp", "0", *args])

    def read(self, seconds=0.05):
        if select.select([self.terminal], [], [], seconds)[0]:
            try:
                piece = os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:  # the other side is gone
                return False
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece).replace("\r", "")
        return True

    def wait(self, words, what):
        """Until words appear behind what was there."""
        end, start = time.monotonic() + PATIENCE, getattr(self, "seen", 0)
        while words not in self.text[start:] and time.monotonic() < end and self.read():
            pass
        at = self.text.find(words, start)
        check(at >= 0, what, f"no {words!r} in {self.text[start:]!r}")
        self.seen = at + len(words) if at >= 0 else len(self.text)
        return at >= 0

    def type(self, keys):
        os.write(self.terminal, keys if isinstance(keys, bytes) else keys.encode())

    def line(self, text, expect=None, what=None):
        self.type(text + "\n")
        if expect:
            self.wait(expect, what or text)
        self.wait(PROMPT, f"prompt after {text!r}")

    def end(self, what, code, modes=None):
        """It ends with this status; modes: those that the terminal has then."""
        end = time.monotonic() + PATIENCE
        while self.read() and time.monotonic() < end:
            pass
        while not (done := os.waitpid(self.pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        status = os.waitstatus_to_exitcode(done[1])
        after = termios.tcgetattr(self.terminal)[:4]
        os.close(self.terminal)
        check(status == code, what, f"exit {status}: {self.text[-300:]!r}")
        check(modes in (None, after), f"{what}: the terminal is as before", f"{modes} {after}")


def start(home, *args, **more):
    chat = Chat(home, *args, **more)
    chat.wait(PROMPT, "the first prompt")
    return chat


def check_commands(home):
    saved = Path(home) / "talk.json"
    chat = start(home)
    check("/help lists the commands" in chat.text, "a chat begins with how to go on", chat.text)
    chat.line("/help", "/stats", "/help lists the commands")
    chat.line("/stats", "no answer yet")
    chat.line("/regen", "no message")
    chat.line("/nonsense", "no command /nonsense")
    chat.line("/set top_k 7")
    chat.line("/set min_p=2", "kopi: /set: min_p: ", "a value out of range is refused")
    chat.line("/set wrong 1", 'no setting "wrong"')
    chat.line("/show", "top_k              7", "/set changes, /show shows")
    chat.line("/set max_tokens 5")
    chat.line("/show", "max_tokens         5", "/set goes before a flag")
    chat.line("hello there")
    chat.line("/stats", "1 answer,", "/stats counts")
    chat.line(f"/save {saved}", "2 messages in")
    messages = json.loads(saved.read_text())
    check([m["role"] for m in messages] == ["user", "assistant"] and messages[0]["content"] == "hello there", "/save", str(messages))
    chat.line("/regen")
    chat.line(f"/save {saved}", "2 messages in")
    check(json.loads(saved.read_text()) == messages, "/regen gives the same at temperature 0")
    chat.line("/undo")
    chat.line("/show", "messages    0", "/undo takes both back")
    chat.line(f"/load {saved}", "2 messages from")
    chat.line("/system be brief")
    chat.line("/show", "system      be brief")
    chat.line("/clear")
    chat.line("/show", "messages    1", "/clear keeps the system message")
    saved.write_text('[{"role": "user"}]')
    chat.line(f"/load {saved}", "message 1", "a bad file is named")
    chat.line("/load /nowhere/x", "/nowhere/x")
    chat.line("/save /nowhere/x", "/nowhere/x")
    chat.line("/show", "messages    1", "and changes nothing")
    chat.line("/edit begun", "begun and ended", "/edit sends what the editor wrote")
    chat.type('"""one\n')
    chat.wait(". ", "a block goes on")
    chat.line('two"""')
    chat.line(f"/save {saved}")
    check(any(m["content"] == "one\ntwo" for m in json.loads(saved.read_text())), "a message of two lines", saved.read_text())
    chat.type("/exit\n")
    chat.end("/exit", 0)


def check_bytes(home):
    """What isn't text: no message may become one that /save refuses, or lose its end."""
    saved, editor = Path(home) / "bytes.json", Path(home) / "editor"
    chat = start(home)
    for keys in b"\xff\xfe one\n", b"\xf5\x80\x80\x80 two\n", b"\xed\xa0\x80 three\n", b"\xe2\x82 four\n":
        chat.type(keys)
        chat.wait(PROMPT, f"prompt after {keys!r}")
    chat.line(f"/save {saved}", "messages in", "a talk of odd bytes is saved")
    texts = [m["content"] for m in json.loads(saved.read_text()) if m["role"] == "user"] if saved.exists() else []
    check(all(any(t.endswith(w) for t in texts) for w in ("one", "two", "three", "four")), "every message is there", str(texts))
    words = editor.read_text()
    editor.write_text("#!/bin/sh\nprintf 'a\\000b' >\"$1\"\n")
    chat.line("/edit", "NUL byte", "a NUL from the editor is refused")
    editor.write_text("#!/bin/sh\nprintf 'a\\377b' >\"$1\"\n")
    chat.line("/edit", "not UTF-8", "other bytes from the editor are refused")
    editor.write_text('#!/bin/sh\nprintf "$1" >"$1"\n')
    chat.line("/edit", f"{home}/tmp/kopi-", "/edit writes where $TMPDIR says")
    check(not list((Path(home) / "tmp").iterdir()), "and leaves nothing there")
    editor.write_text(words)
    chat.line(f"/save {saved}", "messages in", "the talk can still be saved")
    chat.type("/exit\n")
    chat.end("/exit", 0)
    chat = Chat(home, "--system", b"\xff brief")
    chat.end("a system message that is not UTF-8 is refused", 2)
    check("--system is not UTF-8" in chat.text, "and named", chat.text)


def check_nul(home):
    """A model whose answer to a is b, NUL, d: the talk keeps what is behind it."""
    model, saved = Path(home) / "nul.gguf", Path(home) / "nul.json"
    command(BUILD / "tests" / "support" / "tinymodel", model)
    text = model.read_bytes()
    for old, new in ("c", "\u0100"), ("<unused63>", "<unused63"):  # the vocabulary writes NUL as U+0100; the length stays
        old, new = (struct.pack("<Q", len(t.encode())) + t.encode() for t in (old, new))
        check(text.count(old) == 1, "a token to replace")
        text = text.replace(old, new)
    model.write_bytes(text)
    chat = start(home, model=model)
    chat.line("a")
    chat.line(f"/save {saved}", "2 messages in", "an answer with a NUL byte is saved")
    check(json.loads(saved.read_text())[1]["content"] == "b\ufffddefg", "to its end", saved.read_text())
    chat.type("/exit\n")
    chat.end("/exit", 0)


def check_full(home):
    """A full context is said, with what helps."""
    chat = start(home, "-c", "60", "-n", "-1", "--ignore-eos")
    chat.line("hello there", "the context of 60 tokens is full, so the answer ends here; raise --ctx-size, or make room: /clear", "a full context")
    chat.line("go on", "raise --ctx-size, or make room: /clear forgets the talk, /undo the last answer", "and what is too much for it")
    chat.line("/undo")
    chat.line("go on", "is full, so the answer ends here", "/undo makes room")
    chat.type("/exit\n")
    chat.end("/exit", 0)


def check_output(home):
    """The answers go to a file, the prompt to the terminal, which echoes and knows Ctrl-D."""
    output = Path(home) / "answers"
    chat = start(home, output=output)
    chat.line("hello there", "hello there", "what is typed is shown, with the output in a file")
    chat.type("\x04")
    chat.end("Ctrl-D", 0)
    text = output.read_text(errors="replace")
    check(len(text) > 1 and text.endswith("\n") and not text.startswith("> ") and PROMPT not in text, "the file has the answer alone", repr(text))


def stop_answer(chat, number=signal.SIGINT, then=PROMPT):
    chat.type("talk on\n")
    end = time.monotonic() + PATIENCE
    while len(chat.text) < chat.seen + 60 and time.monotonic() < end and chat.read():
        pass
    os.kill(chat.pid, number)
    if then:
        chat.wait(then, "Ctrl-C stops an answer")


def check_keys(home):
    chat = start(home)
    chat.type("\x04")
    chat.end("Ctrl-D ends the chat", 0)
    chat = start(home)
    chat.type("half a line")
    chat.wait("half a line", "what is typed is shown")
    chat.type("\x03")
    chat.wait(PROMPT, "Ctrl-C drops the line")
    chat.line("/show", "messages    0", "nothing of it is left")
    chat.type("\x03")
    chat.wait(PROMPT, "one Ctrl-C goes on")
    chat.type("\x03")
    chat.end("the second Ctrl-C ends the chat", 130)
    chat = start(home, "-n", "100000", "--ignore-eos", "-c", "4096")
    stop_answer(chat)
    chat.line("/show", "messages    2", "and keeps it")
    chat.type("\x04")
    chat.end("Ctrl-D after it", 0)
    chat = start(home, "-n", "100000", "--ignore-eos", "-c", "4096")
    stop_answer(chat)
    chat.type("\x03")
    chat.end("the Ctrl-C after the one that stopped an answer ends the chat", 130)


def check_history(home):
    history = Path(home) / "new" / "state" / "kopi" / "history"
    if "-DHAVE_LIBEDIT" not in (BUILD / "Makefile").read_text():
        print("skipped: history: built without libedit")
        return
    kept = history.read_text() if history.exists() else ""
    check("hello" in kept, "the history is kept, in folders that are made", kept[:200])
    chat = start(home)
    chat.type("/show x\n")
    chat.wait(PROMPT, "a line to find again")
    chat.type("\x1b[A")  # arrow up
    chat.wait("/show x", "arrow up gives the last line")
    chat.type("\n\x04")
    chat.end("Ctrl-D", 0)
    for words in "my notes\n", "\n":
        history.write_text(words)
        chat = start(home)
        check("is no history" in chat.text, "a history that isn't one is named", chat.text)
        chat.line("/show x")
        chat.type("\x04")
        chat.end("Ctrl-D", 0)
        check(history.read_text() == words, "and left alone", history.read_text())
    history.write_text("")
    chat = start(home)
    chat.line("/show y")
    chat.type("\x04")
    chat.end("Ctrl-D", 0)
    check("y" in history.read_text(), "an empty one is used", history.read_text())
    check(history.stat().st_mode & 0o777 == 0o600, "a history is its owner's alone", oct(history.stat().st_mode))
    kept, link = history.read_text(), history.with_name("linked")
    history.rename(link)
    history.symlink_to(link.name)
    chat = start(home, shell='ulimit -f 0; exec "$@"')
    chat.line("/show z")
    chat.type("\x04")
    chat.end("Ctrl-D, but no file may grow", 0)
    check(f"kopi: {history}: File too large" in chat.text, "a history that can't be saved is named", chat.text)
    check(link.read_text() == kept and sorted(history.parent.iterdir()) == [history, link], "and the old one kept", link.read_text())
    chat = start(home)
    chat.line("/show z")
    chat.type("\x04")
    chat.end("Ctrl-D", 0)
    check(history.is_symlink() and "/show\\040z" in link.read_text(), "a link to a history stays one", link.read_text())
    history.unlink()
    os.mkfifo(history)
    chat = start(home)
    chat.type("\x04")
    chat.end("a history that is a pipe is not waited for", 0)


def modes(chat):
    return termios.tcgetattr(chat.terminal)[:4]


def check_signals(home):
    """SIGTERM and SIGHUP end a chat, at the prompt and in an answer, with history and terminal in order; others leave the terminal so."""
    edited = "-DHAVE_LIBEDIT" in (BUILD / "Makefile").read_text()
    history = Path(home) / "new" / "state" / "kopi" / "history"
    master, slave = pty.openpty()
    cooked = termios.tcgetattr(slave)[:4]
    os.close(master), os.close(slave)
    for number in signal.SIGTERM, signal.SIGHUP:
        chat = start(home)
        check(not edited or modes(chat) != cooked, "the editor has the terminal")
        chat.line(f"/show {number.name}")
        os.kill(chat.pid, number)
        chat.end(f"{number.name} at the prompt", 130, cooked)
        check(not edited or f"/show\\040{number.name}" in history.read_text(), "the history is kept")
        chat = start(home, "-n", "100000", "--ignore-eos", "-c", "4096")
        stop_answer(chat, number, None)
        chat.end(f"{number.name} in an answer", 130, cooked)
    if not edited:
        return
    chat = start(home)
    os.kill(chat.pid, signal.SIGQUIT)
    chat.end("SIGQUIT at the prompt", -signal.SIGQUIT, cooked)
    chat = start(home, shell='set -m; "$@"; stty -a; echo stopped; fg')
    chat.type("half")
    chat.wait("half", "what is typed is shown")
    kopi = int(Path(f"/proc/{chat.pid}/task/{chat.pid}/children").read_text())
    os.kill(kopi, signal.SIGTSTP)
    if chat.wait("stopped", "SIGTSTP stops the chat"):
        check(" icanon" in chat.text and " echo " in chat.text, "with a usable terminal", chat.text[-1500:])
    chat.wait("half", "and shows the line again when it goes on")
    chat.line(" way")
    chat.line(f"/save {home}/half.json", "messages in")
    check(json.loads(Path(home, "half.json").read_text())[0]["content"] == "half way", "which goes on")
    chat.type("\x04")
    chat.end("Ctrl-D", 0)


def check_old_answers(home):
    """An answer that fails, or is stopped before it began, costs no older one."""
    saved, editor = Path(home) / "old.json", Path(home) / "editor"
    words = editor.read_text()
    editor.write_text("#!/bin/sh\nprintf 'two %.0s' $(seq 3000) >\"$1\"\n")
    talk = [{"role": "user", "content": "one " * 3000}, {"role": "assistant", "content": "kept"}]
    saved.write_text(json.dumps(talk))
    chat = start(home, "-c", "16384", "--batch-size", "1")
    chat.line(f"/load {saved}", "2 messages from")
    chat.type("/regen\n")
    chat.wait("prefill", "/regen reads the talk")
    os.kill(chat.pid, signal.SIGINT)
    chat.wait("the old one stays", "an interrupted /regen says so")
    chat.line("/show", "messages    2", "and keeps question and answer")
    chat.type("/edit\n")
    chat.wait("prefill", "a question reads the talk")
    os.kill(chat.pid, signal.SIGINT)
    chat.wait("the message is taken back", "an interrupted question says so")
    editor.write_text(words)
    saved.unlink()
    chat.line(f"/save {saved}", "2 messages in")
    check(json.loads(saved.read_text()) == talk, "the talk is as it was", saved.read_text()[-200:])
    chat.type("/exit\n")
    chat.end("/exit", 0)
    chat = start(home, "-c", "512", "--set", "models[].context.overflow=error")
    chat.line(f"/load {saved}", "2 messages from")
    chat.line("/regen", "the old one stays", "a /regen that fails says so")
    chat.line("/show", "messages    2", "and keeps question and answer")
    saved.write_text(json.dumps(talk[1:]))
    chat.line(f"/load {saved}", "1 messages from")
    chat.line("/regen", "no message", "/regen of an answer to nothing")
    chat.line("/show", "messages    1", "keeps it")
    chat.type("/exit\n")
    chat.end("/exit", 0)


with tempfile.TemporaryDirectory() as home:
    editor = Path(home) / "editor"
    editor.write_text('#!/bin/sh\nprintf " and ended" >>"$1"\n')
    editor.chmod(0o755)
    (Path(home) / "tmp").mkdir()
    check_commands(home)
    check_bytes(home)
    check_nul(home)
    check_full(home)
    check_output(home)
    check_keys(home)
    check_signals(home)
    check_old_answers(home)
    check_history(home)
finish()
