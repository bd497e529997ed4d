/* Conversations with agents, their turns, and what agents ask. */
#include <stdlib.h>
#include <string.h>

#include "api/http/pending.h"
#include "api/native/agent_fields.h"
#include "api/native/agent_stream.h"
#include "api/native/agent_wait.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/order.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/conversation/conversation.h"
#include "domain/sandbox/sandboxes.h"
#include "json/json_measure.h"

#define TURNS_DEFAULT 20
#define LIST_DEFAULT  100
#define TURNS_ASKED   1000 /* that may be asked for; a page has TURN_LIST_MAX */

/* NULL: the request was answered. */
static struct conversation *conversations_find(struct http_request *request)
{
    const struct sandbox *sandbox = native_find_sandbox(request);
    struct error err = ERROR_INIT;
    struct conversation *conversation;

    if (!sandbox)
        return NULL;
    conversation = conversation_find(api_of(request)->domain, request_caller(request), &sandbox->id,
                                     http_request_parameter(request, "conversation"), &err);
    if (!conversation)
        http_reply_error(request, &err);
    return conversation;
}

/* --- conversations ------------------------------------------------------------------------------ */

static void conversations_made(void *context, const struct error *failure,
                               struct conversation *conversation)
{
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (!failure) {
        json_writer_init_text(&json, &body);
        agent_fields_conversation(&json, conversation);
        (void) json_writer_finish(&json);
    }
    order_end(context, failure, 201, &body);
}

static int conversations_read(struct http_request *request, const struct json_place *body,
                              struct error *err)
{
    static const char *const known[] = {"title",   "model",      "agent",
                                        "kind",    "folder",     "config",
                                        "command", "permission", "permissionTimeout"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct sandbox *sandbox =
        sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    struct conversation_spec spec = {.title = NULL};
    struct pool *pool = &request->pool;

    if (!sandbox || json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "title", JSON_OPTIONAL, CONVERSATION_TITLE_MAX, &spec.title, err) <
            0 ||
        json_field_text(body, "agent", JSON_OPTIONAL, CONVERSATION_NAME_MAX, &spec.agent, err) <
            0 ||
        json_field_text(body, "kind", JSON_OPTIONAL, CONVERSATION_NAME_MAX, &spec.kind, err) < 0 ||
        json_field_text(body, "folder", JSON_OPTIONAL, SANDBOX_PATH_MAX, &spec.folder, err) < 0 ||
        json_field_text(body, "command", JSON_OPTIONAL, CONVERSATION_PLACE_MAX, &spec.command,
                        err) < 0 ||
        json_field_duration(body, "permissionTimeout", JSON_OPTIONAL, CONVERSATION_ASK_MS_MAX,
                            &spec.ask_ms, err) < 0 ||
        agent_fields_read_either(body, "config", pool, &spec.config, err) < 0 ||
        agent_fields_read_either(body, "permission", pool, &spec.permission, err) < 0 ||
        agent_fields_read_model(body, pool, &spec.provider, &spec.model, err) < 0)
        return -1;
    conversation_create(domain, caller, sandbox, &spec, conversations_made, order_new(request));
    return 0;
}

void native_create_conversation(struct http_request *request)
{
    native_take(request, conversations_read);
}

struct conversations_listing {
    struct native_answer answer;
    struct id last;
};

static void conversations_list_one(void *context, struct conversation *conversation)
{
    struct conversations_listing *listing = context;

    agent_fields_conversation(&listing->answer.json, conversation);
    listing->last = conversation->id;
}

void native_list_conversations(struct http_request *request)
{
    const struct sandbox *sandbox = native_find_sandbox(request);
    const char *cursor = http_request_query(request, "cursor");
    struct conversations_listing listing;
    struct id after = {.text = ""};
    struct error err = ERROR_INIT;
    int64_t limit = LIST_DEFAULT;
    bool has_more;

    if (!sandbox)
        return;
    if (cursor && !id_is_valid(cursor))
        (void) error_set(&err, ERR_INVALID, 0,
                         "invalid cursor; use the nextCursor of the page "
                         "before");
    if (err.code || native_read_limit(request, CONVERSATION_LIST_MAX, &limit, &err) < 0) {
        http_reply_error(request, &err);
        return;
    }
    if (cursor)
        memcpy(after.text, cursor, ID_SIZE);
    native_answer_begin_list(&listing.answer, "conversations");
    has_more =
        conversation_list(api_of(request)->domain, request_caller(request), &sandbox->id,
                          cursor ? &after : NULL, (size_t) limit, conversations_list_one, &listing);
    json_end_array(&listing.answer.json);
    json_add_text(&listing.answer.json, "nextCursor", has_more ? listing.last.text : NULL);
    native_answer_send(&listing.answer, request, 200);
    native_answer_done(&listing.answer);
}

void native_get_conversation(struct http_request *request)
{
    const struct conversation *conversation = conversations_find(request);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (!conversation)
        return;
    agent_fields_conversation(&answer.json, conversation);
    native_answer_send(&answer, request, 200);
}

static void conversations_gone(void *context, const struct error *failure)
{
    pending_end(context, failure);
}

void native_delete_conversation(struct http_request *request)
{
    struct conversation *conversation = conversations_find(request);

    if (conversation)
        conversation_delete(api_of(request)->domain, request_caller(request), conversation,
                            conversations_gone, pending_new(request));
}

void native_follow_conversation(struct http_request *request)
{
    struct conversation *conversation = conversations_find(request);

    if (conversation)
        agent_stream_begin(request, conversation, NULL, NULL);
}

/* --- turns -------------------------------------------------------------------------------------- */

static void turns_answer(struct http_request *request, int status, const struct turn *turn)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    agent_fields_turn(&answer.json, turn, false);
    native_answer_send(&answer, request, status);
}

struct turns_creation {
    struct pending *pending;
    enum agent_wait_wish wish;
};

static void turns_made(void *context, const struct error *failure, const struct turn *turn,
                       bool is_new)
{
    AUTO(free) struct turns_creation *creation = context;
    struct http_request *request = pending_take_good(creation->pending, failure);
    struct conversation *conversation;
    struct id id;

    if (!request)
        return;
    id = turn->id;
    conversation = conversation_find(api_of(request)->domain, request_caller(request), NULL,
                                     turn->conversation.text, NULL);
    if (creation->wish == AGENT_WAIT_YES)
        agent_wait_begin(request, AGENT_WAIT_TURN, id.text);
    else if (creation->wish == AGENT_WAIT_STREAM && conversation)
        agent_stream_begin(request, conversation, &id, NULL);
    else
        turns_answer(request, is_new ? 201 : 200, turn);
}

static int turns_read(struct http_request *request, const struct json_place *body,
                      struct error *err)
{
    static const char *const known[] = {"text", "parts",   "model",         "agent",
                                        "wait", "timeout", "idempotencyKey"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const struct sandbox *sandbox =
        sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    json_t *parts = json_object_get(body->value, "parts");
    AUTO(free) char *parts_text = json_is_array(parts) ? json_dumps(parts, JSON_COMPACT) : NULL;
    struct turn_spec spec = {.parts = parts_text};
    struct conversation *conversation;
    struct turns_creation *creation;
    enum agent_wait_wish wish;

    conversation = sandbox ? conversation_find(domain, caller, &sandbox->id,
                                               http_request_parameter(request, "conversation"), err)
                           : NULL;
    if (!conversation || json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "text", JSON_OPTIONAL, TURN_INPUT_MAX, &spec.text, err) < 0 ||
        json_field_text(body, "agent", JSON_OPTIONAL, CONVERSATION_NAME_MAX, &spec.agent, err) <
            0 ||
        json_field_text(body, "idempotencyKey", JSON_OPTIONAL, TURN_KEY_MAX, &spec.key, err) < 0 ||
        json_field_duration(body, "timeout", JSON_OPTIONAL, TURN_TIMEOUT_MAX_MS, &spec.timeout_ms,
                            err) < 0 ||
        agent_fields_read_model(body, &request->pool, &spec.provider, &spec.model, err) < 0 ||
        agent_wait_read(body, &wish, err) < 0)
        return -1;
    if (parts && !parts_text && !json_is_null(parts))
        return json_refuse_field(body, "parts", "an array of objects", err);
    creation = mem_alloc(sizeof(*creation));
    creation->wish = wish;
    creation->pending = pending_new(request);
    turn_create(domain, caller, conversation, &spec, turns_made, creation);
    return 0;
}

void native_create_turn(struct http_request *request)
{
    native_take(request, turns_read);
}

static void turns_listed(void *context, const struct error *failure, const struct turn *turns,
                         size_t count, bool has_more)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "turns");
    if (!request)
        return;
    for (size_t i = 0; i < count; i++)
        agent_fields_turn(&answer.json, &turns[i], true);
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor", has_more ? turns[count - 1].id.text : NULL);
    native_answer_send(&answer, request, 200);
}

void native_list_turns(struct http_request *request)
{
    const struct conversation *conversation = conversations_find(request);
    struct error err = ERROR_INIT;
    int64_t limit = TURNS_DEFAULT;

    if (!conversation)
        return;
    if (native_read_limit(request, TURNS_ASKED, &limit, &err) < 0)
        http_reply_error(request, &err);
    else
        turn_list(api_of(request)->domain, request_caller(request), conversation,
                  http_request_query(request, "cursor"),
                  (size_t) (limit < TURN_LIST_MAX ? limit : TURN_LIST_MAX), turns_listed,
                  pending_new(request));
}

static void turns_got(void *context, const struct error *failure, const struct turn *turn)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        turns_answer(request, 200, turn);
}

void native_get_turn(struct http_request *request)
{
    const struct conversation *conversation = conversations_find(request);

    if (conversation)
        turn_read(api_of(request)->domain, request_caller(request), conversation,
                  http_request_parameter(request, "turn"), turns_got, pending_new(request));
}

void native_cancel_turn(struct http_request *request)
{
    const struct conversation *conversation = conversations_find(request);

    if (conversation)
        turn_cancel(api_of(request)->domain, request_caller(request), conversation,
                    http_request_parameter(request, "turn"), turns_got, pending_new(request));
}

static void turns_follow(void *context, const struct error *failure, const struct turn *turn)
{
    struct http_request *request = pending_take_good(context, failure);
    struct conversation *conversation;
    struct error err = ERROR_INIT;
    struct id id;

    if (!request)
        return;
    id = turn->id;
    conversation = conversation_find(api_of(request)->domain, request_caller(request), NULL,
                                     turn->conversation.text, &err);
    if (conversation)
        agent_stream_begin(request, conversation, &id, NULL);
    else
        http_reply_error(request, &err);
}

void native_follow_turn(struct http_request *request)
{
    const struct conversation *conversation = conversations_find(request);

    if (conversation)
        turn_read(api_of(request)->domain, request_caller(request), conversation,
                  http_request_parameter(request, "turn"), turns_follow, pending_new(request));
}

/* --- what is asked ------------------------------------------------------------------------------ */

static void asks_listed(void *context, const struct error *failure, const struct ask *asks,
                        size_t count)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "permissions");
    if (!request)
        return;
    for (size_t i = 0; i < count; i++)
        agent_fields_ask(&answer.json, &asks[i]);
    native_answer_send(&answer, request, 200);
}

static void asks_list(struct http_request *request, const struct id *sandbox,
                      const struct conversation *conversation)
{
    const char *text = http_request_query(request, "state");
    enum ask_state state = text ? ask_state_from_text(text) : ASK_STATE_COUNT;
    struct error err = ERROR_INIT;
    int64_t limit = LIST_DEFAULT;

    if (text && state == ASK_STATE_COUNT)
        (void) error_set(&err, ERR_INVALID, 0,
                         "'state' must be pending, answered, expired or resolved");
    if (err.code || native_read_limit(request, ASK_LIST_MAX, &limit, &err) < 0)
        http_reply_error(request, &err);
    else
        ask_list(api_of(request)->domain, sandbox, conversation, state, (size_t) limit, asks_listed,
                 pending_new(request));
}

void native_list_permissions(struct http_request *request)
{
    const struct sandbox *sandbox = native_find_sandbox(request);

    if (sandbox)
        asks_list(request, &sandbox->id, NULL);
}

void native_list_conversation_permissions(struct http_request *request)
{
    const struct conversation *conversation = conversations_find(request);

    if (conversation)
        asks_list(request, &conversation->sandbox, conversation);
}

static void asks_answered(void *context, const struct error *failure, const struct ask *ask)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (!request)
        return;
    agent_fields_ask(&answer.json, ask);
    native_answer_send(&answer, request, 200);
}

/* {"reply","message"} of a permission; {"answers"} or {"reply":"reject"} of a question. */
static int asks_read(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const known[] = {"reply", "message", "answers"};
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    const char *id = http_request_parameter(request, "permission");
    const struct sandbox *sandbox =
        sandbox_find(domain, caller, http_request_parameter(request, "id"), err);
    json_t *answers = json_object_get(body->value, "answers");
    AUTO(free) char *text = NULL;
    const char *reply = NULL, *message = NULL;

    if (!sandbox || json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "reply", JSON_OPTIONAL, 16, &reply, err) < 0 ||
        json_field_text(body, "message", JSON_OPTIONAL, 4096, &message, err) < 0)
        return -1;
    if (answers && !json_is_array(answers))
        return json_refuse_field(body, "answers", "an array with the answers to each question",
                                 err);
    if (!answers && !reply)
        return json_refuse_field(body, "reply", "once, always or reject", err);
    text = answers ? json_dumps(answers, JSON_COMPACT) : NULL;
    if (answers || native_argument(request))
        ask_answer_question(domain, caller, &sandbox->id, id, text, asks_answered,
                            pending_new(request));
    else
        ask_answer_permission(domain, caller, &sandbox->id, id, reply, message, asks_answered,
                              pending_new(request));
    return 0;
}

void native_answer_permission(struct http_request *request)
{
    native_take(request, asks_read);
}

void native_answer_question(struct http_request *request)
{
    native_take_with(request, asks_read, "question");
}
