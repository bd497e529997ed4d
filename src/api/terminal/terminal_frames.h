/* AgentPod's terminal in JSON frames: how they are read and written. Pure; terminal_relay.h moves
 * them.
 *
 *     client  {"type":"input","data":"ls\r"}   {"type":"resize","cols":80,"rows":24}
 *     server  {"type":"connected","shell":"bash","session":"..."}   {"type":"output","data":"..."}
 *             {"type":"exit","code":0}   {"type":"error","message":"..."}
 *             {"type":"skipped","bytes":n}   (ours: a client that was too slow missed so much)
 *
 * Output is bytes and JSON is text: a character that arrives in two pieces waits for its end, and
 * what is no UTF-8 becomes U+FFFD. However the bytes are cut, the client sees the same text. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define TERMINAL_FRAMES_SIZE_MAX 4096 /* columns and rows */
#define TERMINAL_FRAMES_CARRY    3    /* bytes of an unfinished character */

/* --- output ---------------------------------------------------------------------------------- */

struct terminal_frames {
    char carry[TERMINAL_FRAMES_CARRY];
    size_t carried;
};

/* What the longest frame for so many bytes takes, the carried ones included. */
#define TERMINAL_FRAMES_OUTPUT_MAX(length) (((size_t) (length) + TERMINAL_FRAMES_CARRY) * 6 + 64)

/* Append an output frame; nothing when no whole character has arrived. */
void terminal_frames_output(struct terminal_frames *frames, const char *bytes, size_t length,
                            struct text *frame);

/* No more comes: append what waits, if anything does. */
void terminal_frames_flush(struct terminal_frames *frames, struct text *frame);

void terminal_frames_connected(struct text *frame, const char *shell, const char *session);
void terminal_frames_error(struct text *frame, const char *message);

/* Translate a control message of the agent's (docs/agent-protocol.md, /ws/pty), which is not
 * trusted; appends nothing for those that clients have no use for. */
enum terminal_control { TERMINAL_CONTROL_OTHER, TERMINAL_CONTROL_READY, TERMINAL_CONTROL_EXIT };
enum terminal_control terminal_frames_control(const char *bytes, size_t length, struct text *frame);

/* --- input ----------------------------------------------------------------------------------- */

enum terminal_frame_kind { TERMINAL_FRAME_INPUT, TERMINAL_FRAME_RESIZE };

struct terminal_frame {
    enum terminal_frame_kind kind;
    const char *data; /* of input: borrowed from `document`, may hold NUL */
    size_t length;
    uint16_t columns, rows; /* of resize */
    json_t *document;       /* owned */
};

/* Read what a client sent. Returns 0, and terminal_frame_done is due; or -1 with ERR_INVALID. */
int terminal_frame_read(const char *bytes, size_t length, struct terminal_frame *ret_frame,
                        struct error *err);
void terminal_frame_done(struct terminal_frame *frame);

AUTO_DEFINE(terminal_frame, struct terminal_frame, terminal_frame_done);
