#include "text/jinja/run.h"
#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool store(struct kopi_jinja *j, kopi_status status, const char *what)
{
    unsigned line, column;
    if (j->status != KOPI_OK) return false;
    j->status = status;
    if (status == KOPI_E_NOMEM) kopi__nomem(j->err, "the prompt");
    else if (!j->at) kopi__fail(j->err, status, "chat template: %s", what);
    else {
        kopi__jposition(j->t->source, j->at->pos, &line, &column);
        kopi__fail(j->err, status, "chat template line %u, column %u: %s", line, column, what);
    }
    return false;
}

bool kopi__jfail(struct kopi_jinja *j, const char *fmt, ...)
{
    char what[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return store(j, KOPI_E_INVALID, what);
}
bool kopi__jfail_undefined(struct kopi_jinja *j, const struct kopi_jval *v)
{
    return kopi__jfail(j, "'%.*s' is undefined", v->s.len < 100 ? (int)v->s.len : 100, kopi__jstr_data(v->s));
}

kopi_status kopi__jinja_settle(struct kopi_jinja *j)
{
    switch (j->arena.stop) {
    case KOPI_JSTOP_NONE: break;
    case KOPI_JSTOP_NOMEM: store(j, KOPI_E_NOMEM, NULL); break;
    case KOPI_JSTOP_BYTES:
        kopi__jfail(j, "the template takes more than %d MiB of memory", KOPI_J_MAX_BYTES >> 20);
        break;
    case KOPI_JSTOP_WORK: kopi__jfail(j, "the template takes more than %d steps", KOPI_J_MAX_WORK); break;
    }
    return j->status;
}

bool kopi__jenter(struct kopi_jinja *j)
{
    if (!kopi__jwork(&j->arena, 1)) return false;
    if (j->depth >= KOPI_J_MAX_DEPTH)
        return kopi__jfail(j, "more than %d evaluations inside each other", KOPI_J_MAX_DEPTH);
    j->depth++;
    return true;
}

static uint32_t find_symbol(const struct kopi_jtemplate *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_symbols; i++)
        if (kopi__jstr_is(t->symbols[i], name)) return i;
    return UINT32_MAX;
}

bool kopi__jinja_init(struct kopi_jinja *j, const struct kopi_jtemplate *t, int64_t now, kopi_error *err)
{
    *j = (struct kopi_jinja){.t = t, .err = err, .now = now};
    kopi__jarena_init(&j->arena, KOPI_J_MAX_BYTES, KOPI_J_MAX_WORK);
    j->sym_loop = find_symbol(t, "loop");
    j->sym_caller = find_symbol(t, "caller");
    j->sym_varargs = find_symbol(t, "varargs");
    j->sym_kwargs = find_symbol(t, "kwargs");
    j->out = kopi__jbuf_new(&j->arena, 0);
    j->globals = kopi__jzalloc(&j->arena, t->n_symbols, sizeof *j->globals);
    if (!j->out || !j->globals) return kopi__jinja_settle(j) == KOPI_OK;
    for (uint32_t i = 0; i < t->n_symbols; i++) {
        const struct kopi_jbuiltin *f = kopi__jfind_builtin(kopi__jglobals, t->symbols[i]);
        if (f) j->globals[i] = (struct kopi_jval){.type = KOPI_J_FUNCTION, .function = f};
    }
    return true;
}

void kopi__jinja_set(struct kopi_jinja *j, const char *name, struct kopi_jval v)
{
    uint32_t sym = find_symbol(j->t, name);
    if (sym != UINT32_MAX) j->globals[sym] = v;
}

kopi_status kopi__jinja_run(struct kopi_jinja *j)
{
    if (j->status == KOPI_OK && kopi__jexec(j, j->t->root) == KOPI_JFLOW_FAILED) kopi__jinja_settle(j);
    return j->status;
}

void kopi__jinja_free(struct kopi_jinja *j)
{
    kopi__jarena_free(&j->arena);
    if (j->ctype) freelocale(j->ctype);
    j->ctype = (locale_t)0;
}
