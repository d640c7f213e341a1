/* tinymodel FILE: a chain model for shell tests. Its vocabulary is a to z and an end token, and what follows a letter
 * is the next one. */
#include "tests/support/tinygguf.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    static char letters[26][2];
    struct tiny_piece pieces[64] = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: tinymodel FILE\n");
        return 2;
    }
    for (int i = 0; i < 26; i++) {
        letters[i][0] = (char)('a' + i);
        pieces[i] = (struct tiny_piece){letters[i], 0, 1};
    }
    pieces[26] = (struct tiny_piece){"<|im_end|>", 0, 3};
    tiny_chain_model(argv[1], 64, pieces, 26, -1, 128);
    return 0;
}
