#include "base/sha256.h"

#include "base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void to_hex(const uint8_t *bytes, size_t n, char *hex)
{
    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    hex[2 * n] = 0;
}

/* Does not wait for the writer of a FIFO. */
static int open_regular(const char *path, kopi_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        kopi__fail(err, KOPI_E_IO, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (!fstat(fd, &st) && S_ISREG(st.st_mode)) return fd;
    close(fd);
    kopi__fail(err, KOPI_E_IO, "%s: is not a regular file", path);
    return -1;
}

kopi_status kopi__sha256_file(const char *path, char hex[65], int (*cancelled)(void *ctx), void *ctx, kopi_error *err)
{
    static _Thread_local uint8_t chunk[1 << 16];
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    int fd = open_regular(path, err);
    if (fd < 0) return KOPI_E_IO;
    sha256_init(&sha);
    kopi_status s = KOPI_OK;
    for (ssize_t n; s == KOPI_OK && (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) s = kopi__fail(err, KOPI_E_IO, "%s: %s", path, strerror(errno));
        else sha256_update(&sha, (size_t)n, chunk);
        if (s == KOPI_OK && cancelled && cancelled(ctx)) s = kopi__fail(err, KOPI_E_CANCELLED, "%s: cancelled", path);
    }
    close(fd);
    if (s != KOPI_OK) return s;
    sha256_digest(&sha, sizeof digest, digest);
    to_hex(digest, sizeof digest, hex);
    return KOPI_OK;
}
