#include "profile_report.h"

#include "base/mem.h"
#include "base/num.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Groups with the same label, from all layers. */
struct row {
    char *label;
    uint64_t calls;
    double ms; /* of wall time: the workers' busy time, shared between them */
    struct kopi_cost cost;
};
struct rows {
    struct row *at;
    size_t n;
    double busy_ms;
};

static void free_rows(struct rows *r)
{
    for (size_t i = 0; i < r->n; i++) kopi__free(r->at[i].label);
    kopi__free(r->at);
}

static struct row *row_of(struct rows *r, const struct profile_phase *ph, const struct kopi_trace_group *g)
{
    struct kopi_buf label = KOPI_BUF_INIT;
    char *text = kopi__trace_label(ph->program, g, &label) ? kopi__buf_take(&label) : NULL;
    if (!text) {
        kopi__buf_free(&label);
        return NULL;
    }
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->at[i].label, text)) {
            kopi__free(text);
            return &r->at[i];
        }
    r->at[r->n] = (struct row){.label = text};
    return &r->at[r->n++];
}

static int slower_first(const void *a, const void *b)
{
    double x = ((const struct row *)a)->ms, y = ((const struct row *)b)->ms;
    return (x < y) - (x > y);
}

static bool make_rows(const struct profile_phase *ph, struct rows *out)
{
    *out = (struct rows){.at = kopi__calloc(ph->r.n_groups + 1u, sizeof *out->at)};
    bool ok = out->at != NULL;
    for (uint32_t i = 0; i < ph->r.n_groups && ok; i++) {
        const struct kopi_trace_group *g = &ph->r.groups[i];
        struct row *row = row_of(out, ph, g);
        if (!(ok = row != NULL)) break;
        row->calls += g->calls;
        row->ms += (double)g->busy_ns / 1e6 / ph->r.workers;
        row->cost.bytes += g->cost.bytes;
        row->cost.flops += g->cost.flops;
    }
    if (!ok) {
        free_rows(out);
        return false;
    }
    for (size_t i = 0; i < out->n; i++) out->busy_ms += out->at[i].ms;
    qsort(out->at, out->n, sizeof *out->at, slower_first);
    return true;
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

static void print_line(const char *label, uint64_t calls, double ms, double wall, const struct kopi_cost *c)
{
    char n[24] = "", gb[24] = "", gflop[24] = "";
    if (calls) snprintf(n, sizeof n, "%llu", (unsigned long long)calls);
    if (c && ms > 0) snprintf(gb, sizeof gb, "%.2f", (double)c->bytes / ms / 1e6);
    if (c && ms > 0 && c->flops) snprintf(gflop, sizeof gflop, "%.1f", (double)c->flops / ms / 1e6);
    printf("| %-60s | %8s | %10.3f | %5.1f %% | %8s | %8s |\n", label, n, ms, wall > 0 ? 100 * ms / wall : 0, gb,
           gflop);
}

bool profile_print_table(const struct profile_phase *ph)
{
    struct rows rows;
    double wall = (double)ph->wall_ns / 1e6, steps = (double)ph->r.step_ns / 1e6;
    if (!make_rows(ph, &rows)) return false;
    printf("%s: %llu tokens in %llu step%s, %.1f ms, %.1f tokens/s, %u worker%s\n\n", ph->name,
           (unsigned long long)ph->r.n_tokens, (unsigned long long)ph->r.n_steps, ph->r.n_steps == 1 ? "" : "s", wall,
           wall > 0 ? (double)ph->r.n_tokens * 1e3 / wall : 0, ph->r.workers, ph->r.workers == 1 ? "" : "s");
    printf("| %-60s | %8s | %10s | %7s | %8s | %8s |\n", "operation", "calls", "ms", "share", "GB/s", "GFLOP/s");
    printf("|%.62s|---------:|-----------:|--------:|---------:|---------:|\n",
           "-----------------------------------------------------------------------");
    for (size_t i = 0; i < rows.n; i++)
        print_line(rows.at[i].label, rows.at[i].calls, rows.at[i].ms, wall, &rows.at[i].cost);
    print_line("workers waiting, calls", 0, steps - rows.busy_ms, wall, NULL);
    print_line("core, between steps", 0, wall - steps, wall, NULL);
    print_line("all", 0, wall, wall, NULL);
    putchar('\n');
    free_rows(&rows);
    return true;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

bool profile_print_json(const struct profile_phase *ph, int n_before)
{
    struct rows rows;
    if (!make_rows(ph, &rows)) return false;
    printf("%s\n  {\"phase\": \"%s\", \"n_tokens\": %llu, \"n_steps\": %llu, \"n_threads\": %u, \"wall_ms\": %.6f, "
           "\"step_ms\": %.6f, "
           "\"busy_ms\": %.6f, \"operations\": [",
           n_before ? "," : "[", ph->name, (unsigned long long)ph->r.n_tokens, (unsigned long long)ph->r.n_steps,
           ph->r.workers, (double)ph->wall_ns / 1e6, (double)ph->r.step_ns / 1e6, rows.busy_ms);
    for (size_t i = 0; i < rows.n; i++) /* labels are names of operations and types: nothing to escape */
        printf("%s\n    {\"operation\": \"%s\", \"calls\": %llu, \"ms\": %.6f, \"bytes\": %llu, \"flops\": %llu}",
               i ? "," : "", rows.at[i].label, (unsigned long long)rows.at[i].calls, rows.at[i].ms,
               (unsigned long long)rows.at[i].cost.bytes, (unsigned long long)rows.at[i].cost.flops);
    printf("]}");
    free_rows(&rows);
    return true;
}
