/* Unit tests of core/text/jinja: the table of jinja2's own results, messages, limits, origins. */
#include "base/buf.h"
#include "base/mem.h"
#include "text/jinja/json.h"
#include "text/jinja/run.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t work = KOPI_J_MAX_WORK; /* of every rendering */

/* One rendering with the variables of a JSON object, all of them outside text. */
static kopi_status render(const char *source, size_t n, const json_t *variables, struct kopi_buf *text,
                          struct kopi_buf *marks, kopi_error *err)
{
    struct kopi_jtemplate *t;
    struct kopi_jinja j;
    struct kopi_jval v;
    const char *name;
    json_t *value;
    kopi_status s = kopi__jtemplate_parse(source, n, &t, err);
    if (s != KOPI_OK) return s;
    bool ok = kopi__jinja_init(&j, t, 1700000000, err);
    j.arena.work = work;
    json_object_foreach((json_t *)(uintptr_t)variables, name, value)
    {
        ok = ok && kopi__jfrom_jansson(&j, value, KOPI_J_OUTSIDE, &v);
        if (ok) kopi__jinja_set(&j, name, v);
    }
    if (ok) kopi__jinja_run(&j);
    s = kopi__jinja_settle(&j);
    if (s == KOPI_OK && text) kopi__buf_add(text, j.out->data, j.out->used);
    for (uint32_t i = 0; s == KOPI_OK && marks && i < j.out->used; i++) {
        bool outside = j.out->mark ? j.out->mark[i] : j.out->origin;
        if (outside !=
            (marks->len && marks->data[marks->len - 1] != '>' && strrchr(marks->data, '<') > strrchr(marks->data, '>')))
            kopi__buf_char(marks, outside ? '<' : '>');
        kopi__buf_char(marks, j.out->data[i]);
    }
    kopi__jinja_free(&j);
    kopi__jtemplate_free(t);
    return s;
}
static kopi_status try(const char *source, kopi_error *err)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    kopi_status s = render(source, strlen(source), NULL, &b, NULL, err);
    kopi__buf_free(&b);
    return s;
}

static json_t *cases;
static void load_cases(void)
{
    json_error_t e;
    cases = json_load_file(KOPI_JINJA_CASES, 0, &e);
    ck_assert_msg(cases != NULL, "%s: line %d: %s", KOPI_JINJA_CASES, e.line, e.text);
}
static void drop_cases(void) { json_decref(cases); }

START_TEST(renders_as_jinja2_does)
{
    const json_t *list = json_object_get(cases, "rendered"), *variables = json_object_get(cases, "context");
    size_t n = json_array_size(list);
    ck_assert_uint_ge(n, 500);
    for (size_t i = 0; i < n; i++) {
        const json_t *source = json_object_get(json_array_get(list, i), "template");
        const json_t *want = json_object_get(json_array_get(list, i), "out");
        struct kopi_buf b = KOPI_BUF_INIT;
        kopi_error err = {0};
        kopi_status s = render(json_string_value(source), json_string_length(source), variables, &b, NULL, &err);
        ck_assert_msg(s == KOPI_OK, "%s\n%s", json_string_value(source), err.text);
        bool same =
            b.len == json_string_length(want) && memcmp(b.len ? b.data : "", json_string_value(want), b.len) == 0;
        ck_assert_msg(same, "%s\nwant: %s\ngot:  %s", json_string_value(source), json_string_value(want),
                      b.len ? b.data : "");
        kopi__buf_free(&b);
    }
}
END_TEST

START_TEST(refuses_what_jinja2_refuses)
{
    const json_t *list = json_object_get(cases, "refused"), *variables = json_object_get(cases, "context");
    size_t n = json_array_size(list);
    ck_assert_uint_ge(n, 100);
    for (size_t i = 0; i < n; i++) {
        const json_t *source = json_array_get(list, i);
        kopi_error err = {0};
        kopi_status s = render(json_string_value(source), json_string_length(source), variables, NULL, NULL, &err);
        ck_assert_msg(s == KOPI_E_MODEL || s == KOPI_E_INVALID, "%s: %d", json_string_value(source), (int)s);
        ck_assert_msg(strncmp(err.text, "chat template line ", 19) == 0, "%s: %s", json_string_value(source), err.text);
    }
}
END_TEST

START_TEST(messages_name_the_place)
{
    static const struct {
        const char *source;
        kopi_status status;
        const char *text;
    } t[] = {
        {"a\n  {% if x %}\nb", KOPI_E_MODEL,
         "chat template line 2, column 6: the block that starts here is never closed: 'endif' is missing"},
        {"{{ 'x }}", KOPI_E_MODEL, "chat template line 1, column 4: the string is never closed"},
        {"é{{ 1 + }}", KOPI_E_MODEL, "chat template line 1, column 9: expected an expression, found '}}'"},
        {"\r\n\r\n{% include 'x' %}", KOPI_E_MODEL,
         "chat template line 3, column 4: 'include' is not a statement that is supported"},
        {"{{ 99999999999999999999 }}", KOPI_E_MODEL, "chat template line 1, column 4: the number is too large"},
        {"{{ f(*a) }}", KOPI_E_MODEL, "chat template line 1, column 6: arguments given by * or ** are not supported"},
        {"{% for x in y recursive %}{% endfor %}", KOPI_E_MODEL,
         "chat template line 1, column 15: recursive loops are not supported"},
        {"\n{{ 'a' + none }}", KOPI_E_INVALID, "chat template line 2, column 8: str + NoneType has no meaning"},
        {"{% set x = missing.name %}", KOPI_E_INVALID, "chat template line 1, column 19: 'missing' is undefined"},
        {"{{ x|groupby('a') }}", KOPI_E_INVALID, "chat template line 1, column 6: there is no filter 'groupby'"},
        {"{{ 'a'.zfill(3) }}", KOPI_E_INVALID, "chat template line 1, column 13: zfill is not supported"},
        {"{{ 9223372036854775807 + 1 }}", KOPI_E_INVALID,
         "chat template line 1, column 24: the result does not fit 64 bits"},
        {"{{ raise_exception('roles\nmust alternate') }}", KOPI_E_INVALID,
         "chat template line 1, column 19: the template refuses these messages: roles?must alternate"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        kopi_error err = {0};
        ck_assert_int_eq(try(t[i].source, &err), t[i].status);
        ck_assert_int_eq(err.code, t[i].status);
        ck_assert_str_eq(err.text, t[i].text);
        ck_assert_int_eq(try(t[i].source, NULL), t[i].status);
    }
    static const char bad_utf8[] = "a\xff";
    kopi_error err;
    ck_assert_int_eq(try(bad_utf8, &err), KOPI_E_MODEL);
    ck_assert_str_eq(err.text, "the chat template is not valid UTF-8");
}
END_TEST

/* Every one ends in an error, in bounded time and memory. */
START_TEST(hostile_templates_end)
{
    static const struct {
        const char *source, *says;
    } t[] = {
        {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "more than"},
        {"{% set r = range(100000) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
         "more than 20971520 steps"},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "more than 1000 evaluations inside each other"},
        {"{{ 'x' * 1000000000 }}", "more than"},
        {"{{ [0] * 1000000000 }}", "more than"},
        {"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "256 MiB"},
        {"{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}", "more than"},
        {"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", "more than 1000 evaluations"},
        {"{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}", "more than 1000 evaluations"},
        {"{% set l = [] %}{% set m = [] %}{% set _ = l.append(m) %}{% set _ = m.append(l) %}{{ l == m }}",
         "more than 1000 evaluations"},
        {"{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}", "more than"},
        {"{% set ns = namespace(l=[0]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}", "256 MiB"},
        {"{{ 'a'|indent(1000000000) }}", "256 MiB"},
        {"{{ ('a' * 100000)|replace('', 'b' * 100000) }}", "more than"},
        {"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ 'b' in s }}{% endfor %}", "steps"},
        {"{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{% set x = s[i] %}{% endfor %}", "steps"},
        {"{{ '%999s' % ('%999s' % 'x') * 100000000 }}", "more than"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        kopi_error err = {0};
        ck_assert_msg(try(t[i].source, &err) == KOPI_E_INVALID, "%s", t[i].source);
        ck_assert_msg(strstr(err.text, t[i].says) && strncmp(err.text, "chat template line 1, column ", 29) == 0,
                      "%s\n%s", t[i].source, err.text);
    }
}
END_TEST

/* Bodies of an endless loop, one for each operation whose cost grows with its operands: all of them are charged for, so
 * an eighth of the work ends in an eighth of the time. The limit is ten times what they take, for slow and busy
 * machines. */
START_TEST(work_is_charged)
{
    static const char *const t[][2] = {
        {"{% set s = 'é' * 500000 %}", "s[-1]"},
        {"{% set s = '\\uffff' * 300000 %}", "s[i]"},
        {"{% set s = 'é' * 500000 %}", "s[:-1]"},
        {"{% set s = 'é' * 500000 %}", "s[::-1]"},
        {"{% set s = 'é' * 30 %}", "s[::2]"},
        {"{% set s = 'é' * 500000 %}", "s|length"},
        {"{% set s = range(50000) %}{% set t = range(50000) %}", "s == t"},
        {"{% set s = range(50000) %}{% set t = range(50000) %}", "s < t"},
        {"{% set s = range(50000) %}", "s[1:]"},
        {"{% set s = range(50000) %}", "s + s"},
        {"{% set s = range(50000) %}", "s|string"},
        {"{% set s = range(50000) %}", "s|tojson"},
        {"{% set s = range(50000) %}", "s|sort"},
        {"{% set s = range(50000) %}", "s|unique"},
        {"{% set s = range(50000) %}", "s|join"},
        {"{% set s = [0.1234567890123456e-300] * 1000 %}", "s|string"},
        {"{% set s = [0.1234567890123456e300] * 1000 %}", "s|tojson"},
        {"{% set s = [[['a'] * 1000]] %}", "s|tojson(indent='')"},
        {"{% set s = '\x01' * 100000 %}", "s|tojson"},
        {"{% set s = 'é' * 100000 %}", "s|tojson(ensure_ascii=true)"},
        {"{% set s = ['\\uffff' * 100000] %}", "s|string"},
        {"{% set s = 'é' * 100000 %}", "s|upper"},
        {"{% set s = 'aé' * 100000 %}", "s|title"},
        {"{% set s = 'aé' * 100000 %}", "s is upper"},
        {"{% set s = ' ' * 1000000 %}", "s|int"},
        {"{% set s = ' ' * 1000000 %}", "s|float"},
        {"{% set s = '\\u3000' * 1000000 %}", "s|trim"},
        {"{% set s = 'a' * 100000 %}", "s.rstrip('bcdefghia')"},
        {"{% set s = 'a' * 1000000 %}", "s.removeprefix(s)"},
        {"{% set s = 'a' * 1000000 %}", "s.removesuffix(s)"},
        {"{% set s = 'a' * 1000000 %}", "s.endswith(s)"},
        {"{% set s = 'a' * 1000000 %}{% set t = s ~ 'b' %}", "s < t"},
        {"{% set s = 'a' * 1000000 %}{% set t = {s ~ 'b': 1, s ~ 'c': 1, s ~ 'd': 1} %}", "t[s ~ 'x']"},
        {"{% set s = 'ab' * 500000 %}", "s.count('ab')"},
        {"{% set s = 'abc' * 300000 %}", "s.split('abc')|length"},
        {"{% set s = 'abc' * 300000 %}", "s|replace('abc', '')|length"},
        {"{% set s = 'a' * 100000 %}", "s|replace('', 'x')"},
        {"{% set s = 'a' * 1000000 %}{% set t = 'a' * 200 ~ 'b' ~ 'a' * 9 %}", "t in s"},
        {"{% set s = 'a' * 1000000 %}{% set t = 'a' * 200 ~ 'b' ~ 'a' * 9 %}", "s.find(t)"},
        {"{% set s = 'a' * 1000000 %}", "s.rsplit('aaaab')"},
        {"{% set s = 'a\\n' * 100000 %}", "s|indent(3)"},
        {"{% set s = 'é' * 1000000 %}", "'%10s' % s"},
        {"{% set s = '%%' * 500000 %}", "s % ()"},
        {"{% set s = '{{' * 500000 %}", "s.format()"},
        {"", "'%.99f' % 1e299"},
        {"", "1.2345678|round(15)"},
        {"", "1e300 % 1e-300"},
        {"", "1e300 // 1e-300"},
        {"", "strftime_now('%c%c%c%c%c%c%c%c%c%c%c%c')"},
        {"", "'s'.zzz"},
        {"", "'zzz' is filter"},
        {"{% set s = '[' ~ '[],' * 100000 ~ '[]]' %}", "s|from_json"},
    };
#if defined __SANITIZE_THREAD__
    const double limit = 15;
    enum { SHARE = 64 }; /* every access of a string function is looked up there */
#elif defined __SANITIZE_ADDRESS__
    const double limit = 15;
    enum { SHARE = 8 };
#else
    const double limit = 0.7;
    enum { SHARE = 8 };
#endif
    work = KOPI_J_MAX_WORK / SHARE;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        static const char loop[] = "{% for i in range(100000) %}{% for k in range(100000) %}{% set x = ";
        struct kopi_buf b = KOPI_BUF_INIT;
        kopi_error err = {0};
        kopi__buf_str(&b, t[i][0]);
        kopi__buf_str(&b, loop);
        kopi__buf_str(&b, t[i][1]);
        kopi__buf_str(&b, " %}{% endfor %}{% endfor %}");
        clock_t before = clock();
        ck_assert_msg(try(b.data, &err) == KOPI_E_INVALID, "%s: %s", b.data, err.text);
        double took = (double)(clock() - before) / CLOCKS_PER_SEC;
        ck_assert_msg(strstr(err.text, " steps") || strstr(err.text, " MiB of memory"), "%s: %s", b.data, err.text);
        ck_assert_msg(took < limit, "%s: %.1f s", b.data, took);
        kopi__buf_free(&b);
    }
    work = KOPI_J_MAX_WORK;
}
END_TEST

/* A name as long as a template may be is compared no more often than what is charged. */
START_TEST(long_names)
{
    struct kopi_buf name = KOPI_BUF_INIT, b = KOPI_BUF_INIT;
    kopi_error err = {0};
    for (int i = 0; i < 300000; i++) kopi__buf_char(&name, 'a');
    kopi__buf_str(&b, "{% macro m(");
    kopi__buf_add(&b, name.data, name.len);
    kopi__buf_str(&b, ") %}{% endmacro %}{% for i in range(100000) %}{% for k in range(100) %}{% set x = m(");
    kopi__buf_add(&b, name.data, name.len);
    kopi__buf_str(&b, "=1) %}{% endfor %}{% endfor %}");
    ck_assert_int_eq(try(b.data, &err), KOPI_E_INVALID);
    ck_assert_msg(strstr(err.text, "more than 20971520 steps") != NULL, "%s", err.text);
    kopi__buf_free(&b);
    kopi__buf_free(&name);
}
END_TEST

static uint32_t fnv1a(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

/* 100000 names that all fall into a corner of the parser's table. */
START_TEST(colliding_names_end)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    kopi_error err = {0};
    char name[16];
    for (uint32_t i = 0, n = 0; n < 100000; i++) {
        snprintf(name, sizeof name, "a%x", i);
        if ((fnv1a(name) & 0x3ffff) >= 0x1000) continue;
        kopi__buf_str(&b, n++ ? "~" : "{{");
        kopi__buf_str(&b, name);
    }
    kopi__buf_str(&b, "}}");
    ck_assert_int_eq(try(b.data, &err), KOPI_E_MODEL);
    ck_assert_str_eq(err.text, "the chat template takes more than 33554432 steps to parse");
    kopi__buf_free(&b);
}
END_TEST

/* Nesting and long chains, which would recurse in a simple parser or evaluator. */
START_TEST(deep_templates_end)
{
    static const struct {
        const char *before, *middle, *after;
        bool parses_short;
    } t[] = {
        {"(", "1", ")", true},
        {"[", "", "]", true},
        {"-", "1", "", true},
        {"not ", "1", "", true},
        {"1 + ", "1", "", true},
        {"", "x", ".a", false},
        {"", "'a'", "|trim", true},
        {"'a' ~ ", "1", "", true},
        {"", "'a'", "[0]", true},
        {"1 if 1 else ", "1", "", true},
        {"", "1", " is defined", false},
        {"{1:", "1", "}", true},
        {"1 < ", "1", "", true},
        {"1 and ", "1", "", true},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        for (int n = 20; n <= 50000; n = n == 20 ? 50000 : n + 1) {
            struct kopi_buf b = KOPI_BUF_INIT;
            kopi_error err = {0};
            kopi__buf_str(&b, "{{ ");
            for (int k = 0; k < n; k++) kopi__buf_str(&b, t[i].before);
            kopi__buf_str(&b, t[i].middle);
            for (int k = 0; k < n; k++) kopi__buf_str(&b, t[i].after);
            kopi__buf_str(&b, " }}");
            kopi_status s = try(b.data, &err);
            if (n == 20 && t[i].parses_short) ck_assert_msg(s == KOPI_OK, "%s: %s", t[i].before, err.text);
            if (s != KOPI_OK) ck_assert_msg(strstr(err.text, "line 1, column"), "%s", err.text);
            kopi__buf_free(&b);
        }
    }
    struct kopi_buf b = KOPI_BUF_INIT;
    kopi_error err = {0};
    for (int k = 0; k < 10000; k++) kopi__buf_str(&b, "{% if 1 %}");
    ck_assert_int_eq(try(b.data, &err), KOPI_E_MODEL);
    ck_assert_str_eq(err.text, "chat template line 1, column 1007: more than 100 levels inside each other");
    kopi__buf_free(&b);
}
END_TEST

/* Outside text stays outside through every operation: it is shown between < and >. */
START_TEST(origins)
{
    static const char variables[] =
        "{\"s\": \"ab cd\", \"t\": \"  x \", \"n\": 7, \"l\": [\"p\", \"q\"], \"d\": {\"k\": \"v\"}, \"b\": true}";
    static const struct {
        const char *source, *want;
    } t[] = {
        {"A{{ s }}B", "A<ab cd>B"},
        {"{{ 'A' + s + 'B' }}", "A<ab cd>B"},
        {"{{ 'A' ~ n ~ 'B' ~ b }}", "A<7>B<True>"},
        {"{{ n + 1 }}{{ 1 + 1 }}{{ -n }}{{ s|length }}", "<8>2<-7>5"},
        {"{{ ('AB' + s)[1:4] }}{{ ('AB' + s)[0] }}{{ ('A' + s)[::-1] }}", "B<ab>A<dc ba>A"},
        {"{{ ('  A' + t)|trim }}|{{ ('A' + t).rstrip() }}|{{ t.strip() + 'A' }}", "A<  x>|A<  x>|<x>A"},
        {"{{ s|replace('b', 'B') }}|{{ 'xyx'|replace('y', s) }}|{{ s.replace(' ', '-') }}",
         "<a>B< cd>|x<ab cd>x|<ab>-<cd>"},
        {"{{ l|join('+') }}|{{ s.split(' ')|join('_') }}|{{ '+'.join(l) }}", "<p>+<q>|<ab>_<cd>|<p>+<q>"},
        {"{{ s|upper }}{{ ('A' + s)|lower }}{{ s|title }}", "<AB CD>a<ab cdAb Cd>"},
        {"{{ s|tojson }}|{{ ['A']|tojson }}|{{ {'A': s}|tojson }}", "<\"ab cd\">|[\"A\"]|<{\"A\": \"ab cd\"}>"},
        {"{{ d }}|{{ ['A'] }}|{{ d|tojson(indent=1) }}", "<{'k': 'v'}>|['A']|<{\n \"k\": \"v\"\n}>"},
        {"{{ ('A\n' + s)|indent(2) }}", "A\n  <ab cd>"},
        {"{{ '%s!%d' % (s, n) }}|{{ '{}!{}'.format(s, n) }}|{{ '%3d' % n }}", "<ab cd>!<7>|<ab cd>!<7>|  <7>"},
        {"{% for c in s[:2] %}{{ c }}-{% endfor %}{% for k, v in d.items() %}{{ k ~ '=' ~ v }}{% endfor %}",
         "<a>-<b>-<k>=<v>"},
        {"{% set x %}A{{ s }}{% endset %}{{ x }}{% filter upper %}b{{ s }}{% endfilter %}", "A<ab cd>B<AB CD>"},
        {"{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(s) + m('A') }}", "[<ab cd>][A]"},
        {"{% set ns = namespace(x='') %}{% for i in l %}{% set ns.x = ns.x + i + ',' %}{% endfor %}{{ ns.x }}",
         "<p>,<q>,"},
        {"{{ l|first }}{{ l|last }}{{ l|reverse|join }}{{ l|map('upper')|join('/') }}{{ s|list|last }}",
         "<pqqpP>/<Qd>"},
        {"{{ d.get('z', 'A') }}{{ d.z|default('B') }}{{ d.k|default('B') }}{{ s|int(3) }}{{ '4'|int }}", "AB<v>34"},
        {"{{ '{\"a\": 1}'|from_json }}|{{ ('{\"a\": ' ~ n ~ '}')|from_json }}", "{'a': 1}|<{'a': 7}>"},
        {"{{ s.splitlines()[0] }}{{ s|string|safe }}{{ (s ~ 'A').removesuffix('A') }}{{ s.partition is defined }}",
         "<ab cdab cdab cd>True"},
    };
    json_t *v = json_loads(variables, 0, NULL);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct kopi_buf m = KOPI_BUF_INIT;
        kopi_error err = {0};
        ck_assert_msg(render(t[i].source, strlen(t[i].source), v, NULL, &m, &err) == KOPI_OK, "%s: %s", t[i].source,
                      err.text);
        if (strrchr(m.data, '<') && (!strrchr(m.data, '>') || strrchr(m.data, '<') > strrchr(m.data, '>')))
            kopi__buf_char(&m, '>');
        ck_assert_msg(strcmp(m.data, t[i].want) == 0, "%s\nwant: %s\ngot:  %s", t[i].source, t[i].want, m.data);
        kopi__buf_free(&m);
    }
    json_decref(v);
}
END_TEST

/* Appending in a loop, to a string that others still hold: linear, and they keep their text. */
START_TEST(appending)
{
    static const char source[] =
        "{% set ns = namespace(s='', l=[]) %}{% for i in range(20000) %}{% set ns.s = ns.s ~ 'abcdefghij' %}"
        "{% if i < 3 %}{% set _ = ns.l.append(ns.s ~ 'X') %}{% endif %}{% endfor %}"
        "{{ ns.l|join(',') }},{{ ns.s|length }}";
    struct kopi_buf b = KOPI_BUF_INIT;
    ck_assert_int_eq(render(source, sizeof source - 1, NULL, &b, NULL, NULL), KOPI_OK);
    ck_assert_str_eq(b.data, "abcdefghijX,abcdefghijabcdefghijX,abcdefghijabcdefghijabcdefghijX,200000");
    kopi__buf_free(&b);
}
END_TEST

START_TEST(memory_runs_out)
{
    static const char source[] = "{% macro m(x) %}{{ x|upper }}{% endmacro %}{% for i in range(50) %}{{ m('é' ~ i) "
                                 "}}{{ {'a': [i, 'b' * 3000]}|tojson }}"
                                 "{% endfor %}";
    for (uint64_t n = 1;; n++) {
        struct kopi_buf b = KOPI_BUF_INIT;
        kopi_error err = {0};
        kopi__mem_fail_at(n);
        kopi_status s = render(source, sizeof source - 1, NULL, NULL, NULL, &err);
        kopi__mem_fail_at(0);
        kopi__buf_free(&b);
        if (s == KOPI_OK) {
            ck_assert_uint_gt(n, 5);
            break;
        }
        ck_assert_int_eq(s, KOPI_E_NOMEM);
        ck_assert_int_eq(err.code, KOPI_E_NOMEM);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jinja");
    TCase *table = tcase_create("table"), *own = tcase_create("own");
    setenv("TZ", "UTC", 1);
    tcase_add_checked_fixture(table, load_cases, drop_cases);
    tcase_add_test(table, renders_as_jinja2_does);
    tcase_add_test(table, refuses_what_jinja2_refuses);
    tcase_add_test(own, messages_name_the_place);
    tcase_add_test(own, hostile_templates_end);
    tcase_add_test(own, work_is_charged);
    tcase_add_test(own, long_names);
    tcase_add_test(own, colliding_names_end);
    tcase_add_test(own, deep_templates_end);
    tcase_add_test(own, origins);
    tcase_add_test(own, appending);
    tcase_add_test(own, memory_runs_out);
    tcase_set_timeout(own, 120);
    suite_add_tcase(s, table);
    suite_add_tcase(s, own);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
