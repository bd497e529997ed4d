/* A CONNECT: asked for, dialled, and only then answered with 200, so that a client learns why not. What
 * follows is an arrival's; to port 80 it is plain HTTP, and each request is asked for by itself. */
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"
#include "broker/refusal.h"

#define PLAIN_PORT 80

struct connecting {
    struct broker_outlet *outlet;
    struct http_request *request;
    struct broker_passage *passage; /* owned */
    struct dial *dial;
};

static void connecting_free(struct connecting *connecting, const char *failure)
{
    if (connecting->dial)
        dial_cancel(connecting->dial);
    if (connecting->passage)
        passage_end(connecting->passage, failure);
    free(connecting);
}

static void connecting_gone(struct http_request *request)
{
    connecting_free(request->data, "the client left");
}

static void connecting_refuse(struct connecting *connecting, const struct error *error,
                              const char *type)
{
    struct http_request *request = connecting->request;
    struct error copy = *error;
    AUTO(text) struct text body = TEXT_INIT(ERROR_MESSAGE_MAX * 8);
    int status = error_http_status(copy.code);

    request->on_gone = NULL;
    refusal_write(&body, BROKER_UNMETERED, &copy, type);
    connecting->passage->record.status = (unsigned int) status;
    connecting_free(connecting, copy.message);
    http_reply(request, status, "application/json", text_string(&body), body.length);
}

/* 200, and the connection is no HTTP any more. */
static void connecting_done(struct connecting *connecting, int upstream)
{
    struct http_request *request = connecting->request;
    struct broker_outlet *outlet = connecting->outlet;
    AUTO(text) struct text pending = TEXT_INIT(SIZE_MAX / 2);
    struct stream *client;

    request->on_gone = NULL;
    connecting->passage->record.status = 200;
    client = http_reply_connected(request, &pending);
    arrival_connected(outlet, client, text_string(&pending), pending.length,
                      TAKE_PTR(connecting->passage), upstream);
    connecting_free(connecting, NULL);
}

static void connecting_dialled(void *context, int fd, const struct error *err)
{
    struct connecting *connecting = context;

    connecting->dial = NULL;
    if (!err) {
        connecting_done(connecting, fd);
        return;
    }
    connecting->outlet->engine->counters.failures++;
    connecting_refuse(connecting, err, NULL);
}

static void connecting_answered(void *owner, struct broker_passage *passage,
                                const struct broker_grant *grant)
{
    struct connecting *connecting = owner;
    struct error error;

    if (grant->verdict == BROKER_TUNNEL) {
        connecting->dial = outlet_dial(connecting->outlet, passage->ask.host, passage->ask.port,
                                       grant, connecting_dialled, connecting);
        return;
    }
    if (grant->verdict == BROKER_INTERCEPT) {
        /* Now, while the client can still be told that it is not possible. */
        if (outlet_leaf(connecting->outlet, passage->ask.host, &error))
            connecting_done(connecting, -EBADF);
        else
            connecting_refuse(connecting, &error, NULL);
        return;
    }
    if (grant->verdict == BROKER_DENY && grant->refusal)
        error = *grant->refusal;
    else
        (void) error_set(&error, ERR_INTERNAL, 0, "the answer makes no sense for CONNECT");
    connecting_refuse(connecting, &error, grant->refusal_type);
}

static void connect_plain(struct http_request *request, const struct broker_ask *ask)
{
    struct broker_outlet *outlet = request->context;
    AUTO(text) struct text pending = TEXT_INIT(SIZE_MAX / 2);
    struct http_adoption adoption = {.session =
                                         session_new(outlet, SESSION_PLAIN, ask->host, ask->port)};
    AUTO(free) char *peer = mem_copy_text(request->peer);
    struct stream *client = http_reply_connected(request, &pending);

    adoption.peer = peer;
    adoption.pending = text_string(&pending);
    adoption.pending_length = pending.length;
    http_server_adopt(outlet->server, client, &adoption);
}

void connect_begin(struct http_request *request, const struct broker_ask *ask)
{
    struct connecting *connecting;

    if (ask->port == PLAIN_PORT) {
        connect_plain(request, ask);
        return;
    }
    connecting = mem_alloc(sizeof(*connecting));
    connecting->outlet = request->context;
    connecting->request = request;
    request->data = connecting;
    request->on_gone = connecting_gone;
    connecting->passage = passage_ask(connecting->outlet, ask, connecting_answered, connecting);
}
