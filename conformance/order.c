#include "order.h"

#include <stdlib.h>
#include <string.h>

bool cf_name_begins(const char *name, const char *beginning, size_t n)
{
    return n && !strncmp(name, beginning, n) && (!name[n] || name[n] == '/');
}

static bool listed(const char *list, const char *name)
{
    for (const char *p = list; p && *p; p += strcspn(p, " "), p += strspn(p, " "))
        if (cf_name_begins(name, p, strcspn(p, " "))) return true;
    return false;
}

/* Nothing but the tests of the file itself makes sense where it can't be opened. */
static bool builds_on(const struct cf_test *t, const char *name)
{
    if (!strcmp(name, "load/opens") && strncmp(t->name, "load/", 5) != 0) return true;
    return listed(t->needs, name);
}

static bool comes_after(const struct cf_test *t, const char *name)
{
    return builds_on(t, name) || listed(t->after, name);
}

const char *cf_failed_need(const struct cf_test *t, const char *const *failed)
{
    for (; failed && *failed; failed++)
        if (builds_on(t, *failed)) return *failed;
    return NULL;
}

void cf_list_order(struct cf_list *l)
{
    struct cf_list *from = malloc(sizeof *from);
    bool done[sizeof l->at / sizeof *l->at] = {0};
    size_t n = 0, before;
    if (!from) abort(); /* a test tool */
    *from = *l;
    do {
        before = n;
        for (size_t i = 0; i < from->n; i++) {
            bool ready = !done[i];
            for (size_t k = 0; k < from->n && ready; k++)
                ready = done[k] || k == i || !comes_after(&from->at[i], from->at[k].name);
            if (!ready) continue;
            l->at[n++] = from->at[i];
            done[i] = true;
            break; /* again from the front: what waited for this one comes as early as it can */
        }
    } while (n > before);
    if (n < l->n) abort(); /* the needs go round in a circle */
    free(from);
}
