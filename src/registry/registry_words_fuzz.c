/* Names of images and WWW-Authenticate headers from arbitrary text. Beyond not crashing: a name
 * that is taken is made of parts that a URL can have as they are, and written out in full it is
 * taken again and means the same; what a challenge says has no bytes that it was not given. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "registry/registry_challenge.h"
#include "registry/registry_reference.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reference(const char *text)
{
    struct registry_reference reference, again;
    struct error err = ERROR_INIT;
    char full[2 * REGISTRY_REFERENCE_MAX], url[2 * REGISTRY_REFERENCE_MAX];
    struct url parsed;

    if (registry_reference_parse(text, &reference, &err) < 0) {
        HOLDS(err.code == ERR_INVALID && err.message[0]);
        return;
    }
    HOLDS(!reference.digest[0] || registry_is_digest(reference.digest));
    (void) snprintf(url, sizeof(url), "http://%s/v2/%s/manifests/%s", reference.authority,
                    reference.path, reference.tag);
    HOLDS(url_parse(url, strlen(url), &parsed, &err) == 0 && !parsed.query.text);
    HOLDS(!strstr(reference.path, "..") && !strstr(reference.path, "//"));
    (void) snprintf(full, sizeof(full), "%s%s/%s:%s%s%s",
                    reference.is_plain ? "http://" : "https://", reference.authority,
                    reference.path, reference.tag, reference.digest[0] ? "@sha256:" : "",
                    reference.digest);
    HOLDS(registry_reference_parse(full, &again, &err) == 0);
    HOLDS(again.has_scheme && again.is_plain == reference.is_plain &&
          again.is_loopback == reference.is_loopback);
    HOLDS(strcmp(again.authority, reference.authority) == 0 &&
          strcmp(again.path, reference.path) == 0 && strcmp(again.tag, reference.tag) == 0 &&
          strcmp(again.digest, reference.digest) == 0);
}

static void check_challenge(const char *text)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct registry_challenge challenge = REGISTRY_CHALLENGE_INIT;

    registry_challenge_read(text, &pool, &challenge);
    HOLDS(challenge.kind <= REGISTRY_CHALLENGE_BEARER);
    HOLDS(strlen(challenge.realm) + strlen(challenge.service) + strlen(challenge.scope) <=
          strlen(text));
    if (challenge.kind == REGISTRY_CHALLENGE_NONE)
        HOLDS(!*challenge.realm && !*challenge.service && !*challenge.scope);
    if (!strchr(text, '\\') && *challenge.realm)
        HOLDS(strstr(text, challenge.realm));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *text = mem_copy_bytes(data, size);

    check_reference(text);
    check_challenge(text);
    return 0;
}
