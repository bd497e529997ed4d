#include "agent/git/git_url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/encoding/encode.h"
#include "net/url.h"

#define NAME_FALLBACK "repository"

static const struct scheme {
    const char *text;
    enum git_transport transport;
} schemes[] = {
    {"https://", GIT_TRANSPORT_HTTP},
    {"http://", GIT_TRANSPORT_HTTP},
    {"ssh://", GIT_TRANSPORT_SSH},
    {"file://", GIT_TRANSPORT_FILE},
};

static int git_url_refuse(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return -1;
}

/* --- parts ----------------------------------------------------------------------------------- */

static bool git_url_is_printable(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char) *text <= ' ' || *text == 0x7f)
            return false;
    }
    return true;
}

/* A user or host name that is no option and means nothing to a shell. */
static bool is_plain_name(struct url_span span)
{
    if (!span.length || span.text[0] == '-')
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (!isalnum((unsigned char) span.text[i]) && !strchr("._-", span.text[i]))
            return false;
    }
    return true;
}

static bool is_port(struct url_span span)
{
    if (span.length > 5)
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (!isdigit((unsigned char) span.text[i]))
            return false;
    }
    return true;
}

/* "[::1]:8080" */
static bool is_bracketed_host(struct url_span span)
{
    const char *end = memchr(span.text, ']', span.length);
    size_t inside = end ? (size_t) (end - span.text) : 0;

    if (inside < 2 || strspn(span.text + 1, "0123456789abcdefABCDEF:.") != inside - 1)
        return false;
    if (inside + 1 == span.length)
        return true;
    return end[1] == ':' &&
           is_port((struct url_span){.text = end + 2, .length = span.length - inside - 2});
}

static bool is_host(struct url_span span)
{
    struct url_span rest = span, name;

    if (span.length && span.text[0] == '[')
        return is_bracketed_host(span);
    name = url_span_cut(&rest, ':');
    return is_plain_name(name) && (!rest.text || is_port(rest));
}

/* --- the folder's name ------------------------------------------------------------------------ */

static void clean_name(char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char) *name;

        if (c < 0x80 && !isalnum(c) && !strchr("._-+~", c))
            *name = '-';
    }
}

static const char *repository_name(const char *path, struct pool *pool)
{
    size_t end = strlen(path), start;
    const char *decoded;
    char *name;

    while (end && path[end - 1] == '/')
        end--;
    if (end > 4 && strncmp(path + end - 4, ".git", 4) == 0 && path[end - 5] != '/')
        end -= 4;
    for (start = end; start && path[start - 1] != '/' && path[start - 1] != ':';)
        start--;
    if (url_decode_copy(url_span(path + start, end - start), URL_DECODE_PATH, pool, &decoded) < 0)
        decoded = pool_copy_bytes(pool, path + start, end - start);
    name = pool_copy_bytes(pool, decoded, strnlen(decoded, GIT_URL_NAME_MAX));
    clean_name(name);
    /* Also "..", which would be a step up, and ".git", which no work tree may be called. */
    if (!name[strspn(name, ".-")] || strcasecmp(name, ".git") == 0)
        return NAME_FALLBACK;
    return name;
}

/* --- the forms -------------------------------------------------------------------------------- */

static bool decode_secret(struct url_span raw, struct pool *pool, const char **ret_text)
{
    if (url_decode_copy(raw, URL_DECODE_PATH, pool, ret_text) < 0)
        return false;
    for (const char *at = *ret_text; *at; at++) {
        if (iscntrl((unsigned char) *at)) /* a line of its own for the credential helper */
            return false;
    }
    return true;
}

static int parse_http(struct git_url *url, struct url_span user, struct pool *pool,
                      const char **ret_reason)
{
    struct url_span password = user;

    if (!user.text)
        return 0;
    user = url_span_cut(&password, ':');
    if (!password.text)
        password = url_span("", 0);
    if (!decode_secret(user, pool, &url->user) || !decode_secret(password, pool, &url->password))
        return git_url_refuse(ret_reason, "the user name or password is not escaped correctly");
    url->raw_user = pool_copy_bytes(pool, user.text, user.length);
    url->raw_password = pool_copy_bytes(pool, password.text, password.length);
    return 0;
}

static int parse_authority(struct git_url *url, struct url_span user, struct url_span host,
                           struct pool *pool, const char **ret_reason)
{
    if (url->transport == GIT_TRANSPORT_FILE)
        return !user.text && (!host.length || url_span_equals(host, "localhost"))
                   ? 0
                   : git_url_refuse(ret_reason, "a file URL names no other host");
    if (!is_host(host))
        return git_url_refuse(ret_reason, "the host is missing or not valid");
    if (url->transport == GIT_TRANSPORT_HTTP)
        return parse_http(url, user, pool, ret_reason);
    if (user.text && memchr(user.text, ':', user.length))
        return git_url_refuse(ret_reason, "ssh takes no password from a URL: use a key");
    if (user.text && !is_plain_name(user))
        return git_url_refuse(ret_reason, "the user name is not valid");
    return 0;
}

static int parse_scheme(struct git_url *url, const struct scheme *scheme, const char *text,
                        struct pool *pool, const char **ret_reason)
{
    const char *authority = text + strlen(scheme->text);
    const char *path = authority + strcspn(authority, "/?#");
    const char *host = authority, *shown;
    struct url_span user = {.text = NULL};

    url->transport = scheme->transport;
    for (const char *at = authority; at < path; at++) {
        if (*at == '@')
            host = at + 1;
    }
    if (strpbrk(path, "?#"))
        return git_url_refuse(ret_reason,
                              "a query or fragment is not taken: it would be seen by everybody");
    if (path[0] != '/' || !path[strspn(path, "/")])
        return git_url_refuse(ret_reason, "the path of the repository is missing");
    if (host != authority)
        user = url_span(authority, (size_t) (host - authority) - 1);
    if (parse_authority(url, user, url_span(host, (size_t) (path - host)), pool, ret_reason) < 0)
        return -1;
    /* ssh needs the user; for http it is one half of the credentials. */
    shown = url->transport == GIT_TRANSPORT_HTTP ? host : authority;
    url->clean = pool_format(pool, "%s%s", scheme->text, shown);
    if (url->transport == GIT_TRANSPORT_HTTP)
        url->origin = pool_format(pool, "%s%.*s", scheme->text, (int) (path - host), host);
    url->name = repository_name(path, pool);
    return 0;
}

/* "git@host:path" */
static int parse_short(struct git_url *url, const char *text, struct pool *pool,
                       const char **ret_reason)
{
    struct url_span path = url_span(text, strlen(text)), host, user;

    host = url_span_cut(&path, ':');
    user = url_span_cut(&host, '@');
    if (!path.text || !host.text || !is_plain_name(user) || !is_plain_name(host))
        return git_url_refuse(ret_reason,
                              "expected https://, http://, ssh://, file:// or user@host:path");
    if (!path.length || path.text[0] == '-' || path.text[0] == ':' ||
        memchr(path.text, '@', path.length))
        return git_url_refuse(ret_reason, "the path of the repository is not valid");
    url->transport = GIT_TRANSPORT_SSH;
    url->clean = pool_copy_text(pool, text);
    url->name = repository_name(path.text, pool);
    return 0;
}

int git_url_parse(const char *text, struct pool *pool, struct git_url *ret_url,
                  const char **ret_reason)
{
    struct git_url url = {.clean = NULL};
    int r = -1;

    if (!text[0])
        return git_url_refuse(ret_reason, "it is empty");
    if (strlen(text) > GIT_URL_MAX)
        return git_url_refuse(ret_reason, "it is too long");
    if (text[0] == '-')
        return git_url_refuse(ret_reason, "it must not begin with '-'");
    if (!git_url_is_printable(text))
        return git_url_refuse(ret_reason, "it holds spaces or control characters");
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        if (strncasecmp(text, schemes[i].text, strlen(schemes[i].text)) == 0) {
            r = parse_scheme(&url, &schemes[i], text, pool, ret_reason);
            break;
        }
        if (i + 1 == ARRAY_COUNT(schemes))
            r = parse_short(&url, text, pool, ret_reason);
    }
    if (r == 0)
        *ret_url = url;
    return r;
}

/* --- secrets --------------------------------------------------------------------------------- */

static const char *basic_header(const struct git_url *url, struct pool *pool)
{
    const char *both = pool_format(pool, "%s:%s", url->user, url->password);
    char *text = pool_alloc(pool, BASE64_TEXT_SIZE(strlen(both)));

    (void) base64_encode(BASE64_STANDARD, both, strlen(both), text);
    return text;
}

/* A user without a password is a token; with one it is a name that may be "git" or "admin". */
void git_url_redact(const struct git_url *url, struct pool *pool, struct redaction *redaction)
{
    if (!url->user)
        return;
    redaction_add(redaction, basic_header(url, pool));
    redaction_add(redaction, url->raw_password[0] ? url->raw_password : url->raw_user);
    redaction_add(redaction, url->password[0] ? url->password : url->user);
}
