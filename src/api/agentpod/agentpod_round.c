#include "api/agentpod/agentpod_round.h"

#include <string.h>

#include "api/agent/message_meter.h"
#include "api/agentpod/agentpod_agent.h"
#include "api/agentpod/agentpod_internal.h"
#include "api/agentpod/agentpod_parts.h"
#include "api/agentpod/agentpod_question.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/conversation/conversation.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/told_event.h"
#include "domain/workspace/workspace.h"

#define QUESTION_MS    30000
#define SESSION_MAX    ((size_t) 128)
#define ROUND_BODY_MAX ((size_t) 64 * 1024)
#define EVENT_MAX      ((size_t) 1024)

struct agentpod_round {
    struct api *api;
    struct http_request *request; /* NULL: the client left, or was answered */
    struct caller caller;
    struct id sandbox, owner;
    struct agentpod_round_spec spec; /* its texts are owned */
    char *session;                   /* owned; NULL: not known yet */
    char *parts, *info;              /* owned: of the answer */
    struct agentpod_question *question;
    struct turn_wait *wait;
    uint64_t begun_ns;
};

/* --- life ------------------------------------------------------------------------------------ */

static char *agentpod_round_copy(const char *text)
{
    return text ? mem_copy_text(text) : NULL;
}

static void agentpod_round_free(struct agentpod_round *round)
{
    const char *const texts[] = {
        round->spec.session,
        round->spec.title,
        round->spec.config,
        round->spec.turn.text,
        round->spec.turn.parts,
        round->spec.turn.provider,
        round->spec.turn.model,
        round->spec.turn.agent,
        round->session,
        round->parts,
        round->info,
    };

    if (round->request) {
        round->request->data = NULL;
        round->request->on_gone = NULL;
    }
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        free((void *) texts[i]); /* ours, whatever the spec's type says */
    free(round);
}

AUTO_DEFINE_PTR(agentpod_round, struct agentpod_round, agentpod_round_free);

/* The request is not looked at any more: it is about to be answered. */
static struct http_request *agentpod_round_take_request(struct agentpod_round *round)
{
    struct http_request *request = TAKE_PTR(round->request);

    if (request) {
        request->data = NULL;
        request->on_gone = NULL;
    }
    return request;
}

static void agentpod_round_client_left(struct http_request *request)
{
    struct agentpod_round *round = request->data;

    round->request = NULL;
    if (!round->question)
        return; /* a turn, or what makes one, is under way: its answer comes here */
    agentpod_question_drop(TAKE_PTR(round->question));
    agentpod_round_free(round);
}

static struct sandbox *agentpod_round_sandbox(const struct agentpod_round *round, struct error *err)
{
    return sandbox_find(round->api->domain, &round->caller, round->sandbox.text, err);
}

/* --- failures -------------------------------------------------------------------------------- */

/* The code of a turn is a word of its own, which errors of ours need not have. */
static void agentpod_round_refuse(struct agentpod_round *round, int status, const char *code,
                                  const char *message)
{
    struct http_request *request = agentpod_round_take_request(round);
    AUTO(text) struct text body = TEXT_INIT(ROUND_BODY_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "error", message);
    json_add_text(&json, "code", code);
    if (round->session)
        json_add_text(&json, "sessionId", round->session);
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    http_reply(request, status, "application/json", text_string(&body), body.length);
}

static void agentpod_round_fail(struct agentpod_round *round, const struct error *failure)
{
    struct error error;

    agentpod_agent_translate(failure, &error);
    agentpod_round_refuse(round, error_http_status(error.code), error_code_text(error.code),
                          error.message);
}

/* --- the answer ------------------------------------------------------------------------------ */

/* Texts may be long: a tree would hold them twice. */
static void agentpod_round_reply(struct agentpod_round *round,
                                 const struct workspace_synced *synced)
{
    struct http_request *request = agentpod_round_take_request(round);
    const char *parts = round->parts ? round->parts : "[]", *info = round->info;
    AUTO(free) char *response = agentpod_parts_first_text(parts);
    AUTO(text)
    struct text body = TEXT_INIT(ROUND_BODY_MAX + strlen(parts) + (info ? strlen(info) : 0) +
                                 6 * strlen(response));
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "sessionId", round->session);
    json_add_text(&json, "response", response);
    json_key(&json, "parts");
    json_put_raw(&json, parts, strlen(parts));
    json_key(&json, "info");
    json_put_raw(&json, info ? info : "{}", info ? strlen(info) : 2);
    json_begin_object_at(&json, "sync");
    json_add_integer(&json, "syncedFiles", synced ? (int64_t) synced->files : 0);
    json_add_integer(&json, "totalSize", synced ? (int64_t) synced->total_bytes : 0);
    json_end_object(&json);
    agentpod_reply(request, &json, &body);
}

static void agentpod_round_reply_message(struct agentpod_round *round)
{
    struct http_request *request = agentpod_round_take_request(round);
    AUTO(text)
    struct text body = TEXT_INIT(ROUND_BODY_MAX + strlen(round->parts) + strlen(round->info));
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_key(&json, "info");
    json_put_raw(&json, round->info, strlen(round->info));
    json_key(&json, "parts");
    json_put_raw(&json, round->parts, strlen(round->parts));
    agentpod_reply(request, &json, &body);
}

static void agentpod_round_synced(void *context, const struct error *failure,
                                  const struct workspace_synced *synced)
{
    AUTO(agentpod_round) struct agentpod_round *round = context;

    /* As the worker does: a mirror that failed is told by its own route and events. */
    agentpod_round_reply(round, failure ? NULL : synced);
}

static void agentpod_round_tell(const struct agentpod_round *round)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    json_document_begin(&json, &data);
    json_add_text(&json, "sandboxId", round->sandbox.text);
    json_add_text(&json, "sessionId", round->session);
    json_add_text(&json, "provider", "cloudflare");
    if (json_document_end(&json) == 0)
        told_event_add(round->api->domain, &round->caller, &round->owner, &round->sandbox,
                       "session.message", text_string(&data));
}

static void agentpod_round_sync(struct agentpod_round *round)
{
    struct sandbox *sandbox = agentpod_round_sandbox(round, NULL);

    if (!sandbox) {
        agentpod_round_reply(round, NULL);
        agentpod_round_free(round);
        return;
    }
    workspace_sync(round->api->domain, &round->caller, sandbox, true, agentpod_round_synced, round);
}

/* --- the turn -------------------------------------------------------------------------------- */

static uint64_t agentpod_round_ms(const struct agentpod_round *round)
{
    return (clock_monotonic_ns(round->api->clock) - round->begun_ns) / 1000000;
}

static void agentpod_round_learn_session(struct agentpod_round *round, const struct turn *turn)
{
    const struct conversation *conversation =
        conversation_find(round->api->domain, &round->caller, NULL, turn->conversation.text, NULL);

    if (!conversation || !conversation->agent_session)
        return;
    free(round->session);
    round->session = mem_copy_text(conversation->agent_session);
}

static void agentpod_round_ended(void *context, const struct error *failure,
                                 const struct turn *turn)
{
    struct agentpod_round *round = context;

    round->wait = NULL;
    if (failure) {
        agentpod_round_fail(round, failure);
        agentpod_round_free(round);
        return;
    }
    agentpod_round_learn_session(round, turn);
    message_meter_add(round->api->messages, agentpod_round_ms(round), round->sandbox.text,
                      round->api->log);
    round->parts = mem_copy_text(turn->parts);
    round->info = mem_copy_text(turn->info);
    agentpod_round_tell(round);
    if (round->spec.kind == AGENTPOD_ROUND_OPENCODE && strcmp(turn->info, "{}") != 0)
        agentpod_round_reply_message(round); /* an error of the model's is in it */
    else if (turn->state != TURN_DONE)
        agentpod_round_refuse(round, 502, turn->error_code, turn->error_message);
    agentpod_round_sync(round);
}

static void agentpod_round_created(void *context, const struct error *failure,
                                   const struct turn *turn, bool is_new)
{
    struct agentpod_round *round = context;

    (void) is_new;
    if (failure) {
        agentpod_round_fail(round, failure);
        agentpod_round_free(round);
        return;
    }
    round->wait = turn_wait_begin(round->api->domain, &round->caller, turn->id.text,
                                  agentpod_round_ended, round);
}

static void agentpod_round_prompt(struct agentpod_round *round, struct conversation *conversation)
{
    turn_create(round->api->domain, &round->caller, conversation, &round->spec.turn,
                agentpod_round_created, round);
}

/* --- the conversation ------------------------------------------------------------------------ */

static void agentpod_round_conversed(void *context, const struct error *failure,
                                     struct conversation *conversation)
{
    struct agentpod_round *round = context;

    if (!failure && !round->spec.is_bare) {
        agentpod_round_prompt(round, conversation);
        return;
    }
    if (failure)
        agentpod_round_fail(round, failure);
    else
        agentpod_round_reply(round, NULL);
    agentpod_round_free(round);
}

static void agentpod_round_converse(struct agentpod_round *round)
{
    struct conversation_spec spec = {
        .title = round->spec.title,
        .config = round->spec.config,
        .agent_session = round->session,
    };
    struct error error = ERROR_INIT;
    struct sandbox *sandbox = agentpod_round_sandbox(round, &error);

    if (sandbox) {
        spec.folder = sandbox->spec.folder;
        conversation_create(round->api->domain, &round->caller, sandbox, &spec,
                            agentpod_round_conversed, round);
        return;
    }
    agentpod_round_fail(round, &error);
    agentpod_round_free(round);
}

/* --- sessions that OpenCode has -------------------------------------------------------------- */

/* An answer that is none: 0, or -1 with why. */
static int agentpod_round_check(const struct agentpod_round *round, const struct error *failure,
                                const struct agentpod_answer *answer, struct error *err)
{
    if (failure) {
        *err = *failure;
        return -1;
    }
    if (answer->status == 404 || answer->status == 400)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no session '%.100s' in this sandbox",
                         round->session ? round->session : "");
    if (answer->status != 200 || !answer->json)
        return error_set(err, ERR_UPSTREAM, 0, "OpenCode answered %d", answer->status);
    return 0;
}

static void agentpod_round_session(void *context, const struct error *failure,
                                   const struct agentpod_answer *answer)
{
    struct agentpod_round *round = context;
    struct error error = ERROR_INIT;
    const char *id;

    round->question = NULL;
    if (agentpod_round_check(round, failure, answer, &error) < 0) {
        agentpod_round_fail(round, &error);
        agentpod_round_free(round);
        return;
    }
    id = json_string_value(json_object_get(answer->json, "id"));
    if (!round->session && id && strlen(id) <= SESSION_MAX)
        round->session = mem_copy_text(id);
    agentpod_round_converse(round);
}

static void agentpod_round_ask(struct agentpod_round *round, struct sandbox *sandbox,
                               const char *method, const char *target, const char *body)
{
    const struct agentpod_ask ask = {
        .method = method, .target = target, .body = body, .timeout_ms = QUESTION_MS};

    round->question =
        agentpod_question_new(round->api, sandbox, &ask, agentpod_round_session, round);
}

static void agentpod_round_look_up(struct agentpod_round *round, struct sandbox *sandbox)
{
    AUTO(text) struct text target = TEXT_INIT(4 * SESSION_MAX + 16);

    text_append(&target, "/session/");
    url_encode(&target, round->session, strlen(round->session));
    agentpod_round_ask(round, sandbox, "GET", text_string(&target), NULL);
}

static void agentpod_round_make_bare(struct agentpod_round *round, struct sandbox *sandbox)
{
    AUTO(text) struct text body = TEXT_INIT(ROUND_BODY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_text(&json, "title", round->spec.title);
    (void) json_document_end(&json); /* a title is far smaller */
    agentpod_round_ask(round, sandbox, "POST", "/session", text_string(&body));
}

/* --- the beginning --------------------------------------------------------------------------- */

static struct agentpod_round *agentpod_round_new(struct visit *visit,
                                                 const struct agentpod_round_spec *spec)
{
    struct agentpod_round *round = mem_alloc(sizeof(*round));

    round->api = visit->api;
    round->request = visit->request;
    round->caller = *request_caller(visit->request);
    round->sandbox = visit->sandbox->id;
    round->owner = visit->sandbox->owner;
    round->begun_ns = clock_monotonic_ns(visit->api->clock);
    round->session = agentpod_round_copy(spec->session);
    round->spec = (struct agentpod_round_spec){
        .kind = spec->kind,
        .is_bare = spec->is_bare,
        .title = agentpod_round_copy(spec->title),
        .config = agentpod_round_copy(spec->config),
        .turn = {.text = agentpod_round_copy(spec->turn.text),
                 .parts = agentpod_round_copy(spec->turn.parts),
                 .provider = agentpod_round_copy(spec->turn.provider),
                 .model = agentpod_round_copy(spec->turn.model),
                 .agent = agentpod_round_copy(spec->turn.agent)},
    };
    visit->request->data = round;
    visit->request->on_gone = agentpod_round_client_left;
    return round;
}

void agentpod_round_begin(struct visit *visit, const struct agentpod_round_spec *spec)
{
    struct agentpod_round *round = agentpod_round_new(visit, spec);
    struct conversation *conversation =
        round->session ? conversation_find_session(round->api->domain, &round->caller,
                                                   &round->sandbox, round->session)
                       : NULL;

    if (conversation)
        agentpod_round_prompt(round, conversation);
    else if (round->session)
        agentpod_round_look_up(round, visit->sandbox);
    else if (round->spec.is_bare)
        agentpod_round_make_bare(round, visit->sandbox);
    else
        agentpod_round_converse(round);
}
