#include "agent/filewatch/file_watch.h"

#include "agent/agent.h"
#include "agent/filewatch/file_watcher.h"
#include "base/memory.h"

/* An event with a path of which every byte became six, twice as long as paths are. */
#define SCRATCH_MAX ((size_t) 64 * 1024)

/* --- what waits ------------------------------------------------------------------------------ */

static void flush_due(struct deadline *deadline)
{
    struct file_watch_set *set = CONTAINER_OF(deadline, struct file_watch_set, flush);
    uint64_t now = loop_now(&set->agent->loop);
    bool is_needed = false;

    LIST_EACH (&set->watchers, at) {
        struct file_watcher *watcher = CONTAINER_OF(at, struct file_watcher, link);

        if (watcher->flush_due && watcher->flush_due <= now)
            file_watcher_flush(watcher);
        file_watch_checks_answer(watcher);
        is_needed |= watcher->flush_due || !list_is_empty(&watcher->checks);
    }
    if (is_needed)
        deadline_set(deadline, FILE_WATCH_COALESCE_MS / 3);
}

static void settled(void *owner)
{
    struct file_watch_set *set = owner;

    LIST_EACH (&set->watchers, at)
        file_watch_checks_answer(CONTAINER_OF(at, struct file_watcher, link));
}

/* --- retaining ------------------------------------------------------------------------------- */

static void file_watch_forget(struct file_watcher *watcher)
{
    watcher->is_retained = false;
    file_watcher_release(watcher);
}

static void expiry_due(struct deadline *deadline)
{
    struct file_watch_set *set = CONTAINER_OF(deadline, struct file_watch_set, expiry);
    uint64_t now = loop_now(&set->agent->loop);
    uint64_t next = 0;

    LIST_EACH (&set->watchers, at) {
        struct file_watcher *watcher = CONTAINER_OF(at, struct file_watcher, link);
        uint64_t due = watcher->last_check + FILE_WATCH_RETAIN_MS;

        if (!watcher->is_retained)
            continue;
        if (due <= now)
            file_watch_forget(watcher);
        else if (next == 0 || due < next)
            next = due;
    }
    if (next)
        deadline_set(deadline, next - now);
}

static struct file_watcher *oldest_retained(const struct file_watch_set *set, size_t *ret_count)
{
    struct file_watcher *oldest = NULL;

    *ret_count = 0;
    LIST_EACH (&set->watchers, at) {
        struct file_watcher *watcher = CONTAINER_OF(at, struct file_watcher, link);

        if (!watcher->is_retained)
            continue;
        ++*ret_count;
        if (!oldest || watcher->last_check < oldest->last_check)
            oldest = watcher;
    }
    return oldest;
}

static void retain(struct file_watcher *watcher)
{
    struct file_watch_set *set = watcher->set;
    size_t count;
    struct file_watcher *oldest = oldest_retained(set, &count);

    watcher->last_check = loop_now(&set->agent->loop);
    if (!watcher->is_retained && count >= FILE_WATCH_RETAINED_MAX)
        file_watch_forget(oldest);
    watcher->is_retained = true;
    if (!set->expiry.due)
        deadline_set(&set->expiry, FILE_WATCH_RETAIN_MS);
}

/* --- operations ------------------------------------------------------------------------------ */

static struct file_watch_set *get_set(struct agent *agent)
{
    struct file_watch_set *set = agent->file_watches;

    if (set)
        return set;
    set = agent->file_watches = mem_alloc(sizeof(*set));
    set->agent = agent;
    set->scratch = (struct text) TEXT_INIT(SCRATCH_MAX);
    list_init(&set->watchers);
    set->forest = watch_forest_new(&agent->loop, settled, set);
    deadline_init(&agent->loop, &set->flush, flush_due);
    deadline_init(&agent->loop, &set->expiry, expiry_due);
    return set;
}

static void file_watch_watch(struct call *call)
{
    struct file_watch_set *set = get_set(call->agent);
    struct watch_request request;
    struct file_watcher *watcher;
    bool is_new;

    if (watch_request_read(call, call->agent->workspace, &request) < 0)
        return;
    if (set->stream_count >= FILE_WATCH_STREAMS_MAX) {
        call_fail_text(call, API_WATCH_START_ERROR,
                       "Failed to start file watcher: the agent's limit of %d watch streams is "
                       "reached",
                       FILE_WATCH_STREAMS_MAX);
        return;
    }
    watcher = file_watcher_get(set, call, &request, &is_new);
    if (watcher)
        file_watch_stream_add(watcher, call);
}

static void file_watch_check_request(struct call *call)
{
    struct file_watch_set *set = get_set(call->agent);
    struct watch_request request;
    struct file_watcher *watcher;
    bool is_new;

    if (watch_request_read(call, call->agent->workspace, &request) < 0)
        return;
    watcher = file_watcher_get(set, call, &request, &is_new);
    if (!watcher)
        return;
    retain(watcher);
    file_watch_check_add(watcher, call, request.since, is_new);
}

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/watch",
     .rpc = "watch.watch",
     .parameters = {OPERATION_FIELDS},
     .run = file_watch_watch,
     .name = "watch.start",
     .summary = "What changes below a folder, as events",
     .has_events = true},
    {.method = "POST",
     .path = "/api/watch/check",
     .rpc = "watch.checkChanges",
     .parameters = {OPERATION_FIELDS},
     .run = file_watch_check_request,
     .name = "watch.check",
     .summary = "Whether anything changed below a folder since a version"},
};

const struct operation_table file_watch_operations = {rows, ARRAY_COUNT(rows)};
