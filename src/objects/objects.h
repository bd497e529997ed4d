/* Objects: bytes under keys, in a folder of this machine or in a bucket behind the S3 API.
 *
 * A handle is one bucket. Asynchronous: a call starts the work on a thread of ours and returns; its
 * answer comes exactly once, later, from the loop and never from inside the call. What a call is
 * given is copied (descriptors are duplicated); what an answer is given is borrowed for the call.
 * Only the loop's thread.
 *
 *     objects_put_file(objects, "backups/<id>/data.sqsh", fd, NULL, on_put, mine);
 *     -> on_put(mine, NULL, &info)     it is there, whole, and survives power loss
 *
 * An object appears whole or not at all, also to those who read it while it is replaced: they see
 * the old one or the new one. What was put with a checksum (everything but streams into S3, whose
 * sum is not known before their end) is checked when it is read whole; parts are checked where the
 * store keeps sums of parts.
 *
 * Small calls never wait behind large ones, nor any of them behind a pipe: whole files and streams
 * have threads of their own. At most twice OBJECTS_THREADS (objects_backend.h) streams go on at
 * once in each direction, others wait for one of those to end.
 *
 * Keys are 1 to OBJECTS_KEY_MAX bytes of UTF-8 without NUL, as S3 has them; "/" separates segments
 * for objects_list. A folder refuses one thing that S3 allows, with ERR_CONFLICT: a key that is
 * also the beginning of another one's path ("a" beside "a/b").
 *
 * Failures: ERR_NOT_FOUND; ERR_CONFLICT (a condition did not hold); ERR_INVALID (a key, a range);
 * ERR_RANGE; ERR_TOO_LARGE; ERR_NO_SPACE; ERR_FORBIDDEN (wrong key, secret or right: the message
 * says which and what to check); ERR_UPSTREAM (bytes that are not what was put, an answer that
 * makes no sense); ERR_UPSTREAM_TIMEOUT; ERR_UNAVAILABLE (the store is away after retries, the
 * queue is full, or it is closing); ERR_CANCELLED. What failed may have happened all the same (a
 * put whose answer was lost): doing it again is always right. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define OBJECTS_KEY_MAX        1024
#define OBJECTS_BYTES_MAX      ((size_t) 16 * 1024 * 1024) /* of what is put or got in memory */
#define OBJECTS_PAGE_MAX       1000                        /* entries of one list */
#define OBJECTS_QUEUE_MAX      4096                        /* calls that wait for a thread */
#define OBJECTS_DELETE_MAX     1000                        /* keys of one delete */
#define OBJECTS_TAG_SIZE       72
#define OBJECTS_SUM_SIZE       32   /* SHA-256 */
#define OBJECTS_METADATA_MAX   2048 /* of all names and values together */
#define OBJECTS_METADATA_COUNT 16

struct objects;

/* One under way, to be cancelled. */
struct objects_call;

struct object_pair {
    const char *name;  /* [a-z0-9-]{1,64} */
    const char *value; /* printable ASCII, not empty, no space at its ends */
};

struct object_info {
    uint64_t size;
    int64_t modified_ms;
    char tag[OBJECTS_TAG_SIZE]; /* changes with every put; the store's own word (ETag, no quotes) */
    bool has_sum;
    uint8_t sum[OBJECTS_SUM_SIZE];
    const struct object_pair *metadata;
    size_t metadata_count;
};

struct object_put_options {
    bool only_new;          /* ERR_CONFLICT when the key is taken */
    const char *only_tag;   /* ERR_CONFLICT unless it has this tag; NULL: whatever */
    const char *media_type; /* NULL: application/octet-stream */
    const struct object_pair *metadata;
    size_t metadata_count;
    /* Bytes done so far, from the loop, now and then. May be NULL; gets the call's context. */
    void (*progress)(void *context, uint64_t done_bytes);
};

/* All may be NULL: nobody wants to know. */
typedef void objects_done(void *context, const struct error *failure);
typedef void objects_info_done(void *context, const struct error *failure,
                               const struct object_info *info);
typedef void objects_bytes_done(void *context, const struct error *failure, const void *bytes,
                                size_t length, const struct object_info *info);

/* --- writing --------------------------------------------------------------------------------- */

/* `options` NULL: none. At most OBJECTS_BYTES_MAX. */
struct objects_call *objects_put_bytes(struct objects *objects, const char *key, const void *bytes,
                                       size_t length, const struct object_put_options *options,
                                       objects_info_done *done, void *context);

/* All of a regular file from its start, whatever its size; it must not change meanwhile. Large ones
 * go in parts: one that fails is tried again, not the whole, and a failure leaves no part behind.
 */
struct objects_call *objects_put_file(struct objects *objects, const char *key, int file,
                                      const struct object_put_options *options,
                                      objects_info_done *done, void *context);

/* Whatever comes out of a pipe or socket until its end, in bounded memory. The writer is slowed
 * down by the store. */
struct objects_call *objects_put_stream(struct objects *objects, const char *key, int stream,
                                        const struct object_put_options *options,
                                        objects_info_done *done, void *context);

/* Within the store: no byte passes here where it can be helped. */
struct objects_call *objects_copy(struct objects *objects, const char *from, const char *to,
                                  objects_info_done *done, void *context);

/* What is not there succeeds. */
struct objects_call *objects_delete(struct objects *objects, const char *const *keys, size_t count,
                                    objects_done *done, void *context);

/* --- reading --------------------------------------------------------------------------------- */

struct object_range {
    uint64_t offset;
    uint64_t length; /* 0: to the end. What lies behind the end is left out; an offset at or behind
                      * the end is ERR_RANGE */
};

struct objects_call *objects_head(struct objects *objects, const char *key, objects_info_done *done,
                                  void *context);

/* `range` NULL: all of it. ERR_TOO_LARGE beyond OBJECTS_BYTES_MAX. `only_tag` as for puts, so that
 * parts of two objects are never mixed. */
struct objects_call *objects_get_bytes(struct objects *objects, const char *key,
                                       const struct object_range *range, const char *only_tag,
                                       objects_bytes_done *done, void *context);

/* Into a file (written from its start, cut to the object's size, not synced) or a pipe (in order,
 * slowed down by its reader). `sum` (OBJECTS_SUM_SIZE bytes, or NULL) must be that of the whole;
 * after a failure what was written is to be thrown away. A read that breaks off goes on where it
 * was. */
struct objects_call *objects_get_file(struct objects *objects, const char *key, int file,
                                      const uint8_t *sum, objects_info_done *done, void *context);

struct object_entry {
    const char *key; /* of an object; or of a folder: everything up to and with the delimiter */
    bool is_folder;
    uint64_t size;
    int64_t modified_ms;
    char tag[OBJECTS_TAG_SIZE]; /* may be "" */
};

struct object_list {
    const struct object_entry *entries; /* sorted by the bytes of their keys */
    size_t count;
    const char *next; /* for `after` of the next page; NULL: this was the last */
};

typedef void objects_list_done(void *context, const struct error *failure,
                               const struct object_list *list);

struct object_query {
    const char *prefix; /* of whole keys; "": all */
    bool folders;       /* what is behind the next "/" is shown as one folder */
    const char *after;  /* `next` of the page before; NULL: from the start */
    size_t limit;       /* 1 to OBJECTS_PAGE_MAX */
};

struct objects_call *objects_list(struct objects *objects, const struct object_query *query,
                                  objects_list_done *done, void *context);

/* --- the handle ------------------------------------------------------------------------------ */

/* Answered soon with ERR_CANCELLED, unless it is over already. Never after the call's answer. */
void objects_cancel(struct objects_call *call);

/* Whether the store answers and lets us write: for start and `doctor`. */
struct objects_call *objects_check(struct objects *objects, objects_done *done, void *context);

/* "folder DATA/objects", "s3 https://host/bucket": for people, without secrets. Borrowed. */
const char *objects_text(const struct objects *objects);

/* A message that tells where the store is (endpoint, bucket, folder) becomes a sentence for
 * clients, which does not. Code and errno stay. Returns whether it was one: log the message before.
 */
bool objects_make_plain(const struct objects *objects, struct error *err);

struct objects_counters {
    uint64_t calls, failures, retries, bytes_in, bytes_out;
    size_t queued, running;
};

void objects_counters(const struct objects *objects, struct objects_counters *ret_counters);

/* Open calls are answered with ERR_UNAVAILABLE (what they asked for may happen all the same), then
 * `done` (may be NULL) is called and the handle is gone. */
void objects_close(struct objects *objects, objects_done *done, void *context);
