#include "registry/registry_challenge.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"

static const struct {
    const char *scheme;
    enum registry_challenge_kind kind;
} kinds[] = {
    {"basic", REGISTRY_CHALLENGE_BASIC},
    {"bearer", REGISTRY_CHALLENGE_BEARER},
};

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    {"realm", offsetof(struct registry_challenge, realm)},
    {"service", offsetof(struct registry_challenge, service)},
    {"scope", offsetof(struct registry_challenge, scope)},
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* RFC 9110: what names are made of. */
static size_t token_length(const char *at)
{
    return strspn(at, "!#$%&'*+-.^_`|~0123456789"
                      "abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at))
        at++;
    return at;
}

static const char *skip_commas(const char *at)
{
    while (is_blank(*at) || *at == ',')
        at++;
    return at;
}

static enum registry_challenge_kind kind_of(const char *scheme, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strlen(kinds[i].scheme) == length && strncasecmp(scheme, kinds[i].scheme, length) == 0)
            return kinds[i].kind;
    }
    return REGISTRY_CHALLENGE_NONE;
}

/* A quoted text or a token; NULL when it is neither. Returns what follows. */
static const char *read_value(const char *at, struct pool *pool, const char **ret_value)
{
    size_t length;
    char *text, *end;

    if (*at != '"') {
        length = token_length(at);
        *ret_value = pool_copy_bytes(pool, at, length);
        return length ? at + length : NULL;
    }
    text = end = pool_copy_text(pool, ++at);
    for (; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        *end++ = *at;
    }
    *end = '\0';
    *ret_value = text;
    return *at == '"' ? at + 1 : NULL;
}

static void set_field(struct registry_challenge *challenge, const char *name, size_t length,
                      const char *value)
{
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (strlen(fields[i].name) == length && strncasecmp(name, fields[i].name, length) == 0)
            memcpy((char *) challenge + fields[i].offset, &value, sizeof(value));
    }
}

/* All of "name=value, name=value" at `at`. Returns what follows: another scheme, or the end; NULL
 * when it is malformed. */
static const char *read_parameters(const char *at, struct pool *pool,
                                   struct registry_challenge *challenge)
{
    for (;;) {
        size_t length = token_length(at);
        const char *equals = skip_blanks(at + length), *name = at, *value;

        if (!length || *equals != '=')
            return at;
        at = read_value(skip_blanks(equals + 1), pool, &value);
        if (!at)
            return NULL;
        set_field(challenge, name, length, value);
        at = skip_commas(at);
    }
}

void registry_challenge_read(const char *value, struct pool *pool,
                             struct registry_challenge *challenge)
{
    const char *at = skip_commas(value);

    while (at && *at) {
        struct registry_challenge next = REGISTRY_CHALLENGE_INIT;
        size_t length = token_length(at);

        if (!length)
            return;
        next.kind = kind_of(at, length);
        at = read_parameters(skip_commas(at + length), pool, &next);
        if (at && next.kind > challenge->kind)
            *challenge = next;
    }
}
