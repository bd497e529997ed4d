#include "agent/git/git_request.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "agent/agent.h"
#include "json/json_read.h"
#include "json/json_write.h"

static void fail_url(struct call *call, const char *reason)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct json_writer json;

    json_document_begin(&json, &error.context);
    json_begin_array_at(&json, "validationErrors");
    json_begin_object(&json);
    json_add_text(&json, "field", "repoUrl");
    json_add_text(&json, "message", reason);
    json_add_text(&json, "code", "INVALID_GIT_URL");
    json_end_object(&json);
    json_end_array(&json);
    (void) json_document_end(&json); /* the texts are short */
    api_error_fill(&error, API_INVALID_GIT_URL, "Invalid Git URL: %s", reason);
    call_fail(call, &error);
}

/* What git takes as the name of a branch is git's business; this is only no option and one line. */
static bool is_branch(const char *branch)
{
    if (!branch[0] || branch[0] == '-')
        return false;
    for (; *branch; branch++) {
        if (iscntrl((unsigned char) *branch) || *branch == ' ')
            return false;
    }
    return true;
}

static int git_request_read_fields(const struct json_place *root, const char **ret_url,
                                   struct git_request *request, const char **ret_field,
                                   struct error *err)
{
    *ret_field = "repoUrl";
    if (json_field_text(root, *ret_field, JSON_REQUIRED, GIT_URL_MAX, ret_url, err) < 0)
        return -1;
    *ret_field = "branch";
    if (json_field_text(root, *ret_field, JSON_OPTIONAL, GIT_BRANCH_MAX, &request->branch, err) < 0)
        return -1;
    *ret_field = "targetDir";
    if (json_field_text(root, *ret_field, JSON_OPTIONAL, GIT_PATH_MAX, &request->target, err) < 0)
        return -1;
    *ret_field = "depth";
    if (json_field_integer(root, *ret_field, JSON_OPTIONAL, 1, INT_MAX, &request->depth, err) < 0)
        return -1;
    *ret_field = "timeoutMs";
    return json_field_integer(root, *ret_field, JSON_OPTIONAL, 1, GIT_TIMEOUT_MAX_MS,
                              &request->timeout_ms, err);
}

int git_request_read(struct call *call, struct pool *pool, struct git_request *ret_request)
{
    struct git_request request = {.timeout_ms = GIT_TIMEOUT_DEFAULT_MS};
    const char *text = NULL, *field = NULL, *reason = NULL;
    struct error err = ERROR_INIT;
    struct json_place root;

    if (json_root_object(call->arguments, &root, &err) < 0 ||
        git_request_read_fields(&root, &text, &request, &field, &err) < 0) {
        call_fail_field(call, field ? field : "repoUrl", err.message);
        return -1;
    }
    if (request.branch && !is_branch(request.branch)) {
        call_fail_field(call, "branch", "not the name of a branch");
        return -1;
    }
    if (git_url_parse(text, pool, &request.url, &reason) < 0) {
        fail_url(call, reason);
        return -1;
    }
    request.shown = request.url.user ? request.url.clean : pool_copy_text(pool, text);
    request.branch = request.branch ? pool_copy_text(pool, request.branch) : NULL;
    request.target =
        request.target && request.target[0] ? pool_copy_text(pool, request.target) : NULL;
    *ret_request = request;
    return 0;
}

static const char *without_trailing_slashes(char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    return path;
}

const char *git_request_target(const struct git_request *request, const char *directory,
                               struct pool *pool)
{
    if (!request->target)
        return pool_format(pool, "%s/%s", AGENT_DIRECTORY, request->url.name);
    if (request->target[0] == '/')
        return without_trailing_slashes(pool_copy_text(pool, request->target));
    return without_trailing_slashes(pool_format(pool, "%s/%s", directory, request->target));
}
