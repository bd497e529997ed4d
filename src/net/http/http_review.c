/* Who lasts on a server, and may not stay. */
#include <string.h>

#include "net/http/http_connection.h"

#define EVENT_STREAM "content-type: text/event-stream"

/* --- requests ------------------------------------------------------------------------------- */

static bool is_under_way(const struct http_connection *connection)
{
    return connection->request && connection->dispatched &&
           connection->request->state != HTTP_REQUEST_REPLIED && connection->request->caller;
}

/* One that is passed on from elsewhere has its type among the headers. */
static bool is_event_stream(const struct http_request *request)
{
    return request->is_events ||
           (request->extra_headers.length &&
            strcasestr(text_string(&request->extra_headers), EVENT_STREAM) != NULL);
}

/* The comment begins a line of its own, and no empty line follows: an event that was half sent is
 * none. */
static void end_events(struct http_request *request, const char *reason)
{
    void (*on_gone)(struct http_request *) = TAKE_PTR(request->on_gone);
    const char *comment = pool_format(&request->pool, "\n: %s\n", reason);

    request->connection->close_after_reply = true;
    if (on_gone)
        on_gone(request);
    http_reply_write(request, comment, strlen(comment));
    http_reply_end(request);
}

static void expel_request(struct http_connection *connection, const struct error *reason)
{
    struct http_request *request = connection->request;
    HTTP_TRACE(connection);

    TRACE_WITH("http.expel", reason->message);
    if (request->state == HTTP_REQUEST_FRESH && reason->code == ERR_UNAUTHENTICATED)
        (void) http_reply_header(request, "WWW-Authenticate", "Bearer");
    if (request->state == HTTP_REQUEST_FRESH)
        http_connection_refuse(connection, reason);
    else if (is_event_stream(request))
        end_events(request, reason->message);
    else
        http_connection_cut(connection);
}

/* The end of one may be the end of others: who has to go waits in a list of its own, which those
 * that go meanwhile leave by themselves. */
static size_t review_requests(struct http_server *server, http_review *review, void *data)
{
    struct list leaving, *link;
    size_t count = 0;

    list_init(&leaving);
    LIST_EACH (&server->connections, at) {
        const struct http_connection *connection = CONTAINER_OF(at, struct http_connection, link);

        if (is_under_way(connection) && review(data, connection->request->caller, NULL) < 0) {
            list_remove(at);
            list_append(&leaving, at);
        }
    }
    while ((link = list_first(&leaving))) {
        struct http_connection *connection = CONTAINER_OF(link, struct http_connection, link);
        struct error reason = ERROR_INIT;

        list_remove(link);
        list_append(&server->connections, link);
        if (!is_under_way(connection) || review(data, connection->request->caller, &reason) == 0)
            continue;
        expel_request(connection, &reason);
        count++;
    }
    return count;
}

/* --- guests --------------------------------------------------------------------------------- */

static size_t review_guests(struct http_server *server, http_review *review, void *data)
{
    struct list leaving, *link;
    size_t count = 0;

    list_init(&leaving);
    LIST_EACH (&server->guests, at) {
        const struct http_guest *guest = CONTAINER_OF(at, struct http_guest, link);

        if (guest->caller && review(data, guest->caller, NULL) < 0) {
            list_remove(at);
            list_append(&leaving, at);
        }
    }
    while ((link = list_first(&leaving))) {
        struct http_guest *guest = CONTAINER_OF(link, struct http_guest, link);
        struct error reason = ERROR_INIT;

        list_remove(link);
        list_append(&server->guests, link);
        if (review(data, guest->caller, &reason) == 0)
            continue;
        free(TAKE_PTR(guest->caller)); /* it is leaving, and is asked once */
        guest->on_shutdown(guest, HTTP_LEAVE_EXPELLED, reason.message);
        count++;
    }
    return count;
}

struct http_expelled http_server_review(struct http_server *server, http_review *review, void *data)
{
    struct http_expelled expelled = {.requests = review_requests(server, review, data)};

    expelled.guests = review_guests(server, review, data);
    return expelled;
}
