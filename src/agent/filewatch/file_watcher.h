/* A watcher: one tree (file_watch_tree.h) with one filter, and all who want to know.
 *
 * It lives as long as it has streams or checks, or is retained. Its changes are counted: the count
 * is what versions are made of. */
#pragma once

#include "agent/call.h"
#include "agent/filewatch/file_watch_request.h"
#include "agent/filewatch/file_watch_tree.h"
#include "base/list.h"
#include "base/table.h"
#include "net/loop.h"

/* Events gathered before they are sent without waiting any longer. */
#define FILE_WATCHER_PENDING_MAX 1000

#define FILE_WATCHER_ID_SIZE 48

struct file_watch_set {
    struct agent *agent; /* borrowed */
    struct watch_forest *forest;
    struct list watchers;
    size_t watcher_count;
    size_t stream_count;
    uint64_t counter;      /* of watchers ever made */
    struct deadline flush; /* the first events have waited long enough, or a check has */
    struct deadline expiry;
    struct text scratch; /* an event being written */
};

struct file_watcher {
    struct list link; /* in the set */
    struct file_watch_set *set;
    struct watch_tree *tree;
    struct watch_filter filter;
    char *key;  /* owned */
    char *path; /* owned: as clients wrote it */
    char id[FILE_WATCHER_ID_SIZE];
    bool is_ready;
    bool is_file;
    bool is_retained;
    uint64_t last_check; /* loop_now() */
    uint64_t cursor;
    struct list streams;
    struct list checks;
    struct list pending; /* of events, in the order of their first time */
    struct table pending_by_key;
    uint64_t flush_due; /* loop_now(); 0: nothing is pending */
};

/* A client that wants the events. */
struct file_watch_stream {
    struct list link; /* in the watcher */
    struct file_watcher *watcher;
    struct call *call;
    bool has_begun;
    uint64_t dropped; /* events it was too slow for */
};

/* A client that waits for a version. */
struct file_watch_check {
    struct list link; /* in the watcher */
    struct file_watcher *watcher;
    struct call *call;
    const char *since; /* of the call; NULL: none */
    bool is_first;     /* the watcher was made for it */
    uint64_t place;    /* all that happened before is to be counted */
    uint64_t due;      /* loop_now(): no waiting for folders to be read any longer */
};

/* The watcher for the request, a new one if need be; NULL when the call was answered with the
 * reason. */
struct file_watcher *file_watcher_get(struct file_watch_set *set, struct call *call,
                                      const struct watch_request *request, bool *ret_is_new);

/* Free it if nobody wants it any more. */
void file_watcher_release(struct file_watcher *watcher);

/* Send what is pending. */
void file_watcher_flush(struct file_watcher *watcher);

/* --- for clients of a watcher: file_watch_stream.c ------------------------------------------- */

void file_watch_stream_add(struct file_watcher *watcher, struct call *call);
/* The watcher is ready. */
void file_watch_streams_begin(struct file_watcher *watcher);
void file_watch_streams_send(struct file_watcher *watcher, const char *type,
                             const struct text *json);
/* {"type":"error"}, and go on. */
void file_watch_streams_warn(struct file_watcher *watcher, const char *text);
/* {"type":"stopped"}; or `code` for those who have heard nothing yet. All are gone afterwards. */
void file_watch_streams_end(struct file_watcher *watcher, enum api_code code, const char *reason);

void file_watch_check_add(struct file_watcher *watcher, struct call *call, const char *since,
                          bool is_first);
/* Answer those that can be. */
void file_watch_checks_answer(struct file_watcher *watcher);
void file_watch_checks_end(struct file_watcher *watcher, enum api_code code, const char *reason);
