/* The tests behind `is`. */
#include "text/jinja/run.h"

#define TEST(name) static bool name(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
#define RESULT(expr) return (void)j, *out = kopi__jbool(expr), true

TEST(is_defined) { RESULT(a->self.type != KOPI_J_UNDEFINED); }
TEST(is_undefined) { RESULT(a->self.type == KOPI_J_UNDEFINED); }
TEST(is_none) { RESULT(a->self.type == KOPI_J_NONE); }
TEST(is_string) { RESULT(a->self.type == KOPI_J_STRING); }
TEST(is_mapping) { RESULT(a->self.type == KOPI_J_DICT); }
TEST(is_boolean) { RESULT(a->self.type == KOPI_J_BOOL); }
TEST(is_true) { RESULT(a->self.type == KOPI_J_BOOL && a->self.b); }
TEST(is_false) { RESULT(a->self.type == KOPI_J_BOOL && !a->self.b); }
TEST(is_integer) { RESULT(a->self.type == KOPI_J_INT); }
TEST(is_float) { RESULT(a->self.type == KOPI_J_FLOAT); }
TEST(is_number) { RESULT(kopi__jis_number(&a->self)); }
TEST(is_callable)
{
    RESULT(a->self.type == KOPI_J_MACRO || a->self.type == KOPI_J_FUNCTION || a->self.type == KOPI_J_METHOD);
}
/* Undefined has a length and runs over nothing, so both of these hold for it. */
TEST(is_iterable)
{
    uint8_t t = a->self.type;
    RESULT(t == KOPI_J_STRING || kopi__jis_seq(&a->self) || t == KOPI_J_DICT || t == KOPI_J_UNDEFINED ||
           t == KOPI_J_LOOP);
}
TEST(is_sequence)
{
    RESULT(a->self.type == KOPI_J_STRING || kopi__jis_seq(&a->self) || a->self.type == KOPI_J_DICT ||
           a->self.type == KOPI_J_UNDEFINED);
}
TEST(is_sameas)
{
    if (a->self.type != a->v[0].type) RESULT(false);
    if (kopi__jis_seq(&a->self) || a->self.type == KOPI_J_DICT) RESULT(a->self.list == a->v[0].list);
    return kopi__jequal(j, &a->self, &a->v[0], &out->b) && (*out = kopi__jbool(out->b), true);
}

/* At least one letter with a case, and none of the other case. */
static bool has_case(struct kopi_jinja *j, const struct kopi_jval *v, bool upper, struct kopi_jval *out)
{
    struct kopi_jstr s;
    bool any = false, other = false;
    if (!kopi__jto_str(j, v, &s) || !kopi__jwork_on(&j->arena, s.len, KOPI_J_REWRITE)) return false;
    for (uint32_t i = 0, cp; i < s.len;) {
        i = kopi__jstr_next(s, i, &cp);
        any |= kopi__jchar_case(j, cp, !upper) != cp;
        other |= kopi__jchar_case(j, cp, upper) != cp;
    }
    *out = kopi__jbool(any && !other);
    return true;
}
TEST(is_lower) { return has_case(j, &a->self, false, out); }
TEST(is_upper) { return has_case(j, &a->self, true, out); }

/* self % divisor == rest */
static bool remainder_is(struct kopi_jinja *j, const struct kopi_jval *v, const struct kopi_jval *divisor, int64_t rest,
                         struct kopi_jval *out)
{
    struct kopi_jval r, want = kopi__jint(rest);
    bool same;
    if (v->type == KOPI_J_STRING) return kopi__jfail(j, "this test needs a number, not str");
    if (!kopi__jarith(j, '%', v, divisor, &r) || !kopi__jequal(j, &r, &want, &same)) return false;
    *out = kopi__jbool(same);
    return true;
}
static const struct kopi_jval two = {.type = KOPI_J_INT, .i = 2};
TEST(is_odd) { return remainder_is(j, &a->self, &two, 1, out); }
TEST(is_even) { return remainder_is(j, &a->self, &two, 0, out); }
TEST(is_divisibleby) { return remainder_is(j, &a->self, &a->v[0], 0, out); }

static bool compare(struct kopi_jinja *j, const struct kopi_jargs *a, uint16_t op, struct kopi_jval *out)
{
    bool holds;
    if (!kopi__jcompare(j, op, &a->self, &a->v[0], &holds)) return false;
    *out = kopi__jbool(holds);
    return true;
}
TEST(is_eq) { return compare(j, a, KOPI_J_OP2('=', '='), out); }
TEST(is_ne) { return compare(j, a, KOPI_J_OP2('!', '='), out); }
TEST(is_lt) { return compare(j, a, '<', out); }
TEST(is_le) { return compare(j, a, KOPI_J_OP2('<', '='), out); }
TEST(is_gt) { return compare(j, a, '>', out); }
TEST(is_ge) { return compare(j, a, KOPI_J_OP2('>', '='), out); }
TEST(is_in) { return compare(j, a, KOPI_J_OP_IN, out); }

static bool is_one_of(struct kopi_jinja *j, const struct kopi_jbuiltin *const *tables, const struct kopi_jval *name,
                      struct kopi_jval *out)
{
    if (!kopi__jwork(&j->arena, KOPI_J_LOOKUP)) return false;
    RESULT(name->type == KOPI_J_STRING && kopi__jfind_builtin(tables, name->s));
}
TEST(is_filter) { return is_one_of(j, kopi__jfilters, &a->self, out); }
TEST(is_test) { return is_one_of(j, kopi__jtests, &a->self, out); }

static const struct kopi_jbuiltin tests[] = {
    {"defined", "", is_defined},
    {"string", "", is_string},
    {"none", "", is_none},
    {"mapping", "", is_mapping},
    {"iterable", "", is_iterable},
    {"sequence", "", is_sequence},
    {"boolean", "", is_boolean},
    {"true", "", is_true},
    {"false", "", is_false},
    {"undefined", "", is_undefined},
    {"number", "", is_number},
    {"integer", "", is_integer},
    {"float", "", is_float},
    {"callable", "", is_callable},
    {"sameas", "!other", is_sameas},
    {"lower", "", is_lower},
    {"upper", "", is_upper},
    {"odd", "", is_odd},
    {"even", "", is_even},
    {"divisibleby", "!num", is_divisibleby},
    {"in", "!seq", is_in},
    {"eq", "!b", is_eq},
    {"equalto", "!b", is_eq},
    {"==", "!b", is_eq},
    {"ne", "!b", is_ne},
    {"!=", "!b", is_ne},
    {"lt", "!b", is_lt},
    {"lessthan", "!b", is_lt},
    {"<", "!b", is_lt},
    {"le", "!b", is_le},
    {"<=", "!b", is_le},
    {"gt", "!b", is_gt},
    {"greaterthan", "!b", is_gt},
    {">", "!b", is_gt},
    {"ge", "!b", is_ge},
    {">=", "!b", is_ge},
    {"filter", "", is_filter},
    {"test", "", is_test},
    {NULL, NULL, NULL},
};
const struct kopi_jbuiltin *const kopi__jtests[] = {tests, NULL};

bool kopi__jtest(struct kopi_jinja *j, struct kopi_jstr name, const struct kopi_jval *v, const struct kopi_jcall *c,
                 bool *out)
{
    const struct kopi_jbuiltin *f = kopi__jfind_builtin(kopi__jtests, name);
    struct kopi_jval result;
    if (!kopi__jwork(&j->arena, KOPI_J_LOOKUP)) return false;
    if (!f)
        return kopi__jfail(j, "there is no test '%.*s'", (int)(name.len < 64 ? name.len : 64), kopi__jstr_data(name));
    if (!kopi__jinvoke(j, f, v, c, &result)) return false;
    *out = result.b;
    return true;
}
