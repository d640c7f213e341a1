/* Fuzz target: a configuration file, or, behind a first byte '=', one "path=value" as of --set. What is accepted is
 * printed, and the print has to read back as the same values. */
#include "base/mem.h"
#include "config/config.h"
#include "fuzz.h"
#include <stdlib.h>
#include <string.h>

static void check_error(kopi_status status, const kopi_error *e)
{
    FUZZ_CHECK((status == KOPI_E_CONFIG || status == KOPI_E_INVALID) && e->code == status && e->text[0]);
    FUZZ_CHECK(!strchr(e->text, '\n'));
}

static int is_same(void *ctx, const kopi_config_entry *e)
{
    const char *value = NULL;
    FUZZ_CHECK(!kopi_config_get(ctx, e->path, &value, NULL, NULL));
    FUZZ_CHECK(value && !strcmp(value, e->value));
    return 0;
}

static void print_and_read(const kopi_config *c)
{
    char *text;
    kopi_config *back;
    kopi_error e;
    FUZZ_CHECK(!kopi_config_print(c, &text, &e) && !kopi_config_new(&back, &e));
    kopi_status status = kopi__config_load_text(back, "printed", "/", text, strlen(text), &e);
    /* a print may be longer than a file may be; a path that came in by --set may be relative */
    if (strlen(text) <= 1u << 20) FUZZ_CHECK(!status);
    if (!status) kopi_config_each(c, is_same, back);
    kopi_config_free(back);
    kopi__free(text);
}

static kopi_status load(kopi_config *c, const char *text, size_t size, kopi_error *e)
{
    if (!size || text[0] != '=') return kopi__config_load_text(c, "f", "/", text, size, e);
    char *path = kopi__strndup(text + 1, size - 1), *value = strchr(path, '=');
    if (value) *value++ = 0;
    kopi_status status = kopi_config_set(c, path, value ? value : "", e);
    kopi__free(path);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kopi_config *c;
    kopi_error e = {0};
    setenv("FUZZ_A", "a: ${FUZZ_A} # \"", 1);
    setenv("FUZZ_N", "3", 1);
    setenv("HOME", "/home/u", 1);
    FUZZ_CHECK(!kopi_config_new(&c, &e));
    kopi_status status = load(c, (const char *)data, size, &e);
    if (status) check_error(status, &e);
    else if (!size || data[0] != '=') {
        status = kopi_config_check(c, &e);
        if (status) check_error(status, &e);
        print_and_read(c);
    }
    kopi_config_free(c);
    return 0;
}
