#include "cli/attack/drill_route.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "json/json_read.h"
#include "net/url.h"

#define DEPTH_MAX 8

/* Queries and bodies without which a request is refused before anything is looked for. */
static const struct {
    const char *method, *pattern, *query, *body;
} known[] = {
    {"GET", "/burrow/v1/sandboxes/{id}/archive", "?path=/workspace", NULL},
    {"PUT", "/burrow/v1/sandboxes/{id}/archive", "?path=/workspace", NULL},
    {"GET", "/burrow/v1/sandboxes/{id}/diff", "?from=nosuch", NULL},
    {"DELETE", "/burrow/v1/sandboxes/{id}/mounts", "?path=/mnt/x", NULL},
    {"GET", "/v1/sandboxes/{id}/files", "?path=/workspace/secret", NULL},
    {"GET", "/v1/sandboxes/{id}/ls", "?path=/workspace", NULL},
    {"POST", "/burrow/v1/sandboxes/{id}/exec", "", "{\"command\":\"true\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/processes", "", "{\"command\":\"true\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/sessions", "", "{\"id\":\"another\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/files/{path}", "",
     "{\"action\":\"mkdir\",\"recursive\":true}"},
    {"POST", "/burrow/v1/sandboxes/{id}/watch", "", "{\"path\":\"/workspace\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/code/contexts", "", "{\"language\":\"python\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/code/run", "", "{\"code\":\"1 + 1\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/container/{path}", "", "{\"command\":\"true\"}"},
    {"POST", "/burrow/v1/sandboxes/{id}/ports", "", "{\"port\":5000}"},
    {"POST", "/burrow/v1/sandboxes/{id}/mounts", "", "{\"path\":\"/mnt/x\",\"bucket\":\"bucket\"}"},
    {"PATCH", "/burrow/v1/sandboxes/{id}", "", "{\"labels\":{\"seen\":\"1\"}}"},
    {"PATCH", "/burrow/v1/webhooks/{webhook}", "", "{\"enabled\":false}"},
    {"PATCH", "/burrow/v1/users/{user}", "", "{\"name\":\"another\"}"},
    {"POST", "/v1/sandbox/{id}/exec", "", "{\"argv\":[\"true\"]}"},
    {"POST", "/v1/sandboxes/{id}/exec", "", "{\"command\":\"true\"}"},
    {"PUT", "/v1/sandboxes/{id}/files", "", "{\"path\":\"/workspace/other\",\"content\":\"x\"}"},
};

/* --- walking --------------------------------------------------------------------------------- */

static void route_read(struct drill_route *ret_route, const char *pattern, const char *method,
                       json_t *operation)
{
    json_t *security = json_object_get(operation, "security");

    *ret_route = (struct drill_route){
        .pattern = pattern,
        .dialect = json_string_value(json_array_get(json_object_get(operation, "tags"), 0)),
        .operation = operation,
        .is_public = security && json_array_size(security) == 0,
        .has_names = strchr(pattern, '{') != NULL,
    };
    for (size_t i = 0; method[i] && i + 1 < sizeof(ret_route->method); i++)
        ret_route->method[i] = (char) toupper((unsigned char) method[i]);
}

int drill_routes_walk(json_t *document,
                      int (*visit)(void *context, const struct drill_route *route), void *context)
{
    const char *pattern, *method;
    json_t *methods, *operation;
    struct drill_route route;

    json_object_foreach (json_object_get(document, "paths"), pattern, methods) {
        json_object_foreach (methods, method, operation) {
            int r;

            route_read(&route, pattern, method, operation);
            r = visit(context, &route);
            if (r != 0)
                return r;
        }
    }
    return 0;
}

/* --- paths ----------------------------------------------------------------------------------- */

static const char *name_value(const struct drill_name *names, size_t count, const char *name,
                              size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0)
            return names[i].value;
    }
    return "something";
}

static const char *route_query(const struct drill_route *route)
{
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (strcmp(known[i].method, route->method) == 0 &&
            strcmp(known[i].pattern, route->pattern) == 0)
            return known[i].query;
    }
    return "";
}

const char *drill_route_path(const struct drill_route *route, const struct drill_name *names,
                             size_t count, struct pool *pool)
{
    AUTO(text) struct text path = TEXT_INIT(URL_LENGTH_MAX);

    for (const char *at = route->pattern; *at; at++) {
        size_t length = *at == '{' ? strcspn(at, "}") : 0;

        if (length) {
            text_append(&path, name_value(names, count, at + 1, length - 1));
            at += length;
        } else {
            text_append_char(&path, *at);
        }
    }
    text_append(&path, route_query(route));
    return pool_copy_text(pool, text_string(&path));
}

/* --- bodies ---------------------------------------------------------------------------------- */

static json_t *schema_example(json_t *schema, int depth);

static json_t *schema_object(json_t *schema, int depth)
{
    json_t *object = json_object(), *name;
    size_t i;

    json_array_foreach (json_object_get(schema, "required"), i, name) {
        const char *field = json_string_value(name);

        if (field)
            (void) json_object_set_new(
                object, field,
                schema_example(json_object_get(json_object_get(schema, "properties"), field),
                               depth + 1));
    }
    return object;
}

/* The smallest value that a schema describes. */
static json_t *schema_example(json_t *schema, int depth)
{
    json_t *one = json_array_get(json_object_get(schema, "enum"), 0);
    json_t *type = json_object_get(schema, "type");
    const char *kind;

    if (one)
        return json_incref(one);
    one = json_array_get(json_object_get(schema, "oneOf"), 0);
    if (!one)
        one = json_array_get(json_object_get(schema, "anyOf"), 0);
    if (one && depth < DEPTH_MAX)
        return schema_example(one, depth + 1);
    kind = json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
    if (json_object_get(schema, "properties") && depth < DEPTH_MAX)
        return schema_object(schema, depth);
    if (!kind || strcmp(kind, "string") == 0)
        return json_string("text");
    if (strcmp(kind, "integer") == 0 || strcmp(kind, "number") == 0)
        return json_integer(1);
    if (strcmp(kind, "boolean") == 0)
        return json_true();
    if (strcmp(kind, "array") == 0)
        return json_array();
    return depth < DEPTH_MAX ? schema_object(schema, depth) : json_object();
}

const char *drill_route_body(const struct drill_route *route, struct pool *pool)
{
    json_t *content = json_object_get(json_object_get(route->operation, "requestBody"), "content");
    json_t *schema = json_object_get(json_object_get(content, "application/json"), "schema");
    AUTO(json) json_t *example = NULL;
    AUTO(free) char *text = NULL;

    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (known[i].body && strcmp(known[i].method, route->method) == 0 &&
            strcmp(known[i].pattern, route->pattern) == 0)
            return known[i].body;
    }
    if (!schema)
        return content ? "content" : NULL;
    example =
        json_is_string(json_object_get(schema, "type")) || json_object_get(schema, "properties")
            ? schema_example(schema, 0)
            : json_object();
    text = json_dumps(example, JSON_COMPACT);
    return text ? pool_copy_text(pool, text) : NULL;
}
