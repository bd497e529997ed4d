#include "agent/control/way_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/api_error.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"

#define HOSTS_FILE           "/etc/hosts"
#define HOSTS_MAX            ((size_t) 1024 * 1024)
#define BUNDLE_MAX           ((size_t) 8 * 1024 * 1024)
#define HOST_NAME_LENGTH_MAX 253
#define BODY_MAX             ((size_t) 256)
#define FIRST                "# What follows leads to Burrow's egress broker, and is written by it.\n"
#define LAST                 "# Until here.\n"
#define FILE_MODE            0644
#define FOLDER_MODE          0755

/* Where distributions have the roots that they trust. */
static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

/* --- names ----------------------------------------------------------------------------------- */

static bool is_word_of(const char *text, const char *letters)
{
    size_t length = text ? strlen(text) : 0;

    return length && length <= HOST_NAME_LENGTH_MAX && strspn(text, letters) == length;
}

static int add_host(const json_t *host, struct text *text)
{
    const char *address = json_string_value(json_object_get(host, "address"));
    const char *name = json_string_value(json_object_get(host, "name"));

    if (!is_word_of(address, "0123456789.") ||
        !is_word_of(name, "abcdefghijklmnopqrstuvwxyz0123456789-_."))
        return -EINVAL;
    text_format(text, "%s %s\n", address, name);
    return 0;
}

/* What is between the marks goes; a mark without the other is not ours to mend. */
static void add_others(const char *before, struct text *text)
{
    const char *first = strstr(before, FIRST), *last = first ? strstr(first, LAST) : NULL;

    if (!last) {
        text_append(text, before);
    } else {
        text_append_bytes(text, before, (size_t) (first - before));
        text_append(text, last + strlen(LAST));
    }
    if (text->length && text->data[text->length - 1] != '\n')
        text_append_char(text, '\n');
}

char *way_out_hosts(const char *before, const json_t *hosts)
{
    AUTO(text) struct text text = TEXT_INIT(HOSTS_MAX);

    add_others(before, &text);
    if (json_array_size(hosts))
        text_append(&text, FIRST);
    for (size_t i = 0; i < json_array_size(hosts); i++)
        if (add_host(json_array_get(hosts, i), &text) < 0)
            return NULL;
    if (json_array_size(hosts))
        text_append(&text, LAST);
    return text.overflowed ? NULL : text_take(&text);
}

static int write_names(const json_t *hosts)
{
    AUTO(free) char *before = NULL;
    AUTO(free) char *after = NULL;
    size_t length = 0;
    int r = sys_file_read_all(AT_FDCWD, HOSTS_FILE, HOSTS_MAX, &before, &length);

    if (r < 0 && r != -ENOENT)
        return r;
    after = way_out_hosts(before ? before : "", hosts);
    if (!after)
        return -EINVAL;
    if (before && strcmp(before, after) == 0)
        return 0;
    return sys_file_replace(AT_FDCWD, HOSTS_FILE, after, strlen(after), FILE_MODE);
}

/* --- whom to trust --------------------------------------------------------------------------- */

static int write_authority(const char *authority)
{
    AUTO(text) struct text bundle = TEXT_INIT(BUNDLE_MAX);
    int r = sys_file_make_directories(AT_FDCWD, WAY_OUT_FOLDER, FOLDER_MODE);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_COUNT(bundles); i++) {
        AUTO(free) char *roots = NULL;
        size_t length;

        if (sys_file_read_all(AT_FDCWD, bundles[i], BUNDLE_MAX / 2, &roots, &length) < 0)
            continue;
        text_append_bytes(&bundle, roots, length);
        if (length && roots[length - 1] != '\n')
            text_append_char(&bundle, '\n');
        break;
    }
    text_append(&bundle, authority);
    r = sys_file_replace(AT_FDCWD, WAY_OUT_CA, authority, strlen(authority), FILE_MODE);
    if (r == 0)
        r = sys_file_replace(AT_FDCWD, WAY_OUT_BUNDLE, text_string(&bundle), bundle.length,
                             FILE_MODE);
    return r;
}

/* --- the request ----------------------------------------------------------------------------- */

static int way_out_read(const char *body, size_t length, struct api_error *error)
{
    static const struct json_limits limits = {
        .size = WAY_OUT_BODY_MAX, .depth = 4, .values = JSON_VALUES_MAX};
    static const char *const fields[] = {"hosts", "authority"};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *document = json_read(body, length, &limits, &err);
    const char *authority = "";
    struct json_place root, hosts;
    int r;

    if (!document || json_root_object(document, &root, &err) < 0 ||
        json_known_fields(&root, fields, ARRAY_COUNT(fields), &err) < 0 ||
        json_field_array(&root, "hosts", JSON_REQUIRED, &hosts, &err) < 0 ||
        json_field_text(&root, "authority", JSON_OPTIONAL, WAY_OUT_BODY_MAX, &authority, &err) < 0)
        return api_error_field(error, "body", err.message);
    r = write_authority(authority);
    if (r < 0)
        return api_error_field(error, "authority", strerror(-r));
    r = write_names(hosts.value);
    return r < 0 ? api_error_field(error, "hosts", strerror(-r)) : 0;
}

static void way_out_arrived(struct http_request *request, const char *body, size_t length)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(text) struct text reply = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    error.operation = "wayOut.set";
    if (way_out_read(body, length, &error) < 0) {
        api_error_reply(request, &error);
        return;
    }
    json_document_begin(&json, &reply);
    json_add_boolean(&json, "success", true);
    (void) json_document_end(&json); /* it is short */
    agent_reply_json(request, &reply);
}

static void way_out_client_left(struct http_request *request)
{
    (void) request; /* nothing was begun */
}

void way_out_handle(struct http_request *request)
{
    request->on_gone = way_out_client_left;
    http_request_collect(request, way_out_arrived);
}
