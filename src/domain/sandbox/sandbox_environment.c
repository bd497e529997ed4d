#include "domain/sandbox/sandbox_environment.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "domain/sandbox/sandbox_set.h"
#include "json/json_write.h"

/* {"NAME":"value"} */
static void write_variables(const struct sandbox *sandbox, struct text *text)
{
    const struct sandbox_pairs *pairs = &sandbox->spec.environment;
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(&json, pairs->items[i].name, pairs->items[i].value);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* part of the spec, which fits */
}

void sandbox_tell_environment(struct domain *domain, const struct sandbox *sandbox,
                              inside_call_done *done, void *context)
{
    AUTO(text) struct text text = TEXT_INIT(SANDBOX_SPEC_MAX);

    write_variables(sandbox, &text);
    inside_ask(domain, &sandbox->id, INSIDE_ENVIRONMENT, text_string(&text), done, context);
}

/* --- with its sessions ----------------------------------------------------------------------- */

struct sessions_call {
    struct domain *domain;
    struct sandbox *sandbox; /* a reference */
    domain_done *done;
    void *context;
};

static void sessions_call_end(void *context, const struct error *failure,
                              const struct inside_answer *answer)
{
    struct sessions_call *call = context;

    (void) answer;
    call->done(call->context, failure);
    sandbox_unref(call->sandbox);
    free(call);
}

static void on_sessions_told(void *context, const struct error *failure,
                             const struct inside_answer *answer)
{
    struct sessions_call *call = context;

    if (failure)
        LOG_WARNING(call->domain->options.log, "sessions of a sandbox did not come back",
                    log_text("sandbox", call->sandbox->id.text),
                    log_text("error", failure->message));
    if (failure && call->sandbox->spec.environment.count)
        sandbox_tell_environment(call->domain, call->sandbox, sessions_call_end, call);
    else
        sessions_call_end(call, NULL, answer);
}

bool sandbox_has_sessions_to_tell(const struct domain *domain, const char *sessions)
{
    return sessions && domain->options.inside && domain->options.inside->restore &&
           domain->options.inside->set_environment &&
           provider_capabilities(domain->options.provider) & PROVIDER_AGENT;
}

/* What was saved is an object with members: the variables go before them. */
void sandbox_tell_sessions(struct domain *domain, struct sandbox *sandbox, const char *sessions,
                           domain_done *done, void *context)
{
    AUTO(text) struct text text = TEXT_INIT(SANDBOX_SPEC_MAX + SANDBOX_INSIDE_MAX);
    struct sessions_call *call = mem_alloc(sizeof(*call));

    *call = (struct sessions_call){domain, sandbox_ref(sandbox), done, context};
    if (sandbox->spec.environment.count) {
        text_append(&text, "{\"replace\":true,\"env\":");
        write_variables(sandbox, &text);
        text_append(&text, ",");
        sessions++;
    }
    text_append(&text, sessions);
    inside_ask(domain, &sandbox->id, INSIDE_RESTORE, text_string(&text), on_sessions_told, call);
}
