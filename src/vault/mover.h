/* The mover: the vault (domain/vault.h) that really moves bytes, between keeper jobs, objects and
 * agents.
 *
 *     archive         disk ─ARCHIVE─► file ─► object
 *     restore         object ─► file ─UNARCHIVE─► tar ─► agent, then its disk is flushed
 *     store_disk      disk ─PACK─► file ─► object "layers/<owner>/<id>", unless it is there
 *     fetch_disk      [snapshot ─COPY─► disk,] all objects, one behind the other ─UNPACK─► disk
 *     sync            disk ─SCAN─► list, against the last list; ─READ─► objects; list ─► object
 *     restore_mirror  list, objects ─► tar ─► agent, then its disk is flushed
 *
 * The files between the steps are nameless ones in the folder `spool`, gone with their descriptor;
 * they are why a slow store holds no keeper, and a waiting keeper no thread of the store. Only disks
 * that come back go without: somebody waits for them. So few of them do so at once
 * (MOVER_FETCHES_MAX) that the store has a thread for each and keepers are left for the rest.
 * Memory is bounded whatever is moved; lists of files (MOVER_LIST_MAX) are held in memory.
 *
 * What needs a keeper is done in turns (turns.h), so that whoever asks for much waits for himself;
 * an operation has its turn until it ends. More than the turns the launcher has never to do for us.
 *
 * What a keeper tells is a stranger's word (it reads strangers' trees): lines have a limit, counts
 * are only counts, and sums are checked against what the store was given.
 *
 * Only the loop's thread. */
#pragma once

#include "base/log.h"
#include "domain/inside.h"
#include "domain/vault.h"
#include "net/loop.h"
#include "objects/objects.h"
#include "provider/provider.h"

/* The longest list of a mirror's files, as text; some 200 bytes a file. */
#define MOVER_LIST_MAX ((size_t) 64 << 20)

/* A line of a report. */
#define MOVER_LINE_MAX ((size_t) 256 << 10)

/* Disks that come back at once; others wait for their turn. Less than there are keepers
 * (SERVICE_KEEPER_MAX in the launcher) and threads for streams (OBJECTS_THREADS): else those whose
 * keeper waits could hold all threads, and those that have a keeper wait for a thread. */
#define MOVER_FETCHES_MAX 6

/* Layers of one disk. */
#define MOVER_LAYERS_MAX 1024

struct mover;

struct mover_options { /* all borrowed; outlive the mover */
    struct loop *loop;
    struct provider *provider;
    struct objects *objects;
    const struct inside *inside;
    struct shares *shares; /* may be NULL */
    const char *spool;     /* a folder for files between steps; copied */
    struct log *log;       /* may be NULL */
};

struct mover *mover_new(const struct mover_options *options);

/* What the domain is given. Borrowed from the mover. */
const struct vault *mover_vault(struct mover *mover);

/* Stop: what is under way is answered with ERR_CANCELLED or ERR_UNAVAILABLE, what comes later with
 * ERR_UNAVAILABLE; `done` follows when nothing is open any more, perhaps from inside the call.
 * Before provider and objects are closed. */
void mover_close(struct mover *mover, void (*done)(void *context), void *context);

/* After it was closed, or when nothing was ever asked of it. Accepts NULL. */
void mover_free(struct mover *mover);
