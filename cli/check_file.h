/* cli/check_file.h - tiny models with random weights, in memory: a file that nobody has to remove. */
#ifndef KOPI_CLI_CHECK_FILE_H
#define KOPI_CLI_CHECK_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct check_model {
    const char *arch; /* llama, qwen2, gemma3 */
    uint32_t dtype;   /* of matrices; UINT32_MAX: every feed-forward matrix has another block type */
    uint32_t n_layers, window;
};
enum { CHECK_VOCAB = 96, CHECK_CONTEXT = 192 };

/* Path of the file; it lives as long as this process. buf: 64 bytes. */
const char *check_model_file(const struct check_model *m, uint64_t seed, char *buf);

#endif
