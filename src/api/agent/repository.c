#include "api/agent/repository.h"

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

bool repository_ask_look(const struct repository *repository, struct pool *pool,
                         struct agent_request *request)
{
    const char *const words[] = {"sh", "-c", look_script, "sh", repository->folder};
    struct agent_body body;

    if (!repository->url)
        return false;
    agent_body_begin(&body);
    json_key(&body.json, "argv");
    json_begin_array(&body.json);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        json_put_text(&body.json, words[i]);
    json_end_array(&body.json);
    json_add_text(&body.json, "cwd", "/");
    agent_body_end(&body, pool, "/api/execute", request);
    request->timeout_ms = LOOK_TIMEOUT_MS;
    return true;
}

int repository_take_look(struct repository *repository, const struct agent_reply *reply,
                         struct error *err)
{
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

bool repository_ask_clone(const struct repository *repository, struct pool *pool,
                          struct agent_request *request)
{
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
    agent_body_end(&body, pool, "/api/git/checkout", request);
    request->timeout_ms = CLONE_TIMEOUT_MS;
    return true;
}
