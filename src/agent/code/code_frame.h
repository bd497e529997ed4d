/* What executors say: lines of JSON on the channel of a context, read as from a stranger, because
 * the code a context runs can write there too.
 *
 *     {"type":"ready","pid":71}                       the context may be given code
 *     {"type":"failed","errno":2}                     it cannot start: its directory
 *     {"type":"result","text":"2","metadata":{}}      one value in any of the forms below
 *     {"type":"error","ename":"ValueError","evalue":"...","traceback":["..."]}
 *     {"type":"end"}                                  the code has ended
 *
 * The other way go {"directory","anyDirectory","environment"} once, to Python only, and
 * {"code","language"} for each run. Output is no frame: it is what is written to descriptors 1 and
 * 2. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/text.h"

/* Longest line: all forms of one value. Executors keep to less. */
#define CODE_FRAME_MAX ((size_t) 16 * 1024 * 1024)
/* Its events, should every byte need six. */
#define CODE_EVENT_MAX (CODE_FRAME_MAX * 6)
/* Values inside a line. */
#define CODE_FRAME_VALUES ((size_t) 128 * 1024)

enum code_frame_type {
    CODE_FRAME_READY,
    CODE_FRAME_FAILED,
    CODE_FRAME_RESULT,
    CODE_FRAME_ERROR,
    CODE_FRAME_END,
    CODE_FRAME_TYPES,
};

struct code_frame {
    enum code_frame_type type;
    pid_t pid;     /* ready: greater than 1 */
    int error;     /* failed: -errno */
    json_t *value; /* owned: the whole object */
};

/* Read one line, without its newline. Returns 0, or -EBADMSG for anything that is no frame. Only
 * what is described above is ever looked at; what is missing or of another type in a result or an
 * error counts as absent. */
int code_frame_read(const char *line, size_t length, struct code_frame *ret_frame);

void code_frame_done(struct code_frame *frame);

AUTO_DEFINE(code_frame, struct code_frame, code_frame_done);

/* Append the event that clients get for a result or an error, one object without line breaks.
 * `ename` and `evalue`, when not NULL, stand in for the frame's own. Returns 0, or -EOVERFLOW. */
int code_frame_write_event(const struct code_frame *frame, const char *ename, const char *evalue,
                           struct text *event);

/* The same for an error that is ours; its traceback is empty. */
int code_frame_write_error(const char *ename, const char *evalue, struct text *event);
