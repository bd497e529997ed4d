/* Inside of the mover: what its files share.
 *
 *     mover.c           its life, the table of operations
 *     mover_archive.c   archive and restore
 *     mover_layers.c    store_disk and fetch_disk
 *     mover_look.c      diff, measure, remove_prefix
 *     mover_sync.c      sync; mirror_past.c compares lists, mirror_contents.c puts contents,
 *                       mirror_doubts.c remembers what a sync that was cut off may have changed
 *     mover_mirror.c    restore_mirror
 *     report.c          a keeper job and its lines
 *     turns.c           who goes next */
#pragma once

#include "base/auto.h"
#include "vault/mover.h"
#include "vault/report.h"
#include "vault/turns.h"

/* One operation of the vault under way; the first member of each kind. */
struct work {
    struct list link;
    struct mover *mover;
    struct loop_task task;           /* its answer, from the loop */
    struct trace_context trace;      /* of whoever asked; it is answered as that */
    struct mover_turn turn;          /* until it is finished */
    void (*step)(struct work *work); /* what it does when it is its turn */
    struct report report;            /* of its job, if it has one */
    struct objects_call *call;       /* of the store, under way; NULL: none */
    int file;                        /* owned: what goes between the two; -EBADF */
    uint64_t put_size;               /* of what is put, and its sum, borrowed: work_put */
    const uint8_t *put_sum;
    struct vault_progress progress;
    vault_progressed *progressed; /* may be NULL */
    void *context;                /* of whoever asked */
    /* Let go of what it waits for beside job and store; may be NULL. */
    void (*cancel)(struct work *work);
    /* Answer and free it. */
    void (*finish)(struct work *work, const struct error *failure);
    bool is_flushing; /* work_flush waits for the provider: nothing else ends it */
    bool is_over;     /* the answer is on its way */
    bool failed;
    struct error failure;
};

struct mover {
    struct loop *loop;
    struct provider *provider;
    struct objects *objects;
    const struct inside *inside;
    char *spool; /* owned */
    struct log *log;
    struct vault vault;
    struct list works;  /* of work */
    struct turns turns; /* of those that need a keeper */
    size_t fetching;    /* disks that layers are streamed to */
    bool is_closing;
    void (*closed)(void *context);
    void *closed_context;
};

/* A work begins, all zeros but for what is the caller's. False: the mover is closing; the work will
 * be finished with ERR_UNAVAILABLE. `cancel` may be NULL. */
bool work_begin(struct work *work, struct mover *mover,
                void (*finish)(struct work *work, const struct error *failure),
                void (*cancel)(struct work *work));

/* work_begin, for what needs a keeper: `step` is taken when it is its turn, perhaps from inside the
 * call. */
void work_begin_in_turn(struct work *work, struct mover *mover, const struct vault_asker *asker,
                        void (*when_over)(struct work *work, const struct error *failure),
                        void (*cancel)(struct work *work), void (*step)(struct work *work));

/* It ends, with `failure` or NULL: finish is called from the loop. Only the first call counts. */
void work_end(struct work *work, const struct error *failure);

/* Run a keeper job of it, as report_run. */
void work_run(struct work *work, const struct provider_disk_job *job, report_line *on_line,
              report_done *on_done);

/* Whoever asked is told of its progress. */
void work_tell(struct work *work);

/* Put its file under `key`, then it ends: with a failure too when size or sum (borrowed until then)
 * are not what the keeper told. */
void work_put(struct work *work, const char *key, uint64_t size, const uint8_t *sum);

/* It ends when what an agent has written is on disk: agents answer before their kernel has written
 * anything. Only the first call counts. */
void work_flush(struct work *work);

/* Whether its next step may begin; otherwise it was ended. */
bool work_goes_on(struct work *work);

/* End it with a failure of one's own: work_fail(work, ERR_..., errno, "why"). */
void work_fail(struct work *work, enum err_code code, int system, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A nameless file in the spool folder: a descriptor, or -1. */
int mover_open_file(const struct mover *mover, struct error *err);

/* The same for a work: a descriptor, or the work is ended and -EBADF. */
int work_open_file(struct work *work);

/* The same in memory, with these bytes, positioned at its start. */
int work_open_bytes(struct work *work, const void *bytes, size_t length);

/* From its start again, for whoever reads it next. */
int work_rewind(struct work *work, int file);

/* SHA-256 from hex. -1: it is none. */
int sum_from_hex(const char *hex, uint8_t ret_sum[static VAULT_SUM_SIZE]);

/* The operations. */
void mover_archive(void *self, const struct vault_archive *what, vault_progressed *progressed,
                   vault_archive_done *done, void *context);
void mover_restore(void *self, const struct vault_restore *what, vault_progressed *progressed,
                   vault_done *done, void *context);
void mover_store_disk(void *self, const struct vault_asker *asker, const struct disk_ref *disk,
                      const struct disk_ref *base, vault_progressed *progressed,
                      vault_layer_done *done, void *context);
void mover_fetch_disk(void *self, const struct vault_fetch *what, vault_progressed *progressed,
                      vault_done *done, void *context);
void mover_sync(void *self, const struct vault_sync *what, vault_progressed *progressed,
                vault_sync_done *done, void *context);
void mover_restore_mirror(void *self, const struct vault_mirror *what, vault_progressed *progressed,
                          vault_mirror_done *done, void *context);
void mover_diff(void *self, const struct vault_asker *asker, const struct disk_ref *newer,
                const struct disk_ref *older, vault_line *line, vault_done *done, void *context);
void mover_measure(void *self, const struct vault_asker *asker, const struct disk_ref *disk,
                   vault_measure_done *done, void *context);
void mover_remove_prefix(void *self, const char *prefix, vault_done *done, void *context);
