/* conformance/order.h - which tests build on which: the order they run in, and what is skipped. */
#ifndef KOPI_CF_ORDER_H
#define KOPI_CF_ORDER_H

#include "test.h"

/* name is the n bytes of `beginning`, or goes on with '/' behind them. */
bool cf_name_begins(const char *name, const char *beginning, size_t n);
/* Every test behind those of the list that it needs; else the order stays. */
void cf_list_order(struct cf_list *l);
/* The first of these names (NULL-terminated; the list may be NULL) on which t builds; NULL: none. */
const char *cf_failed_need(const struct cf_test *t, const char *const *failed);

#endif
