#include "api/http/json_body.h"

#include "api/http/long_json.h"
#include "base/auto.h"
#include "base/memory.h"
#include "net/http/http_server.h"

static void json_body_client_left(struct http_request *request)
{
    (void) request; /* everything is in its pool */
}

/* Who reads it; `complaint`: what is told of one that is no JSON. NULL: why it is none. */
struct json_body_reader {
    json_body_read *read;
    const char *complaint;
};

static void json_body_tell(struct http_request *request, json_t *body, struct error *err,
                           const struct json_body_reader *reader)
{
    struct json_place root;

    if (!body && reader->complaint)
        (void) error_set(err, ERR_INVALID, 0, "%s", reader->complaint);
    if (!body || json_root_object(body, &root, err) < 0 || reader->read(request, &root, err) < 0)
        http_reply_error(request, err);
}

/* --- a long one ------------------------------------------------------------------------------ */

struct long_body {
    struct http_request *request;
    struct long_json *reading;
    void *data; /* of the request, which the reader finds again */
    void (*on_gone)(struct http_request *request);
    struct json_body_reader reader;
};

static void long_body_client_left(struct http_request *request)
{
    struct long_body *body = request->data;

    request->data = body->data;
    request->on_gone = body->on_gone;
    long_json_drop(body->reading);
    free(body);
    if (request->on_gone)
        request->on_gone(request);
}

static void long_body_arrived(void *context, struct text *text, json_t *json,
                              const struct error *failure)
{
    AUTO(free) struct long_body *body = context;
    struct http_request *request = body->request;
    struct error err = failure ? *failure : (struct error) ERROR_INIT;

    (void) text;
    request->data = body->data;
    request->on_gone = body->on_gone;
    json_body_tell(request, json, &err, &body->reader);
}

static void read_long_body(struct http_request *request, const char *bytes, size_t length,
                           const struct json_limits *limits, const struct json_body_reader *reader)
{
    struct long_body *body = mem_alloc(sizeof(*body));
    AUTO(text) struct text text = TEXT_INIT(length);

    *body = (struct long_body){
        .request = request, .data = request->data, .on_gone = request->on_gone, .reader = *reader};
    text_append_bytes(&text, bytes, length);
    body->reading = long_json_read(http_server_loop(http_request_server(request)), &text, limits,
                                   long_body_arrived, body);
    request->data = body;
    request->on_gone = long_body_client_left;
}

/* --- any ------------------------------------------------------------------------------------- */

static void json_body_read_by(struct http_request *request, const char *bytes, size_t length,
                              const struct json_body_reader *reader)
{
    const struct json_limits limits = {
        .size = length, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *body = NULL;

    if (length > LONG_JSON_MIN) {
        read_long_body(request, bytes, length, &limits, reader);
        return;
    }
    if (length || reader->complaint)
        body = json_read(bytes, length, &limits, &err);
    else
        body = json_object();
    json_body_tell(request, body, &err, reader);
}

void json_body_read_bytes(struct http_request *request, const char *bytes, size_t length,
                          json_body_read *read)
{
    const struct json_body_reader reader = {.read = read};

    json_body_read_by(request, bytes, length, &reader);
}

void json_body_read_or_say(struct http_request *request, const char *bytes, size_t length,
                           json_body_read *read, const char *complaint)
{
    const struct json_body_reader reader = {.read = read, .complaint = complaint};

    json_body_read_by(request, bytes, length, &reader);
}

static void arrived(struct http_request *request, const char *bytes, size_t length)
{
    json_body_read *const *read = request->data;

    json_body_read_bytes(request, bytes, length, *read);
}

void json_body_take(struct http_request *request, json_body_read *read)
{
    json_body_read **kept = pool_alloc(&request->pool, sizeof(*kept));

    *kept = read;
    request->data = kept;
    request->on_gone = json_body_client_left;
    http_request_collect(request, arrived);
}
