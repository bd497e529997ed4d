#include "programs/burrow/sandboxes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/number.h"
#include "programs/burrow/serve_root.h"
#include "provider/provider_local.h"

#define DESCRIPTOR_MAX (1 << 20)

static const char *const ending_texts[] = {
    [PROVIDER_ENDED_UNKNOWN] = "unknown",
    [PROVIDER_ENDED_STATUS] = "status",
    [PROVIDER_ENDED_SIGNAL] = "signal",
    [PROVIDER_ENDED_OOM] = "out of memory",
};

/* The launcher's end of the environment: a descriptor, or -ENOENT without a launcher. */
static int take_descriptor(struct error *err)
{
    const char *text = getenv(LAUNCHER_VARIABLE);
    int64_t fd;
    int type = 0;
    socklen_t size = sizeof(type);

    if (!text)
        return -ENOENT;
    if (number_parse(text, 3, DESCRIPTOR_MAX, &fd) < 0 ||
        fcntl((int) fd, F_SETFD, FD_CLOEXEC) < 0 ||
        getsockopt((int) fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
        return error_set(err, ERR_INVALID, 0,
                         LAUNCHER_VARIABLE " is '%s', which is no socket of a launcher", text);
    (void) unsetenv(LAUNCHER_VARIABLE); /* ours alone */
    return (int) fd;
}

static void exited(void *context, const struct id *id, const struct provider_ending *ending)
{
    struct sandboxes *sandboxes = context;

    LOG_INFO(sandboxes->log, "sandbox ended", log_text("sandbox", id->text),
             log_text("by", ending_texts[ending->kind]), log_number("value", ending->value));
}

static void lose(struct sandboxes *sandboxes, const struct error *reason)
{
    if (sandboxes->is_lost)
        return;
    sandboxes->is_lost = true;
    sandboxes->waits_for = "the launcher is gone";
    LOG_ERROR(sandboxes->log, "the launcher is lost", log_text("reason", reason->message));
    sandboxes->lost(sandboxes->context);
}

static void lost(void *context, const struct error *reason)
{
    lose(context, reason);
}

static void opened(void *context, const struct error *failure)
{
    struct sandboxes *sandboxes = context;

    if (failure) {
        lose(sandboxes, failure);
        return;
    }
    sandboxes->waits_for = NULL;
    LOG_INFO(sandboxes->log, "sandboxes are ready");
}

int sandboxes_open(struct sandboxes *sandboxes, struct loop *loop, struct log *log,
                   const struct settings *settings, void (*on_lost)(void *context), void *context,
                   struct error *err)
{
    const struct provider_watcher watcher = {.exited = exited, .lost = lost, .context = sandboxes};
    struct provider_local_options options = {
        .loop = loop, .log = log, .agents = getenv(AGENTS_VARIABLE), .stock = settings->stock};
    int fd = take_descriptor(err);

    *sandboxes = (struct sandboxes){.log = log, .lost = on_lost, .context = context};
    if (fd == -ENOENT) {
        LOG_WARNING(log, "there are no sandboxes: they need a launcher, which root starts with "
                         "`burrow serve`");
        return 0;
    }
    if (fd < 0)
        return -1;
    if (!options.agents) {
        (void) fd_close(fd);
        return error_set(err, ERR_INVALID, 0, AGENTS_VARIABLE " is not set");
    }
    options.conversation = fd;
    sandboxes->provider = provider_local_new(&options, err);
    if (!sandboxes->provider)
        return -1;
    sandboxes->waits_for = "the launcher has not answered yet";
    provider_open(sandboxes->provider, &watcher, opened, sandboxes);
    return 0;
}

void sandboxes_close(struct sandboxes *sandboxes)
{
    struct provider *provider = TAKE_PTR(sandboxes->provider);

    if (!provider)
        return;
    /* From now on nobody is told: the daemon ends anyway. */
    sandboxes->is_lost = true;
    provider_close(provider, NULL, NULL);
}
