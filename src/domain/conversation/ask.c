/* What agents ask: rows, answers, and the end of the patience. */
#include "domain/conversation/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/event/event.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define NS_PER_MS        UINT64_C(1000000)
#define REQUEST_NAME_MAX 256

static const char *const state_names[ASK_STATE_COUNT] = {
#define X(name, text) [ASK_##name] = text,
    ASK_STATES(X)
#undef X
};

const char *ask_state_text(enum ask_state state)
{
    return state < ASK_STATE_COUNT ? state_names[state] : "";
}

enum ask_state ask_state_from_text(const char *text)
{
    for (unsigned int i = 0; i < ASK_STATE_COUNT; i++)
        if (strcmp(state_names[i], text) == 0)
            return (enum ask_state) i;
    return ASK_STATE_COUNT;
}

static const char *ask_kind_text(enum ask_kind kind)
{
    return kind == ASK_PERMISSION ? "permission" : "question";
}

/* --- rows -------------------------------------------------------------------------------------- */

static void ask_put_row(struct store_transaction *rows, const struct ask *ask)
{
    const struct store_value values[STORE_PERMISSION_COLUMN_COUNT] = {
        [STORE_PERMISSION_ID] = store_text(ask->id.text),
        [STORE_PERMISSION_OWNER] = store_text(ask->owner.text),
        [STORE_PERMISSION_SANDBOX] = store_text(ask->sandbox.text),
        [STORE_PERMISSION_CONVERSATION] = store_text(ask->conversation.text),
        [STORE_PERMISSION_TURN] = store_text(ask->turn.text),
        [STORE_PERMISSION_KIND] = store_text(ask_kind_text(ask->kind)),
        [STORE_PERMISSION_STATE] = store_text(ask_state_text(ask->state)),
        [STORE_PERMISSION_REQUEST] = store_text(ask->request),
        [STORE_PERMISSION_DETAIL] = store_text(ask->detail),
        [STORE_PERMISSION_REPLY] = store_text(ask->reply),
        [STORE_PERMISSION_ANSWERED_BY] = store_text(ask->answered_by),
        [STORE_PERMISSION_CREATED] = store_integer(ask->created_ms),
        [STORE_PERMISSION_ANSWERED] =
            ask->answered_ms ? store_integer(ask->answered_ms) : store_null(),
        [STORE_PERMISSION_EXPIRES] = store_integer(ask->expires_ms),
    };

    store_put(rows, STORE_PERMISSION, values);
}

static struct live_ask *ask_live(const struct domain *domain, const char *id)
{
    LIST_EACH (&domain->conversations->live_all, turn_at) {
        struct live_turn *live = CONTAINER_OF(turn_at, struct live_turn, all);

        LIST_EACH (&live->asks, at) {
            struct live_ask *ask = CONTAINER_OF(at, struct live_ask, link);

            if (strcmp(ask->ask.id.text, id) == 0)
                return ask;
        }
    }
    return NULL;
}

/* One that waits by its row, and that nobody knows any more, was lost with its turn. */
static struct ask ask_from_row(const struct domain *domain, const struct store_value *row)
{
    struct ask ask = {
        .id = domain_row_id(&row[STORE_PERMISSION_ID]),
        .owner = domain_row_id(&row[STORE_PERMISSION_OWNER]),
        .sandbox = domain_row_id(&row[STORE_PERMISSION_SANDBOX]),
        .conversation = domain_row_id(&row[STORE_PERMISSION_CONVERSATION]),
        .turn = domain_row_id(&row[STORE_PERMISSION_TURN]),
        .kind = strcmp(row[STORE_PERMISSION_KIND].bytes, "permission") == 0 ? ASK_PERMISSION
                                                                            : ASK_QUESTION,
        .state = ask_state_from_text(row[STORE_PERMISSION_STATE].bytes),
        .request = row[STORE_PERMISSION_REQUEST].bytes,
        .detail = row[STORE_PERMISSION_DETAIL].bytes,
        .reply = row[STORE_PERMISSION_REPLY].bytes,
        .answered_by = row[STORE_PERMISSION_ANSWERED_BY].bytes,
        .created_ms = row[STORE_PERMISSION_CREATED].integer,
        .answered_ms = row[STORE_PERMISSION_ANSWERED].integer,
        .expires_ms = row[STORE_PERMISSION_EXPIRES].integer,
    };

    if (ask.state == ASK_PENDING && !turn_live(domain, ask.turn.text))
        ask.state = ASK_RESOLVED;
    return ask;
}

/* --- memory ------------------------------------------------------------------------------------ */

static void live_ask_free(struct live_ask *ask)
{
    list_remove(&ask->link);
    free((char *) ask->ask.request);
    free((char *) ask->ask.detail);
    free((char *) ask->ask.reply);
    free((char *) ask->ask.answered_by);
    free(ask);
}

void asks_done(struct live_turn *live)
{
    struct list *link;

    while ((link = list_first(&live->asks)))
        live_ask_free(CONTAINER_OF(link, struct live_ask, link));
}

static struct live_ask *ask_by_request(struct live_turn *live, const char *request)
{
    LIST_EACH (&live->asks, at) {
        struct live_ask *ask = CONTAINER_OF(at, struct live_ask, link);

        if (!ask->is_over && strcmp(ask->ask.request, request) == 0)
            return ask;
    }
    return NULL;
}

static size_t asks_pending(const struct live_turn *live)
{
    size_t count = 0;

    LIST_EACH (&live->asks, at)
        count += !CONTAINER_OF(at, struct live_ask, link)->is_over;
    return count;
}

/* --- said -------------------------------------------------------------------------------------- */

static void ask_log(const struct live_ask *ask, const char *kind)
{
    const struct ask *at = &ask->ask;
    AUTO(text) struct text item = TEXT_INIT(STORE_VALUE_MAX);
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    json_document_begin(&json, &item);
    json_add_text(&json, "turn", at->turn.text);
    json_add_text(&json, "id", at->id.text);
    json_add_text(&json, "state", ask_state_text(at->state));
    if (at->state == ASK_PENDING) {
        json_key(&json, "detail");
        json_put_raw(&json, at->detail, strlen(at->detail));
        clock_format(at->expires_ms, time);
        json_add_text(&json, "expiresAt", time);
    } else {
        json_add_text(&json, "reply", at->reply);
        json_add_text(&json, "answeredBy", at->answered_by);
    }
    if (json_document_end(&json) == 0)
        turn_log_add(ask->turn->conversation, ask->turn, kind, NULL, text_string(&item));
}

static void ask_add_event(const struct live_ask *ask, struct store_transaction *rows,
                          const struct caller *caller, const char *type)
{
    const struct ask *at = &ask->ask;
    char data[TURN_EVENT_DATA_MAX];

    (void) snprintf(data, sizeof(data),
                    "{\"sandboxId\":\"%s\",\"conversationId\":\"%s\",\"turnId\":\"%s\","
                    "\"id\":\"%s\",\"state\":\"%s\",\"reply\":\"%s\"}",
                    at->sandbox.text, at->conversation.text, at->turn.text, at->id.text,
                    ask_state_text(at->state), at->kind == ASK_PERMISSION ? at->reply : "");
    event_add(ask->turn->domain, rows, caller, &at->owner,
              conversation_stream(ask->turn->conversation), type, data);
}

static void ask_note(struct live_ask *ask, const struct caller *caller, enum turn_event event,
                     const char *type, const char *kind)
{
    struct live_turn *live = ask->turn;
    struct store_transaction *rows = store_begin(live->domain->options.store);
    enum turn_state next = turn_state_after(live->turn.state, event);

    if (next != TURN_STATE_COUNT)
        live->turn.state = next;
    ask_put_row(rows, &ask->ask);
    ask_add_event(ask, rows, caller, type);
    ask_log(ask, kind);
    turn_note(live, rows);
}

/* It waits no more. */
static void ask_close(struct live_ask *ask, const struct caller *caller, enum ask_state state,
                      const char *reply, const char *by)
{
    struct live_turn *live = ask->turn;

    ask->is_over = true;
    ask->ask.state = state;
    ask->ask.answered_ms = domain_wall_ms(live->domain);
    turn_set(&ask->ask.reply, reply);
    turn_set(&ask->ask.answered_by, by);
    if (live->stage == TURN_STAGE_ENDED)
        return; /* its end has said so */
    ask_note(ask, caller, asks_pending(live) ? TURN_EVENT_ASKED : TURN_EVENT_ANSWERED,
             "agent.answered", "answered");
}

void asks_end(struct live_turn *live, struct store_transaction *rows)
{
    LIST_EACH (&live->asks, at) {
        struct live_ask *ask = CONTAINER_OF(at, struct live_ask, link);

        if (ask->ask.state != ASK_PENDING)
            continue;
        ask->is_over = true;
        ask->ask.state = ASK_RESOLVED;
        ask->ask.answered_ms = live->turn.ended_ms;
        ask_put_row(rows, &ask->ask);
    }
}

/* --- begun ------------------------------------------------------------------------------------- */

static void ask_begun(struct live_ask *ask)
{
    const struct caller caller = caller_system();

    ask_note(ask, &caller, TURN_EVENT_ASKED,
             ask->ask.kind == ASK_PERMISSION ? "agent.permission" : "agent.question",
             ask_kind_text(ask->ask.kind));
    CRASH_POINT("turn.asked");
}

struct ask_looking {
    struct live_turn *live; /* a reference */
    struct live_ask *ask;
};

/* After a restart: it may have been asked before, under an id that somebody knows. */
static void ask_looked(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct ask_looking *looking = context;
    struct live_turn *live = looking->live;

    if (live->stage == TURN_STAGE_SENT && live->domain->stage == DOMAIN_OPEN &&
        !looking->ask->is_over) {
        if (!failure && rows->count)
            looking->ask->ask.id = domain_row_id(&rows->rows[0][STORE_PERMISSION_ID]);
        ask_begun(looking->ask);
    }
    live_turn_unref(live);
}

static void ask_look(struct live_ask *ask)
{
    const struct store_condition conditions[] = {
        {STORE_PERMISSION_TURN, STORE_EQUAL, store_text(ask->turn->turn.id.text)},
        {STORE_PERMISSION_REQUEST, STORE_EQUAL, store_text(ask->ask.request)},
        {STORE_PERMISSION_STATE, STORE_EQUAL, store_text("pending")},
    };
    const struct store_query query = {.kind = STORE_PERMISSION,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_PERMISSION_CREATED,
                                      .limit = 1};
    struct ask_looking *looking = mem_alloc(sizeof(*looking));

    *looking = (struct ask_looking){ask->turn, ask};
    live_turn_ref(ask->turn);
    domain_find(ask->turn->domain, &query, ask_looked, looking);
}

static bool ask_detail_is_good(const char *json)
{
    AUTO(json) json_t *value = NULL;

    if (strlen(json) > ASK_DETAIL_MAX)
        return false;
    value = json_read(json, strlen(json), NULL, NULL);
    return json_is_object(value);
}

static void ask_refused(void *context, const struct error *failure)
{
    struct domain *domain = context;

    (void) failure; /* the agent waits on; its turn has a deadline, or somebody who cancels */
    domain->works--;
    domain_check_gone(domain);
}

static void ask_refuse(struct live_turn *live, enum ask_kind kind, const char *request)
{
    const struct harness *harness = live->domain->options.harness;

    live->domain->works++;
    if (kind == ASK_PERMISSION)
        harness->answer_permission(harness->self, live->handle, request, "reject",
                                   "too much is asked at once", ask_refused, live->domain);
    else
        harness->answer_question(harness->self, live->handle, request, NULL, ask_refused,
                                 live->domain);
}

void ask_begin(struct live_turn *live, enum ask_kind kind, const char *request, const char *json)
{
    struct live_ask *ask;
    int64_t now = domain_wall_ms(live->domain);

    if (live->stage != TURN_STAGE_SENT || !live->handle || strlen(request) > REQUEST_NAME_MAX ||
        ask_by_request(live, request))
        return;
    if (live->ask_count >= ASKS_PER_TURN * 32 || asks_pending(live) >= ASKS_PER_TURN) {
        ask_refuse(live, kind, request);
        return;
    }
    ask = mem_alloc(sizeof(*ask));
    ask->turn = live;
    ask->expires_ns = domain_now_ns(live->domain) + live->conversation->ask_ms * NS_PER_MS;
    ask->ask = (struct ask){.id = id_new(),
                            .owner = live->turn.owner,
                            .sandbox = live->turn.sandbox,
                            .conversation = live->turn.conversation,
                            .turn = live->turn.id,
                            .kind = kind,
                            .state = ASK_PENDING,
                            .request = mem_copy_text(request),
                            .detail = mem_copy_text(ask_detail_is_good(json) ? json : "{}"),
                            .reply = mem_copy_text(""),
                            .answered_by = mem_copy_text(""),
                            .created_ms = now,
                            .expires_ms = now + (int64_t) live->conversation->ask_ms};
    list_append(&live->asks, &ask->link);
    live->ask_count++;
    if (live->is_found)
        ask_look(ask);
    else
        ask_begun(ask);
}

void ask_resolve(struct live_turn *live, const char *request, const char *reply)
{
    struct live_ask *ask = ask_by_request(live, request);
    const struct caller caller = caller_system();

    if (ask && !ask->is_answering && strlen(reply ? reply : "") <= ASK_REPLY_MAX)
        ask_close(ask, &caller, ASK_RESOLVED, reply ? reply : "", "agent");
}

/* --- answered ---------------------------------------------------------------------------------- */

struct ask_answering {
    struct domain *domain;
    struct domain_task task;
    struct caller caller;
    struct live_turn *live; /* a reference; NULL: it was refused or is read */
    struct live_ask *ask;
    enum ask_state state; /* that it has when the agent was told */
    struct id sandbox;
    char id[ID_SIZE];
    char *reply; /* owned */
    struct error failure;
    ask_done *done; /* NULL: the daemon answers by itself */
    void *context;
};

static void ask_answering_end(struct ask_answering *answering, const struct error *failure,
                              const struct ask *ask)
{
    struct domain *domain = answering->domain;

    if (answering->done)
        answering->done(answering->context, failure, ask);
    if (answering->live)
        live_turn_unref(answering->live);
    free(answering->reply);
    free(answering);
    domain->works--;
    domain_check_gone(domain);
}

static void ask_told(void *context, const struct error *failure)
{
    struct ask_answering *answering = context;
    struct live_ask *ask = answering->ask;

    ask->is_answering = false;
    if (!failure && !ask->is_over)
        ask_close(ask, &answering->caller, answering->state, answering->reply,
                  *answering->caller.owner.text ? answering->caller.owner.text : "system");
    ask_answering_end(answering, failure, failure ? NULL : &ask->ask);
}

static void ask_tell(struct ask_answering *answering, struct live_ask *ask, const char *message)
{
    const struct harness *harness = answering->domain->options.harness;

    answering->live = ask->turn;
    answering->ask = ask;
    live_turn_ref(ask->turn);
    ask->is_answering = true;
    if (ask->ask.kind == ASK_PERMISSION)
        harness->answer_permission(harness->self, ask->turn->handle, ask->ask.request,
                                   answering->reply, message, ask_told, answering);
    else
        harness->answer_question(harness->self, ask->turn->handle, ask->ask.request,
                                 *answering->reply ? answering->reply : NULL, ask_told, answering);
}

static struct ask_answering *ask_answering_new(struct domain *domain, const struct caller *caller,
                                               const char *reply, ask_done *done, void *context)
{
    struct ask_answering *answering = mem_alloc(sizeof(*answering));

    *answering = (struct ask_answering){.domain = domain,
                                        .caller = *caller,
                                        .state = ASK_ANSWERED,
                                        .reply = mem_copy_text(reply),
                                        .done = done,
                                        .context = context};
    list_init(&answering->task.link);
    domain->works++;
    return answering;
}

void asks_tick(struct live_turn *live)
{
    const struct caller caller = caller_system();
    uint64_t now = domain_now_ns(live->domain);

    LIST_EACH (&live->asks, at) {
        struct live_ask *ask = CONTAINER_OF(at, struct live_ask, link);
        struct ask_answering *answering;

        if (ask->is_over || ask->is_answering || ask->expires_ns > now || !live->handle)
            continue;
        ask->expires_ns = now + 10000 * NS_PER_MS; /* again, should it not get through */
        answering = ask_answering_new(live->domain, &caller,
                                      ask->ask.kind == ASK_PERMISSION ? "reject" : "", NULL, NULL);
        answering->state = ASK_EXPIRED;
        ask_tell(answering, ask, "nobody answered in time");
    }
}

static void ask_refuse_answer(struct domain_task *task)
{
    struct ask_answering *answering = CONTAINER_OF(task, struct ask_answering, task);

    ask_answering_end(answering, &answering->failure, NULL);
}

static bool ask_is_there(const struct ask_answering *answering, const struct ask *ask)
{
    return id_equal(&ask->sandbox, &answering->sandbox) &&
           caller_sees_sandbox(&answering->caller, &ask->owner, &ask->sandbox);
}

static void ask_was_read(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct ask_answering *answering = context;
    struct error *err = &answering->failure;
    struct ask ask;

    if (failure) {
        ask_answering_end(answering, failure, NULL);
        return;
    }
    if (rows->count)
        ask = ask_from_row(answering->domain, rows->rows[0]);
    if (rows->count && ask_is_there(answering, &ask))
        (void) error_set(err, ERR_CONFLICT, 0, "it does not wait any more: it is %s%s%.100s",
                         ask_state_text(ask.state), *ask.reply ? ", with " : "", ask.reply);
    else
        (void) error_set(err, ERR_NOT_FOUND, 0, "nothing of the id '%.40s' is asked here",
                         answering->id);
    ask_answering_end(answering, err, NULL);
}

static void ask_read_row(struct ask_answering *answering)
{
    const struct store_condition mine = {STORE_PERMISSION_ID, STORE_EQUAL,
                                         store_text(answering->id)};
    const struct store_query query = {.kind = STORE_PERMISSION,
                                      .conditions = &mine,
                                      .condition_count = 1,
                                      .order = STORE_PERMISSION_ID,
                                      .limit = 1};

    domain_find(answering->domain, &query, ask_was_read, answering);
}

static int ask_check(struct ask_answering *answering, enum ask_kind kind,
                     const struct live_ask *ask)
{
    struct error *err = &answering->failure;

    if (!domain_is_open(answering->domain, err))
        return -1;
    if (!caller_may_enter(&answering->caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not answer agents");
    if (!ask)
        return 0;
    if (ask->ask.kind != kind)
        return error_set(err, ERR_INVALID, 0, "this is a %s, and answered as one",
                         ask_kind_text(ask->ask.kind));
    if (ask->is_answering || !ask->turn->handle)
        return error_set(err, ERR_CONFLICT, 0, "it is being answered already");
    return 0;
}

static void ask_answer(struct ask_answering *answering, const struct id *sandbox, const char *id,
                       enum ask_kind kind, const char *message)
{
    struct live_ask *ask;

    answering->sandbox = *sandbox;
    if (id_is_valid(id))
        memcpy(answering->id, id, ID_SIZE);
    ask = ask_live(answering->domain, answering->id);
    if (ask && (!ask_is_there(answering, &ask->ask) || ask->is_over))
        ask = NULL;
    if (answering->failure.code || ask_check(answering, kind, ask) < 0)
        domain_defer(answering->domain, &answering->task, ask_refuse_answer);
    else if (ask)
        ask_tell(answering, ask, message);
    else
        ask_read_row(answering);
}

void ask_answer_permission(struct domain *domain, const struct caller *caller,
                           const struct id *sandbox, const char *id, const char *reply,
                           const char *message, ask_done *done, void *context)
{
    struct ask_answering *answering = ask_answering_new(domain, caller, reply, done, context);

    if (strcmp(reply, "once") != 0 && strcmp(reply, "always") != 0 && strcmp(reply, "reject") != 0)
        (void) error_set(&answering->failure, ERR_INVALID, 0,
                         "field 'reply' must be once, always or reject");
    ask_answer(answering, sandbox, id, ASK_PERMISSION, message);
}

void ask_answer_question(struct domain *domain, const struct caller *caller,
                         const struct id *sandbox, const char *id, const char *answers,
                         ask_done *done, void *context)
{
    struct ask_answering *answering =
        ask_answering_new(domain, caller, answers ? answers : "", done, context);

    if (answers && strlen(answers) > ASK_REPLY_MAX)
        (void) error_set(&answering->failure, ERR_INVALID, 0,
                         "field 'answers' may have %zu bytes at most", ASK_REPLY_MAX);
    ask_answer(answering, sandbox, id, ASK_QUESTION, NULL);
}

/* --- listed ------------------------------------------------------------------------------------ */

struct ask_listing {
    struct domain *domain;
    enum ask_state state;
    ask_list_done *done;
    void *context;
};

static void ask_got_list(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct ask_listing *listing = context;
    AUTO(free) struct ask *asks = NULL;
    size_t count = 0;

    asks = mem_alloc_array((failure ? 0 : rows->count) + 1, sizeof(*asks));
    for (size_t i = 0; !failure && i < rows->count; i++) {
        asks[count] = ask_from_row(listing->domain, rows->rows[i]);
        if (listing->state == ASK_STATE_COUNT || asks[count].state == listing->state)
            count++;
    }
    listing->done(listing->context, failure, asks, count);
}

void ask_list(struct domain *domain, const struct id *sandbox,
              const struct conversation *conversation, enum ask_state state, size_t limit,
              ask_list_done *done, void *context)
{
    struct store_condition conditions[2] = {
        {STORE_PERMISSION_SANDBOX, STORE_EQUAL, store_text(sandbox->text)}};
    struct store_query query = {.kind = STORE_PERMISSION,
                                .conditions = conditions,
                                .condition_count = 1,
                                .order = STORE_PERMISSION_CREATED,
                                .is_descending = true,
                                .limit = limit};
    struct ask_listing *listing = mem_alloc(sizeof(*listing));

    *listing = (struct ask_listing){domain, state, done, context};
    if (conversation)
        conditions[query.condition_count++] = (struct store_condition){
            STORE_PERMISSION_CONVERSATION, STORE_EQUAL, store_text(conversation->id.text)};
    if (state != ASK_STATE_COUNT && query.condition_count < 2)
        conditions[query.condition_count++] = (struct store_condition){
            STORE_PERMISSION_STATE, STORE_EQUAL, store_text(ask_state_text(state))};
    domain_find(domain, &query, ask_got_list, listing);
}
