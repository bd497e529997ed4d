/* The log of what happened: a page of it, or followed as it goes on. */
#include <string.h>
#include <strings.h>

#include "api/http/long_reads.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/event_cursor.h"
#include "api/native/handlers.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandboxes.h"
#include "net/http/sse.h"

#define PAGE_DEFAULT 100
#define PAGE_MAX     1000
#define EVENT_MAX    ((size_t) 64 * 1024)
/* Proxies close what is silent for a minute. */
#define KEEP_ALIVE_MS 20000

/* What a caller is shown of the log that all share. */
struct events_view {
    struct permutation cursors;
    bool counts_all; /* an administrator: may know how much others do */
};

static struct events_view events_view_of(const struct http_request *request)
{
    const struct caller *caller = request_caller(request);

    return (struct events_view){.cursors = event_cursor_view(api_of(request), caller),
                                .counts_all = caller->scope >= CALLER_ADMIN};
}

static void write_event(struct json_writer *json, const struct event *event,
                        const struct events_view *view)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(event->time_ms, time);
    json_begin_object(json);
    json_add_integer(json, "cursor", event_cursor_show(&view->cursors, event->cursor));
    /* What is of no sandbox is one stream of everybody's. */
    if (view->counts_all || strcmp(event->stream, "system") != 0)
        json_add_integer(json, "sequence", event->sequence);
    json_add_text(json, "time", time);
    json_add_text(json, "type", event->type);
    json_add_integer(json, "version", event->version);
    json_add_text(json, "stream", event->stream);
    json_add_text(json, "owner", event->owner.text);
    json_add_text(json, "actor", event->actor);
    json_add_text(json, "requestId", event->request);
    json_key(json, "data");
    json_put_raw(json, event->data, strlen(event->data));
    json_end_object(json);
}

/* --- following ------------------------------------------------------------------------------- */

struct events_following {
    struct http_request *request; /* NULL: gone, only the timer is left */
    struct event_follower *follower;
    struct share_claim claim;
    struct events_view view;
    struct deadline keep_alive;
};

static void following_gone(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct events_following, keep_alive));
}

static void events_leave(struct events_following *following)
{
    if (following->follower)
        event_follower_close(TAKE_PTR(following->follower));
    following->request = NULL;
    share_release(&following->claim);
    deadline_close(&following->keep_alive, following_gone);
}

static void events_client_left(struct http_request *request)
{
    events_leave(request->data);
}

static void client_drained(struct http_request *request)
{
    struct events_following *following = request->data;

    if (following->follower)
        event_follower_resume(following->follower);
}

static void still_here(struct deadline *deadline)
{
    struct events_following *following =
        CONTAINER_OF(deadline, struct events_following, keep_alive);

    if (!following->request)
        return;
    if (!http_reply_is_full(following->request))
        sse_keep_alive(following->request);
    deadline_set(deadline, KEEP_ALIVE_MS);
}

static bool events_send_event(void *context, const struct event *event)
{
    struct events_following *following = context;
    AUTO(text) struct text data = TEXT_INIT(EVENT_MAX);
    char cursor[NUMBER_TEXT_SIZE];
    struct json_writer json;

    if (http_reply_is_full(following->request))
        return false; /* on_drain goes on */
    json_writer_init_text(&json, &data);
    write_event(&json, event, &following->view);
    if (json_writer_finish(&json) < 0)
        return true; /* larger than any of ours: nobody waits for it */
    (void) number_format(event_cursor_show(&following->view.cursors, event->cursor), cursor);
    sse_send(following->request, cursor, event->type, text_string(&data), data.length);
    return true;
}

/* Nothing more comes. The client learns why, and asks again from where it was. */
static void follow_ended(void *context, const struct error *reason)
{
    struct events_following *following = context;
    struct http_request *request = following->request;
    AUTO(text) struct text data = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    following->follower = NULL;
    json_document_begin(&json, &data);
    json_add_text(&json, "code", error_code_text(reason->code));
    json_add_text(&json, "message", reason->message);
    (void) json_document_end(&json); /* a message is short */
    events_leave(following);
    sse_send(request, NULL, "error", text_string(&data), data.length);
    http_reply_end(request);
}

static void events_follow(struct http_request *request, const struct event_filter *filter)
{
    struct api *api = api_of(request);
    struct events_following *following = mem_alloc(sizeof(*following));
    const struct share_asker asker = domain_asker(api->domain, request_caller(request));
    struct error error = ERROR_INIT;

    if (share_claim(api->shares, &asker, SHARE_EVENT_STREAMS, 1, &following->claim, &error) == 0)
        following->follower = event_follow(api->domain, request_caller(request), filter,
                                           events_send_event, follow_ended, following, &error);
    if (!following->follower) {
        share_release(&following->claim);
        free(following);
        http_reply_error(request, &error);
        return;
    }
    following->request = request;
    following->view = events_view_of(request);
    request->data = following;
    request->on_gone = events_client_left;
    request->on_drain = client_drained;
    deadline_init(api->loop, &following->keep_alive, still_here);
    deadline_set(&following->keep_alive, KEEP_ALIVE_MS);
    sse_begin(request);
}

/* --- a page ---------------------------------------------------------------------------------- */

static void page_read(void *context, const struct error *failure, const struct event *events,
                      size_t count, int64_t next)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;
    struct events_view view;

    native_answer_begin_list(&answer, "events");
    if (!request)
        return;
    view = events_view_of(request);
    for (size_t i = 0; i < count; i++) {
        if (i && native_answer_is_full(&answer)) {
            next = events[i - 1].cursor;
            break;
        }
        write_event(&answer.json, &events[i], &view);
    }
    json_end_array(&answer.json);
    json_add_integer(&answer.json, "next", event_cursor_show(&view.cursors, next));
    native_answer_send(&answer, request, 200);
}

/* --- both ------------------------------------------------------------------------------------ */

static bool wants_stream(struct http_request *request)
{
    const char *accept = http_request_header(request, "accept");
    const char *stream = http_request_query(request, "stream");

    return (stream && strcmp(stream, "0") != 0 && strcmp(stream, "false") != 0) ||
           (accept && strncasecmp(accept, "text/event-stream", 17) == 0);
}

static int events_read_number(struct http_request *request, const char *name, int64_t minimum,
                              int64_t maximum, int64_t *ret_number, struct error *err)
{
    const char *text = http_request_query(request, name);

    if (text && number_parse(text, minimum, maximum, ret_number) < 0)
        return error_set(err, ERR_INVALID, 0, "'%s' must be a number from %lld to %lld", name,
                         (long long) minimum, (long long) maximum);
    return 0;
}

static int read_cursor(struct http_request *request, bool streams, int64_t *ret_after,
                       struct error *err)
{
    const struct permutation view = event_cursor_view(api_of(request), request_caller(request));
    const char *last = streams ? sse_last_event_id(request) : NULL;
    const char *after = http_request_query(request, "after");

    *ret_after = streams ? -1 : 0;
    if (last)
        return event_cursor_read(&view, "Last-Event-ID", last, 0, ret_after, err);
    return after ? event_cursor_read(&view, "after", after, -1, ret_after, err) : 0;
}

static void answer_events(struct http_request *request, const char *stream,
                          void (*again)(struct http_request *request))
{
    struct event_filter filter = {.stream = stream, .type = http_request_query(request, "type")};
    bool streams = wants_stream(request);
    struct error error = ERROR_INIT;
    int64_t limit = PAGE_DEFAULT;

    if (read_cursor(request, streams, &filter.after, &error) < 0 ||
        events_read_number(request, "limit", 1, PAGE_MAX, &limit, &error) < 0)
        http_reply_error(request, &error);
    else if (streams)
        events_follow(request, &filter);
    else if (long_read_begin(request, again))
        event_page(api_of(request)->domain, request_caller(request), &filter, (size_t) limit,
                   page_read, pending_new(request));
}

void native_get_events(struct http_request *request)
{
    answer_events(request, NULL, native_get_events);
}

void native_get_sandbox_events(struct http_request *request)
{
    const char *name = http_request_parameter(request, "id");
    struct error error = ERROR_INIT;
    const struct sandbox *sandbox =
        sandbox_find(api_of(request)->domain, request_caller(request), name, &error);

    if (sandbox)
        answer_events(request, sandbox->id.text, native_get_sandbox_events);
    else if (id_is_valid(name))
        answer_events(
            request, name,
            native_get_sandbox_events); /* its log outlives it: what the caller sees is checked */
    else
        http_reply_error(request, &error);
}
