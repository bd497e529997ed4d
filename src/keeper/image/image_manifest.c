#include "keeper/image/image_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/architecture.h"
#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "json/json_read.h"

#define DIGEST_PREFIX "sha256:"
#define BLOBS         "blobs/sha256/"
#define INDEX_DEPTH   3
#define TEXT_MAX      256

static const struct json_limits limits = {
    .size = IMAGE_DOCUMENT_MAX, .depth = 32, .values = JSON_VALUES_MAX};

void image_manifest_done(struct image_manifest *manifest)
{
    free(manifest->layers);
    wire_image_done(&manifest->image);
    *manifest = (struct image_manifest) IMAGE_MANIFEST_INIT;
}

/* --- documents ------------------------------------------------------------------------------ */

static int wrong(struct error *err, const char *why)
{
    return error_set(err, ERR_INVALID, 0, "the image is malformed: %s", why);
}

static int parse_digest(const char *text, char ret_hex[static WIRE_IMAGE_DIGEST_LENGTH + 1],
                        struct error *err)
{
    if (strncmp(text, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) != 0 ||
        !wire_image_is_digest(text + strlen(DIGEST_PREFIX)))
        return wrong(err, "a digest is not 'sha256:' and 64 digits");
    memcpy(ret_hex, text + strlen(DIGEST_PREFIX), WIRE_IMAGE_DIGEST_LENGTH + 1);
    return 0;
}

/* A document; one that is named by its digest must have it. */
static json_t *read_document(struct image_source *source, const char *name, const char *digest,
                             struct error *err)
{
    AUTO(free) char *bytes = NULL;
    uint8_t sum[SHA256_SIZE];
    char found[2 * SHA256_SIZE + 1];
    size_t length;
    json_t *document;

    if (image_source_read(source, name, IMAGE_DOCUMENT_MAX, &bytes, &length, err) < 0)
        return NULL;
    sha256_bytes(bytes, length, sum);
    (void) hex_encode(sum, sizeof(sum), found);
    if (digest && strcmp(found, digest) != 0) {
        (void) error_set(err, ERR_INVALID, 0,
                         "'%.120s' of the image is damaged: its digest is "
                         "another",
                         name);
        return NULL;
    }
    document = json_read(bytes, length, &limits, err);
    if (!document)
        (void) error_wrap(err, "'%.120s' of the image", name);
    return document;
}

static json_t *read_blob(struct image_source *source, const char *digest, struct error *err)
{
    char name[sizeof(BLOBS) + WIRE_IMAGE_DIGEST_LENGTH];

    (void) snprintf(name, sizeof(name), BLOBS "%.64s", digest);
    return read_document(source, name, digest, err);
}

/* --- what its maker wants ------------------------------------------------------------------- */

static int add_texts(struct wire_image *image, enum wire_image_key key,
                     const struct json_place *config, const char *field, struct pool *pool,
                     struct error *err)
{
    struct json_texts texts = {.count = 0};

    if (json_field_texts(config, field, JSON_OPTIONAL, WIRE_IMAGE_WORDS_MAX, WIRE_IMAGE_WORD_MAX,
                         pool, &texts, err) < 0)
        return -1;
    for (size_t i = 0; i < texts.count; i++) {
        if (wire_image_add(image, key, texts.items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int add_text(struct wire_image *image, enum wire_image_key key,
                    const struct json_place *config, const char *field, struct error *err)
{
    const char *text = "";

    if (json_field_text(config, field, JSON_OPTIONAL, WIRE_IMAGE_WORD_MAX, &text, err) < 0)
        return -1;
    return *text ? wire_image_add(image, key, text, err) : 0;
}

/* They are for people to read: one that is no single port (a range) is left out. */
static int add_ports(struct wire_image *image, const struct json_place *config, struct error *err)
{
    json_t *ports = json_object_get(config->value, "ExposedPorts"), *port;
    const char *name;
    void *next;

    if (!json_is_object(ports) || json_object_size(ports) > WIRE_IMAGE_WORDS_MAX)
        return 0;
    json_object_foreach_safe(ports, next, name, port)
    {
        char text[TEXT_MAX];

        (void) snprintf(text, sizeof(text), "%.*s%s", TEXT_MAX / 2, name,
                        strchr(name, '/') ? "" : "/tcp");
        (void) wire_image_add(image, WIRE_IMAGE_PORT, text, NULL);
    }
    (void) err;
    return 0;
}

static int check_machine(const struct json_place *document, struct error *err)
{
    const char *architecture = "", *system = "";

    if (json_field_text(document, "architecture", JSON_OPTIONAL, TEXT_MAX, &architecture, err) <
            0 ||
        json_field_text(document, "os", JSON_OPTIONAL, TEXT_MAX, &system, err) < 0)
        return -1;
    if ((*architecture && strcmp(architecture, architecture_name()) != 0) ||
        (*system && strcmp(system, "linux") != 0))
        return error_set(err, ERR_INVALID, 0, "the image is for %s/%s, this machine is linux/%s",
                         system, architecture, architecture_name());
    return 0;
}

static int read_config(struct wire_image *image, const struct json_place *document,
                       struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_place config = {.value = NULL};

    if (check_machine(document, err) < 0 ||
        json_field_object(document, "config", JSON_OPTIONAL, &config, err) < 0)
        return -1;
    if (!config.value)
        return 0;
    if (add_texts(image, WIRE_IMAGE_ENV, &config, "Env", &pool, err) < 0 ||
        add_text(image, WIRE_IMAGE_USER, &config, "User", err) < 0 ||
        add_text(image, WIRE_IMAGE_WORKDIR, &config, "WorkingDir", err) < 0 ||
        add_texts(image, WIRE_IMAGE_ENTRYPOINT, &config, "Entrypoint", &pool, err) < 0 ||
        add_texts(image, WIRE_IMAGE_CMD, &config, "Cmd", &pool, err) < 0)
        return -1;
    return add_ports(image, &config, err);
}

/* --- layers --------------------------------------------------------------------------------- */

/* Names of uncompressed layers; there must be as many as there are blobs. */
static int read_digests(struct image_manifest *manifest, const struct json_place *document,
                        struct error *err)
{
    struct json_place rootfs, ids;

    if (json_field_object(document, "rootfs", JSON_REQUIRED, &rootfs, err) < 0 ||
        json_field_array(&rootfs, "diff_ids", JSON_REQUIRED, &ids, err) < 0)
        return -1;
    if (json_array_size(ids.value) != manifest->layer_count)
        return wrong(err, "it has not as many layers as it says");
    for (size_t i = 0; i < manifest->layer_count; i++) {
        const char *text = json_string_value(json_array_get(ids.value, i));

        if (parse_digest(text ? text : "", manifest->layers[i].digest, err) < 0)
            return -1;
    }
    return 0;
}

/* One that comes again covers all that its first occurrence did, and overlay takes none twice. */
static void drop_repeated(struct image_manifest *manifest)
{
    size_t kept = 0;

    for (size_t i = 0; i < manifest->layer_count; i++) {
        bool comes_again = false;

        for (size_t j = i + 1; j < manifest->layer_count; j++)
            comes_again |= strcmp(manifest->layers[i].digest, manifest->layers[j].digest) == 0;
        if (!comes_again)
            manifest->layers[kept++] = manifest->layers[i];
    }
    manifest->layer_count = kept;
}

static int finish(struct image_manifest *manifest, json_t *config, struct error *err)
{
    struct json_place document;

    if (json_root_object(config, &document, err) < 0 ||
        read_digests(manifest, &document, err) < 0 ||
        read_config(&manifest->image, &document, err) < 0)
        return -1;
    drop_repeated(manifest);
    for (size_t i = 0; i < manifest->layer_count; i++) {
        if (wire_image_add(&manifest->image, WIRE_IMAGE_LAYER, manifest->layers[i].digest, err) < 0)
            return -1;
    }
    return manifest->layer_count ? 0 : wrong(err, "it has no layers");
}

/* --- OCI ------------------------------------------------------------------------------------ */

static int take_oci_layers(struct image_manifest *manifest, const struct json_place *document,
                           struct error *err)
{
    struct json_place layers;

    if (json_field_array(document, "layers", JSON_REQUIRED, &layers, err) < 0)
        return -1;
    if (json_array_size(layers.value) > WIRE_IMAGE_LAYERS_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the image has more than %d layers",
                         WIRE_IMAGE_LAYERS_MAX);
    manifest->layer_count = json_array_size(layers.value);
    manifest->layers = mem_alloc_array(manifest->layer_count + 1, sizeof(*manifest->layers));
    for (size_t i = 0; i < manifest->layer_count; i++) {
        struct image_layer *layer = &manifest->layers[i];
        struct json_place place;
        const char *digest;

        if (json_item_object(&layers, i, &place, err) < 0 ||
            json_field_text(&place, "digest", JSON_REQUIRED, TEXT_MAX, &digest, err) < 0 ||
            parse_digest(digest, layer->raw, err) < 0)
            return -1;
        (void) snprintf(layer->name, sizeof(layer->name), BLOBS "%s", layer->raw);
    }
    return 0;
}

static int read_oci_manifest(struct image_source *source, const struct json_place *document,
                             struct image_manifest *manifest, struct error *err)
{
    AUTO(json) json_t *config = NULL;
    struct json_place place;
    char digest[WIRE_IMAGE_DIGEST_LENGTH + 1];
    const char *text;

    if (take_oci_layers(manifest, document, err) < 0 ||
        json_field_object(document, "config", JSON_REQUIRED, &place, err) < 0 ||
        json_field_text(&place, "digest", JSON_REQUIRED, TEXT_MAX, &text, err) < 0 ||
        parse_digest(text, digest, err) < 0)
        return -1;
    config = read_blob(source, digest, err);
    return config ? finish(manifest, config, err) : -1;
}

/* How well a manifest of an index fits this machine: 0 not at all. */
static int fit(const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *architecture = json_string_value(json_object_get(platform, "architecture"));
    const char *system = json_string_value(json_object_get(platform, "os"));

    if (!platform)
        return 1;
    return architecture && system && strcmp(architecture, architecture_name()) == 0 &&
                   strcmp(system, "linux") == 0
               ? 2
               : 0;
}

/* The one for this machine. */
static int choose(const struct json_place *manifests,
                  char ret_digest[static WIRE_IMAGE_DIGEST_LENGTH + 1], struct error *err)
{
    size_t count = json_array_size(manifests->value), best = 0, found = 0;
    struct json_place place;
    const char *text;
    int best_fit = 0;

    for (size_t i = 0; i < count; i++) {
        int fits = fit(json_array_get(manifests->value, i));

        found = fits > best_fit ? 1 : found + (fits && fits == best_fit);
        best = fits > best_fit ? i : best;
        best_fit = fits > best_fit ? fits : best_fit;
    }
    if (!found)
        return error_set(err, ERR_INVALID, 0, "the image has nothing for linux/%s",
                         architecture_name());
    if (found > 1 && best_fit == 1)
        return error_set(err, ERR_INVALID, 0, "there are %zu images in it; one is wanted", found);
    if (json_item_object(manifests, best, &place, err) < 0 ||
        json_field_text(&place, "digest", JSON_REQUIRED, TEXT_MAX, &text, err) < 0)
        return -1;
    return parse_digest(text, ret_digest, err);
}

static int read_oci(struct image_source *source, struct image_manifest *manifest, struct error *err)
{
    AUTO(json) json_t *document = read_document(source, "index.json", NULL, err);

    for (int depth = 0; document; depth++) {
        char digest[WIRE_IMAGE_DIGEST_LENGTH + 1];
        struct json_place place, manifests;
        json_t *next;

        if (json_root_object(document, &place, err) < 0)
            return -1;
        if (!json_object_get(document, "manifests"))
            return read_oci_manifest(source, &place, manifest, err);
        if (depth == INDEX_DEPTH)
            return wrong(err, "an index leads to another without an end");
        if (json_field_array(&place, "manifests", JSON_REQUIRED, &manifests, err) < 0 ||
            choose(&manifests, digest, err) < 0)
            return -1;
        next = read_blob(source, digest, err);
        json_decref(document);
        document = next;
    }
    return -1;
}

/* --- docker save ---------------------------------------------------------------------------- */

static int read_docker(struct image_source *source, struct image_manifest *manifest,
                       struct error *err)
{
    AUTO(json) json_t *documents = read_document(source, "manifest.json", NULL, err);
    AUTO(json) json_t *config = NULL;
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_place list = {.value = documents}, place;
    struct json_texts layers = {.count = 0};
    const char *name;

    if (!documents)
        return -1;
    if (!json_is_array(documents) || json_array_size(documents) != 1)
        return error_set(err, ERR_INVALID, 0, "there are %zu images in it; one is wanted",
                         json_array_size(documents));
    if (json_item_object(&list, 0, &place, err) < 0 ||
        json_field_text(&place, "Config", JSON_REQUIRED, IMAGE_FILE_NAME_MAX, &name, err) < 0 ||
        json_field_texts(&place, "Layers", JSON_REQUIRED, WIRE_IMAGE_LAYERS_MAX,
                         IMAGE_FILE_NAME_MAX, &pool, &layers, err) < 0)
        return -1;
    manifest->layer_count = layers.count;
    manifest->layers = mem_alloc_array(layers.count + 1, sizeof(*manifest->layers));
    for (size_t i = 0; i < layers.count; i++)
        (void) snprintf(manifest->layers[i].name, sizeof(manifest->layers[i].name), "%s",
                        layers.items[i]);
    config = read_document(source, name, NULL, err);
    return config ? finish(manifest, config, err) : -1;
}

int image_manifest_read(struct image_source *source, struct image_manifest *ret_manifest,
                        struct error *err)
{
    AUTO(image_manifest) struct image_manifest manifest = IMAGE_MANIFEST_INIT;
    struct image_place place;
    int r;

    if (image_source_find(source, "index.json", &place, NULL) == 0)
        r = read_oci(source, &manifest, err);
    else if (image_source_find(source, "manifest.json", &place, NULL) == 0)
        r = read_docker(source, &manifest, err);
    else
        r = error_set(err, ERR_INVALID, 0,
                      "this is no image: it has neither index.json nor manifest.json");
    if (r < 0)
        return -1;
    *ret_manifest = manifest;
    manifest = (struct image_manifest) IMAGE_MANIFEST_INIT;
    return 0;
}
