/* A turn that is one run of a program: a background process of the sandbox under the turn's name, whose
 * output is followed until it ends. The log of that process is what makes the turn found again: it is read
 * from its beginning, and the program is not started twice.
 *
 *     start ─► follow its output ─► it ended ─► its last words, when it failed ─► ended */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/trace.h"
#include "harness/drivers_internal.h"
#include "harness/opencode_start.h"
#include "harness/run_record.h"
#include "harness/run_start.h"
#include "json/json_read.h"
#include "net/http/sse.h"

#define ASK_MS       15000
#define KILL_MS      20000
#define AGAIN_MS     1000 /* the way to the sandbox broke off */
#define AGAINS_MAX   5
#define WORDS_MAX    ((size_t) 4096)
#define TARGET_MAX   (RUN_PROCESS_MAX + 32)
#define NO_PROGRAM   127
#define UNKNOWN_EXIT (-1)

enum run_step { RUN_STARTING, RUN_FOLLOWING, RUN_PAUSING, RUN_OVER };

struct command_turn {
    struct harness_turn head;
    struct run_record record;
    struct query *query; /* the start, or the stream of output */
    struct query *kill;
    struct sse_reader reader;
    struct text line;  /* of stdout, not yet complete */
    struct text words; /* the end of stderr */
    struct text start; /* the body that starts it; done with when sent */
    struct deadline timer;
    struct loop_task refuse;
    struct error failure;
    char process[RUN_PROCESS_MAX];
    enum run_step step;
    unsigned int agains;
    size_t lines, skips; /* told so far; that come again and are not looked at */
    int exit_code;
    bool is_cancelled, has_ended;
    bool is_skipping; /* the rest of a line that is too long */
};

static void run_follow(struct command_turn *turn);

static struct command_turn *run_of(struct harness_turn *head)
{
    return CONTAINER_OF(head, struct command_turn, head);
}

/* --- the end --------------------------------------------------------------------------------- */

static void run_gone(struct deadline *deadline)
{
    struct command_turn *turn = CONTAINER_OF(deadline, struct command_turn, timer);
    struct roll *roll = &turn->head.drivers->roll;

    run_record_done(&turn->record);
    sse_reader_done(&turn->reader);
    text_done(&turn->line);
    text_done(&turn->words);
    text_done(&turn->start);
    free(turn);
    roll_leave(roll);
}

static void run_close(struct command_turn *turn)
{
    if (turn->step == RUN_OVER)
        return;
    turn->step = RUN_OVER;
    turn->record.is_over = true;
    list_remove(&turn->head.link);
    loop_task_cancel(&turn->refuse);
    query_cancel(TAKE_PTR(turn->query));
    query_cancel(TAKE_PTR(turn->kill));
    deadline_close(&turn->timer, run_gone);
}

static void run_over(struct command_turn *turn, const struct error *failure)
{
    struct error copy;

    if (turn->step == RUN_OVER)
        return;
    if (failure)
        copy = *failure;
    TRACE("harness.run.end");
    run_record_tell(&turn->record, failure ? &copy : NULL, turn->is_cancelled);
    run_close(turn);
}

static void run_refused(struct loop_task *task)
{
    struct command_turn *turn = CONTAINER_OF(task, struct command_turn, refuse);

    run_over(turn, turn->failure.code != ERR_NONE ? &turn->failure : NULL);
}

static void run_fail(struct command_turn *turn, enum err_code code, const char *what,
                     const char *why)
{
    (void) error_set(&turn->failure, code, 0, "%s: %.250s", what, why);
    run_over(turn, &turn->failure);
}

/* The program has ended: by itself, or because it was killed. */
static void run_conclude(struct command_turn *turn)
{
    const char *line = opencode_last_line(text_string(&turn->words));

    if (turn->is_cancelled || (turn->exit_code == 0 && !turn->record.has_failed))
        run_over(turn, NULL);
    else if (turn->record.has_failed)
        run_over(turn, &turn->record.failure);
    else if (turn->exit_code == NO_PROGRAM)
        run_fail(turn, ERR_UPSTREAM, "this sandbox has no such program; make it of the agent image",
                 line);
    else {
        (void) error_set(&turn->failure, ERR_UPSTREAM, 0,
                         "the agent ended with exit code %d: %.250s", turn->exit_code,
                         *line ? line : "it wrote nothing to stderr");
        run_over(turn, &turn->failure);
    }
}

/* --- its output ------------------------------------------------------------------------------ */

static void run_line(struct command_turn *turn, const char *line, size_t length)
{
    if (turn->skips) {
        turn->skips--;
        return;
    }
    turn->lines++;
    run_record_line(&turn->record, line, length);
}

/* The last of it may have no end of line. */
static void run_flush(struct command_turn *turn)
{
    if (turn->line.length && !turn->is_skipping)
        run_line(turn, text_string(&turn->line), turn->line.length);
    text_clear(&turn->line);
}

static void run_out(struct command_turn *turn, const char *bytes, size_t length)
{
    const char *end;

    while (turn->step != RUN_OVER && (end = memchr(bytes, '\n', length))) {
        size_t part = (size_t) (end - bytes);

        text_append_bytes(&turn->line, bytes, part);
        if (turn->line.overflowed)
            turn->is_skipping = true;
        run_flush(turn);
        turn->is_skipping = turn->line.overflowed = false;
        bytes += part + 1;
        length -= part + 1;
    }
    text_append_bytes(&turn->line, bytes, length);
    turn->is_skipping |= turn->line.overflowed;
}

static void run_err(struct command_turn *turn, const char *bytes, size_t length)
{
    if (length > WORDS_MAX) {
        bytes += length - WORDS_MAX;
        length = WORDS_MAX;
    }
    text_append_bytes(&turn->words, bytes, length);
    if (turn->words.length > WORDS_MAX)
        text_consume(&turn->words, turn->words.length - WORDS_MAX);
}

static void run_got_event(struct sse_reader *reader, const struct sse_event *raw)
{
    static const struct json_limits limits = {
        .size = 2 * JSON_SIZE_MAX, .depth = 8, .values = 1024, .nul = true};
    struct command_turn *turn = CONTAINER_OF(reader, struct command_turn, reader);
    AUTO(json) json_t *event = json_read(raw->data, raw->length, &limits, NULL);
    const char *type = json_string_value(json_object_get(event, "type"));
    const json_t *data = json_object_get(event, "data"), *code = json_object_get(event, "exitCode");

    if (!type || turn->step == RUN_OVER)
        return;
    if (json_object_get(event, "droppedBytes") && strcmp(type, "stdout") == 0) {
        /* Older lines are lost: those that come do not begin where we left off. */
        turn->skips = 0;
        turn->record.is_repeated = turn->lines > 0;
        turn->is_skipping = true;
    } else if (strcmp(type, "stdout") == 0 && json_is_string(data)) {
        run_out(turn, json_string_value(data), json_string_length(data));
    } else if (strcmp(type, "stderr") == 0 && json_is_string(data)) {
        run_err(turn, json_string_value(data), json_string_length(data));
    } else if (strcmp(type, "exit") == 0) {
        turn->has_ended = true;
        turn->exit_code = json_is_integer(code) ? (int) json_integer_value(code) : UNKNOWN_EXIT;
    }
}

static void run_got_bytes(void *context, const char *bytes, size_t length)
{
    struct command_turn *turn = context;

    if (sse_reader_feed(&turn->reader, bytes, length) < 0)
        run_fail(turn, ERR_UPSTREAM, "follow the agent", "its output has no end of events");
}

static void run_again(struct command_turn *turn, const struct error *failure)
{
    struct error lost;

    if (++turn->agains > AGAINS_MAX) {
        (void) error_set(&lost, ERR_UPSTREAM, 0, "agent_lost: %.250s",
                         failure ? failure->message : "its output broke off");
        run_over(turn, &lost);
        return;
    }
    turn->step = RUN_PAUSING;
    deadline_set(&turn->timer, AGAIN_MS);
}

static void run_stream_over(void *context, const struct error *failure,
                            const struct query_reply *reply)
{
    struct command_turn *turn = context;

    turn->query = NULL;
    if (turn->has_ended) {
        run_flush(turn);
        if (turn->step != RUN_OVER)
            run_conclude(turn);
    } else if (reply && reply->status == 404) {
        run_fail(turn, ERR_UPSTREAM, "agent_lost", "the sandbox knows no such process");
    } else {
        run_again(turn, failure);
    }
}

static void run_opened(void *context)
{
    struct command_turn *turn = context;

    turn->skips = turn->lines;
    turn->is_skipping = turn->line.overflowed = false;
    text_clear(&turn->line);
    text_clear(&turn->words);
}

static void run_follow(struct command_turn *turn)
{
    char target[TARGET_MAX];
    const struct query_request request = {.method = "GET",
                                          .target = target,
                                          .timeout_ms = ASK_MS,
                                          .on_open = run_opened,
                                          .on_bytes = run_got_bytes};

    (void) snprintf(target, sizeof(target), "/api/process/%s/stream", turn->process);
    sse_reader_done(&turn->reader);
    sse_reader_init(&turn->reader, run_got_event);
    turn->step = RUN_FOLLOWING;
    turn->query =
        drivers_ask_agent(turn->head.drivers, &turn->head.sandbox, &request, run_stream_over, turn);
}

static void run_killed(void *context, const struct error *failure, const struct query_reply *reply)
{
    struct command_turn *turn = context;

    (void) failure; /* the stream tells the end; when it does not, nobody waits for ever */
    (void) reply;
    turn->kill = NULL;
    if (turn->step == RUN_FOLLOWING)
        deadline_set(&turn->timer, AGAIN_MS);
    else
        run_over(turn, NULL);
}

static void run_kill(struct command_turn *turn)
{
    char target[TARGET_MAX];
    const struct query_request request = {
        .method = "DELETE", .target = target, .timeout_ms = KILL_MS};

    (void) snprintf(target, sizeof(target), "/api/process/%s", turn->process);
    turn->kill =
        drivers_ask_agent(turn->head.drivers, &turn->head.sandbox, &request, run_killed, turn);
}

/* --- starting -------------------------------------------------------------------------------- */

static void run_started(void *context, const struct error *failure, const struct query_reply *reply)
{
    struct command_turn *turn = context;

    turn->query = NULL;
    /* When nobody answered it may run all the same: then its output is there to be followed. */
    if (failure || reply->status == 200 || reply->status == 409) {
        run_follow(turn);
        if (turn->is_cancelled)
            run_kill(turn);
        return;
    }
    if (turn->is_cancelled)
        run_over(turn, NULL);
    else
        run_fail(turn, ERR_UPSTREAM, "start the agent", reply->bytes);
}

static void run_begin(struct command_turn *turn)
{
    const struct query_request request = {.method = "POST",
                                          .target = "/api/process/start",
                                          .body = text_string(&turn->start),
                                          .timeout_ms = ASK_MS,
                                          .reply_max = RUN_START_MAX};

    turn->query =
        drivers_ask_agent(turn->head.drivers, &turn->head.sandbox, &request, run_started, turn);
    text_done(&turn->start);
}

/* --- cancelling, and the rest of struct turn_driver ------------------------------------------ */

static void run_cancel(struct harness_turn *head)
{
    struct command_turn *turn = run_of(head);

    if (turn->is_cancelled || turn->step == RUN_OVER)
        return;
    turn->is_cancelled = true;
    if (turn->step != RUN_STARTING) /* until it runs there is nothing to kill */
        run_kill(turn);
}

static void run_timer(struct deadline *deadline)
{
    struct command_turn *turn = CONTAINER_OF(deadline, struct command_turn, timer);

    if (turn->is_cancelled)
        run_over(turn, NULL);
    else if (turn->step == RUN_PAUSING)
        run_follow(turn);
}

static void run_leave(struct harness_turn *head)
{
    run_close(run_of(head));
}

static void run_lose(struct harness_turn *head)
{
    run_fail(run_of(head), ERR_UPSTREAM, "agent_lost", "the sandbox stopped");
}

static void run_answer(struct harness_turn *head, bool is_question, const char *request,
                       const char *reply, const char *message, harness_done *done, void *context)
{
    struct error err;

    (void) is_question;
    (void) request;
    (void) reply;
    (void) message;
    (void) error_set(&err, ERR_NOT_FOUND, 0, "an agent that is a command asks nothing");
    drivers_answer_later(head->drivers, done, context, &err);
}

static const struct turn_driver driver = {
    .cancel = run_cancel, .leave = run_leave, .answer = run_answer, .lose = run_lose};

/* --- all together ---------------------------------------------------------------------------- */

struct harness_turn *command_turn_begin(struct drivers *drivers,
                                        const struct harness_prompt *prompt, bool is_find,
                                        const struct harness_listener *listener, void *context)
{
    struct command_turn *turn = mem_alloc(sizeof(*turn));
    const struct run_language *language = run_language_find(prompt->place.kind);

    *turn = (struct command_turn){
        .head = {.drivers = drivers, .driver = &driver, .sandbox = prompt->place.sandbox},
        .line = TEXT_INIT(RUN_LINE_MAX),
        .words = TEXT_INIT(2 * WORDS_MAX),
        .start = TEXT_INIT(RUN_START_MAX),
        .exit_code = UNKNOWN_EXIT,
    };
    list_append(&drivers->turns, &turn->head.link);
    loop_task_init(&turn->refuse, run_refused);
    deadline_init(drivers->options.loop, &turn->timer, run_timer);
    roll_enter(&drivers->roll);
    run_record_init(&turn->record, language ? language : &command_language, listener, context);
    turn->record.is_resumed = prompt->agent_session != NULL;
    sse_reader_init(&turn->reader, run_got_event);
    run_start_process(&prompt->turn, turn->process);
    if (is_find)
        run_follow(turn);
    else if (run_start_write(prompt, &turn->start, &turn->failure) < 0)
        loop_defer(drivers->options.loop, &turn->refuse);
    else
        run_begin(turn);
    return &turn->head;
}
