#include "bench_report.h"

#include "base/num.h"
#include "gguf/gguf.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool bench_format_of(const char *name, enum bench_format *out)
{
    static const char *const names[] = {"md", "csv", "json", "jsonl"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) {
            *out = (enum bench_format)i;
            return true;
        }
    return false;
}

static int64_t sequences(const struct bench_test *t) { return t->sequences ? t->sequences : 1; }
static double tokens(const struct bench_test *t) { return (double)(t->prompt + t->gen * sequences(t)); }

struct summary {
    double avg_ns, stddev_ns, avg_ts, stddev_ts;
};

static double deviation(double sum, size_t n) { return n > 1 ? sqrt(sum / (double)(n - 1)) : 0; }

static struct summary summarize(const struct bench_test *t, const double *ns, size_t n)
{
    struct summary s = {0, 0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        s.avg_ns += ns[i] / (double)n;
        s.avg_ts += tokens(t) * 1e9 / ns[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double ts = tokens(t) * 1e9 / ns[i];
        s.stddev_ns += (ns[i] - s.avg_ns) * (ns[i] - s.avg_ns);
        s.stddev_ts += (ts - s.avg_ts) * (ts - s.avg_ts);
    }
    s.stddev_ns = deviation(s.stddev_ns, n);
    s.stddev_ts = deviation(s.stddev_ts, n);
    return s;
}

/* "tg128 x 4 @ d512", as llama-bench but for the sequences. */
static void name_of(const struct bench_test *t, char *buf, size_t n)
{
    char prompt[32] = "", gen[32] = "", seq[32] = "", depth[32] = "";
    if (t->prompt) snprintf(prompt, sizeof prompt, "pp%lld", (long long)t->prompt);
    if (t->gen) snprintf(gen, sizeof gen, "%stg%lld", t->prompt ? "+" : "", (long long)t->gen);
    if (t->sequences) snprintf(seq, sizeof seq, " x %lld", (long long)t->sequences);
    if (t->depth) snprintf(depth, sizeof depth, " @ d%lld", (long long)t->depth);
    snprintf(buf, n, "%s%s%s%s", prompt, gen, seq, depth);
}

static const char *fixed(double v, int digits)
{
    static char buf[8][40];
    static unsigned at;
    char *b = buf[at++ % 8];
    return kopi__format_fixed(v, digits, b, sizeof buf[0]);
}

static const char *kv_type(uint32_t dtype) { return dtype == KOPI_DTYPE_F32 ? "f32" : "f16"; }

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* One field of a record: in CSV its value, in JSON its key as well. */
struct field {
    const char *key, *text; /* text: NULL for a number, else quoted */
    char number[48];
};
enum { MAX_FIELDS = 24 };

struct record {
    struct field f[MAX_FIELDS];
    int n;
    kopi_backend_info info; /* has texts of fields, as date has */
    char date[40];
};

static void text(struct record *r, const char *key, const char *value)
{
    r->f[r->n++] = (struct field){.key = key, .text = value};
}

static void number(struct record *r, const char *key, double v, int digits)
{
    struct field *f = &r->f[r->n++];
    *f = (struct field){.key = key};
    kopi__format_fixed(v, digits, f->number, sizeof f->number);
}

static void fill(struct record *r, const struct bench_report *b, const struct bench_test *t, const struct summary *s)
{
    const kopi_model *m = b->model;
    time_t now = time(NULL);
    struct tm tm;
    kopi_backend_device(m, &r->info);
    gmtime_r(&now, &tm);
    strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", &tm);
    text(r, "build_version", kopi_version());
    text(r, "backends", r->info.name);
    text(r, "cpu_info", r->info.detail);
    text(r, "model_filename", m->path);
    text(r, "model_type", m->decoder.arch);
    number(r, "model_size", (double)kopi__gguf_file_size(m->gguf), 0);
    number(r, "n_batch", m->max_tok, 0);
    number(r, "n_threads", r->info.threads, 0);
    text(r, "type_k", kv_type(m->program->groups[0].dtype_k));
    text(r, "type_v", kv_type(m->program->groups[0].dtype_v));
    number(r, "n_prompt", (double)t->prompt, 0);
    number(r, "n_gen", (double)t->gen, 0);
    number(r, "n_depth", (double)t->depth, 0);
    number(r, "n_seq", (double)sequences(t), 0);
    text(r, "test_time", r->date);
    number(r, "avg_ns", s->avg_ns, 0);
    number(r, "stddev_ns", s->stddev_ns, 0);
    number(r, "avg_ts", s->avg_ts, 6);
    number(r, "stddev_ts", s->stddev_ts, 6);
    number(r, "avg_ts_per_seq", s->avg_ts / (double)sequences(t), 6);
}

static void print_value(const struct field *f, bool json)
{
    if (!f->text) fputs(f->number, stdout);
    if (f->text) putchar('"');
    for (const char *p = f->text; p && *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (json && (c == '"' || c == '\\' || c < 0x20)) printf("\\u%04x", c);
        else if (c == '"') printf("\"\"");
        else putchar(c);
    }
    if (f->text) putchar('"');
}

static void print_csv(const struct record *r, bool header)
{
    for (int i = 0; i < r->n && header; i++) printf("%s%s", r->f[i].key, i + 1 < r->n ? "," : "\n");
    for (int i = 0; i < r->n; i++) {
        print_value(&r->f[i], false);
        putchar(i + 1 < r->n ? ',' : '\n');
    }
}

static void print_json(const struct record *r, const struct bench_test *t, const double *ns, size_t n)
{
    for (int i = 0; i < r->n; i++) {
        printf("%s\"%s\": ", i ? ", " : "{", r->f[i].key);
        print_value(&r->f[i], true);
    }
    printf(", \"samples_ns\": [");
    for (size_t i = 0; i < n; i++) printf("%s%s", i ? ", " : "", fixed(ns[i], 0));
    printf("], \"samples_ts\": [");
    for (size_t i = 0; i < n; i++) printf("%s%s", i ? ", " : "", fixed(tokens(t) * 1e9 / ns[i], 6));
    printf("]}");
}

static void print_row(const struct bench_report *r, const struct bench_test *t, const struct summary *s)
{
    char name[140], size[40];
    kopi_backend_info info;
    kopi_backend_device(r->model, &info);
    name_of(t, name, sizeof name);
    if (!r->n_printed)
        printf("| model | size | backend | threads | test | t/s |%s\n| --- | ---: | --- | ---: | ---: | ---: |%s\n",
               r->together ? " t/s per sequence |" : "", r->together ? " ---: |" : "");
    kopi__format_bytes(kopi__gguf_file_size(r->model->gguf), size, sizeof size);
    printf("| %s | %s | %s (%s) | %u | %s | %s ± %s |", r->model->id, size, info.name, info.detail, info.threads, name,
           fixed(s->avg_ts, 2), fixed(s->stddev_ts, 2));
    if (r->together) printf(" %s |", fixed(s->avg_ts / (double)sequences(t), 2));
    putchar('\n');
}

void bench_print(struct bench_report *r, const struct bench_test *t, const double *ns, size_t n)
{
    struct summary s = summarize(t, ns, n);
    struct record rec = {.n = 0};
    if (r->format == BENCH_MD) print_row(r, t, &s);
    else fill(&rec, r, t, &s);
    if (r->format == BENCH_CSV) print_csv(&rec, !r->n_printed);
    if (r->format == BENCH_JSON) printf(r->n_printed ? ",\n  " : "[\n  ");
    if (r->format == BENCH_JSON || r->format == BENCH_JSONL) print_json(&rec, t, ns, n);
    if (r->format == BENCH_JSONL) putchar('\n');
    fflush(stdout);
    r->n_printed++;
}

void bench_print_end(const struct bench_report *r)
{
    if (r->format == BENCH_JSON) printf(r->n_printed ? "\n]\n" : "[]\n");
}
