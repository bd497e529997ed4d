/* What is known of one run of a program that prints its work as lines of JSON: lines go in, what is news
 * goes to the listener in OpenCode's form, and the result is read off in the end. Pure but for what the
 * listener does; the program is not trusted, everything is bounded.
 *
 *     claude    claude -p --output-format stream-json --verbose --include-partial-messages
 *     codex     codex exec --json
 *     command   any program. A line is one of
 *                   {"session": ID}                               the next turn gets it back
 *                   {"delta": TEXT, "part": ID}                   a piece of a text
 *                   {"type":"text"|"reasoning"|"tool", ...}       a part, as OpenCode has them
 *                   {"type":"error", "message": TEXT}             the turn has failed
 *                   {"usage":{"input","output",...}, "cost": USD} so far
 *               and what is no JSON object is text. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/text.h"
#include "domain/harness.h"

#define RUN_SESSION_MAX ((size_t) 128)
#define RUN_PARTS_MAX   10000
#define RUN_LINE_MAX    ((size_t) 4 * 1024 * 1024)

struct run_record;

/* How a kind of program speaks. */
struct run_language {
    const char *kind;
    void (*line)(struct run_record *record, const json_t *line);
    bool takes_text; /* what is no JSON is said, too */
};

struct run_record {
    const struct run_language *language;
    const struct harness_listener *listener;
    void *context;
    char session[RUN_SESSION_MAX + 1]; /* "": not told */
    json_t *told;                      /* owned: id -> hash of what was told of that part */
    json_t *parts;                     /* owned: of the last message, [part] */
    json_t *calls;                     /* owned: tools that were begun, id -> part */
    struct text answer;                /* of the result, when the program says so */
    char model[128];
    struct harness_usage usage;
    struct error failure;
    unsigned int messages, blocks; /* that were begun; in the present message */
    bool has_answer, has_failed, is_over;
    bool is_resumed;  /* a conversation that goes on: sums may be over all of it */
    bool is_repeated; /* lines of before come again: pieces were told */
};

/* NULL for a kind that nobody knows. */
const struct run_language *run_language_find(const char *kind);

void run_record_init(struct run_record *record, const struct run_language *language,
                     const struct harness_listener *listener, void *context);
void run_record_done(struct run_record *record);

void run_record_line(struct run_record *record, const char *line, size_t length);

/* Call `ended`; once. */
void run_record_tell(struct run_record *record, const struct error *failure, bool was_cancelled);

/* --- for languages --------------------------------------------------------------------------- */

extern const struct run_language claude_language, codex_language, command_language;

void run_record_session(struct run_record *record, const char *session);
void run_record_delta(struct run_record *record, const char *part_id, const json_t *text);
/* A text that is complete, "text" or "reasoning". */
void run_record_text(struct run_record *record, const char *part_id, const char *type,
                     const json_t *text);
/* A call of a tool, and how it ended; `output` may be any JSON. */
void run_record_call(struct run_record *record, const char *call, const char *tool, json_t *input);
void run_record_called(struct run_record *record, const char *call, const json_t *output,
                       bool is_error);
/* A whole part; its "id" is part_id from then on. */
void run_record_part(struct run_record *record, const char *part_id, json_t *part);
void run_record_fail(struct run_record *record, const char *name, const json_t *message);
uint64_t run_record_number(const json_t *object, const char *key);
