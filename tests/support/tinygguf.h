/* tests/support/tinygguf.h - small GGUF files for tests: the writer, and ready-made models.
 * Nothing here fails softly: a test that cannot write its fixture aborts. */
#ifndef KOPI_TESTS_TINYGGUF_H
#define KOPI_TESTS_TINYGGUF_H

#include "conformance/tinygguf.h"

/* A file name in a fresh directory under $TMPDIR; the directory is removed by tiny_remove. buf: 512 bytes. */
const char *tiny_path(char *buf, const char *name);
void tiny_remove(const char *path);

/* Adds a byte-level BPE ("gpt2") vocabulary: pieces are raw bytes (NULL: "<unusedI>", type unused), control ids render
 * to nothing. len 0: up to the NUL. No merges: the text of a prompt becomes single bytes where they are pieces. */
struct tiny_piece {
    const char *text;
    size_t len;
    int32_t type; /* 1 normal, 3 control, 5 unused */
};
void tiny_vocab(struct tiny *t, const struct tiny_piece *pieces, uint32_t n, int32_t bos, int32_t eos);

/* Called for each ready-made model before it is written: more metadata. NULL: none. */
extern void (*tiny_extra)(struct tiny *t);

/* Chain model: greedy decoding of token i gives i + 1 (the last gives 0), so the vocabulary is the script. n a multiple
 * of
 * 4. pieces NULL: no tokenizer in the file. `poison` >= 0: the embedding of that token is NaN. */
void tiny_chain_model(const char *path, uint32_t n, const struct tiny_piece *pieces, int32_t eos, int32_t poison,
                      uint32_t context);

/* Llama with random weights: 2 layers, 4 heads, 2 KV heads. n_embd and n_ff multiples of 32. The same seed gives the
 * same values in every dtype, and the same but for output.weight in every kind of output. */
enum tiny_output { TINY_OWN = 0, TINY_TIED = 1 /* no output.weight */, TINY_COPY = 2 /* equal to the embedding */ };
struct tiny_llama {
    uint32_t n_vocab, n_embd, n_ff, context, dtype;
    enum tiny_output output;
    uint64_t seed;
};
void tiny_llama_model(const char *path, const struct tiny_llama *c);

#endif
