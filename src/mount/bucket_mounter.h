/* The mounter of the domain (domain/mounter.h): buckets of ours, and of others behind the S3 API,
 * served by sessions (mount_session.h).
 *
 * A bucket of ours is a part of one store for all: its keys begin with "<owner>/<bucket>/". One of
 * somebody else's has a handle of its own for the time it is mounted, whose endpoint must be an
 * address that `rules` allow. All of the loop's thread. */
#pragma once

#include "domain/mounter.h"
#include "mount/mount_session.h"
#include "net/address_rules.h"
#include "objects/objects.h"

/* Write back within this time when a mount ends. */
#define BUCKET_MOUNTER_PATIENCE_MS 10000

struct bucket_mounter;

struct bucket_mounter_options {
    struct loop *loop;                 /* all of these are borrowed */
    struct mount_host *host;           /* NULL: nothing can be served */
    struct objects *buckets;           /* the store of ours; NULL: there is none */
    struct shares *shares;             /* may be NULL: nothing is counted */
    const struct address_rules *rules; /* for endpoints that strangers name; NULL: public ones */
    struct log *log;                   /* may be NULL */
};

struct bucket_mounter *bucket_mounter_new(const struct bucket_mounter_options *options);

/* Write back what waits and end all sessions, then call `done`; new ones are refused. Those who
 * began them still let go of them. May answer from inside. */
void bucket_mounter_stop(struct bucket_mounter *mounter, void (*done)(void *context),
                         void *context);

/* Once it was stopped and nobody asks anything of it any more. Accepts NULL. */
void bucket_mounter_free(struct bucket_mounter *mounter);

/* Borrowed, as long as the mounter lives. */
const struct mounter *bucket_mounter_interface(const struct bucket_mounter *mounter);
