#!/usr/bin/env python3
"""One timed run of llama.cpp through llama-cpp-python's C bindings: prompt and generation, as `kopi bench` measures them.
Run by bench/peers in the peer's own virtual environment. Prints one JSON object."""
import argparse
import ctypes
import json
import os
import time

import llama_cpp as L

p = argparse.ArgumentParser()
p.add_argument("model")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--prompt", type=int, default=512)
p.add_argument("--gen", type=int, default=128)
p.add_argument("--depth", type=int, default=0)
p.add_argument("--batch", type=int, default=512)
p.add_argument("--kv", default="f16")
p.add_argument("--first-token", action="store_true", help="only the time from loading to the first token")
a = p.parse_args()

quiet = L.llama_log_callback(lambda level, text, data: None)
L.llama_log_set(quiet, ctypes.c_void_p(0))
L.llama_backend_init()
start = time.perf_counter()
model = L.llama_model_load_from_file(a.model.encode(), L.llama_model_default_params())
cp = L.llama_context_default_params()
cp.n_ctx = a.depth + max(a.prompt, a.gen) + 64
cp.n_batch = cp.n_ubatch = a.batch
cp.n_threads = cp.n_threads_batch = a.threads
cp.type_k = cp.type_v = {"f16": 1, "f32": 0}[a.kv]
ctx = L.llama_init_from_model(model, cp)
vocab = L.llama_vocab_n_tokens(L.llama_model_get_vocab(model))
memory = L.llama_get_memory(ctx)


def decode(n, start=0):
    for at in range(0, n, a.batch):
        k = min(a.batch, n - at)
        ids = (ctypes.c_int32 * k)(*[(start + at + i) * 7919 % vocab for i in range(k)])
        if L.llama_decode(ctx, L.llama_batch_get_one(ids, k)):
            raise SystemExit("llama_decode failed")


def timed(fn):
    L.llama_memory_clear(memory, True)
    if a.depth:
        decode(a.depth)
    t = time.perf_counter()
    fn()
    L.llama_synchronize(ctx)
    return time.perf_counter() - t


decode(16)
if a.first_token:  # logits of the last token are there; taking the largest is nothing beside them
    L.llama_synchronize(ctx)
    print(json.dumps({"first_token": time.perf_counter() - start}), flush=True)
    os._exit(0)  # without the interpreter's end, which may come after the library's
out = {"system": L.llama_print_system_info().decode().strip()}
if a.prompt:
    out["pp"] = a.prompt / timed(lambda: decode(a.prompt))
if a.gen:
    out["tg"] = a.gen / timed(lambda: [decode(1, i) for i in range(a.gen)])
print(json.dumps(out))
