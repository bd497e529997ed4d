#include "domain/sandbox/sandbox_environment.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "json/json_write.h"

#define VARIABLES_TEXT_MAX (SANDBOX_SPEC_MAX + (size_t) 64 * 1024)

struct variables_writing {
    struct json_writer json;
    const struct sandbox_pairs *own;
};

/* What it says itself comes first. */
static void write_given(void *context, const char *name, const char *value)
{
    struct variables_writing *writing = context;

    if (!sandbox_pairs_get(writing->own, name))
        json_add_text(&writing->json, name, value);
}

static bool has_variables(const struct sandbox *sandbox)
{
    return sandbox->spec.environment.count || sandbox->spec.egress;
}

/* {"NAME":"value"} */
static void write_variables(const struct domain *domain, const struct sandbox *sandbox,
                            struct text *text)
{
    const struct sandbox_pairs *pairs = &sandbox->spec.environment;
    struct variables_writing writing = {.own = pairs};
    struct json_writer *json = &writing.json;

    json_writer_init_text(json, text);
    json_begin_object(json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(json, pairs->items[i].name, pairs->items[i].value);
    sandbox_hook_variables(domain, sandbox, write_given, &writing);
    json_end_object(json);
    (void) json_writer_finish(json); /* part of the spec, and a few: they fit */
}

void sandbox_tell_environment(struct domain *domain, const struct sandbox *sandbox,
                              inside_call_done *done, void *context)
{
    AUTO(text) struct text text = TEXT_INIT(VARIABLES_TEXT_MAX);

    write_variables(domain, sandbox, &text);
    inside_ask(domain, &sandbox->id, INSIDE_ENVIRONMENT, text_string(&text), done, context);
}

/* --- what a new agent has to know -------------------------------------------------------------- */

struct agent_news {
    struct domain *domain;
    struct sandbox *sandbox; /* a reference */
    domain_done *done;
    void *context;
};

/* Where there is no agent, nobody misses the variables. */
static void agent_news_end(void *context, const struct error *failure,
                           const struct inside_answer *answer)
{
    struct agent_news *news = context;
    struct error err = ERROR_INIT;

    (void) answer;
    if (failure && failure->code != ERR_NOT_IMPLEMENTED) {
        err = *failure;
        (void) error_wrap(&err, "tell the sandbox its environment variables");
    }
    news->done(news->context, err.code == ERR_NONE ? NULL : &err);
    sandbox_unref(news->sandbox);
    free(news);
}

static void on_sessions_told(void *context, const struct error *failure,
                             const struct inside_answer *answer)
{
    struct agent_news *news = context;

    if (failure)
        LOG_WARNING(news->domain->options.log, "sessions of a sandbox did not come back",
                    log_text("sandbox", news->sandbox->id.text),
                    log_text("error", failure->message));
    if (failure && has_variables(news->sandbox))
        sandbox_tell_environment(news->domain, news->sandbox, agent_news_end, news);
    else
        agent_news_end(news, NULL, answer);
}

/* What was saved is an object with members: the variables go before them. */
static void tell_sessions(struct agent_news *news, const char *sessions)
{
    AUTO(text) struct text text = TEXT_INIT(VARIABLES_TEXT_MAX + SANDBOX_INSIDE_MAX);

    if (has_variables(news->sandbox)) {
        text_append(&text, "{\"replace\":true,\"env\":");
        write_variables(news->domain, news->sandbox, &text);
        text_append(&text, ",");
        sessions++;
    }
    text_append(&text, sessions);
    inside_ask(news->domain, &news->sandbox->id, INSIDE_RESTORE, text_string(&text),
               on_sessions_told, news);
}

bool sandbox_has_agent_news(const struct sandbox *sandbox, const char *sessions)
{
    return sessions || has_variables(sandbox);
}

void sandbox_tell_agent_news(struct domain *domain, struct sandbox *sandbox, const char *sessions,
                             domain_done *done, void *context)
{
    struct agent_news *news = mem_alloc(sizeof(*news));

    *news = (struct agent_news){domain, sandbox_ref(sandbox), done, context};
    if (sessions)
        tell_sessions(news, sessions);
    else
        sandbox_tell_environment(domain, sandbox, agent_news_end, news);
}
