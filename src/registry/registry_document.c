#include "registry/registry_document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/architecture.h"
#include "base/memory.h"

#define DIGEST_PREFIX    "sha256:"
#define DIGEST_TEXT_MAX  256
#define PLATFORM_OS      "linux"
#define FAILURE_CODE_MAX 64

static const struct json_limits limits = {
    .size = REGISTRY_DOCUMENT_MAX, .depth = 32, .values = JSON_VALUES_MAX};

void registry_manifest_done(struct registry_manifest *manifest)
{
    free(manifest->layers);
    *manifest = (struct registry_manifest) REGISTRY_MANIFEST_INIT;
}

static int wrong(struct error *err, const char *why)
{
    return error_set(err, ERR_INVALID, 0, "the registry's document is malformed: %s", why);
}

json_t *registry_document_read(const char *bytes, size_t length, struct error *err)
{
    json_t *document = json_read(bytes, length, &limits, err);

    if (document && !json_is_object(document)) {
        json_decref(document);
        (void) wrong(err, "it is no object");
        return NULL;
    }
    if (!document)
        (void) error_wrap(err, "the registry's document");
    return document;
}

static int read_digest(const char *text, char ret_hex[static REGISTRY_DIGEST_LENGTH + 1],
                       struct error *err)
{
    if (strncmp(text, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) != 0 ||
        !registry_is_digest(text + strlen(DIGEST_PREFIX)))
        return wrong(err, "a digest is not 'sha256:' and 64 digits");
    memcpy(ret_hex, text + strlen(DIGEST_PREFIX), REGISTRY_DIGEST_LENGTH + 1);
    return 0;
}

static int read_blob(const struct json_place *place, uint64_t maximum,
                     struct registry_blob *ret_blob, struct error *err)
{
    const char *digest;
    int64_t size;

    if (json_field_text(place, "digest", JSON_REQUIRED, DIGEST_TEXT_MAX, &digest, err) < 0 ||
        json_field_integer(place, "size", JSON_REQUIRED, 0, INT64_MAX, &size, err) < 0 ||
        read_digest(digest, ret_blob->digest, err) < 0)
        return -1;
    if ((uint64_t) size > maximum)
        return error_set(err, ERR_TOO_LARGE, 0,
                         "a part of the image is too large: %" PRId64 " bytes", size);
    ret_blob->size = (uint64_t) size;
    return 0;
}

/* --- index ----------------------------------------------------------------------------------- */

bool registry_document_is_index(const json_t *document)
{
    return json_object_get(document, "manifests") != NULL;
}

/* How well one of an index fits this machine: 0 not at all, 1 it does not say. */
static int fit(const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *architecture = json_string_value(json_object_get(platform, "architecture"));
    const char *system = json_string_value(json_object_get(platform, "os"));

    if (!platform)
        return 1;
    return architecture && system && strcmp(architecture, architecture_name()) == 0 &&
                   strcmp(system, PLATFORM_OS) == 0
               ? 2
               : 0;
}

int registry_index_choose(json_t *index, struct registry_blob *ret_manifest, struct error *err)
{
    struct json_place root, manifests, place;
    size_t best = 0;
    int best_fit = 0;

    if (json_root_object(index, &root, err) < 0 ||
        json_field_array(&root, "manifests", JSON_REQUIRED, &manifests, err) < 0)
        return -1;
    /* The first of those that fit as well: registries list the most common variant first. */
    for (size_t i = 0; i < json_array_size(manifests.value); i++) {
        int fits = fit(json_array_get(manifests.value, i));

        best = fits > best_fit ? i : best;
        best_fit = fits > best_fit ? fits : best_fit;
    }
    if (!best_fit)
        return error_set(err, ERR_INVALID, 0, "the image has nothing for " PLATFORM_OS "/%s",
                         architecture_name());
    if (json_item_object(&manifests, best, &place, err) < 0)
        return -1;
    return read_blob(&place, REGISTRY_DOCUMENT_MAX, ret_manifest, err);
}

/* --- manifest and config --------------------------------------------------------------------- */

static int read_layers(const struct json_place *root, struct registry_manifest *manifest,
                       struct error *err)
{
    struct json_place layers, place;
    uint64_t total = 0;

    if (json_field_array(root, "layers", JSON_REQUIRED, &layers, err) < 0)
        return -1;
    if (json_array_size(layers.value) > REGISTRY_LAYERS_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the image has more than %d layers",
                         REGISTRY_LAYERS_MAX);
    if (json_array_size(layers.value) == 0)
        return wrong(err, "it has no layers");
    manifest->layer_count = json_array_size(layers.value);
    manifest->layers = mem_alloc_array(manifest->layer_count, sizeof(*manifest->layers));
    for (size_t i = 0; i < manifest->layer_count; i++) {
        if (json_item_object(&layers, i, &place, err) < 0 ||
            read_blob(&place, REGISTRY_LAYER_MAX - total, &manifest->layers[i], err) < 0)
            return -1;
        total += manifest->layers[i].size;
    }
    return 0;
}

int registry_manifest_read(json_t *document, struct registry_manifest *manifest, struct error *err)
{
    struct json_place root, config;

    if (json_root_object(document, &root, err) < 0)
        return -1;
    if (json_object_get(document, "fsLayers"))
        return error_set(err, ERR_INVALID, 0,
                         "the image is of Docker's first format, which nobody makes since 2017: "
                         "push it again");
    if (json_field_object(&root, "config", JSON_REQUIRED, &config, err) < 0 ||
        read_blob(&config, REGISTRY_DOCUMENT_MAX, &manifest->config, err) < 0)
        return -1;
    return read_layers(&root, manifest, err);
}

int registry_config_layers(json_t *config, size_t count,
                           char (**ret_digests)[REGISTRY_DIGEST_LENGTH + 1], struct error *err)
{
    AUTO(free)
    char(*digests)[REGISTRY_DIGEST_LENGTH + 1] = mem_alloc_array(count, sizeof(*digests));
    struct json_place root, rootfs, ids;

    if (json_root_object(config, &root, err) < 0 ||
        json_field_object(&root, "rootfs", JSON_REQUIRED, &rootfs, err) < 0 ||
        json_field_array(&rootfs, "diff_ids", JSON_REQUIRED, &ids, err) < 0)
        return -1;
    if (json_array_size(ids.value) != count)
        return wrong(err, "it has not as many layers as it says");
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(ids.value, i));

        if (read_digest(text ? text : "", digests[i], err) < 0)
            return -1;
    }
    *ret_digests = TAKE_PTR(digests);
    return 0;
}

/* --- tokens and failures --------------------------------------------------------------------- */

int registry_token_read(json_t *document, const char **ret_token, struct error *err)
{
    struct json_place root;
    const char *token = "";

    if (json_root_object(document, &root, err) < 0 ||
        json_field_text(&root, "access_token", JSON_OPTIONAL, REGISTRY_TOKEN_MAX, &token, err) <
            0 ||
        json_field_text(&root, "token", JSON_OPTIONAL, REGISTRY_TOKEN_MAX, &token, err) < 0)
        return -1;
    if (!*token)
        return wrong(err, "it has no token");
    for (const char *at = token; *at; at++) {
        if (*at <= ' ' || *at > '~')
            return wrong(err, "its token has bytes that no header may have");
    }
    *ret_token = token;
    return 0;
}

void registry_failure_read(const char *bytes, size_t length, char ret_why[static REGISTRY_WHY_MAX])
{
    AUTO(json) json_t *document = registry_document_read(bytes, length, NULL);
    const json_t *first = json_array_get(json_object_get(document, "errors"), 0);
    const char *code = json_string_value(json_object_get(first, "code"));
    const char *message = json_string_value(json_object_get(first, "message"));

    (void) snprintf(ret_why, REGISTRY_WHY_MAX, "%.*s%s%s", FAILURE_CODE_MAX, code ? code : "",
                    code && message ? ": " : "", message ? message : "");
    for (char *at = ret_why; *at; at++) {
        if (*at < ' ' || *at > '~')
            *at = '?';
    }
}
