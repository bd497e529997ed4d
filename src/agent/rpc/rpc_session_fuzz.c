/* A whole session, fed with lines: frames of a peer as they are, and lines that begin with '!' for
 * what services and the port do meanwhile. Whatever happens: the tables agree with each other, no
 * call hears of anything after its end, every call hears of the end, nothing leaks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "agent/rpc/rpc_testing.h"

static void check(bool promise)
{
    if (!promise)
        abort();
}

/* Ours are in flight for somebody, and everybody knows how many. */
static void check_session(struct testing *testing)
{
    const struct rpc_session *session = testing->session;
    size_t in_flight = 0, pipes = 0, running = 0, input = 0;

    LIST_EACH (&session->calls, at) {
        const struct rpc_call *call = CONTAINER_OF(at, struct rpc_call, link);

        running += call->running;
        if (call->outlet) {
            in_flight += call->outlet->in_flight;
            pipes += call->outlet->pipe && !call->outlet->closed;
            check(call->outlet->unacked < RPC_WINDOW + RPC_CHUNK_MAX);
            check(!call->running == !call->outlet->call);
        }
        if (call->callbacks)
            in_flight += call->callbacks->in_flight;
        check(!call->running || call->arguments);
    }
    LIST_EACH (&session->inlets, at) {
        const struct rpc_inlet *inlet = CONTAINER_OF(at, struct rpc_inlet, link);

        check(!inlet->reader || inlet->reader->inlet == inlet);
        check(inlet->id >= 0);
        input++;
    }
    check(session->imports.count == in_flight + pipes);
    check(session->running == running);
    check(input || !session->input);
    check(session->exports.count <= RPC_EXPORTS_MAX + 1);
    check(session->kept <= RPC_KEPT_MAX);
    check(session->ended || session->exports.count <= (size_t) session->peer_id);
    check(session->ended || session->imports.count <= (size_t) session->own_id);
}

static struct kept_call *some_call(struct testing *testing, size_t choice)
{
    size_t count =
        testing->kept_count < TESTING_CALLS_MAX ? testing->kept_count : TESTING_CALLS_MAX;
    struct kept_call *kept = count ? &testing->kept[choice % count] : NULL;

    return kept && kept->call ? kept : NULL;
}

static void produce(struct call *call, char what, size_t size)
{
    static char block[64 * 1024];

    if (call->state == CALL_EVENTS)
        call_event(call, what & 1 ? "stdout" : "result", "{\"type\":\"x\",\"text\":\"t\"}", 23);
    else if (call->state != CALL_FRESH && !call_is_full(call))
        call_write(call, block, size * 251 % sizeof(block));
}

static void finish(struct kept_call *kept, char what)
{
    struct call *call = testing_take(kept);

    if (call->state == CALL_FRESH && what == 'e')
        testing_reply(call, "{\"l\":[1,2]}");
    else if (call->state == CALL_FRESH)
        call_fail_text(call, API_INTERNAL_ERROR, "told to");
    else if (what == 'e')
        call_end(call);
    else
        call_break(call);
}

/* '!', what to do, which call. */
static void act(struct testing *testing, const char *line, size_t length)
{
    struct kept_call *kept = some_call(testing, length > 2 ? (uint8_t) line[2] : 0);

    switch (length > 1 ? line[1] : 0) {
    case 'f':
        testing->full = !testing->full;
        if (!testing->full)
            rpc_session_drained(testing->session);
        break;
    case 'w':
    case 'v':
        if (kept)
            produce(kept->call, line[1], length);
        break;
    case 'p':
        if (kept)
            kept->pause_on_input = !kept->pause_on_input;
        break;
    case 'r':
        if (kept && kept->call->has_input)
            call_resume_input(kept->call);
        break;
    case 'e':
    case 'b':
        if (kept)
            finish(kept, line[1]);
        break;
    case 'x':
        rpc_session_abort(testing->session, "told to");
        break;
    default:
        break;
    }
}

static void feed(struct testing *testing, const char *line, size_t length)
{
    if (length && line[0] == '!')
        act(testing, line, length);
    else if (!testing->held)
        rpc_session_receive(testing->session, line, length);
    if (length % 3) /* several things may happen in one turn */
        testing_settle(testing);
    check_session(testing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct testing *testing = testing_new();
    const char *at = (const char *) data, *end = at + size;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        size_t length = (size_t) ((stop ? stop : end) - at);

        feed(testing, at, length);
        at += length + 1;
    }
    testing_settle(testing);
    check_session(testing);
    testing_free(testing);
    return 0;
}
