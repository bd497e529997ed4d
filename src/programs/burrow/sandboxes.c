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
                         LAUNCHER_VARIABLE " is '%s', which is not a launcher's socket", text);
    (void) unsetenv(LAUNCHER_VARIABLE); /* ours alone */
    return (int) fd;
}

int sandboxes_provider(struct loop *loop, struct log *log, const struct settings *settings,
                       struct provider **ret_provider, struct error *err)
{
    struct provider_local_options options = {
        .loop = loop, .log = log, .agents = getenv(AGENTS_VARIABLE), .stock = settings->stock};
    int fd = take_descriptor(err);

    *ret_provider = NULL;
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
    *ret_provider = provider_local_new(&options, err);
    return *ret_provider ? 0 : -1;
}
