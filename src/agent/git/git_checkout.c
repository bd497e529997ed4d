#include "agent/git/git_checkout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/environment.h"
#include "agent/file/file_owner.h"
#include "agent/git/git_environment.h"
#include "agent/git/git_failure.h"
#include "agent/git/git_request.h"
#include "agent/session/session.h"
#include "agent/tool.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"

/* git removes what it has made when it is asked to end. So long it may take. */
#define END_TIMEOUT_MS  2000
#define BRANCH_OUTPUT   ((size_t) 4096)
#define REPLY_MAX       ((size_t) 128 * 1024)
#define DEPTH_TEXT_SIZE 24
#define ARGUMENTS_MAX   24
#define DIRECTORY_MODE  0777
#define BRANCH_TIMEOUT  30000
#define REDACTED_MAX    (4 * TOOL_COMPLAINT_MAX)

struct checkout {
    struct call *call; /* NULL: the client left */
    struct agent *agent;
    struct pool pool;
    struct git_request request;
    struct redaction redaction;
    struct session_query query;
    const char **environment; /* owned; NULL until the session has answered */
    const char *target;
    struct tool tool;
    struct deadline deadline;
    struct api_error failure;
    const char *branch; /* NULL: not known */
    struct file_owner owner;
    size_t made_from; /* length of the first part of `target` that was made; 0: none was */
    bool made_target;
    bool failed;
    bool asked_to_end;
    bool timed_out;
};

/* --- the end --------------------------------------------------------------------------------- */

static void closed(struct deadline *deadline)
{
    struct checkout *checkout = CONTAINER_OF(deadline, struct checkout, deadline);

    tool_done(&checkout->tool);
    environment_free(checkout->environment);
    api_error_done(&checkout->failure);
    pool_done(&checkout->pool);
    free(checkout);
}

static void git_checkout_reply(struct checkout *checkout)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "repoUrl", checkout->request.shown);
    json_add_text(&json, "branch", checkout->branch);
    json_add_text(&json, "targetDir", checkout->target);
    call_finish_success(checkout->call, &json, &body);
}

static void git_checkout_finish(struct checkout *checkout)
{
    if (checkout->call && checkout->failed)
        call_fail(checkout->call, &checkout->failure);
    else if (checkout->call)
        git_checkout_reply(checkout);
    checkout->call = NULL;
    deadline_close(&checkout->deadline, closed);
}

/* --- failures -------------------------------------------------------------------------------- */

static void write_context(struct checkout *checkout, int exit_code, const char *words)
{
    struct json_writer json;

    json_document_begin(&json, &checkout->failure.context);
    json_add_text(&json, "repository", checkout->request.shown);
    if (checkout->request.branch)
        json_add_text(&json, "branch", checkout->request.branch);
    if (checkout->target)
        json_add_text(&json, "targetDir", checkout->target);
    json_add_text(&json, "stderr", words);
    json_add_integer(&json, "exitCode", exit_code);
    (void) json_document_end(&json); /* everything in it is bounded far below its maximum */
}

static void set_failure(struct checkout *checkout, enum api_code code, int exit_code,
                        const char *words, const char *reason, size_t reason_length)
{
    checkout->failed = true;
    api_error_fill(&checkout->failure, code, "Failed to clone repository '%.200s': %.*s",
                   checkout->request.shown, (int) reason_length, reason);
    checkout->failure.suggestion = git_failure_suggestion(code);
    write_context(checkout, exit_code, words);
}

static void note_start_failure(struct checkout *checkout, const struct exec_result *result)
{
    const char *reason = tool_is_missing(result)
                             ? "git is not installed in this image"
                             : pool_format(&checkout->pool, "git could not be started: %s",
                                           strerrordesc_np(-result->error));

    set_failure(checkout, API_GIT_OPERATION_FAILED, tool_exit_code(result), reason, reason,
                strlen(reason));
}

static void note_failure(struct checkout *checkout, const struct exec_result *result)
{
    AUTO(text) struct text words = TEXT_INIT(REDACTED_MAX);
    const char *complaint = tool_complaint(&checkout->tool), *line;
    int exit_code = checkout->timed_out ? TOOL_EXIT_TIMED_OUT : tool_exit_code(result);
    size_t length;

    if (result->error && !checkout->timed_out) {
        note_start_failure(checkout, result);
        return;
    }
    redaction_append(&checkout->redaction, &words, complaint, strlen(complaint));
    line = git_failure_line(text_string(&words), &length);
    if (checkout->timed_out) {
        line = pool_format(&checkout->pool, "timed out after %lld ms",
                           (long long) checkout->request.timeout_ms);
        length = strlen(line);
    } else if (!length) {
        line = pool_format(&checkout->pool, "git ended with exit code %d", exit_code);
        length = strlen(line);
    }
    set_failure(checkout, git_failure_code(exit_code, text_string(&words)), exit_code,
                text_string(&words), line, length);
}

/* --- the folder ------------------------------------------------------------------------------ */

/* How much of the path is there to the first part that is not. 0: all of it is. */
static size_t first_missing(const char *path, struct pool *pool)
{
    char *part = pool_copy_text(pool, path);
    struct stat status;

    for (size_t i = 1; part[i - 1]; i++) {
        char kept = part[i];

        if (kept && kept != '/')
            continue;
        part[i] = '\0';
        if (lstat(part, &status) < 0 && errno == ENOENT)
            return i;
        part[i] = kept;
    }
    return 0;
}

/* By ourselves, so that it is certain who made the folder: of two clones into one place only one
 * may clean up. */
static int git_checkout_make_folder(struct checkout *checkout)
{
    char *parent = pool_copy_text(&checkout->pool, checkout->target);
    char *slash = strrchr(parent, '/');
    int r = 0;

    checkout->made_from = first_missing(checkout->target, &checkout->pool);
    *slash = '\0';
    checkout->owner = file_owner_find(checkout->agent);
    if (parent[0])
        r = file_owner_make_folders(&checkout->owner, AT_FDCWD, parent, DIRECTORY_MODE);
    if (r == 0 && mkdir(checkout->target, DIRECTORY_MODE) < 0)
        r = -errno;
    checkout->made_target = r == 0;
    if (r != -EEXIST)
        return r;
    checkout->made_from = 0; /* whether that will do is for git to judge */
    return 0;
}

/* The parents that were made for it, as far as nobody uses them. */
static void remove_parents(struct checkout *checkout)
{
    char *path = pool_copy_text(&checkout->pool, checkout->target);

    for (;;) {
        if (checkout->made_from == 0 || strlen(path) < checkout->made_from)
            return;
        if (rmdir(path) < 0 && errno != ENOENT)
            return;
        *strrchr(path, '/') = '\0';
    }
}

static void removed(struct tool *tool, const struct exec_result *result)
{
    struct checkout *checkout = CONTAINER_OF(tool, struct checkout, tool);

    (void) result; /* what cannot be removed stays: the failure that is told says more */
    remove_parents(checkout);
    git_checkout_finish(checkout);
}

static void clean_up(struct checkout *checkout)
{
    const char *const arguments[] = {"rm", "-rf", "--", checkout->target, NULL};
    const struct tool_options options = {.arguments = arguments};

    if (!checkout->made_target || rmdir(checkout->target) == 0 || errno == ENOENT) {
        remove_parents(checkout);
        git_checkout_finish(checkout);
        return;
    }
    checkout->tool.on_end = removed;
    tool_start(&checkout->tool, &options);
}

/* --- whose it is ------------------------------------------------------------------------------ */

static void given_away(struct tool *tool, const struct exec_result *result)
{
    struct checkout *checkout = CONTAINER_OF(tool, struct checkout, tool);

    deadline_clear(&checkout->deadline);
    if (tool_succeeded(result)) {
        git_checkout_finish(checkout);
        return;
    }
    note_failure(checkout, result);
    clean_up(checkout);
}

/* git runs as the agent, so that the image's user does not see its credentials, and takes a
 * repository of somebody else for a trap. So this comes last. */
static void give_away(struct checkout *checkout)
{
    const char *owner =
        pool_format(&checkout->pool, "%u:%u", checkout->owner.uid, checkout->owner.gid);
    const char *const arguments[] = {"chown", "-Rh", owner, "--", checkout->target, NULL};
    const struct tool_options options = {.arguments = arguments};

    if (file_owner_is_agent(&checkout->owner)) {
        git_checkout_finish(checkout);
        return;
    }
    checkout->tool.on_end = given_away;
    checkout->asked_to_end = false;
    deadline_set(&checkout->deadline, (uint64_t) checkout->request.timeout_ms);
    tool_start(&checkout->tool, &options);
}

/* --- which branch ---------------------------------------------------------------------------- */

static void branch_known(struct tool *tool, const struct exec_result *result)
{
    struct checkout *checkout = CONTAINER_OF(tool, struct checkout, tool);
    const char *name = text_string(&tool->output);
    size_t length = strcspn(name, "\n");

    deadline_clear(&checkout->deadline);
    /* A tag, or a commit, is no branch: then it is what was asked for. */
    if (tool_succeeded(result) && length)
        checkout->branch = pool_copy_bytes(&checkout->pool, name, length);
    else
        checkout->branch = checkout->request.branch ? checkout->request.branch : "unknown";
    give_away(checkout);
}

static void ask_branch(struct checkout *checkout)
{
    static const char *const arguments[] = {"git", "branch", "--show-current", NULL};
    const struct tool_options options = {
        .arguments = arguments,
        .environment = checkout->environment,
        .directory = checkout->target,
        .output_max = BRANCH_OUTPUT,
    };

    checkout->tool.on_end = branch_known;
    checkout->asked_to_end = false;
    deadline_set(&checkout->deadline, BRANCH_TIMEOUT);
    tool_start(&checkout->tool, &options);
}

/* --- the clone ------------------------------------------------------------------------------- */

static void cloned(struct tool *tool, const struct exec_result *result)
{
    struct checkout *checkout = CONTAINER_OF(tool, struct checkout, tool);

    deadline_clear(&checkout->deadline);
    if (!tool_succeeded(result)) {
        note_failure(checkout, result);
        clean_up(checkout);
    } else if (!checkout->call) {
        git_checkout_finish(checkout);
    } else {
        ask_branch(checkout);
    }
}

/* Once politely, so that git cleans up; once not. */
static void make_end(struct checkout *checkout)
{
    if (checkout->asked_to_end) {
        tool_kill(&checkout->tool);
        return;
    }
    checkout->asked_to_end = true;
    tool_terminate(&checkout->tool);
    deadline_set(&checkout->deadline, END_TIMEOUT_MS);
}

static void deadline_due(struct deadline *deadline)
{
    struct checkout *checkout = CONTAINER_OF(deadline, struct checkout, deadline);

    if (!checkout->asked_to_end)
        checkout->timed_out = true;
    make_end(checkout);
}

static void start_clone(struct checkout *checkout, const char *directory)
{
    const struct git_request *request = &checkout->request;
    char depth[DEPTH_TEXT_SIZE];
    const char *arguments[ARGUMENTS_MAX] = {"git",
                                            "-c",
                                            "http.lowSpeedLimit=1024",
                                            "-c",
                                            "http.lowSpeedTime=30",
                                            "clone",
                                            "--filter=blob:none"};
    size_t count = 7;
    const struct tool_options options = {
        .arguments = arguments,
        .environment = checkout->environment,
        .directory = directory,
    };

    if (request->branch) {
        arguments[count++] = "--branch";
        arguments[count++] = request->branch;
    }
    if (request->depth) {
        (void) snprintf(depth, sizeof(depth), "%lld", (long long) request->depth);
        arguments[count++] = "--depth";
        arguments[count++] = depth;
    }
    arguments[count++] = "--";
    arguments[count++] = request->url.clean;
    arguments[count++] = checkout->target;
    checkout->tool.on_end = cloned;
    deadline_set(&checkout->deadline, (uint64_t) request->timeout_ms);
    tool_start(&checkout->tool, &options);
}

/* --- the session ----------------------------------------------------------------------------- */

static void session_answered(struct session_query *query, const struct session_context *context,
                             struct api_error *failure)
{
    struct checkout *checkout = CONTAINER_OF(query, struct checkout, query);
    int r;

    if (failure) {
        call_fail(TAKE_PTR(checkout->call), failure);
        git_checkout_finish(checkout);
        return;
    }
    checkout->target = git_request_target(&checkout->request, context->directory, &checkout->pool);
    checkout->environment =
        git_environment_new(context->environment, &checkout->request.url, &checkout->pool);
    r = git_checkout_make_folder(checkout);
    if (r < 0) {
        const char *reason =
            pool_format(&checkout->pool, "the folder cannot be made: %s", strerrordesc_np(-r));

        set_failure(checkout, r == -ENOSPC || r == -EDQUOT ? API_NO_SPACE : API_GIT_CLONE_FAILED,
                    -1, reason, reason, strlen(reason));
        clean_up(checkout);
        return;
    }
    /* Where the session is may be gone; nothing of the command depends on it. */
    start_clone(checkout, "/");
}

static void git_checkout_client_left(struct call *call)
{
    struct checkout *checkout = call->data;

    checkout->call = NULL;
    if (!checkout->environment) {
        session_forget(&checkout->query);
        git_checkout_finish(checkout);
    } else if (!checkout->failed) { /* else it is being removed already */
        make_end(checkout);
    }
}

static void git_checkout_run(struct call *call)
{
    struct checkout *checkout = mem_alloc(sizeof(*checkout));

    if (git_request_read(call, &checkout->pool, &checkout->request) < 0) {
        pool_done(&checkout->pool);
        free(checkout);
        return;
    }
    checkout->call = call;
    checkout->agent = call->agent;
    checkout->failure = (struct api_error) API_ERROR_INIT;
    git_url_redact(&checkout->request.url, &checkout->pool, &checkout->redaction);
    tool_init(&checkout->tool, call->agent);
    deadline_init(&call->agent->loop, &checkout->deadline, deadline_due);
    call->data = checkout;
    call->on_gone = git_checkout_client_left;
    checkout->query.on_context = session_answered;
    session_ask(call->agent, call->session, &checkout->query);
}

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/git/checkout",
     .rpc = "git.checkout",
     .parameters = {"repoUrl", "sessionId", OPERATION_FIELDS},
     .run = git_checkout_run,
     .name = "git.checkout",
     .summary = "Clone a repository",
     .starts_work = true},
};

const struct operation_table git_operations = {rows, ARRAY_COUNT(rows)};
