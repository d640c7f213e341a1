/* tests/unit/decoder_rig.h - a model file on one backend, driven step by step without the rest of the core: what the backend
 * tests and measurements of whole programs share. Nothing fails softly: a test that can't open its model aborts. */
#ifndef KOPI_TESTS_DECODER_RIG_H
#define KOPI_TESTS_DECODER_RIG_H

#include <stdbool.h>
#include <stdint.h>

struct rig;

struct rig_config {
    const char *model, *plugin; /* files */
    const char *isa;            /* option of the plugin, or NULL */
    unsigned threads;
    uint32_t n_ctx, max_tok, n_seq;
    uint32_t kv_dtype;          /* KOPI_DTYPE_F16 or _F32 */
};
struct rig *rig_open(const struct rig_config *c);
void rig_close(struct rig *r);

/* Tokens that continue a sequence. */
struct rig_part { uint32_t seq, n_tok; const int32_t *tokens; };
/* One run. logits: a row of n_vocab for each token (all), or for the last token of each part; NULL with n_out 0: none. */
enum rig_want { RIG_NONE, RIG_LAST, RIG_ALL };
int rig_run(struct rig *r, const struct rig_part *parts, uint32_t n, enum rig_want want, float *logits);
void rig_forget(struct rig *r); /* all sequences start anew; what the pages hold is overwritten by NaNs */
void rig_cancel(struct rig *r, bool yes);

uint32_t rig_n_vocab(const struct rig *r);
const char *rig_code(struct rig *r, uint32_t op); /* describe() of the first such operation */
/* Bytes of each page of a sequence's first n positions through kv_export, or as they are; 0 at the end. */
uint64_t rig_page(struct rig *r, uint32_t seq, uint32_t page, void *out);
void rig_set_page(struct rig *r, uint32_t seq, uint32_t page, const void *in);
uint64_t rig_page_bytes(const struct rig *r);

#endif
