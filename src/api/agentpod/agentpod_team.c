/* team: several agents at once, each in a sandbox of its own. One that fails says so in its place; the
 * others are told all the same. */
#include <string.h>

#include "api/agent/repository.h"
#include "api/agentpod/agentpod_task.h"
#include "api/http/json_body.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/task/team.h"

#define ANSWER_SLACK ((size_t) 64 * 1024)

/* A request that is about a team, from its wish to its answer. */
struct agentpod_teamwork {
    struct api *api;
    struct http_request *request; /* NULL: the client left; the team goes on */
    struct caller caller;
    struct team_wait *wait;
    json_t *answer; /* {"teamId", "status", "agents": [...]} */
    json_t *turns;  /* of each agent: the id of its turn, or null */
    size_t at;      /* the next whose turn is read */
    bool is_state;  /* GET and cancel: the state is told, too */
};

/* --- the end --------------------------------------------------------------------------------- */

static void agentpod_teamwork_free(struct agentpod_teamwork *work)
{
    if (work->request) {
        work->request->data = NULL;
        work->request->on_gone = NULL;
    }
    if (work->wait)
        team_wait_end(work->wait);
    json_decref(work->answer);
    json_decref(work->turns);
    free(work);
}

AUTO_DEFINE_PTR(agentpod_teamwork, struct agentpod_teamwork, agentpod_teamwork_free);

static struct http_request *agentpod_teamwork_take(struct agentpod_teamwork *work)
{
    struct http_request *request = TAKE_PTR(work->request);

    if (request) {
        request->data = NULL;
        request->on_gone = NULL;
    }
    return request;
}

static void agentpod_teamwork_client_left(struct http_request *request)
{
    struct agentpod_teamwork *work = request->data;

    work->request = NULL;
    if (work->wait)
        agentpod_teamwork_free(work); /* else somebody is about to answer, and finds nobody */
}

static void agentpod_teamwork_fail(struct agentpod_teamwork *work, const struct error *failure)
{
    struct http_request *request = agentpod_teamwork_take(work);

    if (request)
        http_reply_error(request, failure);
    agentpod_teamwork_free(work);
}

static struct agentpod_teamwork *agentpod_teamwork_new(struct http_request *request, bool is_state)
{
    struct agentpod_teamwork *work = mem_alloc(sizeof(*work));

    work->api = api_of(request);
    work->request = request;
    work->caller = *request_caller(request);
    work->is_state = is_state;
    request->data = work;
    request->on_gone = agentpod_teamwork_client_left;
    return work;
}

/* --- the answer ------------------------------------------------------------------------------ */

static void agentpod_teamwork_answer(struct agentpod_teamwork *work)
{
    AUTO(agentpod_teamwork) struct agentpod_teamwork *done = work;
    struct http_request *request = agentpod_teamwork_take(done);
    AUTO(free) char *text = request ? json_dumps(done->answer, JSON_COMPACT) : NULL;

    if (request)
        http_reply_text(request, 200, "application/json", text ? text : "{}");
}

static void agentpod_teamwork_next(struct agentpod_teamwork *work);

static void agentpod_teamwork_read(void *context, const struct error *failure,
                                   const struct turn *turn)
{
    struct agentpod_teamwork *work = context;
    json_t *agent = json_array_get(json_object_get(work->answer, "agents"), work->at++);
    json_t *parts = failure ? NULL : json_read(turn->parts, strlen(turn->parts), NULL, NULL);

    (void) json_object_set_new(agent, "response",
                               json_pack("{s:o}", "parts", parts ? parts : json_array()));
    agentpod_teamwork_next(work);
}

/* Turns are read one after the other: what they said is long. */
static void agentpod_teamwork_next(struct agentpod_teamwork *work)
{
    while (work->at < json_array_size(work->turns)) {
        const char *turn = json_string_value(json_array_get(work->turns, work->at));

        if (turn && work->request) {
            turn_read(work->api->domain, &work->caller, NULL, turn, agentpod_teamwork_read, work);
            return;
        }
        work->at++;
    }
    agentpod_teamwork_answer(work);
}

static json_t *agentpod_teamwork_text(const char *text)
{
    return text && text[0] ? json_string(text) : json_null();
}

static void agentpod_teamwork_add(struct agentpod_teamwork *work, const struct task *task)
{
    const bool is_done = task->state == TASK_DONE;
    json_t *agent = json_object();

    (void) json_object_set_new(agent, "role", agentpod_teamwork_text(task->role));
    (void) json_object_set_new(
        agent, "sandboxId",
        agentpod_teamwork_text(agentpod_task_sandbox(work->api, &work->caller, task)));
    (void) json_object_set_new(
        agent, "sessionId",
        agentpod_teamwork_text(agentpod_task_session(work->api, &work->caller, task)));
    (void) json_object_set_new(agent, "taskId", json_string(agentpod_task_label(task)));
    (void) json_object_set_new(agent, "response", json_pack("{s:[]}", "parts"));
    if (work->is_state)
        (void) json_object_set_new(agent, "status", json_string(task_state_text(task->state)));
    if (task_state_is_over(task->state) && !is_done)
        (void) json_object_set_new(agent, "error",
                                   json_string(task->error_message[0]
                                                   ? task->error_message
                                                   : task_state_text(task->state)));
    (void) json_array_append_new(json_object_get(work->answer, "agents"), agent);
    (void) json_array_append_new(work->turns,
                                 is_done ? agentpod_teamwork_text(task->turn.text) : json_null());
}

static void agentpod_teamwork_show(struct agentpod_teamwork *work, const struct team *team)
{
    work->answer = json_pack("{s:s, s:[]}", "teamId", team->id.text, "agents");
    work->turns = json_array();
    if (work->is_state)
        (void) json_object_set_new(work->answer, "status",
                                   json_string(team_state_text(team->state)));
    for (size_t i = 0; i < team->member_count; i++)
        agentpod_teamwork_add(work, &team->members[i]);
    agentpod_teamwork_next(work);
}

static void agentpod_teamwork_got(void *context, const struct error *failure,
                                  const struct team *team)
{
    struct agentpod_teamwork *work = context;

    work->wait = NULL;
    if (failure)
        agentpod_teamwork_fail(work, failure);
    else
        agentpod_teamwork_show(work, team);
}

/* --- making one ------------------------------------------------------------------------------ */

static void agentpod_teamwork_made(void *context, const struct error *failure,
                                   const struct team *team)
{
    struct agentpod_teamwork *work = context;

    if (failure) {
        agentpod_teamwork_fail(work, failure);
        return;
    }
    if (!work->request) {
        agentpod_teamwork_free(work);
        return;
    }
    work->wait = team_wait_begin(work->api->domain, &work->caller, team->id.text,
                                 agentpod_teamwork_got, work);
}

/* One of theirs as one of ours. */
static int agentpod_team_read_agent(const struct json_place *agent, struct pool *pool,
                                    const char *label, const char *image, json_t *members,
                                    struct error *err)
{
    const char *role = NULL, *message = NULL, *provider = NULL, *model = NULL;
    json_t *member;

    if (json_field_text(agent, "role", JSON_REQUIRED, TEAM_ROLE_MAX, &role, err) < 0 ||
        json_field_text(agent, "message", JSON_REQUIRED, TURN_INPUT_MAX, &message, err) < 0 ||
        agentpod_read_model(agent, pool, &provider, &model, err) < 0)
        return -1;
    if (!message[0])
        return error_set(err, ERR_INVALID, 0, "agents[%zu].message must not be empty",
                         agent->index);
    member = json_pack("{s:s, s:s, s:s}", "role", role, "text", message, "title",
                       pool_format(pool, "%s Agent", role));
    (void) json_object_set_new(member, "sandboxName",
                               json_sprintf("team-%s-agent-%zu", label, agent->index));
    if (image)
        (void) json_object_set_new(member, "image", json_string(image));
    if (provider)
        (void) json_object_set_new(
            member, "model", json_pack("{s:s, s:s}", "providerID", provider, "modelID", model));
    (void) json_array_append_new(members, member);
    return 0;
}

static int agentpod_team_read_repository(const struct json_place *body, json_t *team,
                                         struct error *err)
{
    const char *url = NULL, *branch = NULL;
    json_t *git;

    if (json_field_text(body, "gitUrl", JSON_OPTIONAL, REPOSITORY_URL_MAX, &url, err) < 0 ||
        json_field_text(body, "gitBranch", JSON_OPTIONAL, REPOSITORY_BRANCH_MAX, &branch, err) < 0)
        return -1;
    if (!url || !url[0])
        return 0;
    git = json_pack("{s:s}", "url", url);
    if (branch && branch[0])
        (void) json_object_set_new(git, "branch", json_string(branch));
    (void) json_object_set_new(team, "git", git);
    (void) json_object_set_new(team, "shared", json_string("fork"));
    return 0;
}

static int agentpod_team_read(struct http_request *request, const struct json_place *body,
                              json_t *team, struct error *err)
{
    char label[AGENTPOD_LABEL_SIZE];
    json_t *members = json_array();
    struct json_place agents;

    (void) json_object_set_new(team, "members", members);
    (void) json_object_set_new(team, "onFailure", json_string("continue"));
    agentpod_label_new(label);
    if (!api_of(request)->providers->has_cloudflare)
        return error_set(err, ERR_INVALID, 0,
                         "Multi-agent teams require Cloudflare sandboxes: the "
                         "setting enable-cloudflare-sandboxes is off");
    if (json_field_array(body, "agents", JSON_REQUIRED, &agents, err) < 0 ||
        agentpod_team_read_repository(body, team, err) < 0)
        return -1;
    if (json_array_size(agents.value) < 1 || json_array_size(agents.value) > TEAM_MEMBERS_MAX)
        return error_set(err, ERR_INVALID, 0, "agents must be 1 to %d", TEAM_MEMBERS_MAX);
    for (size_t i = 0; i < json_array_size(agents.value); i++) {
        struct json_place agent;

        if (json_item_object(&agents, i, &agent, err) < 0 ||
            agentpod_team_read_agent(&agent, &request->pool, label,
                                     api_of(request)->providers->image, members, err) < 0)
            return -1;
    }
    return 0;
}

static int agentpod_team_take(struct http_request *request, const struct json_place *body,
                              struct error *err)
{
    AUTO(json) json_t *team = json_object();
    struct json_place root;

    if (agentpod_team_read(request, body, team, err) < 0 || json_root_object(team, &root, err) < 0)
        return -1;
    team_create(api_of(request)->domain, request_caller(request), &root, agentpod_teamwork_made,
                agentpod_teamwork_new(request, false));
    return 0;
}

void agentpod_team_create(struct http_request *request)
{
    json_body_take(request, agentpod_team_take);
}

/* --- later ----------------------------------------------------------------------------------- */

void agentpod_team_get(struct http_request *request)
{
    team_read(api_of(request)->domain, request_caller(request),
              http_request_parameter(request, "team"), agentpod_teamwork_got,
              agentpod_teamwork_new(request, true));
}

void agentpod_team_cancel(struct http_request *request)
{
    team_cancel(api_of(request)->domain, request_caller(request),
                http_request_parameter(request, "team"), agentpod_teamwork_got,
                agentpod_teamwork_new(request, true));
}
