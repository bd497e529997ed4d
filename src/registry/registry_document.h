/* The documents of a registry, all from a stranger: which manifest of an index is for this machine,
 * what a manifest consists of, which layers a configuration names, tokens, and failures.
 *
 *     index      {"manifests":[{"digest":"sha256:..","size":1,"platform":{..}}]}
 *     manifest   {"config":{"digest","size"},"layers":[{"digest","size"}]}
 *     config     {"rootfs":{"diff_ids":["sha256:.."]}}
 *     token      {"token":".."} or {"access_token":".."}
 *     failure    {"errors":[{"code":"DENIED","message":".."}]}
 *
 * Index and manifest are OCI's, or Docker's of version 2, which differ by their media types only.
 * Nothing is believed beyond what is said here: the keeper reads all of it again. Pure.
 *
 * Functions return 0, or -1 with ERR_INVALID or ERR_TOO_LARGE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "json/json_read.h"
#include "registry/registry_reference.h"

#define REGISTRY_DOCUMENT_MAX ((size_t) 4 << 20)
#define REGISTRY_LAYERS_MAX   128
#define REGISTRY_TOKEN_MAX    ((size_t) 64 * 1024)
#define REGISTRY_LAYER_MAX    ((uint64_t) 64 << 30) /* bytes, also of all layers together */

/* Media types that we understand, for the Accept header. */
#define REGISTRY_ACCEPT                                                                            \
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "        \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.docker.distribution.manifest.v2+json"

/* Something that is named by its content. */
struct registry_blob {
    char digest[REGISTRY_DIGEST_LENGTH + 1]; /* SHA-256 in hex */
    uint64_t size;
};

struct registry_manifest {
    struct registry_blob config;
    struct registry_blob *layers; /* owned; the lowest first */
    size_t layer_count;
};

#define REGISTRY_MANIFEST_INIT                                                                     \
    {                                                                                              \
        .layers = NULL                                                                             \
    }

void registry_manifest_done(struct registry_manifest *manifest);

AUTO_DEFINE(registry_manifest, struct registry_manifest, registry_manifest_done);

/* A document; the caller's. NULL with `err`. */
json_t *registry_document_read(const char *bytes, size_t length, struct error *err);

/* Whether it is an index. */
bool registry_document_is_index(const json_t *document);

/* The one for this machine. */
int registry_index_choose(json_t *index, struct registry_blob *ret_manifest, struct error *err);

/* Fill an empty manifest. */
int registry_manifest_read(json_t *document, struct registry_manifest *manifest, struct error *err);

/* The names of `count` unpacked layers, the lowest first; the caller frees them. */
int registry_config_layers(json_t *config, size_t count,
                           char (**ret_digests)[REGISTRY_DIGEST_LENGTH + 1], struct error *err);

/* Borrowed from the document. It is fit for a header. */
int registry_token_read(json_t *document, const char **ret_token, struct error *err);

#define REGISTRY_WHY_MAX 120

/* What a failure says, fit to be shown; "" when it says nothing that can be read. */
void registry_failure_read(const char *bytes, size_t length, char ret_why[static REGISTRY_WHY_MAX]);
