#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kopi_status fresh(struct cf_instance *i, uint64_t size, void **handle)
{
    char *fill = malloc(size ? size : 1);
    if (!fill) abort();
    memset(fill, CF_FILL, size);
    kopi_status s = i->ops.buf_alloc(i->be, size, 0, handle, NULL);
    if (s == KOPI_OK) s = i->ops.buf_write(i->be, *handle, 0, fill, size);
    free(fill);
    return s;
}

static kopi_status lacks(struct cf_instance *i, const char *what)
{
    snprintf(i->host.text, sizeof i->host.text, "the device is not HOST_VISIBLE, and %s", what);
    return KOPI_E_INTERNAL;
}

/* A weight is the device's now; its bytes are taken from whoever still has their address. */
static kopi_status hide_weights(struct cf_instance *i, struct cf_program *c)
{
    for (uint32_t k = 0; k < c->p.n_tensors; k++) {
        if (c->t[k].kind != KOPI_KIND_WEIGHT) continue;
        if (!c->t[k].handle) return lacks(i, "a weight was not imported");
        c->t[k].data = NULL;
        cf_buf_protect(&c->buf[k], CF_NO_ACCESS);
    }
    return KOPI_OK;
}

static bool is_act(const kopi_tensor *t) { return t->kind == KOPI_KIND_ACT; }

kopi_status cf_device_begin(struct cf_device *d, struct cf_instance *i, struct cf_program *c)
{
    *d = (struct cf_device){.apart = !(i->device.flags & KOPI_DEVICE_HOST_VISIBLE)};
    if (!d->apart) return KOPI_OK;
    if (!i->ops.prepare) return lacks(i, "it lacks prepare");
    if (!i->ops.buf_alloc) return lacks(i, "it lacks the buf_ functions");
    kopi_status s = hide_weights(i, c);
    if (s == KOPI_OK) s = fresh(i, c->p.act_bytes, &d->arena);
    if (s == KOPI_OK && c->pages.map) s = fresh(i, c->pages.size, &d->pages);
    for (uint32_t k = 0; k < c->p.n_tensors && s == KOPI_OK; k++) {
        if (c->t[k].kind == KOPI_KIND_OUTPUT) s = fresh(i, c->buf[k].size, &d->rows);
        if (!is_act(&c->t[k])) continue;
        c->t[k].data = NULL;
        c->t[k].handle = d->arena;
    }
    c->group.base = NULL;
    c->group.handle = d->pages;
    return s;
}

void cf_device_end(struct cf_device *d, struct cf_instance *i, struct cf_program *c)
{
    if (!d->apart) return;
    if (d->arena) i->ops.buf_free(i->be, d->arena);
    if (d->pages) i->ops.buf_free(i->be, d->pages);
    if (d->rows) i->ops.buf_free(i->be, d->rows);
    for (uint32_t k = 0; k < c->p.n_tensors; k++) {
        if (is_act(&c->t[k])) c->t[k].handle = NULL;
        if (c->buf[k].map && c->t[k].kind != KOPI_KIND_OUTPUT) c->t[k].data = c->buf[k].data;
        if (c->t[k].kind == KOPI_KIND_WEIGHT) cf_buf_protect(&c->buf[k], CF_READ);
    }
    c->group.base = c->pages.data;
    c->group.handle = NULL;
    *d = (struct cf_device){0};
}

kopi_status cf_device_push(struct cf_device *d, struct cf_instance *i, struct cf_program *c)
{
    kopi_status s = KOPI_OK;
    for (uint32_t k = 0; d->apart && k < c->p.n_tensors && s == KOPI_OK; k++) {
        if (is_act(&c->t[k])) s = i->ops.buf_write(i->be, d->arena, c->t[k].off, c->buf[k].data, c->buf[k].size);
        if (c->t[k].kind == KOPI_KIND_OUTPUT) s = i->ops.buf_write(i->be, d->rows, 0, c->buf[k].data, c->buf[k].size);
    }
    return s;
}

/* Is every byte of the arena that belongs to no activation as it was? */
static bool gaps_intact(const struct cf_program *c, char *arena)
{
    for (uint32_t k = 0; k < c->p.n_tensors; k++)
        if (is_act(&c->t[k])) memset(arena + c->t[k].off, CF_FILL, c->buf[k].size);
    for (uint64_t b = 0; b < c->p.act_bytes; b++)
        if ((unsigned char)arena[b] != CF_FILL) return false;
    return true;
}

kopi_status cf_device_pull(struct cf_device *d, struct cf_instance *i, struct cf_program *c, const char **what)
{
    if (!d->apart) return KOPI_OK;
    char *arena = malloc(c->p.act_bytes ? c->p.act_bytes : 1);
    if (!arena) abort();
    kopi_status s = i->ops.buf_read(i->be, d->arena, 0, arena, c->p.act_bytes);
    for (uint32_t k = 0; k < c->p.n_tensors && s == KOPI_OK; k++) {
        if (is_act(&c->t[k])) memcpy(c->buf[k].data, arena + c->t[k].off, c->buf[k].size);
        if (c->t[k].kind == KOPI_KIND_OUTPUT) s = i->ops.buf_read(i->be, d->rows, 0, c->buf[k].data, c->buf[k].size);
    }
    if (s == KOPI_OK && !gaps_intact(c, arena)) *what = "memory beside an activation was written";
    free(arena);
    return s;
}

kopi_status cf_device_pull_pages(struct cf_device *d, struct cf_instance *i, struct cf_program *c)
{
    return d->apart ? i->ops.buf_read(i->be, d->pages, 0, c->pages.data, c->pages.size) : KOPI_OK;
}

kopi_status cf_device_scribble(struct cf_device *d, struct cf_instance *i, struct cf_program *c, uint64_t at,
                               uint64_t n)
{
    if (!d->apart) {
        memset(c->pages.data + at, 0x5a, n);
        return KOPI_OK;
    }
    char *nonsense = malloc(n);
    if (!nonsense) abort();
    memset(nonsense, 0x5a, n);
    kopi_status s = i->ops.buf_write(i->be, d->pages, at, nonsense, n);
    free(nonsense);
    return s;
}
