/* A Debian root file system from packages: mmdebstrap, as a tar archive.
 *
 * mmdebstrap runs as root of a user namespace with ids of its own (id_range.h), where it is nobody
 * to this machine: it reads what everybody may, sees neither homes nor what is mounted by hand, and
 * cannot become more. It has the machine's network and its sources of packages, whose signatures
 * apt checks; the scripts of these packages run in the new root, with the same rights. So what is
 * trusted is Debian's key, with no more than what any user without rights may do here. */
#pragma once

#include "base/error.h"
#include "launcher/id_range.h"

struct debian_build {
    const char *suite;    /* "bookworm" */
    const char *packages; /* separated by commas; "": none but the essential and apt */
    const char *source;   /* a mirror, a line, or a file of sources; "": this machine's */
    int archive;          /* borrowed: where the tar goes */
};

/* Its progress goes to our stderr. 0, or -1 with `err`: ERR_NOT_FOUND without mmdebstrap,
 * ERR_INVALID when it failed, in words of its own on stderr. Minutes; SIGINT is mmdebstrap's
 * meanwhile. */
int debian_build(struct id_range_table *ids, const struct debian_build *build, struct error *err);
