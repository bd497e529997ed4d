#include "cli/client/client.h"
#include "json/json_read.h"

struct client_events_following {
    struct sse_reader reader;
    int (*on_event)(void *context, const struct sse_event *event, json_t *json, struct error *err);
    void *context;
    struct error *err;
    bool has_failed;
};

static void event_arrived(struct sse_reader *reader, const struct sse_event *event)
{
    struct client_events_following *following =
        CONTAINER_OF(reader, struct client_events_following, reader);
    AUTO(json) json_t *json = NULL;

    if (following->has_failed)
        return;
    json = json_read(event->data, event->length, NULL, NULL);
    following->has_failed =
        following->on_event(following->context, event, json, following->err) < 0;
}

static int client_events_take(void *context, const struct client_reply *reply, const char *bytes,
                              size_t length, struct error *err)
{
    struct client_events_following *following = context;

    (void) reply;
    if (sse_reader_feed(&following->reader, bytes, length) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "an event of the daemon is too long");
    return following->has_failed ? -1 : 0;
}

int client_events(struct client *client, const char *path,
                  int (*on_event)(void *context, const struct sse_event *event, json_t *json,
                                  struct error *err),
                  void *context, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    struct client_events_following following = {
        .on_event = on_event, .context = context, .err = err};
    const struct client_stream stream = {
        .method = "GET", .path = path, .take = client_events_take, .context = &following};
    int r;

    sse_reader_init(&following.reader, event_arrived);
    r = client_stream(client, &stream, &reply, err);
    sse_reader_done(&following.reader);
    return r;
}
