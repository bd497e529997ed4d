#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/file/file_error.h"
#include "agent/filewatch/file_watch.h"
#include "agent/filewatch/file_watcher.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_write.h"

/* For how long a check waits for folders that are being read. */
#define CHECK_PATIENCE_MS 500

static void watch_stream_fail(struct call *call, const struct file_watcher *watcher,
                              enum api_code code, const char *reason)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    file_error_context(&api, call->operation->name, watcher->path);
    api_error_fill(&api, code, "%s", reason);
    call_fail(call, &api);
}

/* --- streams --------------------------------------------------------------------------------- */

static void send_json(struct file_watch_stream *stream, const char *type, const struct text *json)
{
    if (call_is_full(stream->call))
        stream->dropped++;
    else
        call_event(stream->call, type, text_string(json), json->length);
}

/* {"type": type, key: text}, even to a client that is slow: once in a while. */
static void send_text(struct file_watch_stream *stream, const char *type, const char *key,
                      const char *value)
{
    AUTO(text) struct text text = TEXT_INIT(4096);
    struct json_writer json;

    json_document_begin(&json, &text);
    json_add_text(&json, "type", type);
    json_add_text(&json, key, value);
    if (json_document_end(&json) == 0)
        call_event(stream->call, type, text.data, text.length);
}

static void send_watching(struct file_watch_stream *stream)
{
    const struct file_watcher *watcher = stream->watcher;
    AUTO(text) struct text text = TEXT_INIT((size_t) 64 * 1024);
    struct json_writer json;

    json_document_begin(&json, &text);
    json_add_text(&json, "type", "watching");
    json_add_text(&json, "path", watcher->path);
    json_add_text(&json, "watchId", watcher->id);
    if (json_document_end(&json) == 0)
        call_event(stream->call, "watching", text.data, text.length);
}

static void free_stream(struct file_watch_stream *stream)
{
    list_remove(&stream->link);
    stream->watcher->set->stream_count--;
    free(stream);
}

static void watch_stream_client_left(struct call *call)
{
    struct file_watch_stream *stream = call->data;
    struct file_watcher *watcher = stream->watcher;

    free_stream(stream);
    file_watcher_release(watcher);
}

static void watch_stream_client_took(struct call *call)
{
    struct file_watch_stream *stream = call->data;
    char text[128];

    if (stream->dropped == 0 || call_is_full(call))
        return;
    (void) snprintf(text, sizeof(text),
                    "%" PRIu64 " events were dropped: they are read more slowly than they happen",
                    stream->dropped);
    stream->dropped = 0;
    send_text(stream, "error", "error", text);
}

static void begin_stream(struct file_watch_stream *stream)
{
    stream->has_begun = true;
    call_begin_events(stream->call);
    send_watching(stream);
}

void file_watch_stream_add(struct file_watcher *watcher, struct call *call)
{
    struct file_watch_stream *stream = mem_alloc(sizeof(*stream));

    /* What is pending happened before this client came. */
    file_watcher_flush(watcher);
    stream->watcher = watcher;
    stream->call = call;
    call->data = stream;
    call->on_gone = watch_stream_client_left;
    call->on_drain = watch_stream_client_took;
    list_append(&watcher->streams, &stream->link);
    watcher->set->stream_count++;
    if (watcher->is_ready)
        begin_stream(stream);
}

void file_watch_streams_begin(struct file_watcher *watcher)
{
    LIST_EACH (&watcher->streams, at)
        begin_stream(CONTAINER_OF(at, struct file_watch_stream, link));
}

void file_watch_streams_send(struct file_watcher *watcher, const char *type,
                             const struct text *json)
{
    LIST_EACH (&watcher->streams, at)
        send_json(CONTAINER_OF(at, struct file_watch_stream, link), type, json);
}

void file_watch_streams_warn(struct file_watcher *watcher, const char *text)
{
    LIST_EACH (&watcher->streams, at) {
        struct file_watch_stream *stream = CONTAINER_OF(at, struct file_watch_stream, link);

        if (stream->has_begun && call_is_full(stream->call))
            stream->dropped++;
        else if (stream->has_begun)
            send_text(stream, "error", "error", text);
    }
}

void file_watch_streams_end(struct file_watcher *watcher, enum api_code code, const char *reason)
{
    LIST_EACH (&watcher->streams, at) {
        struct file_watch_stream *stream = CONTAINER_OF(at, struct file_watch_stream, link);
        struct call *call = stream->call;

        if (stream->has_begun) {
            send_text(stream, "stopped", "reason", reason);
            free_stream(stream);
            call_end(call);
        } else {
            free_stream(stream);
            watch_stream_fail(call, watcher, code, reason);
        }
    }
}

/* --- checks ---------------------------------------------------------------------------------- */

static void free_check(struct file_watch_check *check)
{
    list_remove(&check->link);
    free(check);
}

static void asker_left(struct call *call)
{
    struct file_watch_check *check = call->data;
    struct file_watcher *watcher = check->watcher;

    free_check(check);
    file_watcher_release(watcher);
}

/* Split a version into the watcher's id, given by its length, and the cursor. */
static bool read_version(const char *version, size_t *ret_id_length, uint64_t *ret_cursor)
{
    const char *colon = strrchr(version, ':');

    if (!colon || colon == version ||
        number_parse_digits(colon + 1, strlen(colon + 1), INT64_MAX, ret_cursor) < 0)
        return false;
    *ret_id_length = (size_t) (colon - version);
    return true;
}

static void watch_stream_answer(struct call *call, const struct file_watcher *watcher,
                                const char *status, const char *reason)
{
    AUTO(text) struct text body = TEXT_INIT(4096);
    struct json_writer json;
    char version[FILE_WATCHER_ID_SIZE + 24];

    (void) snprintf(version, sizeof(version), "%s:%" PRIu64, watcher->id, watcher->cursor);
    call_begin_success(&json, &body);
    json_add_text(&json, "status", status);
    if (reason)
        json_add_text(&json, "reason", reason);
    json_add_text(&json, "version", version);
    call_finish_success(call, &json, &body);
}

static void watch_stream_compare(struct call *call, const struct file_watcher *watcher,
                                 const char *since, bool is_first)
{
    uint64_t cursor;
    size_t length;

    if (!since)
        watch_stream_answer(call, watcher, "unchanged", NULL);
    else if (!read_version(since, &length, &cursor))
        call_fail_field(call, "since", "must be a version returned by checkChanges()");
    else if (length != strlen(watcher->id) || memcmp(since, watcher->id, length) != 0)
        watch_stream_answer(call, watcher, "resync", is_first ? "expired" : "restarted");
    else if (cursor > watcher->cursor)
        call_fail_field(call, "since", "refers to a newer version than the current watch state");
    else
        watch_stream_answer(call, watcher, cursor == watcher->cursor ? "unchanged" : "changed",
                            NULL);
}

static bool can_answer(const struct file_watch_check *check)
{
    const struct file_watcher *watcher = check->watcher;
    struct file_watch_set *set = watcher->set;

    return watcher->is_ready && watch_forest_has_told(set->forest, check->place) &&
           (watch_tree_is_settled(watcher->tree) || loop_now(&set->agent->loop) >= check->due);
}

void file_watch_checks_answer(struct file_watcher *watcher)
{
    LIST_EACH (&watcher->checks, at) {
        struct file_watch_check *check = CONTAINER_OF(at, struct file_watch_check, link);
        struct call *call = check->call;
        const char *since = check->since;
        bool is_first = check->is_first;

        if (!can_answer(check))
            continue;
        free_check(check);
        watch_stream_compare(call, watcher, since, is_first);
    }
}

void file_watch_check_add(struct file_watcher *watcher, struct call *call, const char *since,
                          bool is_first)
{
    struct file_watch_set *set = watcher->set;
    struct file_watch_check *check = mem_alloc(sizeof(*check));

    *check = (struct file_watch_check){
        .watcher = watcher,
        .call = call,
        .since = since,
        .is_first = is_first,
        .place = watch_forest_now(set->forest),
        .due = loop_now(&set->agent->loop) + CHECK_PATIENCE_MS,
    };
    call->data = check;
    call->on_gone = asker_left;
    list_append(&watcher->checks, &check->link);
    if (!set->flush.due)
        deadline_set(&set->flush, FILE_WATCH_COALESCE_MS);
    file_watch_checks_answer(watcher);
}

void file_watch_checks_end(struct file_watcher *watcher, enum api_code code, const char *reason)
{
    LIST_EACH (&watcher->checks, at) {
        struct file_watch_check *check = CONTAINER_OF(at, struct file_watch_check, link);
        struct call *call = check->call;

        free_check(check);
        watch_stream_fail(call, watcher, code, reason);
    }
}
