/* Startup commands: begun in the order they are listed, each when the agent has started the one
 * before. Nobody waits for them; what fails is logged and told, and the next one is tried. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/inside_call.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "json/json_write.h"

#define EVENT_DATA_MAX (4 * 1024)
#define COMMAND_SHOWN  200 /* of a command, in the event */

struct startup {
    struct domain *domain;
    struct sandbox *sandbox;       /* a reference */
    struct sandbox_texts commands; /* a copy: an update may change the sandbox's own */
    uint64_t started_ns;           /* of the run they belong to */
    size_t next;
};

static void startup_free(struct startup *startup)
{
    struct domain *domain = startup->domain;

    sandbox_texts_done(&startup->commands);
    sandbox_unref(startup->sandbox);
    free(startup);
    domain->works--;
    domain_check_gone(domain);
}

static void on_told(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    if (!failure)
        event_kept(context, receipt);
}

static void tell_failure(const struct startup *startup, const char *command,
                         const struct error *failure)
{
    struct domain *domain = startup->domain;
    const struct sandbox *sandbox = startup->sandbox;
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    AUTO(text) struct text shown = TEXT_INIT(COMMAND_SHOWN);
    struct caller system = caller_system();
    struct store_transaction *change;
    struct json_writer json;

    LOG_WARNING(domain->options.log, "a startup command could not be started",
                log_text("sandbox", sandbox->id.text), log_text("error", failure->message));
    if (domain->stage != DOMAIN_OPEN)
        return;
    text_append(&shown, command);
    json_writer_init_text(&json, &data);
    json_begin_object(&json);
    json_add_text(&json, "sandboxId", sandbox->id.text);
    json_add_integer(&json, "index", (int64_t) startup->next);
    if (!shown.overflowed)
        json_add_text(&json, "command", command);
    json_add_text(&json, "error", failure->message);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* both texts are short: it fits */
    change = store_begin(domain->options.store);
    event_add(domain, change, &system, &sandbox->owner, sandbox->id.text, "sandbox.startup_failed",
              text_string(&data));
    domain_commit(domain, change, on_told, domain);
}

static void start_next(struct startup *startup);

static void on_started(void *context, const struct error *failure,
                       const struct inside_answer *answer)
{
    struct startup *startup = context;

    (void) answer;
    if (failure)
        tell_failure(startup, startup->commands.items[startup->next], failure);
    startup->next++;
    start_next(startup);
}

/* Those of an earlier run are not started in a later one, which has its own. */
static bool is_over(const struct startup *startup)
{
    const struct sandbox *sandbox = startup->sandbox;

    return startup->next == startup->commands.count || startup->domain->stage != DOMAIN_OPEN ||
           sandbox->started_ns != startup->started_ns || sandbox->status != SANDBOX_RUNNING;
}

static void start_next(struct startup *startup)
{
    if (is_over(startup))
        startup_free(startup);
    else
        inside_ask(startup->domain, &startup->sandbox->id, INSIDE_START_PROCESS,
                   startup->commands.items[startup->next], on_started, startup);
}

void sandbox_run_startup(struct domain *domain, struct sandbox *sandbox)
{
    struct startup *startup;

    if (sandbox->spec.startup.count == 0)
        return;
    startup = mem_alloc(sizeof(*startup));
    startup->domain = domain;
    startup->sandbox = sandbox_ref(sandbox);
    startup->commands = sandbox_texts_copy(&sandbox->spec.startup);
    startup->started_ns = sandbox->started_ns;
    domain->works++;
    start_next(startup);
}
