/* tests/fuzz/fuzz.h - what a fuzz target implements: libFuzzer's entry. A fault shows as a crash, a sanitizer's report
 * or an abort; the return value is always 0.
 *
 * `make check` replays each target's corpus (replay.c). To fuzz, with clang, here for the GGUF reader:
 *     ./configure CC=clang --enable-sanitizer=address CFLAGS='-g -O1 -fsanitize=fuzzer-no-link' && make libcore.la
 *     clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iinclude -Icore tests/fuzz/fuzz_gguf.c .libs/libcore.a \
 *         $(pkg-config --libs yaml-0.1 libpcre2-8 jansson nettle) -lm -o fuzz_gguf
 *     ./fuzz_gguf -max_len=4096 NEW tests/fuzz/corpus/gguf
 * and ./fuzz_gguf -merge=1 -set_cover_merge=1 tests/fuzz/corpus/gguf NEW keeps the inputs that reach new code. */
#ifndef KOPI_TESTS_FUZZ_FUZZ_H
#define KOPI_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold for every input; survives NDEBUG. */
#define FUZZ_CHECK(cond) ((cond) ? (void)0 : __builtin_trap())

#endif
