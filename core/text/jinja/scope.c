/* Variables; declared in run.h. */
#include "text/jinja/run.h"

struct kopi_jscope *kopi__jscope_push(struct kopi_jinja *j, struct kopi_jscope *parent)
{
    struct kopi_jscope *s = kopi__jzalloc(&j->arena, 1, sizeof *s);
    if (!s) return NULL;
    s->parent = parent;
    j->scope = s;
    return s;
}

static struct kopi_jval *find(struct kopi_jscope *s, uint32_t sym)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->v[i].sym == sym) return &s->v[i].v;
    return NULL;
}

bool kopi__jvar_set(struct kopi_jinja *j, uint32_t sym, struct kopi_jval v)
{
    struct kopi_jscope *s = j->scope;
    if (!s) {
        j->globals[sym] = v;
        return true;
    }
    if (!kopi__jwork(&j->arena, s->n / 8)) return false;
    struct kopi_jval *there = find(s, sym);
    if (there) {
        *there = v;
        return true;
    }
    if (!kopi__jgrow(&j->arena, (void **)&s->v, s->n, &s->cap, sizeof *s->v)) return false;
    s->v[s->n++] = (struct kopi_jvar){sym, v};
    return true;
}

bool kopi__jvar_get(struct kopi_jinja *j, uint32_t sym, struct kopi_jval *out)
{
    unsigned depth = 0;
    for (struct kopi_jscope *s = j->scope; s; s = s->parent) {
        if (!kopi__jwork(&j->arena, depth++ % 4 == 0) || !kopi__jwork(&j->arena, s->n / 8)) return false;
        const struct kopi_jval *v = find(s, sym);
        if (!v) continue;
        *out = *v;
        return true;
    }
    *out = j->globals[sym];
    if (out->type == KOPI_J_UNDEFINED && !out->s.len) out->s = j->t->symbols[sym];
    return true;
}

bool kopi__jmacro_new(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jmacro *m = kopi__jalloc(&j->arena, sizeof *m);
    if (!m) return false;
    *m = (struct kopi_jmacro){n, j->scope};
    for (struct kopi_jscope *s = j->scope; s && !s->kept; s = s->parent) s->kept = true; /* those around it are */
    *out = (struct kopi_jval){.type = KOPI_J_MACRO, .macro = m};
    return true;
}
