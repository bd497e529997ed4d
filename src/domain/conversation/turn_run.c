/* How a turn goes:
 *
 *     waits ──► its sandbox is woken ──► its row says that it is sent ──► prompt ──► end ──► kept
 *                       └─ after a restart, when it was sent ─► find ─────────────────┘
 *
 * What the agent tells is kept as it comes (turn_log.c, turn_part.c, ask.c). */
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/conversation/turn_usage.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define NS_PER_MS        UINT64_C(1000000)
#define KEEP_AGAIN_NS    (UINT64_C(1000) * NS_PER_MS)
#define SESSION_NAME_MAX 256
#define RESULT_TEXT_MAX  ((size_t) 256 * 1024)

static void turn_keep_end(struct live_turn *live);

/* --- rows and events --------------------------------------------------------------------------- */

void turn_add_event(struct live_turn *live, struct store_transaction *rows, const char *type)
{
    const struct turn *turn = &live->turn;
    char data[TURN_EVENT_DATA_MAX];

    (void) snprintf(data, sizeof(data),
                    "{\"sandboxId\":\"%s\",\"conversationId\":\"%s\",\"turnId\":\"%s\","
                    "\"taskId\":\"%s\",\"state\":\"%s\",\"error\":\"%s\"}",
                    turn->sandbox.text, turn->conversation.text, turn->id.text, turn->task.text,
                    turn_state_text(turn->state), turn->error_code);
    event_add(live->domain, rows, &live->caller, &turn->owner,
              conversation_stream(live->conversation), type, data);
}

/* Its state has changed while it goes on: nobody waits for the row. */
struct turn_noting {
    struct domain *domain;
    struct log_batch *batch;
};

static void turn_noted(void *context, const struct error *failure,
                       const struct store_receipt *receipt)
{
    AUTO(free) struct turn_noting *noting = context;

    if (!failure)
        event_kept(noting->domain, receipt);
    turn_log_kept(noting->batch, failure);
}

void turn_note(struct live_turn *live, struct store_transaction *rows)
{
    struct turn_noting *noting = mem_alloc(sizeof(*noting));

    turn_put_row(rows, &live->turn, live->key, false);
    noting->domain = live->domain;
    noting->batch = turn_log_take(live->conversation, rows);
    domain_commit(live->domain, rows, turn_noted, noting);
}

/* --- what the agent tells ---------------------------------------------------------------------- */

static void conversation_noted(void *context, const struct error *failure,
                               const struct store_receipt *receipt)
{
    struct conversation *conversation = context;

    (void) failure, (void) receipt; /* the agent tells it again with the next turn */
    conversation_unref(conversation->work->domain, conversation);
}

static void turn_began(void *context, const char *agent_session)
{
    struct live_turn *live = context;
    struct conversation *conversation = live->conversation;
    struct store_transaction *rows;

    if (!agent_session || strlen(agent_session) > SESSION_NAME_MAX ||
        (conversation->agent_session && strcmp(conversation->agent_session, agent_session) == 0))
        return;
    conversation_set_text(&conversation->agent_session, agent_session);
    conversation->updated_ms = domain_wall_ms(live->domain);
    rows = store_begin(live->domain->options.store);
    conversation_put_row(rows, conversation);
    conversation_ref(conversation);
    domain_commit(live->domain, rows, conversation_noted, conversation);
}

static void turn_got_delta(void *context, const char *part_id, const char *field, const char *text,
                           size_t length)
{
    turn_part_delta(context, part_id, field, text, length);
}

static void turn_got_part(void *context, const char *part_id, const char *json)
{
    turn_part_whole(context, part_id, json);
}

static void turn_got_permission(void *context, const char *request, const char *json)
{
    ask_begin(context, ASK_PERMISSION, request, json);
}

static void turn_got_question(void *context, const char *request, const char *json)
{
    ask_begin(context, ASK_QUESTION, request, json);
}

static void turn_got_answered(void *context, const char *request, const char *reply)
{
    ask_resolve(context, request, reply);
}

static const char *turn_failure_code(const struct error *failure)
{
    if (failure->code == ERR_AGENT_LOST || strncmp(failure->message, "agent_lost", 10) == 0)
        return error_code_text(ERR_AGENT_LOST);
    return error_code_text(failure->code);
}

static void turn_end_as_stopped(struct live_turn *live, const struct harness_result *result)
{
    bool is_wish = !live->cancel_code || strcmp(live->cancel_code, "cancelled") == 0;

    turn_finish(live, is_wish ? TURN_EVENT_CANCELLED : TURN_EVENT_FAILED,
                live->cancel_code ? live->cancel_code : "cancelled",
                live->cancel_message ? live->cancel_message : "it was cancelled inside", result);
}

static void turn_got_end(void *context, const struct error *failure,
                         const struct harness_result *result)
{
    struct live_turn *live = context;

    live->handle = NULL;
    if ((result && result->was_cancelled) || (live->is_cancelled && failure))
        turn_end_as_stopped(live, result);
    else if (failure)
        turn_finish(live, TURN_EVENT_FAILED, turn_failure_code(failure), failure->message, result);
    else
        turn_finish(live, TURN_EVENT_DONE, "", "", result);
}

static const struct harness_listener turn_listener = {
    .began = turn_began,
    .delta = turn_got_delta,
    .part = turn_got_part,
    .permission = turn_got_permission,
    .question = turn_got_question,
    .answered = turn_got_answered,
    .ended = turn_got_end,
};

/* --- to the agent ------------------------------------------------------------------------------ */

static const char *turn_place_text(json_t *place, const char *key)
{
    return json_string_value(json_object_get(place, key));
}

/* NULL: by no route of the broker. */
static const char *turn_models(const struct live_turn *live, struct text *models)
{
    if (live->use.sandbox)
        conversation_models(live->use.sandbox, models);
    return models->length ? text_string(models) : NULL;
}

static void turn_send(struct live_turn *live)
{
    const struct conversation *conversation = live->conversation;
    const struct harness *harness = live->domain->options.harness;
    AUTO(json)
    json_t *place = json_read(conversation->place, strlen(conversation->place), NULL, NULL);
    AUTO(text) struct text models = TEXT_INIT(CONVERSATION_MODELS_MAX);
    const struct harness_prompt prompt = {
        .place = {.models = turn_models(live, &models),
                  .sandbox = live->turn.sandbox,
                  .kind = conversation->kind,
                  .folder = turn_place_text(place, "folder"),
                  .config = turn_place_text(place, "config"),
                  .command = turn_place_text(place, "command"),
                  .permission = turn_place_text(place, "permission")},
        .turn = live->turn.id,
        .agent_session = conversation->agent_session,
        .title = *conversation->title ? conversation->title : NULL,
        .parts = live->turn.input,
        .provider = live->turn.provider,
        .model = live->turn.model,
        .agent = live->turn.agent,
    };

    live->stage = TURN_STAGE_SENT;
    if (live->is_found)
        live->handle = harness->find(harness->self, &prompt, &turn_listener, live);
    else
        live->handle = harness->prompt(harness->self, &prompt, &turn_listener, live);
    CRASH_POINT("turn.sent");
    if (live->is_cancelled)
        turn_stop(live, live->cancel_code, live->cancel_message);
}

struct turn_marking {
    struct live_turn *live; /* a reference */
    struct log_batch *batch;
};

static void turn_marked(void *context, const struct error *failure,
                        const struct store_receipt *receipt)
{
    AUTO(free) struct turn_marking *marking = context;
    struct live_turn *live = marking->live;

    if (!failure)
        event_kept(live->domain, receipt);
    turn_log_kept(marking->batch, failure);
    if (live->domain->stage != DOMAIN_OPEN || live->stage != TURN_STAGE_MARKING) {
        live_turn_unref(live);
        return;
    }
    if (!failure)
        CRASH_POINT("turn.marked");
    if (failure)
        turn_finish(live, TURN_EVENT_FAILED, error_code_text(failure->code), failure->message,
                    NULL);
    else if (live->is_cancelled)
        turn_end_as_stopped(live, NULL);
    else
        turn_send(live);
    live_turn_unref(live);
}

/* The row says it before it is done: whoever reads it after a crash does not prompt again. */
static void turn_mark(struct live_turn *live)
{
    struct store_transaction *rows = store_begin(live->domain->options.store);
    struct turn_marking *marking = mem_alloc(sizeof(*marking));
    char item[64 + ID_SIZE];

    live->stage = TURN_STAGE_MARKING;
    live->turn.state = turn_state_after(live->turn.state, TURN_EVENT_SENT);
    live->turn.started_ms = domain_wall_ms(live->domain);
    (void) snprintf(item, sizeof(item), "{\"turn\":\"%s\"}", live->turn.id.text);
    turn_log_add(live->conversation, live, "turn.started", NULL, item);
    turn_put_row(rows, &live->turn, live->key, false);
    turn_add_event(live, rows, "turn.started");
    live_turn_ref(live);
    marking->live = live;
    marking->batch = turn_log_take(live->conversation, rows);
    domain_commit(live->domain, rows, turn_marked, marking);
}

static void turn_awake(struct sandbox_use *use, const struct error *failure)
{
    struct live_turn *live = CONTAINER_OF(use, struct live_turn, use);

    if (failure) {
        live->is_using = false;
        turn_finish(live, TURN_EVENT_FAILED,
                    live->is_found ? "agent_lost" : error_code_text(failure->code),
                    failure->message, NULL);
    } else if (live->is_found) {
        turn_send(live);
    } else {
        turn_mark(live);
    }
}

/* Only where its processes still are can it be found. */
static bool turn_is_lost(const struct live_turn *live, const struct sandbox *sandbox)
{
    return !sandbox || (live->is_found && sandbox->status != SANDBOX_RUNNING &&
                        sandbox->status != SANDBOX_FROZEN);
}

static void turn_wake(struct live_turn *live)
{
    struct sandbox *sandbox = sandbox_set_by_id(live->domain, live->turn.sandbox.text);
    struct error err = ERROR_INIT;

    if (turn_is_lost(live, sandbox)) {
        turn_finish(live, TURN_EVENT_FAILED, "agent_lost",
                    sandbox ? "the sandbox does not run any more" : "the sandbox is gone", NULL);
        return;
    }
    if (conversation_check_harness(live->domain, &err) < 0) {
        turn_finish(live, TURN_EVENT_FAILED, error_code_text(err.code), err.message, NULL);
        return;
    }
    live->stage = TURN_STAGE_WAKING;
    live->is_using = true;
    sandbox_use_begin(live->domain, sandbox, &live->use, 0, turn_awake);
}

void turn_go_on(struct conversation *conversation)
{
    struct list *link = list_first(&conversation->work->turns);
    struct live_turn *live = link ? CONTAINER_OF(link, struct live_turn, link) : NULL;

    if (!live || live->stage != TURN_STAGE_WAITS || !live->is_kept ||
        live->domain->stage != DOMAIN_OPEN)
        return;
    live_turn_ref(live);
    turn_wake(live);
    live_turn_unref(live);
}

/* --- the end ----------------------------------------------------------------------------------- */

struct turn_ending {
    struct live_turn *live; /* a reference */
    struct log_batch *batch;
};

static void turn_count_end(struct domain *domain, enum turn_state state)
{
    struct turn_counters *counters = &domain->conversations->counters;

    counters->done += state == TURN_DONE;
    counters->failed += state == TURN_FAILED;
    counters->cancelled += state == TURN_CANCELLED;
}

static void turn_end_kept(void *context, const struct error *failure,
                          const struct store_receipt *receipt)
{
    AUTO(free) struct turn_ending *ending = context;
    struct live_turn *live = ending->live;
    struct conversation *conversation = live->conversation;
    struct domain *domain = live->domain;

    if (!failure)
        event_kept(domain, receipt);
    conversation_ref(conversation);
    if (failure) {
        live->end_ns = domain_now_ns(domain) + KEEP_AGAIN_NS;
        turn_log_kept(ending->batch, failure);
    } else {
        CRASH_POINT("turn.ended");
        turn_count_end(domain, live->turn.state);
        table_remove(&domain->conversations->live, &live->by_id);
        live->by_id.hash = 0;
        turn_log_kept(ending->batch, NULL);
        turn_tell_waits(live, NULL);
        live_turn_gone(live);
        turn_followers_check(conversation);
        turn_go_on(conversation);
    }
    live_turn_unref(live);
    conversation_unref(domain, conversation);
}

static void turn_keep_end(struct live_turn *live)
{
    struct store_transaction *rows = store_begin(live->domain->options.store);
    struct turn_ending *ending = mem_alloc(sizeof(*ending));

    live->end_ns = 0;
    live_turn_ref(live);
    turn_put_row(rows, &live->turn, live->key, false);
    turn_add_event(live, rows, "turn.ended");
    asks_end(live, rows);
    ending->live = live;
    ending->batch = turn_log_take(live->conversation, rows);
    domain_commit(live->domain, rows, turn_end_kept, ending);
}

static void turn_log_end(struct live_turn *live)
{
    const struct turn *turn = &live->turn;
    AUTO(text) struct text item = TEXT_INIT(STORE_VALUE_MAX);
    struct json_writer json;

    json_document_begin(&json, &item);
    json_add_text(&json, "turn", turn->id.text);
    json_add_text(&json, "state", turn_state_text(turn->state));
    json_add_text(&json, "answer", strlen(turn->answer) <= RESULT_TEXT_MAX / 2 ? turn->answer : "");
    json_key(&json, "error");
    if (*turn->error_code) {
        json_begin_object(&json);
        json_add_text(&json, "code", turn->error_code);
        json_add_text(&json, "message", turn->error_message);
        json_end_object(&json);
    } else {
        json_put_null(&json);
    }
    json_key(&json, "usage");
    turn_usage_write(&json, &turn->usage);
    if (json_document_end(&json) == 0)
        turn_log_add(live->conversation, live, "turn.ended", NULL, text_string(&item));
}

/* JSON of an agent, or what stands for none: rows hold nothing that cannot be read. */
static const char *turn_good_json(const char *text, bool is_array, const char *otherwise)
{
    static const struct json_limits limits = {
        .size = RESULT_TEXT_MAX, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX, .nul = false};
    AUTO(json) json_t *value = text ? json_read(text, strlen(text), &limits, NULL) : NULL;

    return value && (json_is_array(value) != 0) == is_array ? text : otherwise;
}

static void turn_set_cut(const char **text, const char *value, size_t max)
{
    size_t length = strlen(value), cut = length;
    char *copy;

    if (cut > max)
        for (cut = max; cut > 0 && ((unsigned char) value[cut] & 0xC0) == 0x80;)
            cut--;
    copy = mem_copy_bytes(value, cut);
    free((char *) *text);
    *text = copy;
}

static void turn_fill_result(struct turn *turn, const struct harness_result *result)
{
    turn_set_cut(&turn->answer, result->answer ? result->answer : "", RESULT_TEXT_MAX);
    turn_set(&turn->parts, turn_good_json(result->parts, true, "[]"));
    turn_set(&turn->info, turn_good_json(result->info, false, "{}"));
    if (result->provider && strlen(result->provider) <= CONVERSATION_NAME_MAX)
        turn_set(&turn->provider, result->provider);
    if (result->model && strlen(result->model) <= CONVERSATION_NAME_MAX)
        turn_set(&turn->model, result->model);
    turn->usage = result->usage;
}

void turn_finish(struct live_turn *live, enum turn_event event, const char *code,
                 const char *message, const struct harness_result *result)
{
    struct turn *turn = &live->turn;

    if (live->stage == TURN_STAGE_ENDED)
        return;
    live->stage = TURN_STAGE_ENDED;
    turn->state = turn_state_after(turn->state, event);
    turn->ended_ms = domain_wall_ms(live->domain);
    turn_set(&turn->error_code, code);
    turn_set_cut(&turn->error_message, message, ERROR_MESSAGE_MAX);
    if (result)
        turn_fill_result(turn, result);
    turn_parts_flush(live, true);
    turn_parts_done(live);
    if (live->is_using)
        sandbox_use_end(&live->use);
    live->is_using = false;
    turn_log_end(live);
    turn_keep_end(live);
}

void turn_stop(struct live_turn *live, const char *code, const char *message)
{
    const struct harness *harness = live->domain->options.harness;

    if (live->stage == TURN_STAGE_ENDED)
        return;
    if (!live->is_cancelled) {
        live->is_cancelled = true;
        live->cancel_code = code;
        live->cancel_message = message;
    }
    if (live->stage == TURN_STAGE_SENT) {
        if (!live->cancel_ns && live->handle)
            harness->cancel(harness->self, live->handle);
        live->cancel_ns = live->cancel_ns ? live->cancel_ns : domain_now_ns(live->domain);
    } else if (live->stage != TURN_STAGE_MARKING && live->is_kept) {
        turn_end_as_stopped(live, NULL);
    }
}

/* --- time -------------------------------------------------------------------------------------- */

static void turn_lose_patience(struct live_turn *live)
{
    const struct harness *harness = live->domain->options.harness;

    if (live->handle)
        harness->leave(harness->self, TAKE_PTR(live->handle));
    turn_end_as_stopped(live, NULL);
}

static void turn_tick(struct live_turn *live)
{
    uint64_t now = domain_now_ns(live->domain);

    if (live->stage == TURN_STAGE_ENDED) {
        if (live->end_ns && live->end_ns <= now)
            turn_keep_end(live);
        return;
    }
    if (live->turn.deadline_ms && live->turn.deadline_ms <= domain_wall_ms(live->domain))
        turn_stop(live, "turn_timeout", "it took longer than its timeout");
    if (live->stage == TURN_STAGE_SENT && live->cancel_ns &&
        now - live->cancel_ns >= TURN_CANCEL_PATIENCE_MS * NS_PER_MS)
        turn_lose_patience(live);
    if (live->stage == TURN_STAGE_SENT) {
        asks_tick(live);
        turn_parts_flush(live, true);
    }
    turn_log_flush(live->conversation);
}

void turn_run_tick(struct domain *domain)
{
    LIST_EACH (&domain->conversations->live_all, at)
        turn_tick(CONTAINER_OF(at, struct live_turn, all));
}

/* --- after a restart --------------------------------------------------------------------------- */

/* In one conversation in the order they were begun. */
static void turn_sort_in(struct live_turn *live)
{
    struct list *turns = &live->conversation->work->turns;

    list_remove(&live->link);
    LIST_EACH (turns, at)
        if (CONTAINER_OF(at, struct live_turn, link)->turn.created_ms > live->turn.created_ms) {
            list_append(at, &live->link); /* before it */
            return;
        }
    list_append(turns, &live->link);
}

static void turn_load_one(struct domain *domain, const struct store_value *row)
{
    struct caller caller = caller_system();
    struct conversation *conversation;
    struct live_turn *live;
    struct turn turn;

    turn_from_row(row, &turn);
    conversation = conversation_by_id(domain, &turn.conversation);
    if (!conversation)
        return; /* nobody can see it */
    live = live_turn_new(domain, conversation, &caller);
    live->turn = turn;
    turn_own(&live->turn);
    live->key = row[STORE_TURN_KEY].is_null ? NULL : mem_copy_text(row[STORE_TURN_KEY].bytes);
    live->is_kept = true;
    live->is_found = turn.state != TURN_QUEUED;
    if (turn.state == TURN_WAITING) /* what is asked is told again */
        live->turn.state = TURN_RUNNING;
    live->by_id.hash = domain_id_hash(domain, &turn.id);
    table_add(&domain->conversations->live, &live->by_id);
    domain_claim_anyway(domain, &turn.owner, SHARE_LIVE_TURNS, 1, &live->claim);
    turn_sort_in(live);
}

/* Of one state after the other. */
struct turns_loading {
    struct domain *domain;
    unsigned int at;
    struct id after;
    domain_done *done;
    void *context;
};

#define LOAD_PAGE 50 /* of rows that may have a megabyte */

static const char *const turns_loaded[] = {"running", "waiting", "queued"};

static void turns_load_page(struct turns_loading *loading);

static void turns_got_page(void *context, const struct error *failure,
                           const struct store_rows *rows)
{
    struct turns_loading *loading = context;

    for (size_t i = 0; !failure && i < rows->count; i++) {
        turn_load_one(loading->domain, rows->rows[i]);
        loading->after = domain_row_id(&rows->rows[i][STORE_TURN_ID]);
    }
    if (!failure && rows->count < LOAD_PAGE) {
        loading->at++;
        loading->after = (struct id){.text = ""};
    }
    if (!failure && loading->at < ARRAY_COUNT(turns_loaded)) {
        turns_load_page(loading);
        return;
    }
    loading->done(loading->context, failure);
    free(loading);
}

static void turns_load_page(struct turns_loading *loading)
{
    const struct store_condition conditions[] = {
        {STORE_TURN_STATE, STORE_EQUAL, store_text(turns_loaded[loading->at])},
        {STORE_TURN_ID, STORE_GREATER, store_text(loading->after.text)},
    };
    const struct store_query query = {.kind = STORE_TURN,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_TURN_ID,
                                      .limit = LOAD_PAGE};

    domain_find(loading->domain, &query, turns_got_page, loading);
}

void turns_load(struct domain *domain, domain_done *done, void *context)
{
    struct turns_loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct turns_loading){.domain = domain, .done = done, .context = context};
    turns_load_page(loading);
}

void turns_recover(struct domain *domain)
{
    LIST_EACH (&domain->conversations->all, at)
        turn_go_on(CONTAINER_OF(at, struct conversation, link));
}
