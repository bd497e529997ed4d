#include "registry/registry_reference.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"

#define DOCKER_PREFIX "library/"
#define DIGEST_PREFIX "sha256:"
#define TAG_DEFAULT   "latest"

/* Docker's registry answers under a name that nobody writes. */
static const char docker_host[] = "registry-1.docker.io";
static const char *const docker_names[] = {"docker.io", "index.docker.io"};

static const struct {
    const char *text;
    bool is_plain;
} schemes[] = {{"https://", false}, {"http://", true}};

static int wrong(struct error *err, const char *why)
{
    return error_set(err, ERR_INVALID, 0, "this is no name of an image: %s", why);
}

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_word(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

bool registry_is_digest(const char *text)
{
    return strlen(text) == REGISTRY_DIGEST_LENGTH &&
           strspn(text, "0123456789abcdef") == REGISTRY_DIGEST_LENGTH;
}

bool registry_host_is_loopback(const struct url_host *host)
{
    return strcmp(host->name, "localhost") == 0 ||
           (host->kind == URL_HOST_IPV4 && strncmp(host->name, "127.", 4) == 0) ||
           (host->kind == URL_HOST_IPV6 && strcmp(host->name, "::1") == 0);
}

/* --- path and tag ---------------------------------------------------------------------------- */

/* What stands between letters and digits of a component: '.', '_', "__", or any number of '-'. */
static size_t separator_length(const char *at)
{
    size_t dashes = strspn(at, "-");

    if (dashes)
        return dashes;
    if (strncmp(at, "__", 2) == 0)
        return 2;
    return *at == '.' || *at == '_';
}

static bool path_is_valid(const char *at)
{
    for (bool needs_word = true;; needs_word = true) {
        size_t separator;

        for (; is_lower_or_digit(*at); at++)
            needs_word = false;
        if (needs_word)
            return false;
        if (!*at)
            return true;
        separator = *at == '/' ? 1 : separator_length(at);
        if (!separator)
            return false;
        at += separator;
    }
}

static bool tag_is_valid(const char *tag)
{
    if (!is_word(*tag) || strlen(tag) > REGISTRY_TAG_MAX)
        return false;
    for (; *tag; tag++) {
        if (!is_word(*tag) && *tag != '.' && *tag != '-')
            return false;
    }
    return true;
}

/* Cut tag and digest off the end of what follows the host. */
static int take_version(char *rest, struct registry_reference *reference, struct error *err)
{
    char *at = strchr(rest, '@'), *colon;

    if (at) {
        *at++ = '\0';
        if (strncmp(at, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) != 0 ||
            !registry_is_digest(at + strlen(DIGEST_PREFIX)))
            return wrong(err, "behind '@' stands 'sha256:' and 64 digits");
        memcpy(reference->digest, at + strlen(DIGEST_PREFIX), sizeof(reference->digest));
    }
    colon = strchr(rest, ':');
    if (colon) {
        *colon++ = '\0';
        if (!tag_is_valid(colon))
            return wrong(err, "a tag has letters, digits and '_', '.', '-', at most 128");
    }
    (void) snprintf(reference->tag, sizeof(reference->tag), "%s", colon ? colon : TAG_DEFAULT);
    return 0;
}

/* --- host ------------------------------------------------------------------------------------ */

static int take_host(const char *text, size_t length, struct registry_reference *reference,
                     struct error *err)
{
    struct url_host host;

    if (length >= sizeof(reference->authority) || url_host_parse(text, length, &host, NULL) < 0)
        return wrong(err, "its host is none");
    memcpy(reference->authority, text, length);
    reference->authority[length] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(docker_names); i++) {
        if (strcmp(host.name, docker_names[i]) == 0 && !host.port)
            (void) snprintf(reference->authority, sizeof(reference->authority), "%s", docker_host);
    }
    reference->is_loopback = registry_host_is_loopback(&host);
    return 0;
}

/* Whether the first component is a host. "tool" and "someone/tool" have none. */
static bool names_host(const char *text, size_t length)
{
    return memchr(text, '.', length) || memchr(text, ':', length) ||
           (length == strlen("localhost") && strncmp(text, "localhost", length) == 0);
}

/* Returns what follows the host, or NULL with `err`. */
static const char *take_place(const char *text, struct registry_reference *reference,
                              struct error *err)
{
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t) (slash - text) : 0;

    if (slash && (reference->has_scheme || names_host(text, length)))
        return take_host(text, length, reference, err) < 0 ? NULL : slash + 1;
    if (reference->has_scheme) {
        (void) wrong(err, "behind the host nothing follows");
        return NULL;
    }
    (void) snprintf(reference->authority, sizeof(reference->authority), "%s", docker_host);
    return text;
}

static int take_path(const char *rest, struct registry_reference *reference, struct error *err)
{
    bool is_short = strcmp(reference->authority, docker_host) == 0 && !strchr(rest, '/');
    int length = snprintf(reference->path, sizeof(reference->path), "%s%s",
                          is_short ? DOCKER_PREFIX : "", rest);

    if (length < 0 || (size_t) length >= sizeof(reference->path))
        return wrong(err, "it is too long");
    if (!path_is_valid(reference->path))
        return wrong(err, "its path has lower-case letters and digits, with one of '.', '_', '-' "
                          "or '/' between them");
    return 0;
}

int registry_reference_parse(const char *text, struct registry_reference *ret_reference,
                             struct error *err)
{
    struct registry_reference reference = {.has_scheme = false};
    char rest[REGISTRY_REFERENCE_MAX + 1];
    bool says_plain = false;

    if (strlen(text) > REGISTRY_REFERENCE_MAX)
        return wrong(err, "it is too long");
    for (size_t i = 0; i < ARRAY_COUNT(schemes) && !reference.has_scheme; i++) {
        reference.has_scheme = strncmp(text, schemes[i].text, strlen(schemes[i].text)) == 0;
        says_plain = reference.has_scheme && schemes[i].is_plain;
        text += reference.has_scheme ? strlen(schemes[i].text) : 0;
    }
    text = take_place(text, &reference, err);
    if (!text)
        return -1;
    reference.is_plain = reference.has_scheme ? says_plain : reference.is_loopback;
    (void) snprintf(rest, sizeof(rest), "%s", text);
    if (take_version(rest, &reference, err) < 0 || take_path(rest, &reference, err) < 0)
        return -1;
    *ret_reference = reference;
    return 0;
}
