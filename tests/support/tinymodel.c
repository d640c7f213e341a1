/* tinymodel FILE: a chain model for shell tests. Its vocabulary is a to z and an end token, and what follows a letter
 * is the next one.
 * tinymodel FILE f32|f16|q8_0: a llama of random weights in that type, 64 tokens, without a tokenizer. */
#include "tests/support/tinygguf.h"
#include <stdio.h>
#include <string.h>

static void letters(const char *path)
{
    static char text[26][2];
    struct tiny_piece pieces[64] = {0};
    for (int i = 0; i < 26; i++) {
        text[i][0] = (char)('a' + i);
        pieces[i] = (struct tiny_piece){text[i], 0, 1};
    }
    pieces[26] = (struct tiny_piece){"<|im_end|>", 0, 3};
    tiny_chain_model(path, 64, pieces, 26, -1, 128);
}

static int llama(const char *path, const char *type)
{
    static const struct { const char *name; uint32_t dtype; } types[] = {
        {"f32", KOPI_DTYPE_F32}, {"f16", KOPI_DTYPE_F16}, {"q8_0", KOPI_DTYPE_Q8_0}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i].name)) {
            const struct tiny_llama c = {
                .n_vocab = 64, .n_embd = 64, .n_ff = 96, .context = 128, .dtype = types[i].dtype, .seed = 11};
            tiny_llama_model(path, &c);
            return 0;
        }
    fprintf(stderr, "tinymodel: type %s is not f32, f16 or q8_0\n", type);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc == 3) return llama(argv[1], argv[2]);
    if (argc != 2) {
        fprintf(stderr, "usage: tinymodel FILE [f32|f16|q8_0]\n");
        return 2;
    }
    letters(argv[1]);
    return 0;
}
