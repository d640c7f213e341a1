/* core/text/vocab.h - the vocabulary of a file: token texts, the bytes they render to, types, scores, and text -> id.
 * Immutable after load: [any]. */
#ifndef KOPI_CORE_TEXT_VOCAB_H
#define KOPI_CORE_TEXT_VOCAB_H

#include "text/tokenizer.h"

/* Slice of the mapping or of the vocabulary's own storage. */
struct kopi_piece {
    const char *data;
    uint32_t len;
};

/* Open addressing. tag: the rest of the hash, so that other texts are seldom touched. id1: id + 1; 0: free. */
struct kopi_piece_slot {
    uint32_t tag, id1;
};
struct kopi_piece_table {
    struct kopi_piece_slot *slots;
    uint32_t mask;
};

struct kopi_vocab {
    bool bpe; /* byte-level BPE ("gpt2"), else SentencePiece ("llama") */
    uint32_t n;
    struct kopi_piece *text; /* [n] as in the file */
    struct kopi_piece
        *bytes;    /* [n] what a token renders to: BPE symbols decoded, U+2581 as space, byte tokens as their byte */
    uint8_t *type; /* [n] enum kopi_token_type */
    float *score;  /* [n], SentencePiece; NULL otherwise */
    char *storage; /* bytes that are not slices of the file */
    struct kopi_piece_table by_text;  /* first id of a text */
    struct kopi_piece_table by_bytes; /* BPE: normal tokens by their bytes */
    int32_t byte_id[256];             /* token of a single byte, or -1 */
    int32_t bos, eos, unk;            /* -1: none */
    bool add_bos, add_eos, add_space_prefix;
    uint8_t *rstrip; /* [n] 1: takes the white space behind it along when found in a text; NULL: none does */
    uint8_t *eog;    /* [n] 1: ends generation */
};

kopi_status kopi__vocab_load(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err);
/* The add_* flags as the file says them; called after the pre-tokenizer has set its defaults. */
kopi_status kopi__vocab_flags(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err);
void kopi__vocab_clear(struct kopi_vocab *v);
int32_t kopi__vocab_find(const struct kopi_vocab *v, const char *text, size_t n);        /* by text; -1 */
int32_t kopi__vocab_find_bytes(const struct kopi_vocab *v, const char *bytes, size_t n); /* BPE, by bytes; -1 */

#endif
