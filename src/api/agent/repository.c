#include "api/agent/repository.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "api/agent/agent_body.h"

/* An agent gives a clone ten minutes; with what the look and the end of it may take. */
#define CLONE_TIMEOUT_MS ((uint64_t) 11 * 60 * 1000)
#define LOOK_TIMEOUT_MS  ((uint64_t) 60 * 1000)

/* The URL of the clone in $1; good only when something was fetched, because a clone that was
 * killed has the URL, but no commit. */
static const char look_script[] = "git config --file \"$1/.git/config\" --get remote.origin.url && "
                                  "git --git-dir=\"$1/.git\" rev-parse -q --verify HEAD >&2";

/* Where "user:password@" ends; NULL when there is none. A user of ssh is no secret, and needed. */
static const char *credentials_end(const char *authority, size_t length)
{
    const char *at = NULL;

    for (size_t i = 0; i < length; i++) {
        if (authority[i] == '@')
            at = authority + i + 1;
    }
    return at;
}

const char *repository_shown(const char *url, struct pool *pool)
{
    const char *authority = strstr(url, "://"), *rest;
    bool is_http = strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;

    if (!is_http || !authority)
        return url;
    authority += 3;
    rest = credentials_end(authority, strcspn(authority, "/?#"));
    if (!rest)
        return url;
    return pool_format(pool, "%.*s%s", (int) (authority - url), url, rest);
}

int repository_read(struct repository *repository, const struct json_place *body,
                    const struct repository_fields *fields, struct pool *pool, struct error *err)
{
    const char *url = NULL, *branch = NULL, *folder = NULL;

    if (json_field_text(body, fields->url, JSON_OPTIONAL, REPOSITORY_URL_MAX, &url, err) < 0 ||
        json_field_text(body, fields->branch, JSON_OPTIONAL, REPOSITORY_BRANCH_MAX, &branch, err) <
            0 ||
        json_field_text(body, fields->folder, JSON_OPTIONAL, REPOSITORY_FOLDER_MAX, &folder, err) <
            0)
        return -1;
    if (fields->depth && json_field_integer(body, fields->depth, JSON_OPTIONAL, 1, INT_MAX,
                                            &repository->depth, err) < 0)
        return -1;
    repository->folder = folder && folder[0] ? pool_copy_text(pool, folder) : NULL;
    if (!url || !url[0])
        return 0;
    repository->url = pool_copy_text(pool, url);
    repository->shown = repository_shown(repository->url, pool);
    repository->branch = branch && branch[0] ? pool_copy_text(pool, branch) : NULL;
    return 0;
}

static struct repository *repository_of(struct visit_walk *walk)
{
    return &CONTAINER_OF(walk, struct repository_walk, walk)->repository;
}

bool repository_ask_look(struct visit_walk *walk, struct agent_request *request)
{
    const struct repository *repository = repository_of(walk);
    const char *const words[] = {"sh", "-c", look_script, "sh", repository->folder};
    struct agent_body body;

    if (!repository->url)
        return false;
    agent_body_begin(&body);
    json_begin_array_at(&body.json, "argv");
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        json_put_text(&body.json, words[i]);
    json_end_array(&body.json);
    json_add_text(&body.json, "cwd", "/");
    agent_body_end(&body, &walk->visit->request->pool, "/api/execute", request);
    request->timeout_ms = LOOK_TIMEOUT_MS;
    return true;
}

int repository_take_look(struct visit_walk *walk, const struct agent_reply *reply,
                         struct error *err)
{
    struct repository *repository = repository_of(walk);
    json_t *code = json_object_get(reply->json, "exitCode");
    const char *url = json_string_value(json_object_get(reply->json, "stdout"));
    size_t length = strlen(repository->shown);

    if (agent_reply_error(reply, err) < 0)
        return -1;
    repository->is_there = json_is_integer(code) && json_integer_value(code) == 0 && url &&
                           strncmp(url, repository->shown, length) == 0 &&
                           (!url[length] || url[length] == '\n');
    return 0;
}

bool repository_ask_clone(struct visit_walk *walk, struct agent_request *request)
{
    const struct repository *repository = repository_of(walk);
    struct agent_body body;

    if (!repository->url || repository->is_there)
        return false;
    agent_body_begin(&body);
    json_add_text(&body.json, "repoUrl", repository->url);
    json_add_text(&body.json, "targetDir", repository->folder);
    if (repository->branch)
        json_add_text(&body.json, "branch", repository->branch);
    if (repository->depth)
        json_add_integer(&body.json, "depth", repository->depth);
    agent_body_end(&body, &walk->visit->request->pool, "/api/git/checkout", request);
    request->timeout_ms = CLONE_TIMEOUT_MS;
    return true;
}
