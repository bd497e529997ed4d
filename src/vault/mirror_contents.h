/* Contents of files from a disk into objects: one `read` job, whose frames
 * (keeper/tree/tree_read.h) become puts, several at once.
 *
 *     contents_run(&contents, mover, &job, &source);
 *     -> source.next(context, ...)     which file comes next
 *     -> source.done(context, failure) once, when all are put, or when nothing moves any more
 *
 * Small files go through memory, larger ones through a file of the spool folder, written by
 * libuv's threads so that the loop never waits for a disk. Reading stops while PUTS_MAX are under
 * way. One thread. */
#pragma once

#include "vault/mover_internal.h"

#define CONTENTS_PUTS_MAX  16
#define CONTENTS_SMALL_MAX ((uint64_t) 1 << 20)
#define CONTENTS_CHUNK     ((size_t) 128 << 10)

struct contents_file {
    char key[OBJECTS_KEY_MAX + 1];
    uint64_t size;
    uint8_t sum[VAULT_SUM_SIZE];
};

struct contents_source {
    void *context;
    /* The file whose frame is next. False: there is none. */
    bool (*next)(void *context, struct contents_file *ret_file);
    /* One more was put. */
    void (*put)(void *context, uint64_t bytes);
    /* The contents may be used again or freed. */
    void (*done)(void *context, const struct error *failure);
};

struct contents;

struct contents_put {
    struct contents *contents;
    struct objects_call *call; /* NULL: free */
    uint64_t size;
    uint8_t sum[VAULT_SUM_SIZE];
};

struct contents {
    struct mover *mover;
    struct contents_source source;
    struct report report;
    bool is_reported; /* the job is over */

    uv_poll_t poll;
    int data; /* owned: the end we read */
    bool is_closed;

    struct contents_file file; /* whose frame is being read */
    bool has_file;
    uint8_t header[8];
    size_t header_length;
    uint64_t got;  /* bytes of its content */
    char *buffer;  /* owned: CONTENTS_SMALL_MAX bytes */
    int spool;     /* owned: a larger one's bytes */
    uv_fs_t write; /* of a chunk into it */
    bool is_writing;
    size_t chunk, written;

    struct contents_put puts[CONTENTS_PUTS_MAX];
    size_t put_count;
    bool failed;
    struct error failure;
};

/* Read with `job` (kind READ, its input filled) and put everything. */
void contents_run(struct contents *contents, struct mover *mover,
                  const struct provider_disk_job *job, const struct contents_source *source);

/* End soon, with ERR_CANCELLED. */
void contents_cancel(struct contents *contents);
