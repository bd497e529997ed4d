/* What is known of one turn with an OpenCode server: events and histories go in, what is news goes to
 * the listener, and the result is read off in the end. Pure but for what the listener does.
 *
 * The turn's own message has an id that ends in the turn's: so it is recognised, also after a restart.
 * Messages of the agent belong to the turn when they answer it, or are younger and of its session.
 * Everything is bounded; what is beyond is not told. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/table.h"
#include "base/text.h"
#include "domain/harness.h"
#include "harness/opencode_event.h"

#define TURN_PARTS_MAX    10000
#define TURN_MESSAGES_MAX 4096
#define TURN_CHILDREN_MAX 64
#define TURN_REQUESTS_MAX 256

#define TURN_TAIL_SIZE 15 /* the end of its message's id, and a NUL */

struct turn_record {
    const struct harness_listener *listener;
    void *context;
    char session[OPENCODE_ID_MAX + 1];
    char user[OPENCODE_ID_MAX + 1]; /* the turn's own message; "": not known yet */
    char tail[TURN_TAIL_SIZE];
    bool has_user; /* the server has it */
    bool is_over;  /* nothing more is told */
    bool is_aborted;
    bool has_failed;
    struct error failure; /* the model's, or the agent's */
    struct table parts;   /* of what was told */
    struct list messages; /* of the agent, with what they used */
    struct list children; /* sessions */
    struct list requests; /* that wait for an answer */
    size_t message_count, child_count, request_count;
    json_t *last; /* owned: the last message of the agent, {"info","parts"}; NULL */
    bool is_last_complete;
};

/* The id of the message a turn is begun with: as OpenCode makes them, so that it sorts behind what is
 * older, and ending in the turn's. */
void turn_record_message_id(const struct id *turn, int64_t wall_ms,
                            char ret_id[static OPENCODE_ID_MAX + 1]);

void turn_record_init(struct turn_record *record, const struct id *turn,
                      const struct harness_listener *listener, void *context);
void turn_record_done(struct turn_record *record);

void turn_record_set_session(struct turn_record *record, const char *session);

/* One event. True when it may be the end: look at the history. */
bool turn_record_event(struct turn_record *record, const struct opencode_event *event);

/* GET /session/:id/message: tell what was missed, and know the last message. 0, or -1 with
 * ERR_UPSTREAM when it is none. */
int turn_record_history(struct turn_record *record, const char *bytes, size_t length,
                        struct error *err);

/* GET /permission and /question: tell what waits and was not told. */
void turn_record_waiting(struct turn_record *record, const char *bytes, size_t length,
                         bool is_question);

/* Whether a request of the agent's waits for an answer here. */
bool turn_record_knows(const struct turn_record *record, const char *request);

/* Call with the result; all of it is borrowed for that call. */
void turn_record_tell(struct turn_record *record, const struct error *failure, bool was_cancelled);
