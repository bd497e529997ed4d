/* A Debian root file system from packages: mmdebstrap, as a tar archive.
 *
 * mmdebstrap runs as root of a user namespace with ids of its own (id_range.h), where it is nobody
 * to this machine: it reads what everybody may, sees neither homes nor what is mounted by hand, and
 * cannot become more. It sees no terminal: nothing is its standard input, and what it says is
 * passed on without anything that a terminal obeys. It has processes of its own, which all end with
 * it and with us. It has the machine's network and its sources of packages, whose signatures apt
 * checks; the scripts of these packages run in the new root, with the same rights. So what is
 * trusted is Debian's key, with no more than what any user without rights may do here. */
#pragma once

#include "base/error.h"
#include "launcher/ids/id_range.h"

struct debian_build {
    const char *suite;    /* "bookworm" */
    const char *packages; /* separated by commas; "": none but the essential and apt */
    const char *source;   /* a mirror, a line, or a file of sources; "": this machine's */
    int archive;          /* borrowed: where the tar goes */
    const char *program;  /* for tests; NULL: mmdebstrap */
    /* Bytes to show, made harmless; none, about once a second while nothing is said. */
    void (*show)(void *context, const char *bytes, size_t length);
    void *context;
};

/* 0, or -1 with `err`: ERR_NOT_FOUND without mmdebstrap, ERR_INVALID when it failed, for reasons
 * that were shown, or when SIGINT, SIGTERM or SIGHUP came. Then it is gone as well. Minutes. */
int debian_build(struct id_range_table *ids, const struct debian_build *build, struct error *err);
