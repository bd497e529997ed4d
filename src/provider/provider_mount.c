/* The calls about mounts: checked here, done by the provider's operations. */
#include "base/memory.h"
#include "provider/provider_internal.h"
#include "wire/wire_text.h"

void provider_open_mount(struct provider *provider, const struct id *sandbox, const char *place,
                         bool read_only, provider_mount_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_OPEN_MOUNT, sandbox, context);
    struct error err = ERROR_INIT;

    call->answer.mount = done;
    call->result.mount.fuse = -EBADF;
    if (!wire_text_is_path(place)) {
        (void) error_set(&err, ERR_INVALID, 0,
                         "not a place for a mount: an absolute path of printable ASCII without "
                         "'.', '..' and double slashes, at most %d bytes",
                         WIRE_PATH_MAX);
        provider_call_answer(call, &err);
    }
    if (provider_call_begin(call))
        provider->operations->open_mount(provider, place, read_only, call);
    provider_call_leave(call);
}

static void change_mount(struct provider *provider, enum provider_call_kind kind,
                         const struct id *sandbox, uint32_t mount, provider_done *done,
                         void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, sandbox, context);

    call->answer.done = done;
    call->result.mount.number = mount;
    if (provider_call_begin(call)) {
        if (kind == PROVIDER_CALL_ATTACH_MOUNT)
            provider->operations->attach_mount(provider, mount, call);
        else
            provider->operations->detach_mount(provider, mount, call);
    }
    provider_call_leave(call);
}

void provider_attach_mount(struct provider *provider, const struct id *sandbox, uint32_t mount,
                           provider_done *done, void *context)
{
    change_mount(provider, PROVIDER_CALL_ATTACH_MOUNT, sandbox, mount, done, context);
}

void provider_detach_mount(struct provider *provider, const struct id *sandbox, uint32_t mount,
                           provider_done *done, void *context)
{
    change_mount(provider, PROVIDER_CALL_DETACH_MOUNT, sandbox, mount, done, context);
}
