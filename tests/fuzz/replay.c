/* Runs a fuzz target on files: those named as arguments, else all of the corpus that it was built with
 * (KOPI_FUZZ_CORPUS, a directory). Each input lies in a block of exactly its size. Fails if there is none. */
#include "fuzz.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    uint8_t *data = size >= 0 ? malloc(size ? (size_t)size : 1) : NULL;
    int ok = data && !fseek(f, 0, SEEK_SET) && fread(data, 1, (size_t)size, f) == (size_t)size;
    if (ok) LLVMFuzzerTestOneInput(data, (size_t)size);
    else perror(path);
    free(data);
    if (f) fclose(f);
    return ok;
}

static int replay_dir(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d) {
        perror(dir);
        return 0;
    }
    int n = 0, ok = 1;
    for (struct dirent *e; ok && (e = readdir(d));) {
        char path[4096];
        if (e->d_name[0] == '.') continue;
        ok = snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path && replay(path);
        n++;
    }
    closedir(d);
    printf("%s: %d inputs\n", dir, n);
    return ok && n;
}

int main(int argc, char **argv)
{
    int ok = argc > 1 || replay_dir(KOPI_FUZZ_CORPUS);
    for (int i = 1; i < argc && ok; i++) ok = replay(argv[i]);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
