#include "load/sandbox_session.h"

#include <unistd.h>

#include "base/clock.h"
#include "load/fail.h"
#include "provider/provider_local.h"

#define EXPLAIN_MS 1000
/* A launcher with thousands of sandboxes has some work to do. */
#define END_MS 300000

static void lost(void *context, const struct error *reason)
{
    (void) context;
    fail("the launcher is lost: %s", reason->message);
}

static void opened(void *context, const struct error *failure)
{
    struct sandbox_session *session = context;
    struct error err;

    if (failure) {
        err = *failure;
        launcher_process_explain(&session->launcher, EXPLAIN_MS, &err);
        fail("open the provider: %s", err.message);
    }
    loop_stop(&session->loop);
}

static void closed(void *context, const struct error *failure)
{
    struct sandbox_session *session = context;

    (void) failure;
    loop_stop(&session->loop);
}

void sandbox_session_open(struct sandbox_session *session,
                          const struct sandbox_session_options *options)
{
    struct provider_watcher watcher = {.lost = lost, .context = session};
    struct provider_local_options local = {
        .loop = &session->loop, .image = options->image, .stock = options->stock};
    struct error err = ERROR_INIT;

    *session = (struct sandbox_session){.launcher = LAUNCHER_PROCESS_INIT};
    session->log = log_new(STDERR_FILENO, LOG_FORMAT_AUTO, LOG_LEVEL_WARNING, clock_system());
    if (loop_init(&session->loop, session->log) < 0)
        fail("no event loop");
    if (launcher_process_start(&options->launcher, &session->launcher, &err) < 0)
        fail("%s", err.message);
    local.log = session->log;
    local.agents = session->launcher.agents;
    local.conversation = TAKE_FD(session->launcher.conversation);
    session->provider = provider_local_new(&local, &err);
    if (!session->provider)
        fail("%s", err.message);
    provider_open(session->provider, &watcher, opened, session);
    sandbox_session_run(session);
}

void sandbox_session_run(struct sandbox_session *session)
{
    loop_run(&session->loop);
}

void sandbox_session_close(struct sandbox_session *session)
{
    struct error err = ERROR_INIT;

    provider_close(session->provider, closed, session);
    sandbox_session_run(session);
    if (launcher_process_end(&session->launcher, END_MS, &err) < 0)
        fail("%s", err.message);
    loop_done(&session->loop);
    log_free(session->log);
}
