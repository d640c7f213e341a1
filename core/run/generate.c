#include "run/round.h"

#include "base/error.h"

kopi_status kopi_generate(kopi_model *model, kopi_cache *cache, const kopi_request *request, kopi_result *result,
                          kopi_error *err)
{
    struct kopi_answer *a = NULL;
    struct kopi_round *r = NULL;
    *result = (kopi_result){0};
    if (cache->m != model) return kopi__fail(err, KOPI_E_INVALID, "the cache belongs to another model");
    kopi_status s = kopi__answer_new(model, request, &a, err);
    if (s == KOPI_OK) s = kopi__round_new(model, 1, &r, err);
    if (s == KOPI_OK) {
        kopi__answer_start(a, cache);
        while (!kopi__answer_done(a)) kopi__round_run(r, &a, 1);
        s = kopi__answer_result(a, result, err);
    }
    kopi__round_free(r);
    kopi__answer_free(a);
    return s;
}
