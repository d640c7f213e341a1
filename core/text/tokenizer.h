/* core/text/tokenizer.h - text to token ids and back, from the vocabulary in a model file.
 * Byte-level BPE ("gpt2") and SentencePiece unigram-merge with byte fallback ("llama"). Immutable after new: [any]. */
#ifndef KOPI_CORE_TEXT_TOKENIZER_H
#define KOPI_CORE_TEXT_TOKENIZER_H

#include "gguf/gguf.h"

struct kopi_tokenizer;

enum kopi_token_type { KOPI_TOKEN_NORMAL = 1, KOPI_TOKEN_UNKNOWN, KOPI_TOKEN_CONTROL, KOPI_TOKEN_USER_DEFINED,
                       KOPI_TOKEN_UNUSED, KOPI_TOKEN_BYTE };

/* Reads tokenizer.ggml.*. An unknown model or pre-tokenizer is KOPI_E_MODEL naming it. Side arrays are checked for type
 * and length. g must outlive the tokenizer. */
kopi_status kopi__tokenizer_new(const struct kopi_gguf *g, struct kopi_tokenizer **out, kopi_error *err);
void kopi__tokenizer_free(struct kopi_tokenizer *t);

enum {
    KOPI__TOK_ADD_SPECIAL = 1,  /* add BOS / EOS where the model asks for it */
    KOPI__TOK_PARSE_SPECIAL = 2 /* text such as <|im_start|> becomes the control token */
};
/* text: any bytes (NUL and invalid UTF-8 included). *ids is an array owned by the caller (kopi__free), also when *n_ids
 * is 0. cancelled (may be NULL) is polled. O(n log n), no recursion that grows with the input. */
kopi_status kopi__tokenize(const struct kopi_tokenizer *t, const char *text, size_t n, unsigned flags,
                           int32_t **ids, size_t *n_ids, int (*cancelled)(void *), void *ctx, kopi_error *err);

/* Pieces of the text: a template's output is a list of segments, of which only some may hold control tokens (a
 * message's content never may). Encodes each with its own `parse_special`; BOS/EOS as one text: never doubled where the
 * first segment already starts with BOS. */
struct kopi_segment { const char *text; size_t len; int parse_special; };
kopi_status kopi__tokenize_segments(const struct kopi_tokenizer *t, const struct kopi_segment *seg, size_t n_seg,
                                    unsigned flags, int32_t **ids, size_t *n_ids, int (*cancelled)(void *), void *ctx,
                                    kopi_error *err);

int32_t kopi__n_vocab(const struct kopi_tokenizer *t);
enum kopi_token_type kopi__token_type(const struct kopi_tokenizer *t, int32_t id); /* id must be in range */
/* Raw text of the vocabulary entry as in the file (length in *n). */
const char *kopi__token_text(const struct kopi_tokenizer *t, int32_t id, size_t *n);
/* Bytes that the token renders to, appended by the detokenizer: *out points into the tokenizer. Control tokens render
 * to their text only if `special`, else to nothing. */
const char *kopi__token_bytes(const struct kopi_tokenizer *t, int32_t id, bool special, size_t *n);
int32_t kopi__token_find(const struct kopi_tokenizer *t, const char *text, size_t n); /* exact entry, or -1 */

int32_t kopi__bos(const struct kopi_tokenizer *t); /* -1: none */
int32_t kopi__eos(const struct kopi_tokenizer *t); /* -1: none */
bool kopi__adds_bos(const struct kopi_tokenizer *t);
bool kopi__adds_space(
    const struct kopi_tokenizer *t); /* a space before the text, which the detokenizer takes off again */
/* End of generation: the union of eos, eot, eom and the known end-of-turn texts of control type. */
bool kopi__is_eog(const struct kopi_tokenizer *t, int32_t id);

/* All ids to bytes, as one text (SentencePiece: the leading space that encoding added is taken off again, if the model
 * adds one). *out is owned by the caller (kopi__free). Errors: KOPI_E_INVALID naming an id out of range. */
kopi_status kopi__detokenize(const struct kopi_tokenizer *t, const int32_t *ids, size_t n, bool special, char **out,
                             size_t *out_len, kopi_error *err);

/* Streaming: holds back only an incomplete but completable UTF-8 character (at most 3 bytes) ; bytes that can never
 * complete become U+FFFD at once; the concatenation equals the detokenized text made valid. Zero-initialise. */
struct kopi_detok { char tail[4]; unsigned n_tail; bool not_first; };
/* Appends the deliverable text of token id to out. */
struct kopi_buf;
bool kopi__detok_push(struct kopi_detok *d, const struct kopi_tokenizer *t, int32_t id, bool special,
                      struct kopi_buf *out);
/* End of the answer: at most one U+FFFD for a held-back tail. */
bool kopi__detok_flush(struct kopi_detok *d, struct kopi_buf *out);

#endif
