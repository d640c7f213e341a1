#include "npy.h"

#include <string.h>

/* Version 1.0 of the format: magic, version, length and text of the header, padded to 64 bytes (numpy.lib.format). */
static int write_header(struct npy *n, uint64_t rows, uint64_t columns)
{
    char text[192], header[256];
    int len = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %llu), }",
                       (unsigned long long)rows, (unsigned long long)columns);
    int total = (10 + len + 1 + 63) / 64 * 64, body = total - 10;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(body & 255);
    header[9] = (char)(body >> 8);
    memset(header + 10, ' ', (size_t)body);
    memcpy(header + 10, text, (size_t)len);
    header[total - 1] = '\n';
    return fwrite(header, 1, (size_t)total, n->out.f) == (size_t)total ? 0 : outfile_failed(&n->out);
}

int npy_open(struct npy *n, const char *path, uint64_t rows, uint64_t columns)
{
    int code = outfile_open(&n->out, path);
    return code ? code : write_header(n, rows, columns);
}

int npy_row(struct npy *n, const float *row, uint64_t columns)
{
    return fwrite(row, sizeof *row, columns, n->out.f) == columns ? 0 : outfile_failed(&n->out);
}

int npy_close(struct npy *n, int code) { return outfile_close(&n->out, code); }
