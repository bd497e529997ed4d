#include "api/http/openapi.h"

#include <ctype.h>
#include <string.h>

#include "api/access/access.h"
#include "api/http/api.h"
#include "api/http/kept_documents.h"
#include "base/auto.h"
#include "json/json_write.h"

#define OPENAPI_MAX ((size_t) 4 * 1024 * 1024)

struct openapi_document {
    const struct http_mount *mounts;
    size_t count;
    struct json_writer json;
};

static void lower_case(const char *text, char *ret_lower, size_t size)
{
    size_t i = 0;

    for (; text[i] && i + 1 < size; i++)
        ret_lower[i] = (char) tolower((unsigned char) text[i]);
    ret_lower[i] = '\0';
}

/* "{path...}" of ours is "{path}" there. */
static void write_path(struct text *out, const char *pattern)
{
    const char *dots = strstr(pattern, "...}");

    text_append_bytes(out, pattern, dots ? (size_t) (dots - pattern) : strlen(pattern));
    if (dots)
        text_append(out, "}");
}

static void write_parameters(struct json_writer *json, const char *pattern, const char *more)
{
    const char *at = pattern;

    json_begin_array_at(json, "parameters");
    while ((at = strchr(at, '{'))) {
        const char *name = at + 1;
        size_t length = strcspn(name, ".}");

        json_begin_object(json);
        json_key(json, "name");
        json_put_bytes(json, name, length);
        json_add_text(json, "in", "path");
        json_add_boolean(json, "required", true);
        json_begin_object_at(json, "schema");
        json_add_text(json, "type", "string");
        json_end_object(json);
        json_end_object(json);
        at = name + length;
    }
    if (more)
        json_put_raw(json, more, strlen(more));
    json_end_array(json);
}

static void write_content(struct json_writer *json, const char *type, const char *schema)
{
    json_begin_object_at(json, "content");
    json_begin_object_at(json, type);
    if (schema) {
        json_key(json, "schema");
        json_put_raw(json, schema, strlen(schema));
    }
    json_end_object(json);
    json_end_object(json);
}

static void write_responses(struct json_writer *json, const struct http_mount *mount,
                            const struct http_route *route)
{
    static const char own_error[] = "{\"$ref\":\"#/components/schemas/Error\"}";

    json_key(json, "responses");
    if (route->replies) {
        json_put_raw(json, route->replies, strlen(route->replies));
        return;
    }
    json_begin_object(json);
    json_begin_object_at(json, "200");
    json_add_text(json, "description", "The answer");
    write_content(json, route->reply_type ? route->reply_type : "application/json",
                  route->reply_schema);
    json_end_object(json);
    json_begin_object_at(json, "default");
    json_add_text(json, "description", "An error");
    write_content(json, "application/json", mount->error_schema ? mount->error_schema : own_error);
    json_end_object(json);
    json_end_object(json);
}

static void write_operation(struct json_writer *json, const struct http_mount *mount,
                            const struct http_route *route)
{
    char method[16];

    lower_case(route->method, method, sizeof(method));
    json_begin_object_at(json, method);
    json_begin_array_at(json, "tags");
    json_put_text(json, mount->name);
    json_end_array(json);
    json_add_text(json, "summary", route->summary ? route->summary : "");
    write_parameters(json, route->pattern, route->parameters);
    if (route->request_schema) {
        json_begin_object_at(json, "requestBody");
        write_content(json, "application/json", route->request_schema);
        json_end_object(json);
    }
    write_responses(json, mount, route);
    if (route->access == ACCESS_PUBLIC) { /* an empty list lifts the document's own requirement */
        json_begin_array_at(json, "security");
        json_end_array(json);
    }
    json_end_object(json);
}

/* All methods of a path belong into one object, whichever dialect and row they come from. */
static bool is_first_of_path(const struct openapi_document *document, size_t mount, size_t route)
{
    const char *pattern = document->mounts[mount].routes[route].pattern;

    for (size_t m = 0; m <= mount; m++) {
        size_t end = m == mount ? route : document->mounts[m].route_count;

        for (size_t r = 0; r < end; r++) {
            if (strcmp(document->mounts[m].routes[r].pattern, pattern) == 0)
                return false;
        }
    }
    return true;
}

static void write_path_item(struct openapi_document *document, const char *pattern)
{
    AUTO(text) struct text path = TEXT_INIT(1024);

    write_path(&path, pattern);
    json_begin_object_at(&document->json, text_string(&path));
    for (size_t m = 0; m < document->count; m++) {
        const struct http_mount *mount = &document->mounts[m];

        for (size_t r = 0; r < mount->route_count; r++) {
            if (strcmp(mount->routes[r].pattern, pattern) == 0)
                write_operation(&document->json, mount, &mount->routes[r]);
        }
    }
    json_end_object(&document->json);
}

static void write_paths(struct openapi_document *document)
{
    json_begin_object_at(&document->json, "paths");
    for (size_t m = 0; m < document->count; m++) {
        for (size_t r = 0; r < document->mounts[m].route_count; r++) {
            if (is_first_of_path(document, m, r))
                write_path_item(document, document->mounts[m].routes[r].pattern);
        }
    }
    json_end_object(&document->json);
}

static void write_components(struct json_writer *json)
{
    static const char components[] =
        "{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
        "\"schemas\":{\"Error\":{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{"
        "\"error\":{\"type\":\"object\",\"required\":[\"code\",\"message\"],\"properties\":{"
        "\"code\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},"
        "\"requestId\":{\"type\":\"string\"}}}}}}}";

    json_key(json, "components");
    json_put_raw(json, components, sizeof(components) - 1);
    json_key(json, "security");
    json_put_raw(json, "[{\"key\":[]}]", 12);
}

int openapi_write(const struct http_mount *mounts, size_t count, const char *title,
                  const char *version, struct text *out)
{
    struct openapi_document document = {.mounts = mounts, .count = count};
    struct json_writer *json = &document.json;

    json_document_begin(json, out);
    json_add_text(json, "openapi", "3.1.0");
    json_begin_object_at(json, "info");
    json_add_text(json, "title", title);
    json_add_text(json, "version", version);
    json_end_object(json);
    write_paths(&document);
    write_components(json);
    return json_document_end(json);
}

void openapi_answer(struct http_request *request, const struct http_mount *mounts, size_t count,
                    const char *title, const char *type)
{
    struct kept_documents *documents = api_of(request)->documents;
    const struct text *kept = kept_document(documents, mounts, type);
    AUTO(text) struct text document = TEXT_INIT(OPENAPI_MAX);

    if (kept) {
        http_reply(request, 200, type, text_string(kept), kept->length);
        return;
    }
    if (openapi_write(mounts, count, title, BURROW_VERSION, &document) < 0) {
        api_fail(request, ERR_INTERNAL, "the document does not fit");
        return;
    }
    kept_document_add(documents, mounts, type, &document);
    http_reply(request, 200, type, text_string(&document), document.length);
}
