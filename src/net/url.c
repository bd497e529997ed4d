#include "net/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/number.h"

#define LABEL_MAX 63

static const struct {
    const char *text;
    uint16_t port;
    bool secure;
} schemes[URL_SCHEME_COUNT] = {
    [URL_HTTP] = {"http", 80, false}, [URL_HTTPS] = {"https", 443, true},
    [URL_WS] = {"ws", 80, false},     [URL_WSS] = {"wss", 443, true},
    [URL_UNIX] = {"unix", 0, false},
};

enum character_class {
    IN_HOST = 1,  /* letters, digits, '-', '.', and '_', which container names use */
    IN_PATH = 2,  /* RFC 3986 pchar, '/', and [ ] | ^, which browsers leave alone */
    IN_QUERY = 4, /* IN_PATH and ? \ ` { } as well */
};

#define HOST_TOO (IN_HOST | IN_PATH | IN_QUERY)
#define PATH_TOO (IN_PATH | IN_QUERY)

static const unsigned char classes[256] = {
    ['a' ... 'z'] = HOST_TOO, ['A' ... 'Z'] = HOST_TOO, ['0' ... '9'] = HOST_TOO, ['-'] = HOST_TOO,
    ['.'] = HOST_TOO,         ['_'] = HOST_TOO,         ['~'] = PATH_TOO,         ['!'] = PATH_TOO,
    ['$'] = PATH_TOO,         ['&'] = PATH_TOO,         ['\''] = PATH_TOO,        ['('] = PATH_TOO,
    [')'] = PATH_TOO,         ['*'] = PATH_TOO,         ['+'] = PATH_TOO,         [','] = PATH_TOO,
    [';'] = PATH_TOO,         ['='] = PATH_TOO,         [':'] = PATH_TOO,         ['@'] = PATH_TOO,
    ['/'] = PATH_TOO,         ['%'] = PATH_TOO,         ['['] = PATH_TOO,         [']'] = PATH_TOO,
    ['|'] = PATH_TOO,         ['^'] = PATH_TOO,         ['?'] = IN_QUERY,         ['\\'] = IN_QUERY,
    ['`'] = IN_QUERY,         ['{'] = IN_QUERY,         ['}'] = IN_QUERY,
};

struct authority {
    enum url_host_kind kind;
    struct url_span host; /* without brackets and trailing dot */
    uint16_t port;        /* 0: none was given */
};

struct url_span url_span_cut(struct url_span *rest, char mark)
{
    const char *at = rest->length ? memchr(rest->text, mark, rest->length) : NULL;
    struct url_span before = *rest;

    if (!at) {
        *rest = url_span(NULL, 0);
        return before;
    }
    before.length = (size_t) (at - before.text);
    *rest = url_span(at + 1, rest->length - before.length - 1);
    return before;
}

bool url_span_equals(struct url_span span, const char *text)
{
    return span.text && span.length == strlen(text) && memcmp(span.text, text, span.length) == 0;
}

const char *url_scheme_text(enum url_scheme scheme)
{
    return (unsigned int) scheme < URL_SCHEME_COUNT ? schemes[scheme].text : "?";
}

bool url_scheme_is_secure(enum url_scheme scheme)
{
    return (unsigned int) scheme < URL_SCHEME_COUNT && schemes[scheme].secure;
}

static bool all_in(struct url_span span, enum character_class wanted)
{
    for (size_t i = 0; i < span.length; i++) {
        if (!(classes[(unsigned char) span.text[i]] & wanted))
            return false;
    }
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

static int parse_port(struct url_span digits, uint16_t *ret_port, struct error *err)
{
    uint64_t port;

    if (!digits.length || digits.text[0] == '0' ||
        number_parse_digits(digits.text, digits.length, UINT16_MAX, &port) < 0)
        return error_set(err, ERR_INVALID, 0, "the port must be a number from 1 to 65535");
    *ret_port = (uint16_t) port;
    return 0;
}

static bool is_address(int family, struct url_span host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN];

    if (host.length >= sizeof(text))
        return false;
    memcpy(text, host.text, host.length);
    text[host.length] = '\0';
    return inet_pton(family, text, address) == 1;
}

static bool is_hex_digit(char c)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

/* Resolvers read a last label like "1" or "0x7f" as part of an IPv4 address in one of its old
 * forms. Such a host must be a plain dotted quad, or rules on names would miss it. */
static bool label_is_numeric(struct url_span label)
{
    size_t i = 0;

    if (label.length >= 2 && label.text[0] == '0' && lower(label.text[1]) == 'x') {
        for (i = 2; i < label.length && is_hex_digit(label.text[i]); i++)
            ;
        return i == label.length;
    }
    while (i < label.length && is_digit(label.text[i]))
        i++;
    return i == label.length;
}

static int check_name(struct url_span host, enum url_host_kind *ret_kind, struct error *err)
{
    struct url_span rest = host, label = url_span(NULL, 0);

    if (host.length < 1 || host.length > URL_HOST_MAX)
        return error_set(err, ERR_INVALID, 0, "the host must have 1 to %d characters",
                         URL_HOST_MAX);
    if (!all_in(host, IN_HOST))
        return error_set(err, ERR_INVALID, 0, "the host has a character that hosts cannot have");
    while (rest.text) {
        label = url_span_cut(&rest, '.');
        if (label.length < 1 || label.length > LABEL_MAX)
            return error_set(err, ERR_INVALID, 0,
                             "each label of the host must have 1 to %d "
                             "characters",
                             LABEL_MAX);
    }
    *ret_kind = URL_HOST_NAME;
    if (!label_is_numeric(label))
        return 0;
    if (!is_address(AF_INET, host))
        return error_set(err, ERR_INVALID, 0, "an IPv4 host must be four plain decimal numbers");
    *ret_kind = URL_HOST_IPV4;
    return 0;
}

static int parse_bracketed(struct url_span *rest, struct authority *result, struct error *err)
{
    struct url_span inside;

    *rest = url_span(rest->text + 1, rest->length - 1);
    inside = url_span_cut(rest, ']');
    if (!rest->text || !is_address(AF_INET6, inside))
        return error_set(err, ERR_INVALID, 0, "the host in brackets is not an IPv6 address");
    result->host = inside;
    result->kind = URL_HOST_IPV6;
    if (rest->length == 0) {
        *rest = url_span(NULL, 0);
        return 0;
    }
    if (rest->text[0] != ':')
        return error_set(err, ERR_INVALID, 0, "only a port may follow the host in brackets");
    *rest = url_span(rest->text + 1, rest->length - 1);
    return 0;
}

static int parse_authority(struct url_span rest, struct authority *ret, struct error *err)
{
    struct authority result = {.port = 0};

    if (rest.length && memchr(rest.text, '@', rest.length))
        return error_set(err, ERR_INVALID, 0, "a user name or password before the host is refused");
    if (rest.length && rest.text[0] == '[') {
        if (parse_bracketed(&rest, &result, err) < 0)
            return -1;
    } else {
        result.host = url_span_cut(&rest, ':');
        if (result.host.length > 1 && result.host.text[result.host.length - 1] == '.')
            result.host.length--;
        if (check_name(result.host, &result.kind, err) < 0)
            return -1;
    }
    if (rest.text && parse_port(rest, &result.port, err) < 0)
        return -1;
    *ret = result;
    return 0;
}

/* Split "/path?query" and check its characters. An empty path stands for "/". */
static int parse_path_and_query(struct url_span rest, struct url_span *ret_path,
                                struct url_span *ret_query, struct error *err)
{
    struct url_span path = url_span_cut(&rest, '?');

    if (path.length == 0)
        path = url_span("/", 1);
    if (path.text[0] != '/')
        return error_set(err, ERR_INVALID, 0, "the path must begin with '/'");
    if (!all_in(path, IN_PATH))
        return error_set(err, ERR_INVALID, 0, "the path has a character that must be escaped");
    if (!url_escapes_are_sound(path))
        return error_set(err, ERR_INVALID, 0, "the path has a '%%' without two hex digits");
    if (!all_in(rest, IN_QUERY))
        return error_set(err, ERR_INVALID, 0, "the query has a character that must be escaped");
    *ret_path = path;
    *ret_query = rest;
    return 0;
}

static int parse_scheme(struct url_span *rest, enum url_scheme *ret_scheme, struct error *err)
{
    struct url_span name = url_span_cut(rest, ':');

    for (int i = 0; rest->text && i < URL_SCHEME_COUNT; i++) {
        if (name.length == strlen(schemes[i].text) &&
            strncasecmp(name.text, schemes[i].text, name.length) == 0) {
            *ret_scheme = (enum url_scheme) i;
            return 0;
        }
    }
    return error_set(err, ERR_INVALID, 0, "the URL must begin with http, https, ws, wss or unix");
}

/* Behind "//": the authority, up to the path or query, which stays in `rest`. */
static struct url_span cut_authority(struct url_span *rest)
{
    struct url_span authority = *rest;
    size_t end = 0;

    while (end < rest->length && rest->text[end] != '/' && rest->text[end] != '?')
        end++;
    authority.length = end;
    *rest = url_span(rest->text + end, rest->length - end);
    return authority;
}

static bool skip_slashes(struct url_span *rest)
{
    if (rest->length < 2 || memcmp(rest->text, "//", 2) != 0)
        return false;
    *rest = url_span(rest->text + 2, rest->length - 2);
    return true;
}

static int parse_unix(struct url_span rest, struct url *url, struct error *err)
{
    if (skip_slashes(&rest) && (rest.length == 0 || rest.text[0] != '/'))
        return error_set(err, ERR_INVALID, 0, "a unix URL has no host: write unix:///path");
    if (rest.length < 2)
        return error_set(err, ERR_INVALID, 0, "a unix URL needs the path of its socket");
    if (parse_path_and_query(rest, &url->path, &url->query, err) < 0)
        return -1;
    if (url->query.text)
        return error_set(err, ERR_INVALID, 0, "a unix URL has no query");
    return 0;
}

int url_parse(const char *text, size_t length, struct url *ret_url, struct error *err)
{
    struct url_span rest = url_span(text, length), whole;
    struct url url = {.port = 0};
    struct authority authority;

    if (length > URL_LENGTH_MAX)
        return error_set(err, ERR_URL_TOO_LONG, 0, "the URL has more than %zu bytes",
                         URL_LENGTH_MAX);
    whole = url_span_cut(&rest, '#');
    rest = whole;
    if (parse_scheme(&rest, &url.scheme, err) < 0)
        return -1;
    if (url.scheme == URL_UNIX) {
        if (parse_unix(rest, &url, err) < 0)
            return -1;
        *ret_url = url;
        return 0;
    }
    if (!skip_slashes(&rest))
        return error_set(err, ERR_INVALID, 0, "the URL needs '//' and a host");
    if (parse_authority(cut_authority(&rest), &authority, err) < 0 ||
        parse_path_and_query(rest, &url.path, &url.query, err) < 0)
        return -1;
    url.host = authority.host;
    url.host_kind = authority.kind;
    url.port = authority.port ? authority.port : schemes[url.scheme].port;
    *ret_url = url;
    return 0;
}

/* The comparable form of a host that was checked before. */
static void normalise_host(enum url_host_kind kind, struct url_span host, struct url_host *ret_host)
{
    ret_host->kind = kind;
    for (size_t i = 0; i < host.length; i++)
        ret_host->name[i] = lower(host.text[i]);
    ret_host->name[host.length] = '\0';
    if (kind == URL_HOST_IPV6) {
        struct in6_addr address;

        if (inet_pton(AF_INET6, ret_host->name, &address) == 1)
            (void) inet_ntop(AF_INET6, &address, ret_host->name, sizeof(ret_host->name));
    }
}

int url_host_parse(const char *text, size_t length, struct url_host *ret_host, struct error *err)
{
    struct authority authority;

    if (parse_authority(url_span(text, length), &authority, err) < 0)
        return -1;
    normalise_host(authority.kind, authority.host, ret_host);
    ret_host->port = authority.port;
    return 0;
}

void url_host_of(const struct url *url, struct url_host *ret_host)
{
    normalise_host(url->host_kind, url->host, ret_host);
    ret_host->port = url->port;
}

bool url_same_origin(const struct url *one, const struct url *other)
{
    struct url_host first, second;

    if (one->scheme != other->scheme || one->port != other->port)
        return false;
    url_host_of(one, &first);
    url_host_of(other, &second);
    return first.kind == second.kind && strcmp(first.name, second.name) == 0;
}

void url_write(const struct url *url, struct text *out)
{
    struct url_host host;

    text_append(out, url_scheme_text(url->scheme));
    text_append(out, "://");
    if (url->scheme != URL_UNIX) {
        url_host_of(url, &host);
        text_format(out, host.kind == URL_HOST_IPV6 ? "[%s]" : "%s", host.name);
        if (url->port != schemes[url->scheme].port)
            text_format(out, ":%u", (unsigned int) url->port);
    }
    text_append_bytes(out, url->path.text, url->path.length);
    if (url->query.text) {
        text_append_char(out, '?');
        text_append_bytes(out, url->query.text, url->query.length);
    }
}

/* The absolute form, which clients send to proxies and every server must take (RFC 9112 3.2.2). */
static int parse_absolute_target(struct url_span rest, struct url_target *target, struct error *err)
{
    struct authority ignored;
    enum url_scheme scheme;

    if (parse_scheme(&rest, &scheme, NULL) < 0 || (scheme != URL_HTTP && scheme != URL_HTTPS) ||
        !skip_slashes(&rest))
        return error_set(err, ERR_INVALID, 0,
                         "the request target must be a path, an http(s) URL or *");
    target->authority = cut_authority(&rest);
    if (parse_authority(target->authority, &ignored, err) < 0)
        return -1;
    target->form = URL_TARGET_ABSOLUTE;
    return parse_path_and_query(rest, &target->path, &target->query, err);
}

int url_target_parse(const char *text, size_t length, struct url_target *ret_target,
                     struct error *err)
{
    struct url_target target = {.form = URL_TARGET_ORIGIN};
    struct url_span whole = url_span(text, length);

    if (length > URL_LENGTH_MAX)
        return error_set(err, ERR_URL_TOO_LONG, 0, "the request target has more than %zu bytes",
                         URL_LENGTH_MAX);
    if (length == 0)
        return error_set(err, ERR_INVALID, 0, "the request target is empty");
    if (url_span_equals(whole, "*")) {
        target.form = URL_TARGET_ASTERISK;
        target.path = whole;
    } else if (text[0] == '/') {
        if (parse_path_and_query(whole, &target.path, &target.query, err) < 0)
            return -1;
    } else if (parse_absolute_target(whole, &target, err) < 0) {
        return -1;
    }
    *ret_target = target;
    return 0;
}

int url_target_connect(const char *text, size_t length, struct url_target *ret_target,
                       struct error *err)
{
    struct url_span whole = url_span(text, length);
    struct authority authority;

    if (parse_authority(whole, &authority, err) < 0)
        return -1;
    if (!authority.port)
        return error_set(err, ERR_INVALID, 0, "CONNECT needs a host and a port");
    *ret_target = (struct url_target){
        .form = URL_TARGET_AUTHORITY, .path = url_span("", 0), .authority = whole};
    return 0;
}
