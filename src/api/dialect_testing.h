/* For tests of dialects on a visit_bench: one dialect's own table and errors, an agent that answers
 * in JSON, and the parts of the domain that dialects use besides visits. Included by test programs
 * only, which may link the domain for what is not here, its pure parts. */
#pragma once

#include "api/agent/visit_testing.h"
#include "api/stored_testing.h"

/* --- the domain ------------------------------------------------------------------------------ */

static int destroyed_count;

void sandbox_destroy(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                     sandbox_done *done, void *context)
{
    (void) domain;
    (void) caller;
    (void) sandbox;
    destroyed_count++;
    the_bench->is_there = false;
    done(context, NULL, NULL);
}

/* --- the bench ------------------------------------------------------------------------------- */

static inline struct visit_bench *dialect_bench(struct http_mount (*make)(struct api *api))
{
    struct api unused = {.loop = NULL};
    struct http_mount mount = make(&unused);
    struct visit_bench *bench = bench_new(mount.routes, mount.route_count);

    bench->mount.encode_error = mount.encode_error;
    destroyed_count = 0;
    stored.failure = ERR_NONE;
    return bench;
}

/* Send a request with this body, and nothing else. */
static inline struct raw ask_with(struct visit_bench *bench, const char *line, const char *body)
{
    AUTO(text) struct text request = TEXT_INIT(RAW_MAX);

    text_format(&request, "%s HTTP/1.1\r\nHost: a.test\r\nContent-Length: %zu\r\n\r\n%s", line,
                strlen(body), body);
    return bench_client(bench, text_string(&request));
}

/* Wait for the question with this path and, in its body, this text; answer it with 200 and the
 * JSON. What was heard is forgotten. */
#define ANSWER(bench, agent, path, text, json)                                                     \
    do {                                                                                           \
        HEARD((bench), (agent), (path));                                                           \
        HEARD((bench), (agent), (text));                                                           \
        text_clear(&(agent)->got);                                                                 \
        answer_with((bench), (agent), "200 OK", (json));                                           \
    } while (0)

static inline void answer_with(struct visit_bench *bench, struct raw *agent, const char *status,
                               const char *json)
{
    AUTO(text) struct text reply = TEXT_INIT(RAW_MAX);

    text_format(&reply,
                "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                status, strlen(json), json);
    SAY(bench, agent, text_string(&reply));
}
