/* Mounts of the provider `local`: the launcher makes them, we serve them. */
#include <stdio.h>

#include "provider/provider_local_internal.h"
#include "sys/file/sys_file.h"

static void on_done(void *context, struct wire_incoming *reply, const struct error *failure)
{
    (void) reply;
    provider_call_answer(context, failure);
}

static void on_opened(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    if (!failure) {
        call->result.mount.number = reply->message.mount_opened.mount;
        call->result.mount.fuse = TAKE_FD(reply->fds[0]);
        (void) sys_file_set_nonblocking(call->result.mount.fuse, true);
    }
    provider_call_answer(call, failure);
}

void local_open_mount(struct provider *provider, const char *place, bool read_only,
                      struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_OPEN_MOUNT,
                                   .open_mount = {.id = call->id, .read_only = read_only}};

    (void) provider;
    (void) snprintf(message.open_mount.place, sizeof(message.open_mount.place), "%s", place);
    local_ask(call, &message, NULL, 0, on_opened);
}

void local_attach_mount(struct provider *provider, uint32_t mount, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_ATTACH_MOUNT,
                                   .attach_mount = {.id = call->id, .mount = mount}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

void local_detach_mount(struct provider *provider, uint32_t mount, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_DETACH_MOUNT,
                                   .detach_mount = {.id = call->id, .mount = mount}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}
