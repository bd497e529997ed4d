/* What the domain asks of those who serve buckets as folders. An interface, because the domain
 * reads no descriptor; src/mount has the real one, tests have their own.
 *
 * Answers come exactly once, from the loop, never from inside the call. What a call is given is
 * copied. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/id.h"
#include "share/share.h"

/* A part of a bucket. All texts may be NULL where they say nothing. */
struct mounter_bucket {
    bool is_foreign;          /* behind an S3 API that somebody else named; otherwise one of ours */
    struct id owner;          /* of ours: each owner has buckets of its own */
    struct share_asker asker; /* for serve: in whose name space and files are claimed */
    const char *bucket;       /* its name */
    const char *prefix;       /* of the keys: "" or "a/b/", no slash at the front */
    bool read_only;

    /* Foreign ones. */
    const char *endpoint; /* "https://host[:port]" */
    const char *region;
    bool is_virtual_host; /* the bucket is part of the host's name */
    const char *access_key, *secret_key, *session_token;
};

struct mounter_session;

typedef void mounter_done(void *context, const struct error *failure);
typedef void mounter_bucket_seen(void *context, const struct id *owner, const char *name,
                                 uint64_t bytes);

struct mounter {
    void *self;

    /* Whether it is there and may be used, and its address is one that may be talked to. */
    void (*check)(void *self, const struct mounter_bucket *bucket, mounter_done *done,
                  void *context);

    /* Serve it on a descriptor of /dev/fuse, which is taken, also on failure (NULL). */
    struct mounter_session *(*serve)(void *self, const struct mounter_bucket *bucket, int fuse,
                                     struct error *err);

    /* Write back what waits, within a bounded time, then end it. Processes that still use it get
     * errors. The failure tells what could not be written back. */
    void (*end)(void *self, struct mounter_session *session, mounter_done *done, void *context);

    /* Buckets of ours that have something in them, as far as they were counted. `owner` may be
     * nobody's id any more, or never have been one. May be NULL, as the next one. */
    void (*each_bucket)(void *self, mounter_bucket_seen *seen, void *context);

    /* All that an owner has in buckets goes; nobody may have it mounted. */
    void (*remove_buckets)(void *self, const struct id *owner, mounter_done *done, void *context);
};
