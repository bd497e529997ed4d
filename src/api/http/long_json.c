#include "api/http/long_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/trace.h"
#include "net/http/http_server.h"

#define VALUE_SIZE ((size_t) 16) /* of a number, or the quotes and commas around a text */

struct long_json {
    uv_work_t work;
    struct trace_context trace; /* of whoever asked */
    struct text text;
    struct json_limits limits;
    json_t *json;
    struct error failure;
    long_json_done *done; /* NULL: nobody is to be told */
    void *context;
};

/* --- on a thread ------------------------------------------------------------------------------ */

static void long_json_parse(uv_work_t *work)
{
    struct long_json *reading = work->data;

    reading->json = json_read(text_string(&reading->text), reading->text.length, &reading->limits,
                              &reading->failure);
}

/* Many values take as long to free as to make. */
static void long_json_forget(uv_work_t *work)
{
    struct long_json *reading = work->data;

    json_decref(reading->json);
    text_done(&reading->text);
}

/* --- on the loop ------------------------------------------------------------------------------ */

static void long_json_gone(uv_work_t *work, int status)
{
    (void) status;
    free(work->data);
}

static void long_json_parsed(uv_work_t *work, int status)
{
    struct long_json *reading = work->data;
    TRACE_AS(&reading->trace);

    (void) status; /* nothing cancels it */
    if (reading->done) {
        TRACE("json.read");
        reading->done(reading->context, &reading->text, reading->json,
                      reading->json ? NULL : &reading->failure);
    }
    (void) uv_queue_work(work->loop, work, long_json_forget, long_json_gone);
}

struct long_json *long_json_read(struct loop *loop, struct text *text,
                                 const struct json_limits *limits, long_json_done *done,
                                 void *context)
{
    struct long_json *reading = mem_alloc(sizeof(*reading));

    reading->work.data = reading;
    reading->trace = trace_context;
    reading->text = *text;
    *text = (struct text) TEXT_INIT(text->maximum);
    reading->limits = *limits;
    reading->done = done;
    reading->context = context;
    (void) uv_queue_work(&loop->uv, &reading->work, long_json_parse, long_json_parsed);
    return reading;
}

void long_json_drop(struct long_json *reading)
{
    reading->done = NULL;
}

/* --- writing --------------------------------------------------------------------------------- */

/* What is left of `room` behind this value; 0: it is full. */
static size_t take_room(const json_t *json, size_t room)
{
    size_t own = VALUE_SIZE + (json_is_string(json) ? json_string_length(json) : 0), i;
    const json_t *item;
    const char *key;

    room = own < room ? room - own : 0;
    if (json_is_array(json)) {
        json_array_foreach (json, i, item) {
            if (room == 0)
                break;
            room = take_room(item, room);
        }
    } else if (json_is_object(json)) {
        json_object_foreach ((json_t *) (uintptr_t) json, key, item) {
            if (room == 0)
                break;
            room = take_room(item, strlen(key) < room ? room - strlen(key) : 0);
        }
    }
    return room;
}

bool long_json_is_long(const json_t *json)
{
    return take_room(json, LONG_JSON_MIN) == 0;
}

struct long_reply {
    uv_work_t work;
    struct trace_context trace;   /* of whoever answers */
    struct http_request *request; /* NULL: the client left */
    void *data;                   /* of the request, for who comes back to it */
    void (*on_gone)(struct http_request *request);
    const char *content_type;
    json_t *json; /* owned */
    size_t flags;
    char *text; /* owned: as it is written */
};

static void long_reply_write(uv_work_t *work)
{
    struct long_reply *reply = work->data;

    reply->text = json_dumps(reply->json, reply->flags);
    json_decref(reply->json);
}

static void long_reply_give_back(struct long_reply *reply)
{
    reply->request->data = reply->data;
    reply->request->on_gone = reply->on_gone;
    reply->request = NULL;
}

static void long_reply_client_left(struct http_request *request)
{
    long_reply_give_back(request->data);
    if (request->on_gone)
        request->on_gone(request);
}

static void long_reply_written(uv_work_t *work, int status)
{
    struct long_reply *reply = work->data;
    struct http_request *request = reply->request;
    struct error err;
    TRACE_AS(&reply->trace);

    (void) status; /* nothing cancels it */
    if (request) {
        long_reply_give_back(reply);
        if (reply->text) {
            http_reply_text(request, 200, reply->content_type, reply->text);
        } else {
            (void) error_set(&err, ERR_INTERNAL, 0, "the answer cannot be written as JSON");
            http_reply_error(request, &err);
        }
    }
    free(reply->text);
    free(reply);
}

void long_json_reply(struct http_request *request, json_t *json, size_t flags,
                     const char *content_type)
{
    struct loop *loop = http_server_loop(http_request_server(request));
    struct long_reply *reply = mem_alloc(sizeof(*reply));

    *reply = (struct long_reply){.trace = trace_context,
                                 .request = request,
                                 .data = request->data,
                                 .on_gone = request->on_gone,
                                 .content_type = content_type,
                                 .json = json,
                                 .flags = flags};
    reply->work.data = reply;
    request->data = reply;
    request->on_gone = long_reply_client_left;
    (void) uv_queue_work(&loop->uv, &reply->work, long_reply_write, long_reply_written);
}
