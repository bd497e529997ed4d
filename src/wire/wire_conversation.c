#include "wire/wire_conversation.h"

#include <poll.h>

#include "wire/wire_done.h"

/* Room for the answer to every open request is never taken by events. */
#define WIRE_EVENTS_WAITING_MAX (WIRE_WAITING_MAX - WIRE_REQUESTS_MAX)

_Static_assert(WIRE_EVENTS_WAITING_MAX > 0, "events can wait at all");

int wire_conversation_init(struct wire_conversation *conversation, enum wire_end end, int fd,
                           struct error *err)
{
    *conversation = (struct wire_conversation){.end = end, .state = WIRE_FRESH};
    wire_requests_init(&conversation->requests);
    return wire_channel_init(&conversation->channel, fd, err);
}

void wire_conversation_end(struct wire_conversation *conversation, const struct error *reason)
{
    struct error over = ERROR_INIT;
    struct wire_request *open;

    (void) error_set(&over, ERR_UNAVAILABLE, 0, "the conversation with the launcher is over");
    conversation->ended = true;
    wire_channel_done(&conversation->channel);
    while ((open = wire_requests_oldest(&conversation->requests))) {
        struct wire_request request = wire_requests_remove(&conversation->requests, open);
        TRACE_AS(&request.trace);

        if (request.answer.call)
            request.answer.call(request.answer.context, NULL, reason ?: &over);
    }
}

/* A message of the launcher changes the state where it is sent and where it is received. */
static void follow(struct wire_conversation *conversation, const struct wire_message *message)
{
    conversation->state = wire_permit_after(conversation->state, message->number);
    if (message->number == WIRE_MESSAGE_WELCOME)
        conversation->channel.version = message->welcome.version;
}

/* The launcher's half of receiving. */
static enum wire_received take_request(struct wire_conversation *conversation,
                                       const struct wire_message *message, struct error *err)
{
    struct error refusal = ERROR_INIT;
    TRACE_FOR(&message->trace, NULL);

    TRACE_WITH("wire.asked", wire_message_name(message->number));
    if (wire_requests_note(&conversation->requests, message->request, message->number, err) < 0)
        return WIRE_FAILED;
    if (wire_permit(conversation->state, message->number) == WIRE_ALLOW)
        return WIRE_MESSAGE;
    (void) error_set(&refusal, ERR_UNAVAILABLE, 0, "the launcher is stopping");
    if (wire_conversation_answer_done(conversation, message->request, &refusal, err) < 0)
        return WIRE_FAILED;
    return WIRE_SETTLED;
}

/* What a reply means: 0 for success, -1 with the failure. */
static int outcome_of(const struct wire_message *reply, struct error *failure)
{
    if (reply->number == WIRE_MESSAGE_DONE)
        return wire_done_get(&reply->done, failure);
    if (reply->number == WIRE_MESSAGE_REFUSED)
        return error_set(failure, ERR_UPGRADE_REQUIRED, 0, "%s", reply->refused.message);
    return 0;
}

static int check_welcome(const struct wire_message *message, struct error *err)
{
    unsigned int version = message->welcome.version;

    if (message->number != WIRE_MESSAGE_WELCOME ||
        (version >= WIRE_VERSION_MIN && version <= WIRE_VERSION_MAX))
        return 0;
    return error_set(err, ERR_UPGRADE_REQUIRED, 0,
                     "the launcher chose version %u, which was not offered", version);
}

/* A reply goes to whoever asked. */
static void tell_answer(const struct wire_request *request, struct wire_incoming *incoming)
{
    struct error failure = ERROR_INIT;
    bool failed = outcome_of(&incoming->message, &failure) < 0;
    TRACE_AS(&request->trace);

    TRACE_WITH(failed ? "wire.failed" : "wire.answered", wire_message_name(request->message));
    request->answer.call(request->answer.context, failed ? NULL : incoming,
                         failed ? &failure : NULL);
}

/* The daemon's half. */
static enum wire_received take_reply(struct wire_conversation *conversation,
                                     struct wire_incoming *incoming, struct error *err)
{
    struct wire_request *open =
        wire_requests_find(&conversation->requests, &incoming->message, err);
    struct wire_request request;

    if (!open || check_welcome(&incoming->message, err) < 0)
        return WIRE_FAILED;
    /* Out of the table first: the callback may ask again or end the conversation. */
    request = wire_requests_remove(&conversation->requests, open);
    follow(conversation, &incoming->message);
    tell_answer(&request, incoming);
    return WIRE_SETTLED;
}

static enum wire_received deal_with(struct wire_conversation *conversation,
                                    struct wire_incoming *incoming, struct error *err)
{
    const struct wire_message *message = &incoming->message;

    if (wire_permit_receive(conversation->end, conversation->state, message->number, err) < 0)
        return WIRE_FAILED;
    if (conversation->end == WIRE_LAUNCHER)
        return take_request(conversation, message, err);
    if (wire_message_row(message->number)->type == WIRE_REPLY)
        return take_reply(conversation, incoming, err);
    follow(conversation, message);
    return WIRE_MESSAGE;
}

enum wire_received wire_conversation_receive(struct wire_conversation *conversation,
                                             struct wire_incoming *ret_incoming, struct error *err)
{
    enum wire_received received;
    int result;

    ret_incoming->fd_count = 0;
    if (conversation->ended) {
        (void) error_set(err, ERR_GONE, 0, "the conversation is over");
        return WIRE_FAILED;
    }
    if (!(wire_conversation_events(conversation) & POLLIN))
        return WIRE_NOTHING;
    result = wire_channel_receive(&conversation->channel, ret_incoming, err);
    if (result <= 0)
        return result < 0 ? WIRE_FAILED : WIRE_NOTHING;
    received = deal_with(conversation, ret_incoming, err);
    if (received != WIRE_MESSAGE)
        wire_incoming_done(ret_incoming);
    return received;
}

short wire_conversation_events(const struct wire_conversation *conversation)
{
    if (!wire_channel_is_waiting(&conversation->channel))
        return POLLIN;
    return conversation->end == WIRE_LAUNCHER ? POLLOUT : POLLIN | POLLOUT;
}

int wire_conversation_flush(struct wire_conversation *conversation, struct error *err)
{
    return wire_channel_flush(&conversation->channel, err);
}

/* Send as the launcher, and change the state with it. */
static int send_and_follow(struct wire_conversation *conversation,
                           const struct wire_message *message, const int *fds, size_t count,
                           struct error *err)
{
    if (wire_permit(conversation->state, message->number) != WIRE_ALLOW)
        return error_set(err, ERR_FORBIDDEN, 0, "'%s' cannot be sent while the conversation is %s",
                         wire_message_name(message->number), wire_state_name(conversation->state));
    if (wire_channel_send(&conversation->channel, message, fds, count, err) < 0)
        return -1;
    follow(conversation, message);
    return 0;
}

/* Before it is sent: behind that the other end may be first. */
static void trace_answer(const struct wire_request *request)
{
    TRACE_FOR(&request->trace.request, NULL);

    TRACE_WITH("wire.answer", wire_message_name(request->message));
}

int wire_conversation_answer(struct wire_conversation *conversation, uint64_t request,
                             struct wire_message *reply, const int *fds, size_t count,
                             struct error *err)
{
    struct wire_request *open;

    reply->request = request;
    if (conversation->ended)
        return error_set(err, ERR_GONE, 0, "the conversation is over");
    open = wire_requests_find(&conversation->requests, reply, err);
    if (!open)
        return -1;
    trace_answer(open);
    if (send_and_follow(conversation, reply, fds, count, err) < 0)
        return -1;
    (void) wire_requests_remove(&conversation->requests, open);
    return 0;
}

int wire_conversation_answer_done(struct wire_conversation *conversation, uint64_t request,
                                  const struct error *failure, struct error *err)
{
    struct wire_message reply;

    wire_done_set(&reply, failure);
    return wire_conversation_answer(conversation, request, &reply, NULL, 0, err);
}

int wire_conversation_welcome(struct wire_conversation *conversation,
                              const struct wire_message *hello, const struct wire_welcome *welcome,
                              struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_WELCOME, .welcome = *welcome};
    unsigned int version;

    if (wire_version_choose(&hello->hello, &version, err) == 0) {
        reply.welcome.version = (uint16_t) version;
        return wire_conversation_answer(conversation, hello->request, &reply, NULL, 0, err);
    }
    reply = (struct wire_message){
        .number = WIRE_MESSAGE_REFUSED,
        .refused = {.version_min = WIRE_VERSION_MIN, .version_max = WIRE_VERSION_MAX}};
    if (err)
        wire_text_set(reply.refused.message, sizeof(reply.refused.message), err->message);
    /* When even this cannot be sent, closing says the same. */
    (void) wire_conversation_answer(conversation, hello->request, &reply, NULL, 0, NULL);
    return -1;
}

int wire_conversation_tell(struct wire_conversation *conversation, struct wire_message *event,
                           struct error *err)
{
    event->request = 0;
    if (conversation->ended)
        return error_set(err, ERR_GONE, 0, "the conversation is over");
    if (conversation->channel.waiting_count >= WIRE_EVENTS_WAITING_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "the daemon does not read its events");
    return send_and_follow(conversation, event, NULL, 0, err);
}

static int check_ask(const struct wire_conversation *conversation, enum wire_number number,
                     struct error *err)
{
    if (conversation->ended)
        return error_set(err, ERR_UNAVAILABLE, 0, "the conversation with the launcher is over");
    if (wire_permit_receive(WIRE_LAUNCHER, conversation->state, number, err) < 0)
        return -1;
    if (wire_permit(conversation->state, number) == WIRE_REFUSE)
        return error_set(err, ERR_UNAVAILABLE, 0, "the launcher is stopping");
    return 0;
}

int wire_conversation_ask(struct wire_conversation *conversation, struct wire_message *request,
                          const int *fds, size_t count, struct wire_answer answer,
                          struct error *err)
{
    struct wire_request *open;

    if (check_ask(conversation, request->number, err) < 0)
        return -1;
    open = wire_requests_add(&conversation->requests, request->number, answer, err);
    if (!open)
        return -1;
    request->request = open->number;
    request->trace = trace_context.request;
    TRACE_WITH("wire.ask", wire_message_name(request->number));
    if (wire_channel_send(&conversation->channel, request, fds, count, err) == 0)
        return 0;
    (void) wire_requests_remove(&conversation->requests, open);
    return -1;
}

int wire_conversation_hello(struct wire_conversation *conversation, const char *program,
                            struct wire_answer answer, struct error *err)
{
    struct wire_message message = {
        .number = WIRE_MESSAGE_HELLO,
        .hello = {.version_min = WIRE_VERSION_MIN, .version_max = WIRE_VERSION_MAX}};

    wire_text_set(message.hello.program, sizeof(message.hello.program), program);
    return wire_conversation_ask(conversation, &message, NULL, 0, answer, err);
}
