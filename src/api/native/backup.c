/* A copy of everything the daemon keeps, made while it works. */
#include <stdio.h>
#include <string.h>

#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "base/memory.h"

#define NAME_LENGTH_MAX 64

struct store_copy {
    struct pending *pending;
    char *path; /* owned */
};

static void copied(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct store_copy *copy = context;
    struct http_request *request = pending_take_good(copy->pending, failure);
    struct native_answer answer;

    (void) receipt;
    if (request) {
        native_answer_begin(&answer);
        json_add_text(&answer.json, "file", copy->path);
        native_answer_send(&answer, request, 201);
        native_answer_done(&answer);
    }
    free(copy->path);
    free(copy);
}

/* No folder, no dot at the front: a file beside the others, nowhere else. */
static bool backup_is_name(const char *name)
{
    size_t length = strlen(name);

    return length && length <= NAME_LENGTH_MAX && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               length;
}

static char *make_path(const struct api *api, const char *name)
{
    AUTO(text) struct text path = TEXT_INIT(8192);
    char time[CLOCK_TEXT_SIZE];

    clock_format(clock_wall_ms(api->clock), time);
    text_append(&path, api->backup_folder);
    if (name)
        text_format(&path, "/%s", name);
    else
        text_format(&path, "/burrow-%s.db", time);
    return text_take(&path);
}

static int read_backup(struct http_request *request, const struct json_place *body,
                       struct error *err)
{
    static const char *const names[] = {"name"};
    struct api *api = api_of(request);
    const char *name = NULL;
    struct store_copy *copy;

    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_text(body, "name", JSON_OPTIONAL, NAME_LENGTH_MAX, &name, err) < 0)
        return -1;
    if (name && !backup_is_name(name))
        return json_refuse_field(body, "name",
                                 "1 to 64 of letters, digits, '.', '_' and '-', no '.' first", err);
    if (!api->backup_folder)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "this daemon has no folder for copies");
    copy = mem_alloc(sizeof(*copy));
    copy->path = make_path(api, name);
    copy->pending = pending_new(request);
    store_backup(domain_store(api->domain), copy->path, copied, copy);
    return 0;
}

void native_backup(struct http_request *request)
{
    native_take(request, read_backup);
}
