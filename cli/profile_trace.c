#include "profile_trace.h"

#include "base/log.h"
#include "cli.h"
#include <sys/stat.h>
#include <unistd.h>

/* /dev/stdout, by any name; both may well be /dev/null. */
static bool is_stdout(FILE *f)
{
    struct stat a, b;
    if (fstat(fileno(f), &a) || fstat(STDOUT_FILENO, &b) || !cli_same_file(&a, &b)) return false;
    return !S_ISCHR(a.st_mode) || isatty(STDOUT_FILENO);
}

int profile_trace_open(struct profile_trace *t, const char *path)
{
    int code = outfile_open(&t->out, path);
    if (!code && is_stdout(t->out.f))
        code = cli_error(EXIT_USAGE, "--trace needs a file of its own: standard output has the table");
    if (!code) fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", t->out.f);
    return code;
}

static void begin_event(struct profile_trace *t)
{
    fputs(t->any ? ",\n" : "\n", t->out.f);
    t->any = true;
}

static void add_thread_name(struct profile_trace *t, uint32_t worker)
{
    begin_event(t);
    fprintf(t->out.f,
            "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %u, \"args\": {\"name\": \"worker %u\"}}",
            worker, worker);
}

static void add_span(struct profile_trace *t, uint32_t worker, const char *label, const struct profile_phase *ph,
                     const struct kopi_trace_group *g, const struct kopi_trace_span *s)
{
    const kopi_op *op = kopi_op_at(ph->program, g->ops[0]);
    begin_event(t);
    fprintf(t->out.f,
            "{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f, "
            "\"args\": {",
            label, ph->name, worker, (double)(s->begin - t->start) / 1e3, (double)(s->end - s->begin) / 1e3);
    if (op->layer != UINT32_MAX) fprintf(t->out.f, "\"layer\": %u, ", op->layer);
    fprintf(t->out.f, "\"first_op\": %u, \"n_ops\": %u}}", g->ops[0], g->n_ops);
}

int profile_trace_add(struct profile_trace *t, const struct profile_phase *ph, uint64_t began_ns)
{
    struct kopi_buf label = KOPI_BUF_INIT;
    if (!t->any) t->start = began_ns;
    for (uint32_t w = 0; w < ph->r.workers; w++) {
        add_thread_name(t, w);
        for (size_t i = 0; i < ph->r.spans[w].n; i++) {
            const struct kopi_trace_span *s = &ph->r.spans[w].at[i];
            kopi__buf_clear(&label);
            if (!kopi__trace_label(ph->program, &ph->r.groups[s->group], &label)) {
                kopi__buf_free(&label);
                return cli_error(EXIT_RUN, "out of memory");
            }
            add_span(t, w, label.data, ph, &ph->r.groups[s->group], s);
        }
    }
    kopi__buf_free(&label);
    if (ph->r.dropped)
        kopi__log(KOPI_LOG_WARN,
                  "%s: there is room for the first spans only, %llu more were left out; the table counts all",
                  t->out.path, (unsigned long long)ph->r.dropped);
    return 0;
}

int profile_trace_close(struct profile_trace *t, int code)
{
    if (t->out.f && !code) fputs("\n]}\n", t->out.f);
    if (t->out.f && !code && ferror(t->out.f)) code = outfile_failed(&t->out);
    return outfile_close(&t->out, code);
}
