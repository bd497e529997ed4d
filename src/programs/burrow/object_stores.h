/* The stores of objects that the daemon uses, as its settings say: folders of the data folder, or
 * buckets behind the S3 API.
 *
 *     objects    what the daemon keeps: layers/, backups/, workspaces/
 *     buckets    what users keep and mount: <owner>/<bucket>/...
 *
 * A store that does not answer is no reason not to start: sandboxes do without. It is asked again
 * until it answers, and `problem` says what is wrong until then. */
#pragma once

#include <uv.h>

#include "base/error.h"
#include "base/log.h"
#include "net/loop.h"
#include "objects/objects.h"
#include "programs/burrow/settings.h"

/* The secret key of the S3 store, when it is in no file. No setting: those can be arguments. */
#define OBJECT_STORES_SECRET "BURROW_S3_SECRET_KEY"

struct object_stores {
    struct objects *objects; /* owned */
    struct objects *buckets; /* owned */
    const char *problem;     /* NULL: none. Borrowed */

    struct log *log; /* borrowed */
    struct error failure;
    uv_timer_t again;
    unsigned int open_parts; /* to be closed */
    unsigned int unchecked;  /* stores that have not answered this time */
    bool has_failed;         /* one of them, this time */
    bool is_closing;
    void (*closed)(void *context);
    void *context;
};

/* Open both and ask them how they are. Returns 0, or -1: a folder that cannot be made, settings
 * that cannot be; object_stores_close cleans up then, too. */
int object_stores_open(struct object_stores *stores, struct loop *loop, struct log *log,
                       const struct settings *settings, struct error *err);

/* `closed` (may be NULL) is called later from the loop, when both are gone; at once when nothing
 * was ever opened. */
void object_stores_close(struct object_stores *stores, void (*closed)(void *context),
                         void *context);
