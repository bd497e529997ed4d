/* A turn with an OpenCode server:
 *
 *     server ready ─► session ─► prompt_async ─► follow its events ─► it rests: read the history ─► ended
 *
 * The history is the truth, events are what makes a turn lively. It is read when the agent seems to
 * rest, when events were missed, and when there were none for long; the turn ends when the server does
 * not call the session busy, our message is in it, and the agent's last one is complete.
 *
 * A prompt is sent at most once. When it is not known whether it arrived, the history tells. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/trace.h"
#include "harness/drivers_internal.h"
#include "harness/opencode_answer.h"
#include "harness/opencode_server.h"
#include "harness/turn_record.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define ASK_MS         20000
#define PROMPT_MS      60000
#define HISTORY_MS     60000
#define SILENCE_MS     120000 /* without an event of this turn: look */
#define AGAIN_MS       1000   /* it seemed to rest, but had not ended */
#define ABORT_AGAIN_MS 500
#define ABORTS_MAX     20
#define BARREN_MAX     10 /* looks at a session that rests without an answer */
#define REPLY_MAX      ((size_t) 1024 * 1024)
#define HISTORY_MAX    ((size_t) 4 * 1024 * 1024) /* read on the loop */
#define BODY_MAX       ((size_t) 32 * 1024 * 1024)
#define TARGET_MAX     512

/* Messages that are asked for; fewer when they turn out too large. */
static const unsigned int windows[] = {100, 10, 2};

enum turn_step {
    STEP_WAITING, /* for the server */
    STEP_OPENING, /* a session */
    STEP_PROMPTING,
    STEP_FOLLOWING,
    STEP_ASKING_STATUS,
    STEP_READING,
    STEP_OVER,
};

struct opencode_turn {
    struct harness_turn head;
    struct opencode_server *server; /* NULL: forgotten */
    struct server_waiter waiter;
    struct server_follower follower;
    struct turn_record record;
    struct query *question;
    struct query *lists[2]; /* permissions and questions that wait */
    struct query *abort;
    struct deadline timer;
    struct loop_task refuse; /* ends it with `failure`, from the loop */
    struct error failure;
    char *session, *title, *prompt; /* owned; NULL when not (or no more) needed */
    enum turn_step step;
    unsigned int aborts, barren, window;
    bool is_find;
    bool is_cancelled;
    bool is_busy;      /* as the server said last */
    bool looks_again;  /* something happened while the history was read */
    bool is_following; /* linked to its server's events */
};

static void turn_look(struct opencode_turn *turn);

static struct opencode_turn *turn_of(struct harness_turn *head)
{
    return CONTAINER_OF(head, struct opencode_turn, head);
}

/* --- the end --------------------------------------------------------------------------------- */

static void turn_gone(struct deadline *deadline)
{
    struct opencode_turn *turn = CONTAINER_OF(deadline, struct opencode_turn, timer);
    struct roll *roll = &turn->head.drivers->roll;

    list_remove(&turn->waiter.link);
    list_remove(&turn->follower.link);
    turn_record_done(&turn->record);
    free(turn->session);
    free(turn->title);
    free(turn->prompt);
    free(turn);
    roll_leave(roll);
}

/* Nothing more comes of it; its memory goes at the end of this turn of the loop or later, so that
 * whoever walks over lists may go on. */
static void turn_close(struct opencode_turn *turn)
{
    if (turn->step == STEP_OVER)
        return;
    turn->step = STEP_OVER;
    turn->record.is_over = true;
    list_remove(&turn->head.link);
    list_remove(&turn->waiter.link);
    loop_task_cancel(&turn->refuse);
    query_cancel(TAKE_PTR(turn->question));
    query_cancel(TAKE_PTR(turn->lists[0]));
    query_cancel(TAKE_PTR(turn->lists[1]));
    query_cancel(TAKE_PTR(turn->abort));
    deadline_close(&turn->timer, turn_gone);
}

static void turn_end(struct opencode_turn *turn, const struct error *failure)
{
    struct error copy;

    if (turn->step == STEP_OVER)
        return;
    if (failure)
        copy = *failure;
    TRACE("harness.turn.end");
    turn_record_tell(&turn->record, failure ? &copy : NULL,
                     turn->is_cancelled || turn->record.is_aborted);
    turn_close(turn);
}

static void turn_refused(struct loop_task *task)
{
    struct opencode_turn *turn = CONTAINER_OF(task, struct opencode_turn, refuse);

    turn_end(turn, turn->failure.code != ERR_NONE ? &turn->failure : NULL);
}

static void turn_end_later(struct opencode_turn *turn)
{
    loop_defer(turn->head.drivers->options.loop, &turn->refuse);
}

static void turn_fail(struct opencode_turn *turn, const struct error *failure, const char *what)
{
    turn->failure = *failure;
    (void) error_wrap(&turn->failure, "%s", what);
    turn_end(turn, &turn->failure);
}

static void turn_fail_status(struct opencode_turn *turn, const struct query_reply *reply,
                             const char *what)
{
    struct error failure;

    (void) error_set(&failure, reply->status == 404 ? ERR_NOT_FOUND : ERR_UPSTREAM, 0,
                     "the agent answered with status %d: %.200s", reply->status, reply->bytes);
    turn_fail(turn, &failure, what);
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct query *turn_ask(struct opencode_turn *turn, const char *method, const char *target,
                              const char *body, uint64_t timeout_ms, size_t reply_max,
                              query_done *done)
{
    const struct query_request request = {.method = method,
                                          .target = target,
                                          .body = body,
                                          .timeout_ms = timeout_ms,
                                          .reply_max = reply_max};

    return opencode_server_ask(turn->server, &request, done, turn);
}

static bool turn_is_good(const struct query_reply *reply)
{
    return reply->status >= 200 && reply->status < 300;
}

static void turn_target(const struct opencode_turn *turn, const char *what,
                        char ret_target[static TARGET_MAX])
{
    (void) snprintf(ret_target, TARGET_MAX, "/session/%s%s", turn->record.session, what);
}

/* --- following ------------------------------------------------------------------------------- */

static void turn_watch(struct opencode_turn *turn)
{
    if (!turn->is_following)
        opencode_server_follow(turn->server, &turn->follower);
    turn->is_following = true;
}

static void turn_follow(struct opencode_turn *turn, uint64_t ms)
{
    turn->step = STEP_FOLLOWING;
    deadline_set(&turn->timer, ms);
    if (!turn->looks_again)
        return;
    turn->looks_again = false;
    turn_look(turn);
}

/* Its rest was seen, or suspected. */
static void turn_may_be_over(struct opencode_turn *turn)
{
    if (turn->step == STEP_FOLLOWING)
        turn_look(turn);
    else
        turn->looks_again = true;
}

static void turn_got_event(struct server_follower *follower, const struct opencode_event *event)
{
    struct opencode_turn *turn = CONTAINER_OF(follower, struct opencode_turn, follower);

    if (turn->step == STEP_OVER)
        return;
    if (turn_record_event(&turn->record, event))
        turn_may_be_over(turn);
    else if (turn->step == STEP_FOLLOWING && event->session && !turn->is_cancelled &&
             strcmp(event->session, turn->record.session) == 0)
        deadline_set(&turn->timer, SILENCE_MS);
}

/* --- what waits ------------------------------------------------------------------------------ */

static void turn_got_waiting(struct opencode_turn *turn, bool is_question,
                             const struct error *failure, const struct query_reply *reply)
{
    turn->lists[is_question] = NULL;
    if (!failure && turn_is_good(reply))
        turn_record_waiting(&turn->record, reply->bytes, reply->length, is_question);
}

static void turn_got_permissions(void *context, const struct error *failure,
                                 const struct query_reply *reply)
{
    turn_got_waiting(context, false, failure, reply);
}

static void turn_got_questions(void *context, const struct error *failure,
                               const struct query_reply *reply)
{
    turn_got_waiting(context, true, failure, reply);
}

/* What was asked while nobody heard is asked once more. 1.0 has no such lists. */
static void turn_ask_waiting(struct opencode_turn *turn)
{
    if (opencode_server_is_old(turn->server))
        return;
    if (!turn->lists[0])
        turn->lists[0] =
            turn_ask(turn, "GET", "/permission", NULL, ASK_MS, REPLY_MAX, turn_got_permissions);
    if (!turn->lists[1])
        turn->lists[1] =
            turn_ask(turn, "GET", "/question", NULL, ASK_MS, REPLY_MAX, turn_got_questions);
}

/* --- looking at the history -------------------------------------------------------------------- */

/* It rests, and there is nothing of an answer, or not even our message. */
static void turn_is_barren(struct opencode_turn *turn)
{
    struct error failure;

    if (turn->is_cancelled) {
        turn_end(turn, NULL);
        return;
    }
    if (turn->is_find && !turn->record.has_user) {
        (void) error_set(&failure, ERR_UPSTREAM, 0,
                         "agent_lost: the prompt had not arrived at the agent");
        turn_end(turn, &failure);
        return;
    }
    if (++turn->barren < BARREN_MAX) {
        turn_follow(turn, AGAIN_MS);
        return;
    }
    (void) error_set(&failure, ERR_UPSTREAM, 0,
                     turn->record.has_user ? "the agent rests without an answer"
                                           : "the agent did not take the prompt");
    turn_end(turn, &failure);
}

static void turn_judge(struct opencode_turn *turn)
{
    const struct turn_record *record = &turn->record;

    if (turn->is_busy) {
        turn->barren = 0;
        turn_follow(turn, turn->is_cancelled ? ABORT_AGAIN_MS : SILENCE_MS);
    } else if (record->has_failed && !record->is_aborted) {
        turn_end(turn, &record->failure);
    } else if (record->is_aborted ||
               (record->last && (record->is_last_complete || turn->is_cancelled))) {
        turn_end(turn, NULL);
    } else {
        turn_is_barren(turn);
    }
}

static void turn_read(struct opencode_turn *turn);

static void turn_got_history(void *context, const struct error *failure,
                             const struct query_reply *reply)
{
    struct opencode_turn *turn = context;
    struct error err = ERROR_INIT;

    turn->question = NULL;
    if (failure && failure->code == ERR_TOO_LARGE) {
        if (++turn->window < ARRAY_COUNT(windows))
            turn_read(turn);
        else
            turn_fail(turn, failure, "read the agent's messages");
        return;
    }
    if (failure) {
        turn_follow(turn, AGAIN_MS); /* the server's life decides whether it is lost */
        return;
    }
    if (!turn_is_good(reply)) {
        turn_fail_status(turn, reply, "read the agent's messages");
        return;
    }
    if (turn_record_history(&turn->record, reply->bytes, reply->length, &err) < 0)
        turn_end(turn, &err);
    else if (turn->step != STEP_OVER) /* whoever heard of parts may have left */
        turn_judge(turn);
}

static void turn_read(struct opencode_turn *turn)
{
    char target[TARGET_MAX], what[64];

    (void) snprintf(what, sizeof(what), "/message?limit=%u", windows[turn->window]);
    turn_target(turn, what, target);
    turn->step = STEP_READING;
    turn->question = turn_ask(turn, "GET", target, NULL, HISTORY_MS, HISTORY_MAX, turn_got_history);
}

static void turn_got_status(void *context, const struct error *failure,
                            const struct query_reply *reply)
{
    struct opencode_turn *turn = context;
    AUTO(json) json_t *body = NULL;
    const char *type;

    turn->question = NULL;
    if (failure) {
        turn_follow(turn, AGAIN_MS);
        return;
    }
    if (turn_is_good(reply))
        body = json_read(reply->bytes, reply->length, NULL, NULL);
    type = json_string_value(json_object_get(json_object_get(body, turn->record.session), "type"));
    turn->is_busy = type && strcmp(type, "idle") != 0;
    turn_read(turn);
}

/* First whether it is busy, then the messages: so they are at least as new. */
static void turn_look(struct opencode_turn *turn)
{
    turn->step = STEP_ASKING_STATUS;
    deadline_clear(&turn->timer);
    turn_ask_waiting(turn);
    turn->question =
        turn_ask(turn, "GET", "/session/status", NULL, ASK_MS, REPLY_MAX, turn_got_status);
}

static void turn_resumed(struct server_follower *follower)
{
    struct opencode_turn *turn = CONTAINER_OF(follower, struct opencode_turn, follower);

    if (turn->step != STEP_OVER)
        turn_may_be_over(turn);
}

static void turn_lost(struct server_follower *follower, const struct error *failure)
{
    turn_end(CONTAINER_OF(follower, struct opencode_turn, follower), failure);
}

/* --- beginning ------------------------------------------------------------------------------- */

static void turn_prompted(void *context, const struct error *failure,
                          const struct query_reply *reply)
{
    struct opencode_turn *turn = context;

    turn->question = NULL;
    if (!failure && !turn_is_good(reply)) {
        turn_fail_status(turn, reply, "prompt the agent");
        return;
    }
    /* Perhaps it arrived all the same: the history tells, and nobody asks twice. */
    if (failure)
        turn->looks_again = true;
    if (turn->is_cancelled)
        turn->looks_again = true;
    turn_follow(turn, SILENCE_MS);
}

static void turn_prompt(struct opencode_turn *turn)
{
    char target[TARGET_MAX];

    turn_target(turn, "/prompt_async", target);
    turn->step = STEP_PROMPTING;
    turn->question = turn_ask(turn, "POST", target, turn->prompt, PROMPT_MS, 0, turn_prompted);
    free(TAKE_PTR(turn->prompt));
}

static void turn_begin(struct opencode_turn *turn, const char *session)
{
    turn_record_set_session(&turn->record, session);
    turn->record.listener->began(turn->record.context, turn->record.session);
    if (turn->step == STEP_OVER || turn->is_cancelled)
        return; /* left, or cancelled, by whom we told */
    turn_watch(turn);
    if (turn->is_find)
        turn_look(turn);
    else
        turn_prompt(turn);
}

static void turn_got_session(void *context, const struct error *failure,
                             const struct query_reply *reply)
{
    struct opencode_turn *turn = context;
    AUTO(json) json_t *body = NULL;
    const char *session;

    turn->question = NULL;
    if (failure) {
        turn_fail(turn, failure, "begin a conversation with the agent");
        return;
    }
    body = json_read(reply->bytes, reply->length, NULL, NULL);
    session = turn_is_good(reply) ? opencode_id(body, "id") : NULL;
    if (!session || !opencode_id_is_plain(session))
        turn_fail_status(turn, reply, "begin a conversation with the agent");
    else
        turn_begin(turn, session);
}

static void turn_open_session(struct opencode_turn *turn)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    if (turn->title)
        json_add_text(&json, "title", turn->title);
    (void) json_document_end(&json);
    turn->step = STEP_OPENING;
    turn->question =
        turn_ask(turn, "POST", "/session", text_string(&body), ASK_MS, 0, turn_got_session);
}

static void turn_server_ready(struct server_waiter *waiter, const struct error *failure)
{
    struct opencode_turn *turn = CONTAINER_OF(waiter, struct opencode_turn, waiter);

    if (failure)
        turn_end(turn, failure);
    else if (turn->session)
        turn_begin(turn, turn->session);
    else
        turn_open_session(turn);
}

/* --- cancelling ------------------------------------------------------------------------------ */

static void turn_aborted(void *context, const struct error *failure,
                         const struct query_reply *reply)
{
    struct opencode_turn *turn = context;

    (void) failure; /* whether it worked is seen, not told */
    (void) reply;
    turn->abort = NULL;
    if (turn->step == STEP_FOLLOWING)
        turn_look(turn);
}

static void turn_abort(struct opencode_turn *turn)
{
    char target[TARGET_MAX];

    if (turn->abort)
        return;
    if (++turn->aborts > ABORTS_MAX) {
        turn_end(turn, NULL); /* it does not listen; nobody waits for it any more */
        return;
    }
    turn_target(turn, "/abort", target);
    turn->abort = turn_ask(turn, "POST", target, NULL, ASK_MS, 0, turn_aborted);
}

static void turn_cancel(struct harness_turn *head)
{
    struct opencode_turn *turn = turn_of(head);

    if (turn->is_cancelled || turn->step == STEP_OVER)
        return;
    turn->is_cancelled = true;
    /* Nothing was sent yet: there is nothing to end. */
    if (turn->step < STEP_PROMPTING) {
        query_cancel(TAKE_PTR(turn->question));
        list_remove(&turn->waiter.link);
        turn_end_later(turn);
        return;
    }
    turn_abort(turn);
    if (turn->step == STEP_FOLLOWING)
        deadline_set(&turn->timer, ABORT_AGAIN_MS);
}

static void turn_timer(struct deadline *deadline)
{
    struct opencode_turn *turn = CONTAINER_OF(deadline, struct opencode_turn, timer);

    if (turn->is_cancelled)
        turn_abort(turn);
    if (turn->step == STEP_FOLLOWING)
        turn_look(turn);
}

static void turn_leave(struct harness_turn *head)
{
    turn_close(turn_of(head));
}

static void turn_lose(struct harness_turn *head)
{
    struct error lost;

    (void) error_set(&lost, ERR_UPSTREAM, 0, "agent_lost: the sandbox stopped");
    turn_end(turn_of(head), &lost);
}

/* --- answers --------------------------------------------------------------------------------- */

static void turn_answer(struct harness_turn *head, bool is_question, const char *request,
                        const char *reply, const char *message, harness_done *done, void *context)
{
    const struct opencode_turn *turn = turn_of(head);
    const struct opencode_answer answer = {.request = request,
                                           .reply = reply,
                                           .message = message,
                                           .is_question = is_question,
                                           .done = done,
                                           .context = context};
    struct error err;

    if (turn->step != STEP_OVER && turn_record_knows(&turn->record, request)) {
        opencode_answer_send(head->drivers, turn->server, turn->record.session, &answer);
        return;
    }
    (void) error_set(&err, ERR_NOT_FOUND, 0, "the agent does not wait for an answer to this");
    drivers_answer_later(head->drivers, done, context, &err);
}

/* --- all together ---------------------------------------------------------------------------- */

static const struct turn_driver driver = {
    .cancel = turn_cancel, .leave = turn_leave, .answer = turn_answer, .lose = turn_lose};

static char *turn_write_prompt(const struct opencode_turn *turn,
                               const struct harness_prompt *prompt, struct error *err)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_text(&json, "messageID", turn->record.user);
    json_key(&json, "parts");
    json_put_raw(&json, prompt->parts, strlen(prompt->parts));
    if (prompt->provider && prompt->model) {
        json_begin_object_at(&json, "model");
        json_add_text(&json, "providerID", prompt->provider);
        json_add_text(&json, "modelID", prompt->model);
        json_end_object(&json);
    }
    if (prompt->agent)
        json_add_text(&json, "agent", prompt->agent);
    if (json_document_end(&json) == 0)
        return text_take(&body);
    (void) error_set(err, ERR_TOO_LARGE, 0, "the prompt is larger than %zu MB",
                     BODY_MAX / 1024 / 1024);
    return NULL;
}

static void turn_start(struct opencode_turn *turn, const struct harness_prompt *prompt)
{
    struct drivers *drivers = turn->head.drivers;
    struct error *err = &turn->failure;

    if (!turn->is_find) {
        turn_record_message_id(&prompt->turn, clock_wall_ms(drivers->options.clock),
                               turn->record.user);
        turn->prompt = turn_write_prompt(turn, prompt, err);
    }
    turn->server = opencode_server_find(drivers, &prompt->place.sandbox);
    if (!turn->server)
        turn->server = opencode_server_new(drivers, &prompt->place.sandbox);
    if (turn->is_find && !prompt->agent_session)
        (void) error_set(err, ERR_UPSTREAM, 0,
                         "agent_lost: the conversation with the agent had not begun");
    if (prompt->agent_session && !opencode_id_is_plain(prompt->agent_session))
        (void) error_set(err, ERR_INVALID, 0, "this is no id of a conversation with the agent");
    if (err->code == ERR_NONE)
        (void) opencode_server_place(turn->server, &prompt->place, err);
    if (err->code != ERR_NONE)
        turn_end_later(turn);
    else
        opencode_server_want(turn->server, &turn->waiter);
}

struct harness_turn *opencode_turn_begin(struct drivers *drivers,
                                         const struct harness_prompt *prompt, bool is_find,
                                         const struct harness_listener *listener, void *context)
{
    struct opencode_turn *turn = mem_alloc(sizeof(*turn));

    *turn = (struct opencode_turn){
        .head = {.drivers = drivers, .driver = &driver, .sandbox = prompt->place.sandbox},
        .waiter = {.ready = turn_server_ready, .only_if_there = is_find},
        .follower = {.event = turn_got_event, .resumed = turn_resumed, .lost = turn_lost},
        .session = prompt->agent_session ? mem_copy_text(prompt->agent_session) : NULL,
        .title = prompt->title ? mem_copy_text(prompt->title) : NULL,
        .is_find = is_find,
    };
    list_init(&turn->waiter.link);
    list_init(&turn->follower.link);
    list_append(&drivers->turns, &turn->head.link);
    loop_task_init(&turn->refuse, turn_refused);
    deadline_init(drivers->options.loop, &turn->timer, turn_timer);
    roll_enter(&drivers->roll);
    turn_record_init(&turn->record, &prompt->turn, listener, context);
    turn_start(turn, prompt);
    return &turn->head;
}
