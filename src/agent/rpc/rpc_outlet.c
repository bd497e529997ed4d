#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "base/memory.h"

/* The service is told to wait above the first, to go on below the second. */
#define HIGH_WATER ((size_t) 128 * 1024)
#define LOW_WATER  ((size_t) 32 * 1024)
/* A service that does not listen; one event may be as large as an answer. */
#define QUEUE_MAX RPC_ANSWER_MAX

struct rpc_outlet *rpc_outlet_new(struct rpc_call *call)
{
    struct rpc_outlet *outlet = mem_alloc(sizeof(*outlet));

    outlet->session = call->answer.session;
    outlet->call = call;
    byte_queue_init(&outlet->queue, outlet->session->blocks);
    list_append(&outlet->session->outlets, &outlet->link);
    return outlet;
}

void rpc_outlet_free(struct rpc_outlet *outlet)
{
    list_remove(&outlet->link);
    byte_queue_done(&outlet->queue);
    free(outlet);
}

void rpc_outlet_open(struct rpc_outlet *outlet)
{
    AUTO(text) struct text message = TEXT_INIT(16);

    text_append(&message, "[\"pipe\"]");
    rpc_send(outlet->session, &message);
    outlet->pipe = rpc_import(outlet->session, RPC_IMPORT_PIPE, outlet, 0);
    rpc_wake(outlet->session);
}

bool rpc_outlet_is_full(const struct rpc_outlet *outlet)
{
    return !outlet->closed && byte_queue_length(&outlet->queue) >= HIGH_WATER;
}

void rpc_outlet_write(struct rpc_outlet *outlet, const void *bytes, size_t length)
{
    if (outlet->closed || outlet->broken)
        return;
    if (length > QUEUE_MAX - byte_queue_length(&outlet->queue)) {
        outlet->broken = true;
        outlet->call->gone_due = true;
    } else {
        byte_queue_append(&outlet->queue, bytes, length);
        outlet->was_full = outlet->was_full || rpc_outlet_is_full(outlet);
    }
    rpc_wake(outlet->session);
}

void rpc_outlet_probe(struct rpc_outlet *outlet)
{
    if (outlet->pipe && !outlet->ended && outlet->call && outlet->call->call.state == CALL_EVENTS &&
        !outlet->in_flight && !byte_queue_length(&outlet->queue))
        rpc_outlet_write(outlet, ":\n\n", 3);
}

void rpc_outlet_end(struct rpc_outlet *outlet, bool broken)
{
    outlet->ended = true;
    outlet->broken = outlet->broken || broken;
    outlet->call = NULL;
    rpc_wake(outlet->session);
}

/* --- sending --------------------------------------------------------------------------------- */

static bool has_window(const struct rpc_outlet *outlet)
{
    return outlet->unacked < RPC_WINDOW && outlet->in_flight < RPC_WINDOW_MESSAGES &&
           outlet->session->imports.count < RPC_IMPORTS_MAX;
}

static void send_piece(struct rpc_outlet *outlet, struct text *message, size_t size)
{
    rpc_send(outlet->session, message);
    (void) rpc_import(outlet->session, RPC_IMPORT_PIECE, outlet, size);
    outlet->unacked += size;
    outlet->in_flight++;
}

static void rpc_outlet_begin(const struct rpc_outlet *outlet, struct text *message,
                             const char *method)
{
    text_format(message, "[\"stream\",[\"pipeline\",%lld,[\"%s\"],[", (long long) outlet->pipe,
                method);
}

/* Blocks of the queue in one piece of memory: base64 wants multiples of three. */
static size_t copy_front(const struct byte_queue *queue, char *ret_bytes, size_t room)
{
    struct iovec parts[RPC_CHUNK_MAX / BYTE_BLOCK_SIZE + 2];
    int count = byte_queue_peek(queue, parts, (int) ARRAY_COUNT(parts));
    size_t length = 0;

    for (int i = 0; i < count && length < room; i++) {
        size_t part = parts[i].iov_len < room - length ? parts[i].iov_len : room - length;

        memcpy(ret_bytes + length, parts[i].iov_base, part);
        length += part;
    }
    return length;
}

static void rpc_outlet_send_bytes(struct rpc_outlet *outlet)
{
    AUTO(text) struct text message = TEXT_INIT(RPC_CHUNK_MAX * 2);
    size_t room = byte_queue_length(&outlet->queue);
    AUTO(free) char *bytes = NULL;
    size_t length;

    room = room < RPC_CHUNK_MAX ? room : RPC_CHUNK_MAX;
    bytes = mem_alloc(room);
    length = copy_front(&outlet->queue, bytes, room);
    byte_queue_consume(&outlet->queue, length);
    rpc_outlet_begin(outlet, &message, "write");
    rpc_expression_write_bytes(&message, bytes, length);
    text_append(&message, "]]]");
    send_piece(outlet, &message, length);
}

static void send_close(struct rpc_outlet *outlet)
{
    AUTO(text) struct text message = TEXT_INIT(512);

    rpc_outlet_begin(outlet, &message, outlet->broken ? "abort" : "close");
    if (outlet->broken)
        text_append(&message, "[\"error\",\"Error\",\"the stream broke off\",null,"
                              "{\"code\":\"INTERNAL_ERROR\"}]");
    text_append(&message, "]]]");
    outlet->closing = true;
    send_piece(outlet, &message, 0);
}

bool rpc_outlet_pump(struct rpc_outlet *outlet)
{
    if (!outlet->pipe || outlet->closing || outlet->closed || !has_window(outlet) ||
        rpc_port_is_full(outlet->session))
        return false;
    if (byte_queue_length(&outlet->queue))
        rpc_outlet_send_bytes(outlet);
    else if (outlet->ended || outlet->broken)
        send_close(outlet);
    else
        return false;
    return true;
}

/* --- being answered -------------------------------------------------------------------------- */

static void close_pipe(struct rpc_outlet *outlet)
{
    outlet->closed = true;
    byte_queue_done(&outlet->queue);
    if (!outlet->pipe)
        return;
    rpc_table_remove(&outlet->session->imports, outlet->pipe);
    rpc_send_release(outlet->session, outlet->pipe);
}

void rpc_outlet_cancel(struct rpc_outlet *outlet)
{
    if (outlet->closed)
        return;
    close_pipe(outlet);
    if (outlet->call) {
        outlet->call->gone_due = true;
        rpc_wake(outlet->session);
    }
}

/* A refused piece says that the reader left; once the end is sent, that is no news. */
void rpc_outlet_answered(struct rpc_outlet *outlet, size_t size, bool rejected)
{
    outlet->unacked -= size;
    outlet->in_flight--;
    if (rejected && !outlet->closing)
        rpc_outlet_cancel(outlet);
    else if (outlet->closing && !outlet->closed && !outlet->in_flight)
        close_pipe(outlet);
    rpc_wake(outlet->session);
}

void rpc_outlet_tell_drain(struct rpc_outlet *outlet)
{
    if (!outlet->was_full || outlet->closed || byte_queue_length(&outlet->queue) > LOW_WATER)
        return;
    outlet->was_full = false;
    if (outlet->call && !outlet->call->gone_due)
        call_tell_drain(&outlet->call->call);
}

bool rpc_outlet_is_done(const struct rpc_outlet *outlet)
{
    return outlet->closed && !outlet->in_flight;
}
