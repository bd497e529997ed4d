/* From a finished head to its handler: who may ask, which route, how large a body. */
#include <string.h>
#include <strings.h>

#include "base/trace.h"
#include "net/http/http_connection.h"

static int read_target(struct http_request *request, struct error *err)
{
    const struct http_head *head = request->head;

    if (strcmp(head->method, "CONNECT") == 0)
        return url_target_connect(head->target, head->target_length, &request->target, err);
    return url_target_parse(head->target, head->target_length, &request->target, err);
}

static int find_route(struct http_request *request, struct error *err)
{
    struct http_server *server = request->connection->server;
    const struct http_head *head = request->head;
    const char *allowed = NULL;

    if (read_target(request, err) < 0)
        return -1;
    if (server->options.intercept)
        request->intercepted = server->options.intercept(request, server->options.intercept_data);
    if (request->intercepted)
        return 0;
    if (server->options.admit &&
        server->options.admit(request, server->options.admit_data, err) < 0)
        return -1;
    if (request->intercepted)
        return 0;
    if (http_router_match(server->options.router, head->method, request->target.path,
                          &request->pool, &request->match, &allowed, err) < 0) {
        if (err->code == ERR_NOT_FOUND && server->options.fallback)
            return 0;
        if (allowed)
            (void) http_reply_header(request, "Allow", allowed);
        return -1;
    }
    request->context = request->match.mount->context;
    if (request->match.mount->check && request->match.mount->check(request, err) < 0)
        return -1;
    if (server->options.authorize)
        return server->options.authorize(request, server->options.admit_data, err);
    return 0;
}

static int prepare_request(struct http_request *request, struct error *err)
{
    const char *expect = http_head_get(request->head, "expect");
    bool is_known = expect && strcasecmp(expect, "100-continue") == 0;
    const struct http_route *route;

    /* Before anything is refused: a client that waits for our word is left undecided by a refusal,
     * so the connection must close with it. */
    request->continue_owed = is_known && request->head->minor == 1 && !request->body_done;
    if (find_route(request, err) < 0)
        return -1;
    route = request->match.route;
    request->body_limit = !route                                   ? HTTP_BODY_UNLIMITED
                          : route->body_limit == HTTP_BODY_DEFAULT ? HTTP_BODY_SMALL
                                                                   : route->body_limit;
    if (http_body_check(request, err) < 0)
        return -1;
    if (expect && !is_known && request->head->minor == 1)
        return error_set(err, ERR_EXPECTATION, 0, "the only expectation known is 100-continue");
    return 0;
}

static void call_handler(struct http_request *request)
{
    const struct http_server_options *options = &request->connection->server->options;

    if (request->intercepted) {
        request->intercepted(request);
    } else if (request->match.route) {
        TRACE_WITH("http.route", request->match.route->pattern);
        request->match.route->handle(request);
    } else {
        request->context = options->fallback_context;
        options->fallback(request);
    }
}

static void take_request_id(struct http_request *request)
{
    const char *given = http_head_get(request->head, "x-request-id");

    if (given && id_is_valid(given))
        memcpy(request->id.text, given, ID_SIZE);
}

/* Answer the request, or let its handler do so. */
static void answer_request(struct http_connection *connection, struct http_request *request)
{
    struct error error = ERROR_INIT;

    if (prepare_request(request, &error) < 0) {
        http_reply_error_now(request, &error);
        return;
    }
    call_handler(request);
    /* Only a request that is still ours may be looked at. */
    if (connection->dying || connection->request != request)
        return;
    request->sandbox = trace_context.sandbox;
    if (request->state != HTTP_REQUEST_REPLIED && !request->on_gone) {
        (void) error_set(&error, ERR_INTERNAL, 0, "the handler gave no answer");
        LOG_ERROR(connection->server->options.log, "handler returned without reply or on_gone",
                  log_text("path", request->head->target));
        http_reply_error(request, &error);
    }
}

void http_dispatch(struct http_connection *connection)
{
    static const struct id none = {.text = ""};
    struct http_request *request = connection->request;

    if (connection->server->options.takes_request_ids)
        take_request_id(request);
    TRACE_FOR(&request->id, &none);
    TRACE_WITH("http.begin", request->head->method);
    connection->dispatched = true;
    request->no_reply_body = strcmp(request->head->method, "HEAD") == 0;
    if (!request->head->keep_alive || connection->server->draining)
        connection->close_after_reply = true;
    answer_request(connection, request);
}
