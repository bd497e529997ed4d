/* A Debian system from packages, as an OCI layout: mmdebstrap, run by a recipe (debian.sh).
 *
 * The recipe is root of a user namespace with ids of its own (id_range.h), where it is nobody of
 * this machine; its mounts, processes, IPC and names are its own, too. The network is the
 * machine's: it fetches from Debian's mirrors, and apt checks what it got by Debian's signatures.
 * It has no terminal, and all it started ends with it. What it says is shown without anything that
 * a terminal obeys. The layout is believed no more than one from anywhere (image_import.h). */
#pragma once

#include "launcher/ids/id_range.h"

struct debian_build {
    const char *suite;    /* "": Debian 12 */
    const char *packages; /* with commas between them; "": what agents reach for */
    const char *source;   /* as mmdebstrap takes it: a URL, a file, a line. "": the machine's own */
    const char *program;  /* in place of mmdebstrap, for tests; NULL: the real one */
    /* Bytes to show, made harmless. */
    void (*show)(void *context, const char *bytes, size_t length);
    void *context;
};

/* The layout, in a folder of its own. */
struct debian_layout {
    char path[64]; /* of the folder around it; "": none */
    int folder;    /* owned */
};

#define DEBIAN_LAYOUT_INIT                                                                         \
    {                                                                                              \
        .path = "", .folder = -EBADF                                                               \
    }

/* Minutes. ERR_NOT_FOUND: there is no mmdebstrap; ERR_INVALID: it failed, and has said why. */
int debian_build(struct id_range_table *ids, const struct debian_build *build,
                 struct debian_layout *ret_layout, struct error *err);

/* Delete it. Accepts DEBIAN_LAYOUT_INIT. */
void debian_layout_done(struct debian_layout *layout);

AUTO_DEFINE(debian_layout, struct debian_layout, debian_layout_done);
