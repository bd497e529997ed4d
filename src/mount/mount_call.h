/* Inside mount: asking the store, with patience that ends; before a put the quota of whose bucket it
 * is (bucket_ledger.h), where it is one of ours.
 *
 * A call is answered once: with what the store said, as an errno of its own table, or with
 * -ETIMEDOUT when nothing moved for `patience_ms`. The store's thread may then still be stuck;
 * nobody here waits for it. At most MOUNT_CALLS_MAX of a mount run at once, so that one sandbox
 * does not take all of the store's threads; others wait their turn, which counts as time.
 *
 * Nothing is answered from inside mount_call_start. One thread. */
#pragma once

#include "base/list.h"
#include "mount/bucket_ledger.h"
#include "mount/mount_marks.h"
#include "net/loop.h"
#include "objects/objects.h"

#define MOUNT_PATIENCE_MS 30000
#define MOUNT_CALLS_MAX   6

enum mount_call_kind {
    MOUNT_CALL_HEAD,
    MOUNT_CALL_GET,      /* a range, into memory */
    MOUNT_CALL_GET_FILE, /* all of it, into `file` */
    MOUNT_CALL_PUT,      /* `bytes` */
    MOUNT_CALL_PUT_FILE, /* all of `file` */
    MOUNT_CALL_COPY,
    MOUNT_CALL_DELETE, /* `keys` */
    MOUNT_CALL_LIST,
};

/* What is asked; all of it is copied, descriptors are borrowed until the answer. */
struct mount_ask {
    enum mount_call_kind kind;
    const char *key; /* list: the prefix */
    const char *to;  /* copy */
    const char *const *keys;
    size_t key_count;
    struct object_range range;
    const char *tag;   /* get: only of this one; NULL: any */
    const char *after; /* list */
    bool folders;
    size_t limit;
    int file;
    const void *bytes; /* of a put; at most MOUNT_PUT_MAX */
    size_t length;
    bool only_new;
    const char *media_type;
    const struct mount_marks *marks; /* of a put */
    uint64_t
        replaces; /* of a put: the length of what was there, as far as known; of a delete, too */
};

#define MOUNT_PUT_MAX 4096

/* What comes back; borrowed for the callback. */
struct mount_answer {
    const struct object_info *info;
    const void *bytes;
    size_t length;
    const struct object_list *list;
};

/* `result` is 0 or -errno; `answer` NULL with a failure. */
typedef void mount_call_done(void *context, int result, const struct mount_answer *answer);

struct mount_calls {
    struct loop *loop;        /* borrowed */
    struct objects *objects;  /* borrowed */
    struct log *log;          /* borrowed, may be NULL */
    struct bucket_book *book; /* borrowed; NULL: no quota is asked */
    struct list asking;       /* their quota; then they wait as others do */
    struct list running, waiting;
    size_t running_count;
    struct loop_task next; /* starts those that wait */
    uint64_t patience_ms;
    bool is_over;
    uint64_t logged; /* when a failure was written down last */
    uint64_t calls, failures, timeouts, unlogged;
};

void mount_calls_init(struct mount_calls *calls, struct loop *loop, struct objects *objects,
                      struct log *log);

void mount_call_start(struct mount_calls *calls, const struct mount_ask *ask, mount_call_done *done,
                      void *context);

/* Give up those that nothing moved for too long. Now and then, from the loop. */
void mount_calls_look(struct mount_calls *calls);

/* Answer all of them with -ESHUTDOWN, now, and all that follow. */
void mount_calls_end(struct mount_calls *calls);

/* After that, when nobody asks any more: the memory may go. */
void mount_calls_done(struct mount_calls *calls);

static inline bool mount_calls_are_idle(const struct mount_calls *calls)
{
    return list_is_empty(&calls->running) && list_is_empty(&calls->waiting) &&
           list_is_empty(&calls->asking);
}
