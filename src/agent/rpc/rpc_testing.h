/* For tests and fuzzers of capnweb sessions: a port that writes frames down, and operations that do
 * what they are told. Included by test programs only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/rpc/rpc_expression.h"
#include "agent/rpc/rpc_session.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "net/byte_queue.h"

#define TESTING_FRAMES_MAX ((size_t) 256 * 1024 * 1024)
#define TESTING_CALLS_MAX  (RPC_CALLS_MAX + 1)

/* A call that an operation keeps. In `kept` until it ended or is gone. */
struct kept_call {
    struct call *call; /* NULL: over */
    const char *name;  /* of its operation */
    struct text input;
    size_t drains;
    bool gone;
    bool input_ended;
    bool input_complete;
    bool pause_on_input;
};

struct testing {
    struct agent agent; /* first: calls point at it */
    struct clock_manual clock;
    struct block_store *blocks;
    struct rpc_session *session;
    struct text frames; /* what the session sent, a line each */
    size_t read;        /* bytes of it that testing_next gave out */
    bool full;
    bool held;
    bool closed;
    bool woken;
    struct kept_call kept[TESTING_CALLS_MAX];
    size_t kept_count;  /* ever; they are reused in a ring */
    struct text answer; /* what "test.big" replies; empty: {} */
};

static inline struct testing *testing_of(const struct call *call)
{
    return CONTAINER_OF(call->agent, struct testing, agent);
}

/* --- the port -------------------------------------------------------------------------------- */

static inline void testing_check(bool promise)
{
    if (!promise)
        abort();
}

static inline void testing_send(void *owner, const char *frame, size_t length)
{
    struct testing *testing = owner;

    testing_check(!testing->closed);
    text_append_bytes(&testing->frames, frame, length);
    text_append_char(&testing->frames, '\n');
}

static inline bool testing_is_full(const void *owner)
{
    return ((const struct testing *) owner)->full;
}

static inline void testing_hold(void *owner, bool held)
{
    struct testing *testing = owner;

    testing_check(testing->held != held);
    testing->held = held;
}

static inline void testing_close(void *owner, const char *reason)
{
    struct testing *testing = owner;

    testing_check(!testing->closed && reason[0]);
    testing->closed = true;
}

static inline void testing_wake(void *owner)
{
    ((struct testing *) owner)->woken = true;
}

static const struct rpc_port testing_port = {
    .send = testing_send,
    .is_full = testing_is_full,
    .hold = testing_hold,
    .close = testing_close,
    .wake = testing_wake,
};

/* --- operations ------------------------------------------------------------------------------ */

static inline void testing_gone(struct call *call)
{
    struct kept_call *kept = call->data;

    testing_check(kept->call == call);
    kept->call = NULL;
    kept->gone = true;
}

static inline void testing_drain(struct call *call)
{
    struct kept_call *kept = call->data;

    testing_check(kept->call == call);
    kept->drains++;
}

static inline void testing_input(struct call *call, const char *bytes, size_t length)
{
    struct kept_call *kept = call->data;

    testing_check(kept->call == call && !kept->input_ended && length);
    text_append_bytes(&kept->input, bytes, length);
    if (kept->pause_on_input)
        call_pause_input(call);
}

static inline void testing_input_end(struct call *call, bool complete)
{
    struct kept_call *kept = call->data;

    testing_check(kept->call == call && !kept->input_ended);
    kept->input_ended = true;
    kept->input_complete = complete;
}

/* NULL when too many are under way: then the call was failed. */
static inline struct kept_call *testing_keep(struct call *call)
{
    struct testing *testing = testing_of(call);
    struct kept_call *kept = &testing->kept[testing->kept_count % TESTING_CALLS_MAX];

    if (kept->call) {
        call_fail_text(call, API_RESOURCE_BUSY, "too many");
        return NULL;
    }
    testing->kept_count++;
    text_done(&kept->input);
    *kept = (struct kept_call){
        .call = call, .name = call->operation->name, .input = TEXT_INIT(TESTING_FRAMES_MAX)};
    call->data = kept;
    call->on_gone = testing_gone;
    call->on_drain = testing_drain;
    return kept;
}

/* The call, which the caller is about to end. */
static inline struct call *testing_take(struct kept_call *kept)
{
    return TAKE_PTR(kept->call);
}

static inline struct kept_call *testing_last(struct testing *testing)
{
    testing_check(testing->kept_count);
    return &testing->kept[(testing->kept_count - 1) % TESTING_CALLS_MAX];
}

static inline void testing_reply(struct call *call, const char *json)
{
    AUTO(text) struct text body = TEXT_INIT(RPC_ANSWER_MAX);

    text_append(&body, json);
    call_reply(call, &body);
}

/* {"arguments": ..., "session": ...} */
static inline void testing_echo(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(RPC_ANSWER_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_key(&json, "arguments");
    json_put_value(&json, call->arguments);
    json_add_text(&json, "session", call->session);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        call_fail_text(call, API_INTERNAL_ERROR, "too deep");
    else
        call_reply(call, &body);
}

static inline void testing_fail(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    api_error_fill(&error, API_FILE_NOT_FOUND, "File not found: \"/nope\"");
    text_append(&error.context, "{\"path\":\"/nope\",\"tried\":[1,[2]]}");
    call_fail(call, &error);
}

static inline void testing_big(struct call *call)
{
    struct testing *testing = testing_of(call);

    if (testing->answer.length)
        call_reply(call, &testing->answer);
    else
        testing_reply(call, "{}");
}

static inline void testing_later(struct call *call)
{
    (void) testing_keep(call);
}

static inline void testing_events(struct call *call)
{
    if (testing_keep(call))
        call_begin_events(call);
}

static inline void testing_bytes(struct call *call)
{
    AUTO(text) struct text head = TEXT_INIT(256);

    text_append(&head, "{\"success\":true,\"sizes\":[1,2]}");
    if (testing_keep(call))
        call_begin_bytes(call, &head);
}

static inline void testing_json(struct call *call)
{
    if (testing_keep(call))
        call_begin_json(call);
}

static inline void testing_upload(struct call *call)
{
    struct kept_call *kept = testing_keep(call);

    if (!kept || !call->has_input)
        return;
    call->on_input = testing_input;
    call->on_input_end = testing_input_end;
    call_take_input(call);
}

static inline json_t *testing_list_result(json_t *reply)
{
    (void) reply;
    return json_pack("[i,[i],{s:{s:[s,i]},s:{s:[s]}}]", 1, 2, "at", OPERATION_RAW, "date", 7,
                     "none", OPERATION_RAW, "undefined");
}

static inline void testing_list(struct call *call)
{
    testing_reply(call, "{}");
}

static const struct operation testing_rows[] = {
    {.rpc = "test.echo",
     .parameters = {"a", "sessionId", "*"},
     .run = testing_echo,
     .name = "test.echo"},
    {.rpc = "test.fail", .run = testing_fail, .name = "test.fail"},
    {.rpc = "test.big", .run = testing_big, .name = "test.big"},
    {.rpc = "test.list",
     .run = testing_list,
     .rpc_result = testing_list_result,
     .name = "test.list"},
    {.rpc = "test.later", .run = testing_later, .name = "test.later"},
    {.rpc = "test.events", .run = testing_events, .name = "test.events", .has_events = true},
    {.rpc = "commands.executeStream",
     .run = testing_fail,
     .name = "command.stream",
     .has_events = true},
    {.rpc = "test.bytes", .run = testing_bytes, .name = "test.bytes"},
    {.rpc = "test.json", .run = testing_json, .name = "test.json"},
    {.rpc = "test.upload",
     .parameters = {"path", "<", "sessionId"},
     .run = testing_upload,
     .name = "test.upload"},
    {.rpc = "test.run",
     .parameters = {"code", ">", "timeoutMs"},
     .run = testing_events,
     .name = "test.run",
     .has_events = true},
};

static inline const struct operation *testing_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(testing_rows); i++) {
        if (strcmp(testing_rows[i].rpc, name) == 0)
            return &testing_rows[i];
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------ */

static inline struct testing *testing_new(void)
{
    struct testing *testing = mem_alloc(sizeof(*testing));

    clock_manual_init(&testing->clock, 1000);
    testing->agent.clock = &testing->clock.clock;
    testing->blocks = block_store_new(4);
    testing->frames = (struct text) TEXT_INIT(TESTING_FRAMES_MAX);
    testing->answer = (struct text) TEXT_INIT(TESTING_FRAMES_MAX);
    testing->session = rpc_session_new(&(struct rpc_session_options){
        .agent = &testing->agent,
        .port = &testing_port,
        .owner = testing,
        .blocks = testing->blocks,
        .find = testing_find,
    });
    return testing;
}

static inline void testing_free(struct testing *testing)
{
    rpc_session_free(testing->session);
    for (size_t i = 0; i < TESTING_CALLS_MAX; i++) {
        testing_check(!testing->kept[i].call); /* everybody was told */
        text_done(&testing->kept[i].input);
    }
    block_store_free(testing->blocks);
    text_done(&testing->frames);
    text_done(&testing->answer);
    free(testing);
}

AUTO_DEFINE_PTR(testing, struct testing, testing_free);

/* Turns of the loop until nothing is put off. */
static inline void testing_settle(struct testing *testing)
{
    for (int i = 0; testing->woken && i < 10000; i++) {
        testing->woken = false;
        rpc_session_settle(testing->session);
    }
    testing_check(!testing->woken);
}

static inline void testing_receive(struct testing *testing, const char *frame)
{
    rpc_session_receive(testing->session, frame, strlen(frame));
    testing_settle(testing);
}

/* The next frame that was sent, or NULL. Borrowed until the next is sent; NUL-terminated. */
static inline const char *testing_next(struct testing *testing)
{
    char *line = testing->frames.data ? testing->frames.data + testing->read : NULL;
    char *end = line ? strchr(line, '\n') : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    testing->read = (size_t) (end + 1 - testing->frames.data);
    return line;
}
