#include "net/http/http_route.h"

#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

/* A tree of segments: one node per distinct prefix of all patterns. A path visits each node at most
 * once, so matching is linear in the number of patterns whatever the path. */
struct route_row {
    struct route_row *next; /* owned: other methods at the same path */
    const struct http_mount *mount;
    const struct http_route *route;
};

struct route_node {
    struct route_node *sibling;  /* owned: next literal of the parent */
    struct route_node *literals; /* owned: children by name */
    struct route_node *any;      /* owned: the {name} child */
    struct route_row *rows;      /* owned: routes that end here */
    struct route_row *rest_rows; /* owned: routes that end here with {name...} */
    size_t name_length;
    char *name; /* owned: of a literal */
};

struct http_router {
    struct route_node root;
};

struct http_router *http_router_new(void)
{
    return mem_alloc(sizeof(struct http_router));
}

static void free_rows(struct route_row *row)
{
    while (row) {
        struct route_row *next = row->next;

        free(row);
        row = next;
    }
}

/* Recursion as deep as the longest pattern of our own tables. */
static void node_done(struct route_node *node)
{
    struct route_node *child = node->literals;

    while (child) {
        struct route_node *sibling = child->sibling;

        node_done(child);
        free(child);
        child = sibling;
    }
    if (node->any) {
        node_done(node->any);
        free(node->any);
    }
    free_rows(node->rows);
    free_rows(node->rest_rows);
    free(node->name);
}

void http_router_free(struct http_router *router)
{
    if (!router)
        return;
    node_done(&router->root);
    free(router);
}

static struct route_node *find_literal(const struct route_node *node, const char *name,
                                       size_t length)
{
    struct route_node *child = node->literals;

    while (child && (child->name_length != length || memcmp(child->name, name, length) != 0))
        child = child->sibling;
    return child;
}

static struct route_node *child_for_segment(struct route_node *node, const char *segment,
                                            size_t length)
{
    struct route_node *child;

    if (segment[0] == '{') {
        if (!node->any)
            node->any = mem_alloc(sizeof(*node->any));
        return node->any;
    }
    child = find_literal(node, segment, length);
    if (!child) {
        child = mem_alloc(sizeof(*child));
        child->name = mem_copy_bytes(segment, length);
        child->name_length = length;
        child->sibling = node->literals;
        node->literals = child;
    }
    return child;
}

static int add_row(struct route_row **rows, const struct http_mount *mount,
                   const struct http_route *route, struct error *err)
{
    struct route_row *row;

    for (row = *rows; row; row = row->next) {
        if (strcmp(row->route->method, route->method) == 0)
            return error_set(err, ERR_CONFLICT, 0, "route %s %s of %s is already taken by %s of %s",
                             route->method, route->pattern, mount->name, row->route->pattern,
                             row->mount->name);
    }
    row = mem_alloc(sizeof(*row));
    row->mount = mount;
    row->route = route;
    row->next = *rows;
    *rows = row;
    return 0;
}

static bool is_parameter(const char *segment, size_t length)
{
    return length > 2 && segment[0] == '{' && segment[length - 1] == '}' && segment[1] != '.';
}

static bool is_rest(const char *segment, size_t length)
{
    return is_parameter(segment, length) && length > 5 &&
           memcmp(segment + length - 4, "...}", 4) == 0;
}

static int mount_route(struct http_router *router, const struct http_mount *mount,
                       const struct http_route *route, struct error *err)
{
    struct route_node *node = &router->root;
    const char *at = route->pattern;
    size_t parameters = 0;

    if (*at != '/')
        return error_set(err, ERR_INVALID, 0, "route pattern '%s' does not begin with '/'", at);
    while (*at == '/') {
        const char *segment = at + 1;
        size_t length = strcspn(segment, "/");

        at = segment + length;
        if (memchr(segment, '{', length) && !is_parameter(segment, length))
            return error_set(err, ERR_INVALID, 0, "route pattern '%s' is malformed",
                             route->pattern);
        if (is_parameter(segment, length) && ++parameters > HTTP_PARAMETERS_MAX)
            return error_set(err, ERR_INVALID, 0, "route pattern '%s' has too many parameters",
                             route->pattern);
        if (is_rest(segment, length)) {
            if (*at)
                return error_set(err, ERR_INVALID, 0, "route pattern '%s' goes on after {...}",
                                 route->pattern);
            return add_row(&node->rest_rows, mount, route, err);
        }
        node = child_for_segment(node, segment, length);
    }
    return add_row(&node->rows, mount, route, err);
}

int http_router_mount(struct http_router *router, const struct http_mount *mount, struct error *err)
{
    for (size_t i = 0; i < mount->route_count; i++) {
        if (mount_route(router, mount, &mount->routes[i], err) < 0)
            return error_wrap(err, "mount %s", mount->name);
    }
    return 0;
}

/* --- matching ------------------------------------------------------------------------------- */

struct path_segment {
    const char *text; /* decoded */
    size_t length;
    struct url_span raw_rest; /* from this segment to the end, still escaped */
};

struct http_route_search {
    const char *method;
    struct path_segment segments[HTTP_SEGMENTS_MAX];
    size_t segment_count;
    const struct route_row *found;
    size_t found_depth;              /* segments before the rest, for {name...} */
    const struct route_row *allowed; /* rows of the best place whose method did not fit */
};

static const struct route_row *row_for_method(const struct route_row *rows, const char *method)
{
    const struct route_row *get = NULL;

    for (const struct route_row *row = rows; row; row = row->next) {
        if (strcmp(row->route->method, method) == 0)
            return row;
        if (strcmp(row->route->method, "GET") == 0)
            get = row;
    }
    return strcmp(method, "HEAD") == 0 ? get : NULL;
}

static bool accept_rows(struct http_route_search *search, const struct route_row *rows,
                        size_t depth)
{
    const struct route_row *row = row_for_method(rows, search->method);

    if (row) {
        search->found = row;
        search->found_depth = depth;
        return true;
    }
    if (rows && !search->allowed)
        search->allowed = rows;
    return false;
}

static bool search_node(struct http_route_search *search, const struct route_node *node,
                        size_t depth)
{
    const struct path_segment *segment = &search->segments[depth];
    const struct route_node *child;

    if (depth == search->segment_count)
        return accept_rows(search, node->rows, depth);
    child = find_literal(node, segment->text, segment->length);
    if (child && search_node(search, child, depth + 1))
        return true;
    if (node->any && segment->length && search_node(search, node->any, depth + 1))
        return true;
    return accept_rows(search, node->rest_rows, depth);
}

static int split_path(struct http_route_search *search, struct url_span path, struct pool *pool,
                      struct error *err)
{
    const char *at = path.text, *end = path.text + path.length;

    while (at < end) {
        struct path_segment *segment = &search->segments[search->segment_count];
        const char *start = at + 1; /* behind the '/' */
        const char *slash = memchr(start, '/', (size_t) (end - start));

        if (search->segment_count == HTTP_SEGMENTS_MAX)
            return error_set(err, ERR_NOT_FOUND, 0, "the path has too many segments");
        at = slash ? slash : end;
        segment->raw_rest = url_span(start, (size_t) (end - start));
        segment->text = start;
        segment->length = (size_t) (at - start);
        if (memchr(start, '%', segment->length)) {
            if (url_decode_copy(url_span(start, segment->length), URL_DECODE_PATH, pool,
                                &segment->text) < 0)
                return error_set(err, ERR_INVALID, 0, "the path has a broken percent-escape");
            segment->length = strlen(segment->text);
        }
        search->segment_count++;
    }
    return 0;
}

static int fill_parameters(const struct http_route_search *search, struct pool *pool,
                           struct http_match *match, struct error *err)
{
    const char *at = search->found->route->pattern;

    for (size_t depth = 0; *at == '/'; depth++) {
        const char *pattern = at + 1;
        size_t length = strcspn(pattern, "/");
        /* Only {name...} may stand behind the last segment of the path. */
        const struct path_segment *segment =
            depth < search->segment_count ? &search->segments[depth] : NULL;
        struct http_parameter *parameter = &match->parameters[match->parameter_count];

        at = pattern + length;
        if (!is_parameter(pattern, length))
            continue;
        match->parameter_count++;
        parameter->name = pattern + 1;
        parameter->name_length = length - (is_rest(pattern, length) ? 5 : 2);
        parameter->value = "";
        if (segment && !is_rest(pattern, length))
            parameter->value = pool_copy_bytes(pool, segment->text, segment->length);
        else if (segment &&
                 url_decode_copy(segment->raw_rest, URL_DECODE_PATH, pool, &parameter->value) < 0)
            return error_set(err, ERR_INVALID, 0, "the path has a broken percent-escape");
    }
    return 0;
}

static const char *list_allowed(const struct route_row *rows, struct pool *pool)
{
    AUTO(text) struct text list = TEXT_INIT(256);

    for (const struct route_row *row = rows; row; row = row->next) {
        if (list.length)
            text_append(&list, ", ");
        text_append(&list, row->route->method);
        if (strcmp(row->route->method, "GET") == 0)
            text_append(&list, ", HEAD");
    }
    return pool_copy_text(pool, text_string(&list));
}

int http_router_match(const struct http_router *router, const char *method, struct url_span path,
                      struct pool *pool, struct http_match *ret_match, const char **ret_allowed,
                      struct error *err)
{
    struct http_route_search search; /* 4 KB: segments are filled before they are read */

    search.method = method;
    search.segment_count = search.found_depth = 0;
    search.found = search.allowed = NULL;
    *ret_match = (struct http_match){.mount = NULL};
    *ret_allowed = NULL;
    if (path.text[0] != '/') /* "OPTIONS *" asks about the server, not about the root */
        return error_set(err, ERR_NOT_FOUND, 0, "no route for this target");
    if (split_path(&search, path, pool, err) < 0)
        return -1;
    if (search_node(&search, &router->root, 0)) {
        ret_match->mount = search.found->mount;
        ret_match->route = search.found->route;
        return fill_parameters(&search, pool, ret_match, err);
    }
    if (!search.allowed)
        return error_set(err, ERR_NOT_FOUND, 0, "no route for this path");
    ret_match->mount = search.allowed->mount;
    *ret_allowed = list_allowed(search.allowed, pool);
    return error_set(err, ERR_METHOD, 0, "this path answers %s, not %s", *ret_allowed, method);
}

const char *http_match_get(const struct http_match *match, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < match->parameter_count; i++) {
        const struct http_parameter *parameter = &match->parameters[i];

        if (parameter->name_length == length && memcmp(parameter->name, name, length) == 0)
            return parameter->value;
    }
    return NULL;
}
