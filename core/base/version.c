#include <config.h>
#include <kopi/kopi.h>

const char *kopi_version(void) { return PACKAGE_VERSION; }
