/* Execution of statements: one function per kind of node; declared in run.h. */
#include "text/jinja/run.h"

typedef enum kopi_jflow exec_fn(struct kopi_jinja *j, const struct kopi_jnode *n);

static enum kopi_jflow next_if(bool ok) { return ok ? KOPI_JFLOW_NEXT : KOPI_JFLOW_FAILED; }

static bool within_limit(struct kopi_jinja *j)
{
    return j->out->used <= KOPI_J_MAX_OUTPUT ||
           kopi__jfail(j, "the template writes more than %d MiB", KOPI_J_MAX_OUTPUT >> 20);
}

static enum kopi_jflow exec_body(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    for (uint32_t i = 0; i < n->n; i++) {
        enum kopi_jflow f = kopi__jexec(j, n->list[i]);
        if (f != KOPI_JFLOW_NEXT) return f;
    }
    return KOPI_JFLOW_NEXT;
}
static enum kopi_jflow exec_text(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    return next_if(kopi__jbuf_add_str(&j->arena, j->out, n->val.s) && within_limit(j));
}
static enum kopi_jflow exec_output(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval v;
    return next_if(kopi__jeval(j, n->a, &v) && kopi__jtext(j, j->out, &v) && within_limit(j));
}

static enum kopi_jflow exec_if(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    for (uint32_t i = 0; i < n->n; i += 2) {
        struct kopi_jval c;
        if (!kopi__jeval(j, n->list[i], &c)) return KOPI_JFLOW_FAILED;
        if (kopi__jtruth(&c)) return kopi__jexec(j, n->list[i + 1]);
    }
    return n->c ? kopi__jexec(j, n->c) : KOPI_JFLOW_NEXT;
}

static enum kopi_jflow exec_set(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval v;
    return next_if(kopi__jeval(j, n->b, &v) && kopi__jassign(j, n->a, &v));
}

/* Runs a body in its own scope with its output captured; the filters then see it as CAPTURED. */
static bool capture(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jscope *scope = j->scope;
    struct kopi_jbuf *before = j->out;
    struct kopi_jval outer = j->captured;
    if (!(j->out = kopi__jbuf_new(&j->arena, 0)) || !kopi__jscope_push(j, scope)) return false;
    if (kopi__jexec(j, n->c) == KOPI_JFLOW_FAILED) return false;
    j->captured = kopi__jstring(kopi__jbuf_str(j->out));
    j->out = before;
    j->scope = scope;
    bool ok = kopi__jeval(j, n->b, out);
    j->captured = outer;
    return ok;
}
static enum kopi_jflow exec_set_block(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval v;
    return next_if(capture(j, n, &v) && kopi__jassign(j, n->a, &v));
}
static enum kopi_jflow exec_filter_block(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval v;
    return next_if(capture(j, n, &v) && kopi__jtext(j, j->out, &v) && within_limit(j));
}

static enum kopi_jflow exec_macro(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval m;
    return next_if(kopi__jmacro_new(j, n, &m) && kopi__jvar_set(j, n->sym, m));
}

/* The block becomes a macro that the called one sees as `caller`. */
static enum kopi_jflow exec_call_block(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval callee, result;
    struct kopi_jcall c;
    if (!kopi__jeval(j, n->a->a, &callee) || !kopi__jeval_args(j, n->a, &c)) return KOPI_JFLOW_FAILED;
    if (j->sym_caller != UINT32_MAX) {
        struct kopi_jpair *named = kopi__jalloc(&j->arena, (c.n_named + 1) * sizeof *named);
        if (!named) return KOPI_JFLOW_FAILED;
        for (uint32_t i = 0; i < c.n_named; i++) named[i] = c.named[i];
        named[c.n_named].key = kopi__jstring(j->t->symbols[j->sym_caller]);
        if (!kopi__jmacro_new(j, n, &named[c.n_named++].value)) return KOPI_JFLOW_FAILED;
        c.named = named;
    }
    return next_if(kopi__jcall_value(j, &callee, &c, &result) && kopi__jtext(j, j->out, &result) && within_limit(j));
}

/* The values of `with` are those of the scope around it. */
static enum kopi_jflow exec_scope(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jscope *scope = j->scope;
    struct kopi_jval *v = kopi__jalloc(&j->arena, n->n * sizeof *v);
    if (!v) return KOPI_JFLOW_FAILED;
    for (uint32_t i = 0; i < n->n; i++)
        if (!kopi__jeval(j, n->list[i]->b, &v[i])) return KOPI_JFLOW_FAILED;
    if (!kopi__jscope_push(j, scope)) return KOPI_JFLOW_FAILED;
    for (uint32_t i = 0; i < n->n; i++)
        if (!kopi__jassign(j, n->list[i]->a, &v[i])) return KOPI_JFLOW_FAILED;
    enum kopi_jflow f = kopi__jexec(j, n->c);
    j->scope = scope;
    return f;
}

static enum kopi_jflow exec_break(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    (void)j;
    return n->kind == KOPI_N_BREAK ? KOPI_JFLOW_BREAK : KOPI_JFLOW_CONTINUE;
}

enum kopi_jflow kopi__jexec(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    static exec_fn *const by_kind[KOPI_N_KINDS - KOPI_N_BODY] = {
        [KOPI_N_BODY - KOPI_N_BODY] = exec_body,
        [KOPI_N_TEXT - KOPI_N_BODY] = exec_text,
        [KOPI_N_OUTPUT - KOPI_N_BODY] = exec_output,
        [KOPI_N_IF - KOPI_N_BODY] = exec_if,
        [KOPI_N_FOR - KOPI_N_BODY] = kopi__jexec_for,
        [KOPI_N_SET - KOPI_N_BODY] = exec_set,
        [KOPI_N_SET_BLOCK - KOPI_N_BODY] = exec_set_block,
        [KOPI_N_MACRO - KOPI_N_BODY] = exec_macro,
        [KOPI_N_CALL_BLOCK - KOPI_N_BODY] = exec_call_block,
        [KOPI_N_FILTER_BLOCK - KOPI_N_BODY] = exec_filter_block,
        [KOPI_N_SCOPE - KOPI_N_BODY] = exec_scope,
        [KOPI_N_BREAK - KOPI_N_BODY] = exec_break,
        [KOPI_N_CONTINUE - KOPI_N_BODY] = exec_break,
    };
    const struct kopi_jnode *before = j->at;
    j->at = n;
    if (!kopi__jenter(j)) return KOPI_JFLOW_FAILED;
    enum kopi_jflow f = by_kind[n->kind - KOPI_N_BODY](j, n);
    if (f == KOPI_JFLOW_FAILED) {
        kopi__jinja_settle(j);
        return f;
    }
    kopi__jleave(j);
    j->at = before;
    return f;
}
