#include "agent/filewatch/file_watcher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/file/file_error.h"
#include "agent/filewatch/file_watch.h"
#include "agent/filewatch/file_watch_place.h"
#include "base/memory.h"
#include "json/json_write.h"

struct pending_event {
    struct table_link by_key;
    struct list link; /* in the watcher */
    enum watch_change change;
    bool is_directory;
    int64_t wall_ms;
    char path[];
};

/* --- pending events -------------------------------------------------------------------------- */

static uint64_t file_watcher_hash_of(enum watch_change change, const char *path, bool is_directory)
{
    return table_hash((uint64_t) change * 2 + is_directory, path, strlen(path));
}

static struct pending_event *find_pending(const struct file_watcher *watcher, uint64_t hash,
                                          enum watch_change change, const char *path,
                                          bool is_directory)
{
    struct table_link *at = table_find(&watcher->pending_by_key, hash);

    for (; at; at = table_next(at)) {
        struct pending_event *event = CONTAINER_OF(at, struct pending_event, by_key);

        if (event->change == change && event->is_directory == is_directory &&
            strcmp(event->path, path) == 0)
            return event;
    }
    return NULL;
}

static void add_pending(struct file_watcher *watcher, enum watch_change change, const char *path,
                        bool is_directory)
{
    int64_t now = clock_wall_ms(watcher->set->agent->clock);
    uint64_t hash = file_watcher_hash_of(change, path, is_directory);
    struct pending_event *event = find_pending(watcher, hash, change, path, is_directory);
    size_t length = strlen(path);

    if (event) {
        event->wall_ms = now;
        return;
    }
    if (watcher->is_ready && watcher->pending_by_key.count >= FILE_WATCHER_PENDING_MAX)
        file_watcher_flush(watcher);
    if (watcher->pending_by_key.count >= FILE_WATCHER_PENDING_MAX)
        return; /* nobody was promised anything yet */
    event = mem_alloc(sizeof(*event) + length + 1);
    event->change = change;
    event->is_directory = is_directory;
    event->wall_ms = now;
    memcpy(event->path, path, length);
    event->by_key.hash = hash;
    table_add(&watcher->pending_by_key, &event->by_key);
    list_append(&watcher->pending, &event->link);
}

static void free_pending(struct file_watcher *watcher)
{
    LIST_EACH (&watcher->pending, at) {
        list_remove(at);
        free(CONTAINER_OF(at, struct pending_event, link));
    }
    table_done(&watcher->pending_by_key);
    watcher->flush_due = 0;
}

static void file_watcher_send_event(struct file_watcher *watcher, const struct pending_event *event)
{
    struct text *text = &watcher->set->scratch;
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(event->wall_ms, time);
    text_clear(text);
    json_document_begin(&json, text);
    json_add_text(&json, "type", "event");
    json_add_text(&json, "eventType", watch_change_text(event->change));
    json_add_text(&json, "path", event->path);
    json_add_boolean(&json, "isDirectory", event->is_directory);
    json_add_text(&json, "timestamp", time);
    if (json_document_end(&json) == 0)
        file_watch_streams_send(watcher, "event", text);
}

void file_watcher_flush(struct file_watcher *watcher)
{
    if (!watcher->is_ready)
        return;
    LIST_EACH (&watcher->pending, at)
        file_watcher_send_event(watcher, CONTAINER_OF(at, struct pending_event, link));
    free_pending(watcher);
}

/* --- what the tree tells --------------------------------------------------------------------- */

/* The path as clients know it. */
static void make_path(const struct file_watcher *watcher, const char *relative, struct text *path)
{
    text_append(path, watcher->path);
    if (!relative[0] || watcher->is_file)
        return;
    if (strcmp(watcher->path, "/") != 0)
        text_append_char(path, '/');
    text_append(path, relative);
}

static bool is_excluded(void *owner, const char *relative)
{
    const struct file_watcher *watcher = owner;
    AUTO(text) struct text path = TEXT_INIT((size_t) 2 * PATH_MAX);

    if (watcher->filter.includes)
        return false; /* what is included may be anywhere */
    make_path(watcher, relative, &path);
    return !watch_filter_passes(&watcher->filter, relative, text_string(&path));
}

static void changed(void *owner, enum watch_change change, const char *relative, bool is_directory)
{
    struct file_watcher *watcher = owner;
    struct file_watch_set *set = watcher->set;
    AUTO(text) struct text path = TEXT_INIT((size_t) 2 * PATH_MAX);

    make_path(watcher, relative, &path);
    if (!(watcher->filter.changes & 1U << change) ||
        (!watcher->is_file && !watch_filter_passes(&watcher->filter, relative, text_string(&path))))
        return;
    watcher->cursor++;
    if (list_is_empty(&watcher->streams))
        return;
    add_pending(watcher, change, text_string(&path), is_directory);
    if (watcher->flush_due)
        return;
    watcher->flush_due = loop_now(&set->agent->loop) + FILE_WATCH_COALESCE_MS;
    if (!set->flush.due)
        deadline_set(&set->flush, FILE_WATCH_COALESCE_MS);
}

static void file_watcher_ready(void *owner)
{
    struct file_watcher *watcher = owner;

    watcher->is_ready = true;
    file_watch_streams_begin(watcher);
    file_watcher_flush(watcher);
    file_watch_checks_answer(watcher);
}

static void file_watcher_end(struct file_watcher *watcher, enum api_code code, const char *reason)
{
    file_watcher_flush(watcher);
    file_watch_streams_end(watcher, code, reason);
    file_watch_checks_end(watcher, code, reason);
    watcher->is_retained = false;
    file_watcher_release(watcher);
}

static void met_problem(void *owner, const char *text)
{
    struct file_watcher *watcher = owner;

    if (watcher->is_ready)
        file_watch_streams_warn(watcher, text);
    else
        file_watcher_end(watcher, API_WATCH_START_ERROR, text);
}

static void overflowed(void *owner)
{
    struct file_watcher *watcher = owner;

    watcher->cursor++;
    file_watcher_flush(watcher);
    file_watch_streams_warn(watcher,
                            "Events were lost: more happened at once than the kernel keeps "
                            "(fs.inotify.max_queued_events). Watching goes on; look at the "
                            "watched files again");
}

static void ended(void *owner, const char *reason)
{
    file_watcher_end(owner, API_FILE_NOT_FOUND, reason);
}

static const struct watch_tree_events tree_events = {
    .is_excluded = is_excluded,
    .on_change = changed,
    .on_ready = file_watcher_ready,
    .on_problem = met_problem,
    .on_overflow = overflowed,
    .on_end = ended,
};

/* --- life ------------------------------------------------------------------------------------ */

static struct file_watcher *file_watcher_find(const struct file_watch_set *set, const char *key)
{
    LIST_EACH (&set->watchers, at) {
        struct file_watcher *watcher = CONTAINER_OF(at, struct file_watcher, link);

        if (strcmp(watcher->key, key) == 0)
            return watcher;
    }
    return NULL;
}

static void file_watcher_fail(struct call *call, const char *path, int error, const char *text)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    if (error == -EXDEV) {
        file_error_context(&api, call->operation->name, path);
        api_error_fill(&api, API_PERMISSION_DENIED, "path must be inside %s",
                       call->agent->workspace);
    } else if (text) {
        file_error_context(&api, call->operation->name, path);
        api_error_fill(&api, API_WATCH_START_ERROR, "Failed to start file watcher: %s", text);
    } else {
        file_error_fail(call, path, error);
        return;
    }
    call_fail(call, &api);
}

static bool is_limit(int error)
{
    return error == -ENOSPC || error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

static int plant(struct file_watcher *watcher, const struct watch_request *request,
                 struct call *call)
{
    struct watch_tree_options options = {
        .recursive = request->recursive,
        .attributes = request->changes & 1U << WATCH_ATTRIB,
        .events = &tree_events,
        .owner = watcher,
    };
    char text[512];
    int r = watch_place_find(call->agent->workspace, request->path, &options.place);

    if (r < 0) {
        file_watcher_fail(call, request->path, r, NULL);
        return -1;
    }
    watcher->is_file = options.place.only != NULL;
    if (watcher->is_file)
        options.recursive = false;
    watcher->tree = watch_tree_new(watcher->set->forest, &options, &r, text, sizeof(text));
    if (!watcher->tree) {
        file_watcher_fail(call, request->path, r, is_limit(r) ? text : NULL);
        return -1;
    }
    return 0;
}

static struct file_watcher *file_watcher_make(struct file_watch_set *set,
                                              const struct watch_request *request)
{
    struct file_watcher *watcher = mem_alloc(sizeof(*watcher));

    watcher->set = set;
    watcher->key = mem_copy_text(request->key);
    watcher->path = mem_copy_text(request->path);
    (void) snprintf(watcher->id, sizeof(watcher->id), "watch-%" PRIu64 "-%" PRId64, ++set->counter,
                    clock_wall_ms(set->agent->clock));
    watch_filter_init(&watcher->filter, request);
    list_init(&watcher->streams);
    list_init(&watcher->checks);
    list_init(&watcher->pending);
    list_append(&set->watchers, &watcher->link);
    set->watcher_count++;
    return watcher;
}

struct file_watcher *file_watcher_get(struct file_watch_set *set, struct call *call,
                                      const struct watch_request *request, bool *ret_is_new)
{
    struct file_watcher *watcher = file_watcher_find(set, request->key);

    *ret_is_new = !watcher;
    if (watcher)
        return watcher;
    if (set->watcher_count >= FILE_WATCHERS_MAX) {
        file_watcher_fail(call, request->path, 0,
                          "the agent's limit of 256 different watches is reached");
        return NULL;
    }
    watcher = file_watcher_make(set, request);
    if (plant(watcher, request, call) == 0)
        return watcher;
    file_watcher_release(watcher);
    return NULL;
}

void file_watcher_release(struct file_watcher *watcher)
{
    if (watcher->is_retained || !list_is_empty(&watcher->streams) ||
        !list_is_empty(&watcher->checks))
        return;
    watch_tree_free(watcher->tree);
    free_pending(watcher);
    watch_filter_done(&watcher->filter);
    list_remove(&watcher->link);
    watcher->set->watcher_count--;
    free(watcher->key);
    free(watcher->path);
    free(watcher);
}
