/* Any text as a URL: the password never survives in what git gets, in a folder's name, or in a
 * message that repeats the URL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/git/git_url.h"

static void check(bool promise)
{
    if (!promise)
        abort();
}

/* A password that stands elsewhere in the URL too is no secret of ours to keep. */
static bool is_telling(const char *text, const char *secret)
{
    const char *at = strlen(secret) >= 8 ? strstr(text, secret) : NULL;

    return at && !strstr(at + 1, secret);
}

/* Each text by itself: where two meet, anything may come to be. */
static void check_redacted(const struct redaction *redaction, const char *text, const char *secret)
{
    AUTO(text) struct text out = TEXT_INIT(8 * GIT_URL_MAX);

    redaction_append(redaction, &out, text, strlen(text));
    if (strlen(secret) >= REDACTION_SECRET_MIN && secret[strspn(secret, "*")])
        check(!strstr(text_string(&out), secret));
}

/* A folder's name is made of the path: unescaped, with '-' for what is no letter, and with a word
 * of ours when nothing is left. By these three it may spell the password by chance. */
static bool may_spell(const struct git_url *url, const char *secret)
{
    return strchr(url->clean, '%') || strchr(secret, '-') || strstr("repository", secret);
}

static void check_secret(const struct git_url *url, struct pool *pool, const char *text)
{
    const char *secret = url->raw_password[0] ? url->raw_password : url->raw_user;
    struct redaction redaction = {.count = 0};

    git_url_redact(url, pool, &redaction);
    check_redacted(&redaction, text, secret);
    check_redacted(&redaction, secret, secret);
    if (!is_telling(text, secret))
        return;
    check(!strstr(url->clean, secret));
    check(!strstr(url->origin, secret));
    if (!may_spell(url, secret))
        check(!strstr(url->name, secret));
}

static void check_parts(const struct git_url *url)
{
    check(url->clean[0] && url->clean[0] != '-');
    check(url->name[0] && !strchr(url->name, '/') && strlen(url->name) <= GIT_URL_NAME_MAX);
    check(strcmp(url->name, ".") != 0 && strcmp(url->name, "..") != 0);
    check(!url->user == !url->password && !url->user == !url->raw_user);
    for (const char *at = url->clean; *at; at++)
        check((unsigned char) *at > ' ');
    if (url->transport == GIT_TRANSPORT_HTTP)
        check(strncmp(url->clean, url->origin, strlen(url->origin)) == 0 &&
              !strchr(url->origin, '@'));
    else
        check(!url->user);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *text = pool_copy_bytes(&pool, data, size), *reason = NULL;
    struct git_url url, again;

    if (git_url_parse(text, &pool, &url, &reason) < 0) {
        check(reason && reason[0]);
        return 0;
    }
    check_parts(&url);
    if (url.user)
        check_secret(&url, &pool, text);
    /* What git gets is a URL of the same place, and has nothing more to hide. */
    check(git_url_parse(url.clean, &pool, &again, &reason) == 0);
    check(!again.user && strcmp(again.clean, url.clean) == 0 && strcmp(again.name, url.name) == 0);
    return 0;
}
