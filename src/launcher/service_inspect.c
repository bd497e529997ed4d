#include "launcher/service_inspect.h"

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/trace.h"
#include "sys/file/sys_memfd.h"

#define STATE_MAX ((size_t) 4 * 1024 * 1024)

static const char *const state_texts[] = {
    [RESIDENT_COPYING] = "copying", [RESIDENT_STARTING] = "starting",
    [RESIDENT_POOLED] = "pooled",   [RESIDENT_RUNNING] = "running",
    [RESIDENT_ENDING] = "ending",   [RESIDENT_LEAVING] = "leaving",
};

static void describe_resident(const struct resident *resident, struct text *out)
{
    text_format(out, "  sandbox %s %s pid=%d", resident->sandbox.id.text,
                state_texts[resident->state], (int) resident->sandbox.pid);
    if (resident->is_frozen)
        text_append(out, " frozen");
    if (resident->holds)
        text_format(out, " held=%u", resident->holds);
    if (resident->served_count)
        text_format(out, " mounts=%zu", resident->served_count);
    if (resident->teardown_failed)
        text_append(out, " teardown-failed");
    text_append_char(out, '\n');
}

static void describe_state(const struct service *service, struct text *out)
{
    const struct residents *all = service->residents;

    text_format(out, "launcher: %zu residents, %zu requests open, %zu messages wait\n", all->count,
                service->conversation.requests.count, service->conversation.channel.waiting_count);
    text_format(out, "keeper jobs: %zu run, %zu wait\n", service->keeper.running_count,
                service->keeper.waiting_count);
    text_format(out, "janitor: %zu tasks; porter: %zu tasks\n", all->janitor->count,
                all->porter->count);
    for (size_t i = 0; i < all->count; i++)
        describe_resident(all->sorted[i], out);
}

static int make_file(const char *name, const void *bytes, size_t length, int *ret_file,
                     struct error *err)
{
    int file = sys_memfd_from_bytes(name, SYS_MEMFD_DATA, bytes, length);

    if (file < 0)
        return error_set(err, error_code_from_errno(file), file, "make a file for the %s", name);
    *ret_file = file;
    return 0;
}

int service_inspect(const struct service *service, const struct wire_inspect *asked, int *ret_file,
                    struct error *err)
{
    const struct trace_context about = {asked->request, asked->sandbox};
    AUTO(text) struct text state = TEXT_INIT(STATE_MAX);
    AUTO(free) struct trace_entry *entries = NULL;
    size_t count;

    if (asked->what == WIRE_INSPECT_STATE) {
        describe_state(service, &state);
        return make_file("state", text_string(&state), state.length, ret_file, err);
    }
    entries = mem_alloc_array(TRACE_LAUNCHER, sizeof(*entries));
    count = trace_read(&about, entries, TRACE_LAUNCHER);
    return make_file("trace", entries, count * sizeof(*entries), ret_file, err);
}
