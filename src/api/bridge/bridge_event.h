/* What the agent tells about a command, in the words of the bridge.
 *
 *     {"type":"stdout","data":"aGkK"}       stdout   aGkK
 *     {"type":"complete","exitCode":3}      exit     {"exit_code":3}
 *     {"type":"error","error":"..."}        error    {"error":"...","code":"exec_error"}
 *
 * Output travels as base64 all the way, so bytes arrive as they were written. Clients decode each
 * event by itself as UTF-8, so a character is never split between two: what has only begun at the
 * end of one event is held for the next. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/text.h"

enum bridge_output { BRIDGE_STDOUT, BRIDGE_STDERR, BRIDGE_OUTPUTS };

/* The beginning of a character, per output. Zeroed at first. */
struct bridge_held {
    struct {
        char bytes[4];
        size_t length;
    } output[BRIDGE_OUTPUTS];
};

struct bridge_event {
    const char *type; /* static; NULL: nothing to tell */
    struct text data;
    bool is_last;
};

#define BRIDGE_EVENT_MAX ((size_t) 4 * 1024 * 1024)
#define BRIDGE_EVENT_INIT                                                                          \
    {                                                                                              \
        .data = TEXT_INIT(BRIDGE_EVENT_MAX)                                                        \
    }

void bridge_event_done(struct bridge_event *event);
AUTO_DEFINE(bridge_event, struct bridge_event, bridge_event_done);

/* Translate one event of the agent's, which may be anything. */
void bridge_event_read(struct bridge_event *event, struct bridge_held *held, json_t *told);

/* What is still held of an output, before the last event. */
void bridge_event_flush(struct bridge_event *event, struct bridge_held *held,
                        enum bridge_output output);

/* The end of a command that could not be run, or followed to its end. */
void bridge_event_fail(struct bridge_event *event, const char *reason);
