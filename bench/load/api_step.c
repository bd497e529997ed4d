#include "load/api_step.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "load/fail.h"

#define SANDBOXES "/burrow/v1/sandboxes"
#define NAME_SIZE 32
#define SHOWN_MAX 400

/* All limits that there are; those of bench/frame/sandboxes.py. */
#define LIMITS                                                                                     \
    "\"limits\":{\"memory\":268435456,\"pids\":64,\"cpu\":1,\"disk\":67108864},\"sleepAfter\":0"

static const struct api_step steps[] = {
    {"create", "make it, with all limits", "POST", SANDBOXES, "{\"name\":\"%s\"," LIMITS "}", NULL},
    {"exec", "/bin/true in it", "POST", SANDBOXES "/%s/exec", "{\"argv\":[\"/bin/true\"]}",
     "\"exitCode\":0"},
    {"sleep", "put it to sleep", "POST", SANDBOXES "/%s/sleep", "", NULL},
    {"destroy", "and all of it", "DELETE", SANDBOXES "/%s", "", NULL},
    {"get", "read it", "GET", SANDBOXES "/%s", "", "\"status\""},
    {"list", "read a page of 100", "GET", SANDBOXES "?limit=100", "", "\"nextCursor\""},
};

const struct api_step *api_step_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        if (strcmp(steps[i].name, name) == 0)
            return &steps[i];
    }
    return NULL;
}

/* `pattern` with the name in it. */
static void fill(struct text *text, const char *pattern, const char *name)
{
    const char *place = strstr(pattern, "%s");

    text_append_bytes(text, pattern, place ? (size_t) (place - pattern) : strlen(pattern));
    if (place) {
        text_append(text, name);
        text_append(text, place + 2);
    }
}

void api_step_begin(const struct api_step *step, uint64_t number, struct api_connection *connection,
                    const struct api_server *server)
{
    AUTO(text) struct text path = TEXT_INIT(API_REQUEST_MAX);
    AUTO(text) struct text body = TEXT_INIT(API_REQUEST_MAX);
    char name[NAME_SIZE];

    (void) snprintf(name, sizeof(name), "bench-%" PRIu64, number);
    fill(&path, step->path, name);
    fill(&body, step->body, name);
    api_connection_ask(connection, server, step->method, text_string(&path), text_string(&body));
}

void api_step_check(const struct api_step *step, const struct api_connection *connection)
{
    const char *answer = text_string(&connection->answer);
    int status = connection->response.status;

    if (status < 200 || status > 299 || (step->expect && !strstr(answer, step->expect)))
        fail("%s was answered with %.*s", step->name, SHOWN_MAX, answer);
}

void api_steps_help(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        printf("  %-8s %s\n", steps[i].name, steps[i].help);
}
