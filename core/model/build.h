/* core/model/build.h - from the decoder description to the program: the one place that knows how a decoder is put
 * together. */
#ifndef KOPI_CORE_MODEL_BUILD_H
#define KOPI_CORE_MODEL_BUILD_H

#include "model/decoder.h"
#include "model/program.h"

enum { KOPI_PAGE_LEN = 64 }; /* positions per KV page: divides the attention chunk of kopi/op.h */

struct kopi_build {
    uint32_t n_ctx;                       /* positions per sequence */
    uint32_t max_tok, max_out, max_seq;   /* bounds of one step */
    uint32_t kv_k, kv_v;                  /* KOPI_DTYPE_F16 or _F32 */
    /* True if the backend that will run it computes LINEAR of weight type w from activations of type a. NULL: always.
     */
    bool (*takes)(void *ctx, uint32_t w, uint32_t a);
    void *ctx;
};

/* Bytes of the KV cache for n positions of one sequence; false on overflow. */
bool kopi__kv_bytes(const struct kopi_decoder *d, const struct kopi_build *o, uint64_t n, uint64_t *out);

/* Finds and checks the file's tensors (name, shape, type) and emits the program. Tensors that no operation reads are
 * named in one warning. Errors: KOPI_E_MODEL naming tensor, both shapes or the type; KOPI_E_NOMEM. */
kopi_status kopi__build(const struct kopi_gguf *g, const struct kopi_decoder *d, const struct kopi_build *o,
                        struct kopi__program **out, kopi_error *err);

#endif
