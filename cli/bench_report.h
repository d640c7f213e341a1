/* cli/bench_report.h - the results of `kopi bench` as a table, CSV or JSON, with llama-bench's keys. One thread. */
#ifndef KOPI_CLI_BENCH_REPORT_H
#define KOPI_CLI_BENCH_REPORT_H

#include "run/model.h"
#include <stdbool.h>

/* `depth` positions in the cache, then `prompt` tokens, then `gen` tokens one by one. sequences 0: one, run directly;
 * else so many through the scheduler, `gen` tokens each. */
struct bench_test {
    int64_t prompt, gen, depth, sequences;
};

enum bench_format { BENCH_MD, BENCH_CSV, BENCH_JSON, BENCH_JSONL };

struct bench_report {
    enum bench_format format;
    const kopi_model *model;
    bool together; /* there are tests of several sequences: the table has a column for each one's speed */
    int n_printed;
};

/* "md" and so on; false: no such format. */
bool bench_format_of(const char *name, enum bench_format *out);
/* One result: ns of each of the n >= 1 runs. */
void bench_print(struct bench_report *r, const struct bench_test *t, const double *ns, size_t n);
void bench_print_end(const struct bench_report *r); /* after the last; also after a failure */

#endif
