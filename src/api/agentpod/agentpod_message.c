/* message: a prompt for the agent of a sandbox. What else the body has is ignored, as the worker
 * does. And the same on OpenCode's own path, through the proxy. */
#include <string.h>

#include "api/agentpod/agentpod_agent.h"
#include "api/agentpod/agentpod_internal.h"
#include "api/agentpod/agentpod_opencode.h"
#include "api/agentpod/agentpod_question.h"
#include "api/agentpod/agentpod_round.h"
#include "api/http/json_body.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/conversation/conversation.h"

#define USUAL_TITLE  "Agent Task"
#define BARE_MESSAGE "Initialize session"
#define BARE_TITLE   "Task "
#define SESSION_MAX  ((size_t) 128)
#define PASS_MS      ((uint64_t) 30 * 60 * 1000)

/* In the request's pool, as all texts in it. */
struct agentpod_message {
    struct agentpod_round_spec spec;
    char *raw; /* a body that is OpenCode's own to understand; NULL: a turn of ours */
};

/* --- reading --------------------------------------------------------------------------------- */

static const char *agentpod_message_keep(struct pool *pool, const char *text)
{
    return text && text[0] ? pool_copy_text(pool, text) : NULL;
}

int agentpod_read_model(const struct json_place *body, struct pool *pool, const char **ret_provider,
                        const char **ret_model, struct error *err)
{
    const char *provider = NULL, *model = NULL;
    struct json_place place;

    if (json_field_object(body, "model", JSON_OPTIONAL, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    if (json_field_text(&place, "providerID", JSON_REQUIRED, CONVERSATION_NAME_MAX, &provider,
                        err) < 0 ||
        json_field_text(&place, "modelID", JSON_REQUIRED, CONVERSATION_NAME_MAX, &model, err) < 0)
        return -1;
    *ret_provider = agentpod_message_keep(pool, provider);
    *ret_model = agentpod_message_keep(pool, model);
    return 0;
}

/* Only a config that brings a provider says anything. */
static int agentpod_message_read_config(const struct json_place *body, struct pool *pool,
                                        const char **ret_config, struct error *err)
{
    struct json_place place;
    AUTO(free) char *text = NULL;

    if (json_field_object(body, "config", JSON_OPTIONAL, &place, err) < 0)
        return -1;
    if (json_object_size(json_object_get(place.value, "provider")) == 0)
        return 0;
    text = json_dumps(place.value, JSON_COMPACT);
    *ret_config = agentpod_message_keep(pool, text);
    if (text)
        explicit_bzero(text, strlen(text));
    return 0;
}

static int agentpod_message_read(const struct json_place *body, struct pool *pool,
                                 struct agentpod_round_spec *spec, struct error *err)
{
    const char *text = NULL, *session = NULL, *title = NULL, *agent = NULL;

    if (json_field_text(body, "message", JSON_REQUIRED, TURN_INPUT_MAX, &text, err) < 0 ||
        json_field_text(body, "sessionId", JSON_OPTIONAL, SESSION_MAX, &session, err) < 0 ||
        json_field_text(body, "title", JSON_OPTIONAL, CONVERSATION_TITLE_MAX, &title, err) < 0 ||
        json_field_text(body, "agent", JSON_OPTIONAL, CONVERSATION_NAME_MAX, &agent, err) < 0 ||
        agentpod_read_model(body, pool, &spec->turn.provider, &spec->turn.model, err) < 0 ||
        agentpod_message_read_config(body, pool, &spec->config, err) < 0)
        return -1;
    if (!text[0])
        return error_set(err, ERR_INVALID, 0, "message must not be empty");
    spec->session = agentpod_message_keep(pool, session);
    spec->title = agentpod_message_keep(pool, title && title[0] ? title : USUAL_TITLE);
    spec->turn.text = agentpod_message_keep(pool, text);
    spec->turn.agent = agentpod_message_keep(pool, agent);
    /* What AgentPod posts to have a session at all. No model has anything to say to it. */
    spec->is_bare = !spec->session && strcmp(text, BARE_MESSAGE) == 0 && title &&
                    strncmp(title, BARE_TITLE, strlen(BARE_TITLE)) == 0;
    return 0;
}

/* --- message --------------------------------------------------------------------------------- */

static void agentpod_message_ready(struct visit *visit)
{
    const struct agentpod_message *message = visit->data;

    agentpod_round_begin(visit, &message->spec);
}

static void agentpod_message_visited(struct visit *visit)
{
    const struct agentpod_message *message = visit->data;
    const struct agentpod_start start = {.config = message->spec.config,
                                         .ready = agentpod_message_ready};

    agentpod_agent_start(visit, &start);
}

static int agentpod_message_take(struct http_request *request, const struct json_place *body,
                                 struct error *err)
{
    struct agentpod_message *message = pool_alloc(&request->pool, sizeof(*message));

    if (agentpod_message_read(body, &request->pool, &message->spec, err) < 0)
        return -1;
    request->data = message;
    visit_begin(request, http_request_parameter(request, "id"), 0, agentpod_message_visited);
    return 0;
}

void agentpod_message(struct http_request *request)
{
    json_body_take(request, agentpod_message_take);
}

/* --- OpenCode's own path --------------------------------------------------------------------- */

/* Whatever a turn of ours can say; a body with more goes to OpenCode as it is. */
static bool agentpod_message_is_ours(json_t *body)
{
    static const char *const known[] = {"parts", "model", "agent"};
    const char *key;
    json_t *value;
    size_t found = 0;

    json_object_foreach (body, key, value) {
        for (size_t i = 0; i < ARRAY_COUNT(known); i++)
            found += strcmp(known[i], key) == 0;
    }
    return found == json_object_size(body) && json_array_size(json_object_get(body, "parts")) > 0;
}

static char *agentpod_message_print(struct pool *pool, json_t *value)
{
    AUTO(free) char *text = json_dumps(value, JSON_COMPACT);

    return pool_copy_text(pool, text ? text : "{}");
}

static void agentpod_message_passed(void *context, const struct error *failure,
                                    const struct agentpod_answer *answer)
{
    struct http_request *request = context;

    request->data = NULL;
    request->on_gone = NULL;
    if (failure)
        http_reply_error(request, failure);
    else
        http_reply(request, answer->status, "application/json", answer->bytes, answer->length);
}

static void agentpod_message_client_left(struct http_request *request)
{
    agentpod_question_drop(request->data);
}

static void agentpod_message_pass(struct visit *visit, const struct agentpod_message *message)
{
    struct http_request *request = visit->request;
    AUTO(text) struct text target = TEXT_INIT(4 * SESSION_MAX + 32);
    struct agentpod_ask ask = {.method = "POST", .body = message->raw, .timeout_ms = PASS_MS};

    text_append(&target, "/session/");
    url_encode(&target, message->spec.session, strlen(message->spec.session));
    text_append(&target, "/message");
    ask.target = text_string(&target);
    request->data =
        agentpod_question_new(visit->api, visit->sandbox, &ask, agentpod_message_passed, request);
    request->on_gone = agentpod_message_client_left;
}

static void agentpod_message_opencode_ready(struct visit *visit)
{
    const struct agentpod_message *message = visit->data;

    if (message->raw)
        agentpod_message_pass(visit, message);
    else
        agentpod_round_begin(visit, &message->spec);
}

static void agentpod_message_opencode_visited(struct visit *visit)
{
    const struct agentpod_start start = {.ready = agentpod_message_opencode_ready};

    agentpod_agent_start(visit, &start);
}

static int agentpod_message_opencode_take(struct http_request *request,
                                          const struct json_place *body, struct error *err)
{
    struct agentpod_message *message = pool_alloc(&request->pool, sizeof(*message));
    const char *session = http_request_parameter(request, "session"), *agent = NULL;

    if (strlen(session) > SESSION_MAX)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no session of such a long name");
    message->spec.kind = AGENTPOD_ROUND_OPENCODE;
    message->spec.session = session;
    if (agentpod_message_is_ours(body->value)) {
        if (agentpod_read_model(body, &request->pool, &message->spec.turn.provider,
                                &message->spec.turn.model, err) < 0 ||
            json_field_text(body, "agent", JSON_OPTIONAL, CONVERSATION_NAME_MAX, &agent, err) < 0)
            return -1;
        message->spec.turn.agent = agentpod_message_keep(&request->pool, agent);
        message->spec.turn.parts =
            agentpod_message_print(&request->pool, json_object_get(body->value, "parts"));
    } else {
        message->raw = agentpod_message_print(&request->pool, body->value);
    }
    request->data = message;
    visit_begin(request, http_request_parameter(request, "id"), 0,
                agentpod_message_opencode_visited);
    return 0;
}

void agentpod_message_opencode(struct http_request *request)
{
    json_body_take(request, agentpod_message_opencode_take);
}
