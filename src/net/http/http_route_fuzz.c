/* Arbitrary methods and paths against a fixed table, beside a matcher that simply tries every row.
 * The input is METHOD, a blank, PATH. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "net/http/http_route.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())
#define SEGMENTS_MAX     (HTTP_SEGMENTS_MAX + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/"},
    {.method = "POST", .pattern = "/"},
    {.method = "GET", .pattern = "/a"},
    {.method = "GET", .pattern = "/a/"},
    {.method = "HEAD", .pattern = "/a/b"},
    {.method = "GET", .pattern = "/a/b"},
    {.method = "PUT", .pattern = "/a/{x}"},
    {.method = "GET", .pattern = "/a/{x}/c"},
    {.method = "GET", .pattern = "/a/b/d"},
    {.method = "DELETE", .pattern = "/{x}/b"},
    {.method = "GET", .pattern = "/{x}/{y}/{z}"},
    {.method = "GET", .pattern = "/f/{rest...}"},
    {.method = "PUT", .pattern = "/f/{rest...}"},
    {.method = "POST", .pattern = "/f/{name}"},
    {.method = "GET", .pattern = "/f/{x}/g/{rest...}"},
    {.method = "PATCH", .pattern = "/{rest...}"},
};

static const struct http_mount mount = {
    .name = "table", .routes = routes, .route_count = ARRAY_COUNT(routes)};

struct path {
    char *segments[SEGMENTS_MAX]; /* owned, decoded */
    struct url_span rests[SEGMENTS_MAX];
    size_t count;
    bool broken; /* an escape is, or there is a NUL */
};

static int digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int) ((at - digits) % 16) : -1;
}

/* Our own undoing of escapes; NULL when one is broken. */
static char *decode(const char *at, size_t length)
{
    char *out = calloc(1, length + 1), *to = out;
    const char *end = at + length;

    HOLDS(out);
    for (; at < end; at++, to++) {
        *to = *at;
        if (*at == '%' && end - at > 2 && digit(at[1]) >= 0 && digit(at[2]) >= 0) {
            *to = (char) (digit(at[1]) * 16 + digit(at[2]));
            at += 2;
        } else if (*at == '%') {
            *to = '\0';
        }
        if (!*to) {
            free(out);
            return NULL;
        }
    }
    return out;
}

static void split(const char *at, const char *end, struct path *path)
{
    while (at < end && path->count < SEGMENTS_MAX) {
        const char *start = ++at;

        while (at < end && *at != '/')
            at++;
        path->rests[path->count] = url_span(start, (size_t) (end - start));
        path->segments[path->count] = decode(start, (size_t) (at - start));
        path->broken |= !path->segments[path->count] && path->count < HTTP_SEGMENTS_MAX;
        path->count++;
    }
}

static void path_done(struct path *path)
{
    for (size_t i = 0; i < path->count; i++)
        free(path->segments[i]);
}

AUTO_DEFINE(path, struct path, path_done);

/* How a row fits: one letter per segment, 'a' for a literal, 'b' for {name}, 'c' for {name...}, so
 * that strcmp says which row is the more special. Returns false when it does not fit. */
static bool fit(const char *pattern, const struct path *path, char ret_order[SEGMENTS_MAX + 1])
{
    size_t depth = 0;

    for (; *pattern == '/'; depth++) {
        const char *segment = pattern + 1;
        size_t length = strcspn(segment, "/");

        pattern = segment + length;
        if (depth >= path->count)
            return false;
        if (*segment != '{') {
            if (strlen(path->segments[depth]) != length ||
                memcmp(path->segments[depth], segment, length) != 0)
                return false;
            ret_order[depth] = 'a';
        } else if (memcmp(segment + length - 4, "...}", 4) == 0) {
            ret_order[depth] = 'c';
            ret_order[depth + 1] = '\0';
            return true;
        } else if (!*path->segments[depth]) {
            return false;
        } else {
            ret_order[depth] = 'b';
        }
    }
    ret_order[depth] = '\0';
    return depth == path->count;
}

struct expectation {
    const struct http_route *route; /* NULL: none */
    bool known;                     /* some row fits the path */
};

static bool is_head_by_get(const struct http_route *route, const char *method)
{
    return strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0;
}

static struct expectation expect(const char *method, const struct path *path)
{
    struct expectation best = {.known = false};
    char best_order[SEGMENTS_MAX + 2] = "z", order[SEGMENTS_MAX + 2];

    for (size_t i = 0; i < ARRAY_COUNT(routes); i++) {
        bool same = strcmp(routes[i].method, method) == 0;

        if (!fit(routes[i].pattern, path, order))
            continue;
        best.known = true;
        if (!same && !is_head_by_get(&routes[i], method))
            continue;
        if (strcmp(order, best_order) < 0 || (strcmp(order, best_order) == 0 && same)) {
            memcpy(best_order, order, sizeof(order));
            best.route = &routes[i];
        }
    }
    return best;
}

static void check_parameters(const struct http_match *match, const struct path *path)
{
    const char *at = match->route->pattern;
    size_t seen = 0;

    for (size_t depth = 0; *at == '/'; depth++) {
        const char *segment = at + 1;
        size_t length = strcspn(segment, "/");
        const struct http_parameter *parameter = &match->parameters[seen];
        AUTO(free) char *rest = NULL;

        at = segment + length;
        if (*segment != '{')
            continue;
        HOLDS(seen++ < match->parameter_count);
        HOLDS(memcmp(parameter->name, segment + 1, parameter->name_length) == 0);
        if (segment[length - 2] != '.') {
            HOLDS(strcmp(parameter->value, path->segments[depth]) == 0);
            continue;
        }
        rest = decode(path->rests[depth].text, path->rests[depth].length);
        HOLDS(rest && strcmp(parameter->value, rest) == 0);
    }
    HOLDS(seen == match->parameter_count);
}

static void check(const struct http_router *router, const char *method, struct url_span raw)
{
    AUTO(path) struct path path = {.count = 0};
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error error = ERROR_INIT;
    const char *allowed = NULL;
    struct expectation expected;
    struct http_match match;
    int r = http_router_match(router, method, raw, &pool, &match, &allowed, &error);

    split(raw.text, raw.text + raw.length, &path);
    if (path.broken || path.count > HTTP_SEGMENTS_MAX) {
        HOLDS(r < 0 && (error.code == ERR_INVALID || error.code == ERR_NOT_FOUND));
        return;
    }
    expected = expect(method, &path);
    HOLDS((r == 0) == (expected.route != NULL));
    HOLDS((allowed != NULL) == (!expected.route && expected.known));
    if (r < 0) {
        HOLDS(error.code == (expected.known ? ERR_METHOD : ERR_NOT_FOUND));
        HOLDS((match.mount != NULL) == expected.known);
        return;
    }
    HOLDS(match.route == expected.route && match.mount == &mount);
    check_parameters(&match, &path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(http_router) struct http_router *router = http_router_new();
    AUTO(free) char *text = calloc(1, size + 1);
    char *blank;

    HOLDS(text);
    memcpy(text, data, size);
    blank = memchr(text, ' ', size);
    /* The server hands over only paths that url_target_parse took: a slash first, never a NUL. */
    if (!blank || blank[1] != '/' || size > 4096 || strlen(text) != size)
        return 0;
    *blank = '\0';
    HOLDS(http_router_mount(router, &mount, NULL) == 0);
    check(router, text, url_span(blank + 1, (size_t) (text + size - blank - 1)));
    return 0;
}
