/* create and wake: the sandbox runs, its repository is there, its configuration is written, its agent
 * answers. Both can be asked for again. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/agent/repository.h"
#include "api/agentpod/agentpod_agent.h"
#include "api/agentpod/agentpod_config.h"
#include "api/agentpod/agentpod_internal.h"
#include "api/agentpod/agentpod_provider.h"
#include "api/agentpod/agentpod_question.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "base/memory.h"
#include "domain/backup/backup.h"
#include "domain/sandbox/sandboxes.h"

#define USER_MAX          ((size_t) 256)
#define WRITE_TIMEOUT_MS  ((uint64_t) 60 * 1000)
#define RELOAD_TIMEOUT_MS ((uint64_t) 30 * 1000)

/* Whoever owns the home folder is who runs commands; a file of its own for a moment, so that no
 * reader sees half of it. */
static const char place_credentials[] =
    "umask 077 && folder=\"$HOME/.local/share/opencode\" && mkdir -p \"$folder\" && "
    "cat >\"$folder/.auth.json.new\" && mv -f \"$folder/.auth.json.new\" \"$folder/auth.json\"";

/* In the request's pool. */
struct preparation {
    struct repository_walk base; /* the repository's folder is the working folder */
    struct agentpod_config config;
    const char *id;
    size_t written;
    bool is_wake;
    bool has_credentials; /* they were placed */
    bool was_ready;       /* the agent ran before: it has not read what is written now */
    struct agentpod_question *question;
    const char *without; /* why there is no agent; NULL: there is */
    const char *user;    /* of a new one; may be NULL */
};

/* A sandbox that is being made; its preparation is only looked at while its request is there. */
struct agentpod_making {
    struct pending *pending;
    struct preparation *preparation;
};

static struct preparation *agentpod_create_of(struct visit_walk *walk)
{
    return CONTAINER_OF(walk, struct preparation, base.walk);
}

static struct pool *pool_of(struct visit_walk *walk)
{
    return &walk->visit->request->pool;
}

/* --- the steps ------------------------------------------------------------------------------- */

/* The agent works there, also where nothing is written. */
static bool ask_folder(struct visit_walk *walk, struct agent_request *request)
{
    struct agent_body body;

    agent_body_begin(&body);
    json_add_text(&body.json, "path", agentpod_create_of(walk)->base.repository.folder);
    json_add_boolean(&body.json, "recursive", true);
    agent_body_end(&body, pool_of(walk), "/api/mkdir", request);
    request->timeout_ms = WRITE_TIMEOUT_MS;
    return true;
}

static bool ask_file(struct visit_walk *walk, struct agent_request *request)
{
    struct preparation *preparation = agentpod_create_of(walk);
    const struct agentpod_file *file;
    struct agent_body body;

    if (preparation->written == preparation->config.count)
        return false;
    file = &preparation->config.files[preparation->written++];
    agent_body_begin(&body);
    json_add_text(
        &body.json, "path",
        pool_format(pool_of(walk), "%s/%s", preparation->base.repository.folder, file->path));
    json_add_text(&body.json, "content", file->content);
    agent_body_end(&body, pool_of(walk), "/api/write", request);
    request->timeout_ms = WRITE_TIMEOUT_MS;
    return true;
}

static bool ask_credentials(struct visit_walk *walk, struct agent_request *request)
{
    const struct preparation *preparation = agentpod_create_of(walk);
    struct agent_body body;

    if (!preparation->config.credentials)
        return false;
    agent_body_begin(&body);
    json_begin_array_at(&body.json, "argv");
    json_put_text(&body.json, "sh");
    json_put_text(&body.json, "-c");
    json_put_text(&body.json, place_credentials);
    json_end_array(&body.json);
    json_add_text(&body.json, "cwd", "/");
    /* By stdin: arguments can be read by every program in the sandbox. */
    json_add_text(&body.json, "stdin", preparation->config.credentials);
    agent_body_end(&body, pool_of(walk), "/api/execute", request);
    request->timeout_ms = WRITE_TIMEOUT_MS;
    return true;
}

static int take_credentials(struct visit_walk *walk, const struct agent_reply *reply,
                            struct error *err)
{
    json_t *code = json_object_get(reply->json, "exitCode");

    if (agent_reply_error(reply, err) < 0)
        return -1;
    if (!json_is_integer(code) || json_integer_value(code) != 0)
        return error_set(err, ERR_UPSTREAM, 0,
                         "the home folder cannot be written: is there a shell in the image?");
    agentpod_create_of(walk)->has_credentials = true;
    return 0;
}

static const struct visit_step steps[] = {
    REPOSITORY_STEPS,
    {"make the folder", .ask = ask_folder},
    {"write the configuration", .ask = ask_file, .repeats = true},
    {"place the credentials", .ask = ask_credentials, .take = take_credentials},
};

/* --- the answer ------------------------------------------------------------------------------ */

static void add_address(struct json_writer *json, const struct preparation *preparation)
{
    AUTO(text) struct text url = TEXT_INIT(AGENTPOD_REPLY_MAX);

    text_append(&url, "/sandbox/");
    url_encode(&url, preparation->id, strlen(preparation->id));
    text_append(&url, "/opencode");
    json_add_text(json, "sandboxId", preparation->id);
    json_add_text(json, "opencodeUrl", text_string(&url));
}

static void agentpod_create_answer(struct visit *visit)
{
    const struct preparation *preparation = visit->data;
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "status", "running");
    json_add_integer(&json, "serverPort", AGENTPOD_PORT);
    if (preparation->is_wake)
        /* Most often 0: the disk was kept, and nothing had to be. */
        json_add_integer(&json, "restoredFiles", (int64_t) visit->sandbox->restored_files);
    else
        add_address(&json, preparation);
    json_add_integer(&json, "filesWritten",
                     (int64_t) (preparation->written + preparation->has_credentials));
    if (preparation->without)
        json_add_text(&json, "agentError", preparation->without);
    agentpod_reply(visit->request, &json, &body);
}

/* --- the agent ------------------------------------------------------------------------------- */

static void agentpod_create_ask(struct visit *visit, const char *method, const char *target,
                                agentpod_answered *answered)
{
    const struct agentpod_ask ask = {
        .method = method, .target = target, .timeout_ms = RELOAD_TIMEOUT_MS};
    struct preparation *preparation = visit->data;

    preparation->question =
        agentpod_question_new(visit->api, visit->sandbox, &ask, answered, visit);
}

/* Whatever it says: what was written is read at its next start at the latest. */
static void agentpod_create_reloaded(void *context, const struct error *failure,
                                     const struct agentpod_answer *answer)
{
    struct visit *visit = context;

    (void) failure;
    (void) answer;
    visit->request->on_gone = NULL;
    agentpod_create_answer(visit);
}

/* A reload ends turns: an agent at work keeps what it knows. */
static void agentpod_create_looked(void *context, const struct error *failure,
                                   const struct agentpod_answer *answer)
{
    struct visit *visit = context;

    if (!failure && answer->status == 200 && answer->json && json_object_size(answer->json) == 0)
        agentpod_create_ask(visit, "POST", "/instance/dispose", agentpod_create_reloaded);
    else
        agentpod_create_reloaded(context, failure, answer);
}

static void agentpod_create_client_left(struct http_request *request)
{
    struct preparation *preparation = visit_of(request)->data;

    agentpod_question_drop(TAKE_PTR(preparation->question));
}

static void agentpod_create_started(struct visit *visit)
{
    const struct preparation *preparation = visit->data;

    if (!preparation->was_ready || !(preparation->written + preparation->has_credentials)) {
        agentpod_create_answer(visit);
        return;
    }
    visit->request->on_gone = agentpod_create_client_left;
    agentpod_create_ask(visit, "GET", "/session/status", agentpod_create_looked);
}

/* A sandbox is of use without an agent, too. */
static void agentpod_create_without(struct visit *visit, const struct error *why)
{
    struct preparation *preparation = visit->data;

    preparation->without = pool_copy_text(&visit->request->pool, why->message);
    agentpod_create_answer(visit);
}

static void finished(struct visit_walk *walk)
{
    const struct preparation *preparation = agentpod_create_of(walk);
    const struct agentpod_start start = {
        .folder = preparation->base.repository.folder,
        .config = preparation->config.opencode,
        .ready = agentpod_create_started,
        .without = agentpod_create_without,
    };

    agentpod_agent_start(walk->visit, &start);
}

static const struct visit_plan plan = {steps, ARRAY_COUNT(steps), finished, NULL};

static void agentpod_create_ready(struct visit *visit)
{
    struct preparation *preparation = visit->data;
    const char *kept = visit->sandbox->spec.folder;

    if (!preparation->base.repository.folder) /* where it was made, not where it is usual */
        preparation->base.repository.folder =
            kept ? pool_copy_text(&visit->request->pool, kept) : AGENTPOD_FOLDER;
    preparation->was_ready = agentpod_agent_is_ready(visit->api, &visit->sandbox->id);
    visit_walk_begin(&preparation->base.walk, visit, &plan);
}

/* --- create ---------------------------------------------------------------------------------- */

static int agentpod_create_check_id(const char *id, struct error *err)
{
    for (const char *at = id; *at; at++) {
        if ((unsigned char) *at < 0x20 || *at == 0x7f)
            return error_set(err, ERR_INVALID, 0, "id must not hold control characters");
    }
    return id[0] ? 0 : error_set(err, ERR_INVALID, 0, "id must not be empty");
}

static int read_repository(const struct json_place *body, struct pool *pool,
                           struct repository *repository, struct error *err)
{
    static const struct repository_fields fields = {"gitUrl", "gitBranch", "directory", NULL};

    if (repository_read(repository, body, &fields, pool, err) < 0)
        return -1;
    if (repository->folder && repository->folder[0] != '/')
        return error_set(err, ERR_INVALID, 0, "directory must begin with '/'");
    return 0;
}

static void agentpod_create_spec(const struct preparation *preparation, const char *image,
                                 struct sandbox_spec *spec)
{
    const char *folder = preparation->base.repository.folder;
    struct error not_so = ERROR_INIT;

    spec->name = mem_copy_text(preparation->id);
    spec->kind = mem_copy_text("agentpod");
    spec->folder = mem_copy_text(folder ? folder : AGENTPOD_FOLDER);
    spec->sync = backup_check_dir(spec->folder, &not_so) == 0; /* clients of it count on that */
    if (image)
        spec->image = mem_copy_text(image);
    if (preparation->user && preparation->user[0])
        sandbox_pairs_set(&spec->labels, "userId", preparation->user);
}

static void agentpod_create_enter(struct http_request *request, struct preparation *preparation)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    agentpod_create_spec(preparation, NULL, &spec);
    request->data = preparation;
    visit_begin_new(request, preparation->id, &spec, VISIT_CREATE | VISIT_START,
                    agentpod_create_ready);
}

/* Where the image for agents was not prepared, it is made of the usual one. */
static void agentpod_create_made(void *context, const struct error *failure,
                                 struct sandbox *sandbox, bool is_new)
{
    struct agentpod_making *making = context;
    struct http_request *request = pending_take(making->pending);

    (void) sandbox;
    (void) is_new;
    if (request && failure && failure->code != ERR_NOT_FOUND)
        http_reply_error(request, failure);
    else if (request)
        agentpod_create_enter(request, making->preparation);
    free(making);
}

static void agentpod_create_begin(struct http_request *request, struct preparation *preparation)
{
    const char *image = api_of(request)->providers->image;
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct agentpod_making *making;

    if (!image ||
        sandbox_find(api_of(request)->domain, request_caller(request), preparation->id, NULL)) {
        agentpod_create_enter(request, preparation);
        return;
    }
    making = mem_alloc(sizeof(*making));
    making->preparation = preparation;
    making->pending = pending_new(request);
    agentpod_create_spec(preparation, image, &spec);
    sandbox_create(api_of(request)->domain, request_caller(request), &spec, agentpod_create_made,
                   making);
}

static int read_create(struct http_request *request, const struct json_place *body,
                       struct error *err)
{
    struct preparation *preparation = pool_alloc(&request->pool, sizeof(*preparation));
    const char *user = NULL;

    if (json_field_text(body, "id", JSON_REQUIRED, SANDBOX_NAME_MAX, &preparation->id, err) < 0 ||
        agentpod_create_check_id(preparation->id, err) < 0 ||
        json_field_text(body, "userId", JSON_OPTIONAL, USER_MAX, &user, err) < 0 ||
        read_repository(body, &request->pool, &preparation->base.repository, err) < 0 ||
        agentpod_config_read(body, &request->pool, &preparation->config, err) < 0)
        return -1;
    preparation->id = pool_copy_text(&request->pool, preparation->id);
    preparation->user = user ? pool_copy_text(&request->pool, user) : NULL;
    agentpod_create_begin(request, preparation);
    return 0;
}

void agentpod_create(struct http_request *request)
{
    json_body_take(request, read_create);
}

/* --- wake ------------------------------------------------------------------------------------ */

static int read_wake(struct http_request *request, const struct json_place *body, struct error *err)
{
    struct preparation *preparation = pool_alloc(&request->pool, sizeof(*preparation));

    if (agentpod_config_read(body, &request->pool, &preparation->config, err) < 0)
        return -1;
    preparation->is_wake = true;
    preparation->id = http_request_parameter(request, "id");
    request->data = preparation;
    visit_begin(request, preparation->id, VISIT_START, agentpod_create_ready);
    return 0;
}

void agentpod_wake(struct http_request *request)
{
    json_body_take(request, read_wake);
}
