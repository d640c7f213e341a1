/* kopi/ext/draft/release.h - host extension "kopi.release/1" (draft): the source of a weight given back while it is
 * imported.
 *
 * Until weight_import returns, the source of a weight and the backend's copy of it are both resident; of an embedding
 * that is a third of the model this is much. A backend that copies a weight for all the roles it was offered for may
 * say on the way what it has read:
 *
 *     const kopi_ext_release *release = host->extension(host->ctx, KOPI_EXT_RELEASE);   [load] NULL: the host has none
 *     if (release) release->bytes(host->ctx, rows, n_rows * row_bytes);                 inside weight_import
 *
 * Without it the host gives the source back when weight_import has returned. The table is the host's and lives as long
 * as it. */
#ifndef KOPI_EXT_DRAFT_RELEASE_H
#define KOPI_EXT_DRAFT_RELEASE_H

#include <kopi/abi.h>

KOPI_BEGIN_DECLS

#define KOPI_EXT_RELEASE "kopi.release/1"

typedef struct kopi_ext_release {
    uint32_t struct_size, reserved;
    /* [load] [worker] The backend will not read these bytes of kopi_weight.data again, and weight_import will succeed
     * with a copy for all of kopi_weight.roles; otherwise the host refuses the model. Only inside weight_import; ctx is
     * host->ctx. */
    void (*bytes)(void *ctx, const void *begin, uint64_t size);
} kopi_ext_release;

KOPI_END_DECLS

#endif
