/* The name of an image in a registry, as people write it:
 *
 *     debian                            registry-1.docker.io, library/debian, tag latest
 *     debian:12, someone/tool           likewise: without a host it is Docker's registry
 *     ghcr.io/org/tool:1.2              a host is known by its '.' or ':', or is "localhost"
 *     localhost:5000/tool@sha256:...    a digest names one content for ever; it wins over a tag
 *     https://127.0.0.1:5000/tool       how to speak to it, where that differs from the rule
 *
 * The rule: https, but plain http to this machine itself (localhost, 127.x.x.x, ::1). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/url.h"

#define REGISTRY_REFERENCE_MAX 1024
#define REGISTRY_PATH_MAX      255
#define REGISTRY_TAG_MAX       128
#define REGISTRY_DIGEST_LENGTH 64 /* of a SHA-256 in hex */

struct registry_reference {
    char authority[URL_HOST_MAX + 16]; /* host[:port], an IPv6 address in brackets */
    char path[REGISTRY_PATH_MAX + 1];
    char tag[REGISTRY_TAG_MAX + 1];          /* "latest" when there was neither */
    char digest[REGISTRY_DIGEST_LENGTH + 1]; /* "" when there was none */
    bool is_loopback;                        /* the host is this machine */
    bool is_plain;                           /* http */
    bool has_scheme;                         /* which was written, not the rule's */
};

/* Returns 0, or -1 with ERR_INVALID. */
int registry_reference_parse(const char *text, struct registry_reference *ret_reference,
                             struct error *err);

/* Whether a host (as url_host_parse leaves it) is this machine, whatever its port. */
bool registry_host_is_loopback(const struct url_host *host);

/* Whether `text` is 64 lower-case hex digits. */
bool registry_is_digest(const char *text);
