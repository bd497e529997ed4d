/* File watches: clients learn what changes below a folder, as it happens (watch) or when they ask
 * (check).
 *
 * Clients who want the same share a watcher (file_watcher.h). Its changes are gathered for a
 * moment, so that a hundred writes to a file are one event. A client that reads too slowly misses
 * events and is told how many; it holds up nobody and costs no memory.
 *
 * A check answers whether anything changed since a version it gave out. For that its watcher is
 * retained for a while without clients. */
#pragma once

#include "agent/operation.h"

extern const struct operation_table file_watch_operations;

#define FILE_WATCH_COALESCE_MS 75
/* A watcher without streams is forgotten when nobody asked it for so long. */
#define FILE_WATCH_RETAIN_MS ((uint64_t) 10 * 60 * 1000)
/* More are not retained: the one nobody asked for the longest time is forgotten. */
#define FILE_WATCH_RETAINED_MAX 64
#define FILE_WATCHERS_MAX       256
#define FILE_WATCH_STREAMS_MAX  1024
