/* Documents of a registry from arbitrary bytes. Beyond not crashing: an error has a reason; what is
 * taken has digests that are some, sizes within the limits, and tokens that a header can carry. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry_document.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_manifest(json_t *document)
{
    AUTO(registry_manifest) struct registry_manifest manifest = REGISTRY_MANIFEST_INIT;
    struct error err = ERROR_INIT;
    uint64_t total = 0;

    if (registry_manifest_read(document, &manifest, &err) < 0) {
        HOLDS(err.code != ERR_NONE && err.message[0]);
        return;
    }
    HOLDS(manifest.layer_count > 0 && manifest.layer_count <= REGISTRY_LAYERS_MAX);
    HOLDS(registry_is_digest(manifest.config.digest));
    for (size_t i = 0; i < manifest.layer_count; i++) {
        HOLDS(registry_is_digest(manifest.layers[i].digest));
        total += manifest.layers[i].size;
    }
    HOLDS(total <= REGISTRY_LAYER_MAX);
}

static void check_config(json_t *document)
{
    for (size_t count = 0; count < 4; count++) {
        AUTO(free) char(*digests)[REGISTRY_DIGEST_LENGTH + 1] = NULL;

        if (registry_config_layers(document, count, &digests, NULL) < 0)
            continue;
        for (size_t i = 0; i < count; i++)
            HOLDS(registry_is_digest(digests[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json) json_t *document = NULL;
    struct registry_blob blob;
    struct error err = ERROR_INIT;
    char why[REGISTRY_WHY_MAX];
    const char *token;

    registry_failure_read((const char *) data, size, why);
    for (const char *at = why; *at; at++)
        HOLDS(*at >= ' ' && *at <= '~');
    document = registry_document_read((const char *) data, size, &err);
    if (!document) {
        HOLDS(err.code != ERR_NONE && err.message[0]);
        return 0;
    }
    if (registry_document_is_index(document) && registry_index_choose(document, &blob, &err) == 0)
        HOLDS(registry_is_digest(blob.digest) && blob.size <= REGISTRY_DOCUMENT_MAX);
    check_manifest(document);
    check_config(document);
    if (registry_token_read(document, &token, &err) == 0)
        HOLDS(*token && strpbrk(token, " \r\n\t") == NULL);
    return 0;
}
