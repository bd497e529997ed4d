/* How much is stored in buckets of ours, by owner: what a quota of storage is asked for.
 *
 * Nobody keeps rows of buckets: a bucket is there when it has objects ("<owner>/<name>/...") or is
 * mounted. So the store is counted: all of it when the daemon starts, and a bucket again some time
 * after it was changed. What is put is claimed at once (share.h, SHARE_STORAGE), and before a put is
 * refused its bucket is counted anew. No race of two mounts, and nothing that others do in the same
 * store, is wrong for longer than that.
 *
 * An object counts with its length, holes included, in steps of BUCKET_LEDGER_STEP: many small ones
 * cost the disk as well. One count at a time. All of the loop's thread. */
#pragma once

#include "base/list.h"
#include "net/loop.h"
#include "objects/objects.h"
#include "share/share.h"

#define BUCKET_LEDGER_STEP     4096
#define BUCKET_LEDGER_CALM     1000 /* ms after a change until it is counted */
#define BUCKET_LEDGER_EASE     10   /* a bucket is being counted for one such part of the time */
#define BUCKET_LEDGER_EASE_MAX 5000 /* ms between two counts, whatever they take */
#define BUCKET_LEDGER_NAME     256

struct bucket_ledger;
struct bucket_book; /* of one bucket */

/* `objects` is the store of all buckets, `shares` may be NULL, `log` too; all borrowed. */
struct bucket_ledger *bucket_ledger_new(struct loop *loop, struct objects *objects,
                                        struct shares *shares, struct log *log);

/* Count no more; `done` from the loop. Books stay good until the end. */
void bucket_ledger_stop(struct bucket_ledger *ledger, void (*done)(void *context), void *context);
/* Once it was stopped. Accepts NULL. */
void bucket_ledger_free(struct bucket_ledger *ledger);

/* A bucket is mounted: its book, until bucket_book_close. NULL: its owner has as many as he may. */
struct bucket_book *bucket_book_open(struct bucket_ledger *ledger, const struct share_asker *asker,
                                     const char *name, struct error *err);
void bucket_book_close(struct bucket_book *book);

/* Something was deleted that is known to have had this length; or copied, or nobody knows: 0. */
void bucket_book_freed(struct bucket_book *book, uint64_t length);

/* One object on its way into a bucket. Embedded in what puts it. */
struct bucket_put {
    struct list link;
    struct bucket_book *book; /* NULL: none is under way */
    uint64_t grows;
    uint64_t wants; /* that count of its bucket, begun after it asked, says whether it may */
    void (*told)(struct bucket_put *put, const struct error *refused);
};

/* Whether it may be put at once; else `told` says so later, from the loop and never from inside.
 * `replaces`: the length of the one that is known to be there. */
bool bucket_put_begin(struct bucket_put *put, struct bucket_book *book, uint64_t length,
                      uint64_t replaces);
/* It is there, or not; or who waited to be told does not wait any more. Nothing under way is fine.
 */
void bucket_put_end(struct bucket_put *put, bool is_there);

/* Everybody who has something, and how much, as far as it was counted. `owner` is the beginning of
 * a key, which may be no owner's. */
void bucket_ledger_each(const struct bucket_ledger *ledger,
                        void (*each)(void *context, const struct id *owner, const char *name,
                                     uint64_t bytes),
                        void *context);

/* Whether all of the store was counted once. */
bool bucket_ledger_is_counted(const struct bucket_ledger *ledger);

/* Remove all that an owner has, which nobody may have mounted. Goes on by itself; what is left when
 * the daemon ends is seen by the next one (bucket_ledger_each). `done` may be NULL. */
void bucket_ledger_remove(struct bucket_ledger *ledger, const struct id *owner, objects_done *done,
                          void *context);
