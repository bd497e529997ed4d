/* An image from a registry, as an OCI layout in a folder:
 *
 *     oci-layout, index.json       of this one image
 *     blobs/sha256/<digest>        manifest, configuration, and the layers that are not here yet
 *
 * Of several platforms the one of this machine is taken. The digest and the size of everything are
 * checked while it comes; whoever unpacks the layout checks them again. Which layers are here
 * already is known by the digests of their unpacked content, which the configuration tells. */
#pragma once

#include "registry/registry_client.h"
#include "registry/registry_document.h"

/* Bytes that stay free on the disk. */
#define REGISTRY_FREE_MIN ((uint64_t) 2 << 30)

struct registry_pull {
    int folder; /* borrowed: an empty one */
    /* Unpacked layers that need not come. Borrowed. */
    const char (*here)[REGISTRY_DIGEST_LENGTH + 1];
    size_t here_count;

    /* For people. `found`: what will be got, in how many bytes. `moved`: so many of them came.
     * `layer`: this one is there. */
    void (*found)(void *context, const char *digest, size_t layers, uint64_t bytes);
    void (*moved)(void *context, uint64_t bytes);
    void (*layer)(void *context, size_t number, size_t count, uint64_t size, bool was_here);
    void *context;
};

/* Returns 0, or -1 with `err`: what registry_client_get and the documents' readers say,
 * ERR_UPSTREAM for a wrong digest, ERR_NO_SPACE, or what writing failed with. Then the folder is
 * worth nothing. Blocks for as long as it takes. */
int registry_pull(struct registry_client *client, const struct registry_reference *reference,
                  const struct registry_pull *pull, struct error *err);
