/* Statements. */
#include "text/jinja/parser.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SOURCE = 1 << 20, MAX_PARSE_BYTES = 256 << 20, MAX_PARSE_WORK = 32 << 20 };

void kopi__jposition(const char *source, uint32_t pos, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (uint32_t i = 0; i < pos; i++) {
        if (source[i] == '\n') ++*line, *column = 1;
        else if (((unsigned char)source[i] & 0xc0) != 0x80) ++*column;
    }
}

const struct kopi_jnode *kopi__jparse_fail(struct kopi_jparser *p, uint32_t pos, const char *fmt, ...)
{
    char what[400];
    unsigned line, column;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    kopi__jposition(p->t->source, pos, &line, &column);
    kopi__fail(p->err, KOPI_E_MODEL, "chat template line %u, column %u: %s", line, column, what);
    return NULL;
}

const char *kopi__jtoken_text(const struct kopi_jtoken *t, char buf[48])
{
    static const char *const name[] = {
        [KOPI_T_TEXT] = "text",        [KOPI_T_VAR_BEGIN] = "'{{'", [KOPI_T_VAR_END] = "'}}'",
        [KOPI_T_BLOCK_BEGIN] = "'{%'", [KOPI_T_BLOCK_END] = "'%}'", [KOPI_T_STRING] = "a string",
        [KOPI_T_INT] = "a number",     [KOPI_T_FLOAT] = "a number", [KOPI_T_END] = "the end of the template"};
    if (t->type == KOPI_T_NAME) snprintf(buf, 48, "'%.*s'", t->n < 40 ? (int)t->n : 40, t->s);
    else if (t->type == KOPI_T_OP)
        snprintf(buf, 48, "'%c%.1s'", t->op & 255, t->op >> 8 ? (char[2]){(char)(t->op >> 8)} : "");
    else return name[t->type];
    return buf;
}

/* ---- tokens -------------------------------------------------------------------------------------------------------
 */

bool kopi__jis_name(const struct kopi_jtoken *t, const char *name)
{
    return t->type == KOPI_T_NAME && t->n == strlen(name) && memcmp(t->s, name, t->n) == 0;
}
bool kopi__jskip_op(struct kopi_jparser *p, uint16_t op)
{
    bool is = kopi__jis_op(p, op);
    p->tok += is;
    return is;
}
bool kopi__jskip_name(struct kopi_jparser *p, const char *name)
{
    bool is = kopi__jis_name(p->tok, name);
    p->tok += is;
    return is;
}
static bool unexpected(struct kopi_jparser *p, const char *wanted)
{
    char buf[48];
    return kopi__jparse_fail(p, p->tok->pos, "expected %s, found %s", wanted, kopi__jtoken_text(p->tok, buf)) != NULL;
}
bool kopi__jexpect_op(struct kopi_jparser *p, uint16_t op)
{
    return kopi__jskip_op(p, op) || unexpected(p, (char[]){'\'', (char)op, '\'', 0});
}
static bool expect_end(struct kopi_jparser *p)
{
    if (p->tok->type != KOPI_T_BLOCK_END) return unexpected(p, "'%}'");
    p->tok++;
    return true;
}

static bool rehash(struct kopi_jparser *p)
{
    uint32_t size = p->table_size ? p->table_size * 2 : 64;
    uint32_t *table = kopi__jzalloc(&p->t->arena, size, sizeof *table);
    if (!table) return false;
    for (uint32_t i = 0; i < p->table_size; i++) {
        if (!p->table[i]) continue;
        struct kopi_jstr s = p->symbols[p->table[i] - 1];
        uint32_t h = 2166136261u;
        for (uint32_t k = 0; k < s.len; k++) h = (h ^ (unsigned char)s.buf->data[k]) * 16777619u;
        for (; table[h & (size - 1)]; h++)
            if (!kopi__jwork(&p->t->arena, 1)) return false;
        table[h & (size - 1)] = p->table[i];
    }
    p->table = table;
    p->table_size = size;
    return true;
}
static bool intern(struct kopi_jparser *p, const char *s, uint32_t n, struct kopi_jstr *name, uint32_t *sym)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
    if (p->n_symbols * 2 >= p->table_size && !rehash(p)) return false;
    for (h &= p->table_size - 1; p->table[h]; h = (h + 1) & (p->table_size - 1)) {
        *name = p->symbols[p->table[h] - 1];
        *sym = p->table[h] - 1;
        if (!kopi__jwork(&p->t->arena, 1)) return false; /* names can be chosen so that they collide */
        if (name->len == n && memcmp(name->buf->data, s, n) == 0) return true;
    }
    *sym = p->n_symbols;
    if (!kopi__jstr_ref(&p->t->arena, s, n, KOPI_J_TEMPLATE, name)) return false;
    if (!kopi__jgrow(&p->t->arena, (void **)&p->symbols, p->n_symbols, &p->cap_symbols, sizeof *p->symbols))
        return false;
    p->symbols[p->n_symbols++] = *name;
    p->table[h] = p->n_symbols;
    return true;
}
bool kopi__jexpect_name(struct kopi_jparser *p, struct kopi_jval *name, uint32_t *sym)
{
    uint32_t unused;
    if (p->tok->type != KOPI_T_NAME) return unexpected(p, "a name");
    *name = kopi__jstring((struct kopi_jstr){0});
    if (!intern(p, p->tok->s, p->tok->n, &name->s, sym ? sym : &unused)) return false;
    p->tok++;
    return true;
}

/* ---- nodes --------------------------------------------------------------------------------------------------------
 */

bool kopi__jnest(struct kopi_jparser *p)
{
    if (++p->nesting <= KOPI_J_MAX_NESTING) return true;
    kopi__jparse_fail(p, p->tok->pos, "more than %d levels inside each other", KOPI_J_MAX_NESTING);
    return false;
}
struct kopi_jnode *kopi__jnode(struct kopi_jparser *p, enum kopi_jkind kind, uint32_t pos)
{
    struct kopi_jnode *n = kopi__jzalloc(&p->t->arena, 1, sizeof *n);
    if (!n) return NULL;
    n->kind = (uint8_t)kind;
    n->pos = pos;
    n->depth = 1;
    return n;
}
bool kopi__jadd_child(struct kopi_jparser *p, struct kopi_jnode *n, uint32_t *cap, const struct kopi_jnode *child)
{
    if (!child || !kopi__jgrow(&p->t->arena, (void **)&n->list, n->n, cap, sizeof *n->list)) return false;
    n->list[n->n++] = child;
    return true;
}
const struct kopi_jnode *kopi__jfinish(struct kopi_jparser *p, struct kopi_jnode *n)
{
    const struct kopi_jnode *operand[] = {n->a, n->b, n->c};
    for (uint32_t i = 0; i < 3 + n->n; i++) {
        const struct kopi_jnode *child = i < 3 ? operand[i] : n->list[i - 3];
        if (child && child->depth >= n->depth) n->depth = child->depth + 1;
    }
    if (n->depth <= KOPI_J_MAX_NODE_DEPTH) return n;
    return kopi__jparse_fail(p, n->pos, "the expression has more than %d steps", KOPI_J_MAX_NODE_DEPTH);
}

/* ---- statements ---------------------------------------------------------------------------------------------------
 */

typedef const struct kopi_jnode *statement_fn(struct kopi_jparser *p, struct kopi_jnode *n);
static const struct kopi_jnode *body(struct kopi_jparser *p, const char *const *ends, uint32_t opened);

/* Body up to {% end %}, which is consumed; opened: where the block began. */
static const struct kopi_jnode *body_to(struct kopi_jparser *p, const char *end, uint32_t opened)
{
    const char *const ends[] = {end, NULL};
    if (!kopi__jnest(p)) return NULL;
    const struct kopi_jnode *b = expect_end(p) ? body(p, ends, opened) : NULL;
    p->nesting--;
    if (!b) return NULL;
    p->tok++;
    return expect_end(p) ? b : NULL;
}

static const struct kopi_jnode *parse_if(struct kopi_jparser *p, struct kopi_jnode *n)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    uint32_t cap = 0;
    if (!kopi__jnest(p)) return NULL;
    do {
        if (!kopi__jadd_child(p, n, &cap, kopi__jparse_tuple(p, false)) || !expect_end(p)) return NULL;
        if (!kopi__jadd_child(p, n, &cap, body(p, ends, n->pos))) return NULL;
    } while (kopi__jskip_name(p, "elif"));
    p->nesting--;
    if (kopi__jskip_name(p, "else")) return (n->c = body_to(p, "endif", n->pos)) ? kopi__jfinish(p, n) : NULL;
    p->tok++;
    return expect_end(p) ? kopi__jfinish(p, n) : NULL;
}

static const struct kopi_jnode *parse_for(struct kopi_jparser *p, struct kopi_jnode *n)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    uint32_t cap = 0;
    if (!(n->a = kopi__jparse_target(p, false))) return NULL;
    if (!kopi__jskip_name(p, "in")) return unexpected(p, "'in'"), NULL;
    if (!(n->b = kopi__jparse_tuple(p, false))) return NULL;
    if (kopi__jskip_name(p, "if") && !(n->c = kopi__jparse_expr(p))) return NULL;
    if (kopi__jis_name(p->tok, "recursive"))
        return kopi__jparse_fail(p, p->tok->pos, "recursive loops are not supported");
    if (!kopi__jnest(p)) return NULL;
    p->loops++;
    if (!expect_end(p) || !kopi__jadd_child(p, n, &cap, body(p, ends, n->pos))) return NULL;
    p->loops--;
    p->nesting--;
    if (kopi__jskip_name(p, "else"))
        return kopi__jadd_child(p, n, &cap, body_to(p, "endfor", n->pos)) ? kopi__jfinish(p, n) : NULL;
    p->tok++;
    return expect_end(p) ? kopi__jfinish(p, n) : NULL;
}

/* The body of a macro or of a captured block: `break` can't leave it. */
static const struct kopi_jnode *closed_body(struct kopi_jparser *p, struct kopi_jnode *n, const char *end)
{
    unsigned loops = p->loops;
    p->loops = 0;
    n->c = body_to(p, end, n->pos);
    p->loops = loops;
    return n->c ? kopi__jfinish(p, n) : NULL;
}
static const struct kopi_jnode *captured(struct kopi_jparser *p)
{
    return kopi__jnode(p, KOPI_N_CAPTURED, p->tok->pos);
}

static const struct kopi_jnode *parse_set(struct kopi_jparser *p, struct kopi_jnode *n)
{
    if (!(n->a = kopi__jparse_target(p, true))) return NULL;
    if (kopi__jskip_op(p, '='))
        return (n->b = kopi__jparse_tuple(p, true)) && expect_end(p) ? kopi__jfinish(p, n) : NULL;
    n->kind = KOPI_N_SET_BLOCK;
    n->b = captured(p);
    if (kopi__jskip_op(p, '|')) n->b = kopi__jparse_filters(p, n->b);
    return n->b ? closed_body(p, n, "endset") : NULL;
}

static bool parameters(struct kopi_jparser *p, struct kopi_jnode *n)
{
    uint32_t cap = 0;
    bool defaults = false;
    if (!kopi__jexpect_op(p, '(')) return false;
    while (!kopi__jskip_op(p, ')')) {
        if (n->n && !kopi__jexpect_op(p, ',')) return false;
        if (kopi__jskip_op(p, ')')) break;
        struct kopi_jnode *k = kopi__jnode(p, KOPI_N_NAMED, p->tok->pos);
        if (!k || !kopi__jexpect_name(p, &k->val, &k->sym)) return false;
        bool has = kopi__jskip_op(p, '=');
        if (defaults && !has)
            return kopi__jparse_fail(p, k->pos, "a parameter without a default follows one with a default") != NULL;
        defaults = has;
        if (has && !(k->a = kopi__jparse_expr(p))) return false;
        if (!kopi__jadd_child(p, n, &cap, kopi__jfinish(p, k))) return false;
    }
    return true;
}

static const struct kopi_jnode *parse_macro(struct kopi_jparser *p, struct kopi_jnode *n)
{
    if (!kopi__jexpect_name(p, &n->val, &n->sym) || !parameters(p, n)) return NULL;
    return closed_body(p, n, "endmacro");
}
static const struct kopi_jnode *parse_call_block(struct kopi_jparser *p, struct kopi_jnode *n)
{
    if (kopi__jis_op(p, '(') && !parameters(p, n)) return NULL;
    uint32_t pos = p->tok->pos;
    if (!(n->a = kopi__jparse_expr(p))) return NULL;
    if (n->a->kind != KOPI_N_CALL) return kopi__jparse_fail(p, pos, "expected the call of a macro");
    return closed_body(p, n, "endcall");
}
static const struct kopi_jnode *parse_filter_block(struct kopi_jparser *p, struct kopi_jnode *n)
{
    if (!(n->b = captured(p)) || !(n->b = kopi__jparse_filters(p, n->b))) return NULL;
    return closed_body(p, n, "endfilter");
}
static const struct kopi_jnode *parse_generation(struct kopi_jparser *p, struct kopi_jnode *n)
{
    return closed_body(p, n, "endgeneration");
}

static const struct kopi_jnode *parse_with(struct kopi_jparser *p, struct kopi_jnode *n)
{
    uint32_t cap = 0;
    while (p->tok->type != KOPI_T_BLOCK_END) {
        if (n->n && !kopi__jexpect_op(p, ',')) return NULL;
        struct kopi_jnode *set = kopi__jnode(p, KOPI_N_SET, p->tok->pos);
        if (!set || !kopi__jexpect_name(p, &set->val, &set->sym)) return NULL;
        struct kopi_jnode *target = kopi__jnode(p, KOPI_N_NAME, set->pos);
        if (!target || !kopi__jexpect_op(p, '=') || !(set->b = kopi__jparse_expr(p))) return NULL;
        target->val = set->val;
        target->sym = set->sym;
        set->a = target;
        if (!kopi__jadd_child(p, n, &cap, kopi__jfinish(p, set))) return NULL;
    }
    return (n->c = body_to(p, "endwith", n->pos)) ? kopi__jfinish(p, n) : NULL;
}

static const struct kopi_jnode *leave_loop(struct kopi_jparser *p, struct kopi_jnode *n)
{
    if (!p->loops)
        return kopi__jparse_fail(p, n->pos, "'%s' outside of a loop", n->kind == KOPI_N_BREAK ? "break" : "continue");
    return expect_end(p) ? n : NULL;
}

static const struct kopi_jnode *statement(struct kopi_jparser *p)
{
    static const struct {
        const char *word;
        enum kopi_jkind kind;
        statement_fn *parse;
    } known[] = {
        {"if", KOPI_N_IF, parse_if},
        {"for", KOPI_N_FOR, parse_for},
        {"set", KOPI_N_SET, parse_set},
        {"macro", KOPI_N_MACRO, parse_macro},
        {"call", KOPI_N_CALL_BLOCK, parse_call_block},
        {"filter", KOPI_N_FILTER_BLOCK, parse_filter_block},
        {"generation", KOPI_N_SCOPE, parse_generation},
        {"with", KOPI_N_SCOPE, parse_with},
        {"break", KOPI_N_BREAK, leave_loop},
        {"continue", KOPI_N_CONTINUE, leave_loop},
    };
    char buf[48];
    const struct kopi_jtoken *t = p->tok;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!kopi__jskip_name(p, known[i].word)) continue;
        struct kopi_jnode *n = kopi__jnode(p, known[i].kind, t->pos);
        return n ? known[i].parse(p, n) : NULL;
    }
    return kopi__jparse_fail(p, t->pos, "%s is not a statement that is supported", kopi__jtoken_text(t, buf));
}

static const struct kopi_jnode *output(struct kopi_jparser *p)
{
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_OUTPUT, p->tok->pos);
    if (!n || !(n->a = kopi__jparse_tuple(p, true))) return NULL;
    if (p->tok->type != KOPI_T_VAR_END) return unexpected(p, "'}}'"), NULL;
    p->tok++;
    return kopi__jfinish(p, n);
}
static const struct kopi_jnode *literal_text(struct kopi_jparser *p)
{
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_TEXT, p->tok->pos);
    if (!n) return NULL;
    n->val = kopi__jstring((struct kopi_jstr){0});
    if (!kopi__jstr_ref(&p->t->arena, p->tok->s, p->tok->n, KOPI_J_TEMPLATE, &n->val.s)) return NULL;
    p->tok++;
    return n;
}

/* Statements up to a tag that starts with one of `ends` (the closing one first), whose name becomes the current token;
 * ends NULL: up to the end. */
static const struct kopi_jnode *body(struct kopi_jparser *p, const char *const *ends, uint32_t opened)
{
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_BODY, p->tok->pos);
    uint32_t cap = 0;
    if (!n) return NULL;
    for (;;) {
        const struct kopi_jnode *child;
        uint8_t type = p->tok->type;
        if (type == KOPI_T_END) {
            if (!ends) return kopi__jfinish(p, n);
            return kopi__jparse_fail(p, opened, "the block that starts here is never closed: '%s' is missing", ends[0]);
        }
        if (type == KOPI_T_BLOCK_BEGIN) {
            p->tok++;
            for (const char *const *e = ends; e && *e; e++)
                if (kopi__jis_name(p->tok, *e)) return kopi__jfinish(p, n);
            child = statement(p);
        } else if (type == KOPI_T_VAR_BEGIN) {
            p->tok++;
            child = output(p);
        } else child = literal_text(p);
        if (!kopi__jadd_child(p, n, &cap, child)) return NULL;
    }
}

/* ---- a whole template ---------------------------------------------------------------------------------------------
 */

/* Line ends become \n, and one at the very end goes. */
static const char *normalized(struct kopi_jarena *a, const char *s, size_t n, uint32_t *out_n)
{
    char *out = kopi__jalloc(a, n + 1);
    uint32_t m = 0;
    for (size_t i = 0; out && i < n; i++) {
        if (s[i] == '\r' && i + 1 < n && s[i + 1] == '\n') continue;
        out[m++] = s[i] == '\r' ? '\n' : s[i];
    }
    if (m && out[m - 1] == '\n') m--;
    if (out) out[m] = 0;
    *out_n = m;
    return out;
}

static bool parse(struct kopi_jtemplate *t, const char *source, size_t n, kopi_error *err)
{
    if (!(t->source = normalized(&t->arena, source, n, &t->n))) return false;
    struct kopi_jlexer l = {.arena = &t->arena, .src = t->source, .n = t->n, .err = err};
    if (!kopi__jlex(&l)) return false;
    struct kopi_jparser p = {.t = t, .tok = l.tok, .err = err};
    t->root = body(&p, NULL, 0);
    t->symbols = p.symbols;
    t->n_symbols = p.n_symbols;
    return t->root != NULL && t->arena.stop == KOPI_JSTOP_NONE;
}

kopi_status kopi__jtemplate_parse(const char *source, size_t n, struct kopi_jtemplate **out, kopi_error *err)
{
    *out = NULL;
    if (n > MAX_SOURCE)
        return kopi__fail(err, KOPI_E_MODEL, "the chat template has %zu bytes, at most %d are supported", n,
                          MAX_SOURCE);
    if (!kopi__utf8_valid(source, n)) return kopi__fail(err, KOPI_E_MODEL, "the chat template is not valid UTF-8");
    struct kopi_jtemplate *t = kopi__calloc(1, sizeof *t);
    if (!t) return kopi__nomem(err, "the chat template");
    kopi__jarena_init(&t->arena, MAX_PARSE_BYTES, MAX_PARSE_WORK);
    if (parse(t, source, n, err)) {
        *out = t;
        return KOPI_OK;
    }
    enum kopi_jstop stop = t->arena.stop;
    kopi__jtemplate_free(t);
    if (stop == KOPI_JSTOP_NOMEM) return kopi__nomem(err, "the chat template");
    if (stop == KOPI_JSTOP_WORK)
        return kopi__fail(err, KOPI_E_MODEL, "the chat template takes more than %d steps to parse", MAX_PARSE_WORK);
    if (stop)
        return kopi__fail(err, KOPI_E_MODEL, "the chat template takes more than %d MiB once parsed",
                          MAX_PARSE_BYTES >> 20);
    return KOPI_E_MODEL;
}
void kopi__jtemplate_free(struct kopi_jtemplate *t)
{
    if (!t) return;
    kopi__jarena_free(&t->arena);
    kopi__free(t);
}
