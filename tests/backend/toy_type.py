"""A model in a weight type that only a backend knows: with it the logits of an F32 model of the same values, to the bit; without it one
line that names the type, the tensor and the remedy."""
import json
import math
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from report import BUILD, KOPI, PLUGINS, check, command, finish, kopi  # noqa: E402

TOY, BLOCK = 0x40544F59, 32
IDS = ",".join(str(i * 7 % 64) for i in range(30))
OURS = BUILD / "tests" / "backend" / ".libs"


def read_f32(path):
    """Metadata (as bytes) and tensors (name, shape, values) of a GGUF file whose tensors are all F32."""
    b, at = path.read_bytes(), 24
    n_tensors, n_kv = struct.unpack_from("<QQ", b, 8)

    def take(fmt):
        nonlocal at
        values = struct.unpack_from("<" + fmt, b, at)
        at += struct.calcsize("<" + fmt)
        return values if len(values) > 1 else values[0]

    def skip(n):  # its argument is read before `at` is
        nonlocal at
        at += n

    def skip_value(kind):
        if kind == 9:
            of, n = take("IQ")
            for _ in range(n):
                skip_value(of)
        elif kind == 8:
            skip(take("Q"))
        else:
            skip({0: 1, 1: 1, 2: 2, 3: 2, 7: 1, 10: 8, 11: 8, 12: 8}.get(kind, 4))

    for _ in range(n_kv):
        skip(take("Q"))
        skip_value(take("I"))
    meta, entries = b[24:at], []
    for _ in range(n_tensors):
        n = take("Q")
        name = b[at : at + n].decode()
        skip(n)
        n_dims = take("I")
        shape = [take("Q") for _ in range(n_dims)]
        kind, offset = take("IQ")
        assert kind == 0
        entries.append((name, shape, offset))
    data = (at + 31) // 32 * 32
    return n_kv, meta, [(name, shape, list(struct.unpack_from(f"<{math.prod(shape)}f", b, data + off))) for name, shape, off in entries]


def write(path, n_kv, meta, tensors):
    head, data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), n_kv) + meta, b""
    for name, shape, kind, content in tensors:
        head += struct.pack("<Q", len(name)) + name.encode() + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data))
        data += content + bytes(-len(content) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def pack(values):
    """Toy blocks, and the values that they stand for."""
    blocks, back = b"", []
    for i in range(0, len(values), BLOCK):
        some = values[i : i + BLOCK]
        e = max(-126, math.ceil(math.log2(max(max(map(abs, some)), 2**-100) / 127)))
        q = [round(v / 2**e) for v in some]
        blocks += struct.pack(f"<b{BLOCK}b", e, *q)
        back += [v * 2**e for v in q]
    return blocks, back


def make_models(folder, name, *options):
    """NAME-toy.gguf with every matrix in the toy type, and NAME-same.gguf with the same values in F32."""
    made = command(BUILD / "tests" / "support" / "tinymodel", folder / "f32.gguf", *options)
    check(made.returncode == 0, "tinymodel", made.stderr.decode())
    n_kv, meta, tensors = read_f32(folder / "f32.gguf")
    toy, same = [], []
    for tensor, shape, values in tensors:
        blocks, back = pack(values) if len(shape) == 2 else (None, values)
        f32 = struct.pack(f"<{len(back)}f", *back)
        toy.append((tensor, shape, TOY, blocks) if blocks else (tensor, shape, 0, f32))
        same.append((tensor, shape, 0, f32))
    write(folder / f"{name}toy.gguf", n_kv, meta, toy)
    write(folder / f"{name}same.gguf", n_kv, meta, same)


def logits(folder, model, *options):
    out = folder / "rows.npy"
    done = command(KOPI, "logits", "-m", folder / model, "--ids", IDS, "-o", out, *options)
    return done, out.read_bytes() if done.returncode == 0 else None


with tempfile.TemporaryDirectory() as tmp:
    top = Path(tmp)
    make_models(top, "", "f32")
    make_models(top, "letters-")  # these have a vocabulary
    theirs = ["--plugin-dir", PLUGINS]
    done, want = logits(top, "same.gguf", *theirs, "-b", "cpu")
    check(want, "cpu computes the F32 model", done.stderr.decode())
    for threads in 1, 3:
        done, have = logits(top, "toy.gguf", *theirs, "--backend-path", OURS / "kopi-toy-type.so", "-t", threads)
        check(have and have == want, f"the toy type gives the same bytes with {threads} threads", done.stderr.decode())
    filled = done.stderr.decode()
    check("toy-type lacks NORM" in filled and "LINEAR" not in filled and "EMBED" not in filled, "the fallback does the rest", filled)

    done, have = logits(top, "toy.gguf", *theirs, "--backend-path", OURS / "kopi-toy-type.so", "--fallback", "none")
    check(done.returncode == 5 and "cannot run NORM" in done.stderr.decode(), "without fallback it is refused", done.stderr.decode())

    for backend in "cpu", "cpu-threaded":
        done, have = logits(top, "toy.gguf", *theirs, "-b", backend)
        text = done.stderr.decode()
        check(done.returncode == 4 and text.count("\n") == 1, f"{backend} refuses the toy type in one line", text)
        for part in "0x40544f59", '"token_embd.weight"', "-b NAME", "toy.gguf":
            check(part in text, f"the refusal by {backend} says {part}", text)

    ours = ["--backend-path", OURS / "kopi-toy-type.so"]
    done = command(KOPI, "inspect", "--tensors", top / "letters-toy.gguf")
    text = done.stdout.decode()
    check(done.returncode == 0 and "0x40544f59" in text and "unknown size" in text, "inspect lists the type by its number", text[-1500:])
    check("verdict: does not run: " in text and "-b NAME" in text.split("verdict:")[1], "and says which backend is missing", text[-300:])
    check(command(KOPI, "inspect", "--check", top / "letters-toy.gguf").returncode == 4, "inspect --check ends with 4")
    done = command(KOPI, "inspect", top / "letters-toy.gguf", *ours)
    text = done.stdout.decode()
    check(done.returncode == 0 and "  TOY" in text and "unknown size" not in text and "verdict: runs" in text,
          "with the backend inspect knows name and size", text[-500:] + done.stderr.decode())
    for options, name, size in ([], "0x40544f59", None), (ours, "TOY", 33):
        done = command(KOPI, "inspect", "--json", top / "letters-toy.gguf", *options)
        tensor = next(t for t in json.loads(done.stdout)["tensors"] if t["name"] == "token_embd.weight")
        size = size and math.prod(tensor["shape"]) // BLOCK * size
        check((tensor["type"], tensor["bytes"]) == (name, size), f"inspect --json: {name}", str(tensor))
    done = command(KOPI, "inspect", top / "letters-toy.gguf", "-b", "nowhere")
    check(done.returncode == 5 and b"nowhere" in done.stderr, "a backend that isn't there is an error", done.stderr.decode())
    ids = [command(KOPI, "tokenize", "-m", top / model, "-p", "abc") for model in ("letters-same.gguf", "letters-toy.gguf")]
    check(ids[1].returncode == 0 and ids[0].stdout == ids[1].stdout, "tokenize needs only the vocabulary", ids[1].stderr.decode())

    done = kopi("backends", "check", OURS / "kopi-toy-type.so", timeout=300)
    text = done.stdout.decode()
    check(done.returncode == 0 and "- ops/own-types" in text, "kopi backends check passes", text[-1500:] + done.stderr.decode())
    check("own-types # SKIP" not in text, "kopi backends check tests the type", text[-1500:])
finish()
