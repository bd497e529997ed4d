/* Bucket mounts: a part of a bucket seen as a folder in a sandbox.
 *
 *     check the bucket ──► provider_open_mount ──► serve ──► provider_attach_mount ──► row, event
 *
 * Kept in the store, with the sandbox: mounted again when it is started, woken from its disk, or
 * when the daemon was gone meanwhile; gone with the sandbox. Credentials are sealed in the store
 * and never enter the sandbox: its files are served from outside.
 *
 * A mount that cannot be brought back does not keep its sandbox from waking: it is shown with its
 * error, told as an event, and tried again at the next wake. In memory; one thread. */
#pragma once

#include "base/list.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/mounter.h"
#include "domain/sandbox/sandbox.h"

#define BUCKET_PLACE_MAX          1024
#define BUCKET_NAME_MAX           255
#define BUCKET_PREFIX_MAX         512
#define BUCKET_TEXT_MAX           1024 /* of endpoint, region, keys */
#define BUCKET_MOUNTS_PER_SANDBOX 16

enum bucket_mount_state {
    BUCKET_MOUNT_AWAY,    /* its sandbox does not run, or it was not brought back yet */
    BUCKET_MOUNT_OPENING, /* under way */
    BUCKET_MOUNT_THERE,
    BUCKET_MOUNT_FAILED, /* `failure` says why */
};

struct bucket_mount {
    struct list link; /* of bucket_mounts */
    struct id sandbox;
    char *place;                  /* owned: absolute, plain */
    struct mounter_bucket bucket; /* texts are owned */
    int64_t created_ms;
    enum bucket_mount_state state;
    struct error failure;

    /* The domain's own. */
    uint32_t number;                 /* the provider's, while it is there */
    struct mounter_session *session; /* likewise */
    bool is_kept;                    /* it has a row */
    bool is_removed;                 /* somebody took it away while it was under way */
};

/* `place` and `bucket` as in the struct above; all borrowed for the call. */
struct bucket_mount_spec {
    const char *place;
    struct mounter_bucket bucket;
};

/* "there", "away", ... Static. */
const char *bucket_mount_state_text(enum bucket_mount_state state);

typedef void bucket_mount_done(void *context, const struct error *failure,
                               const struct bucket_mount *mount);

/* Needs the scope write, for a bucket is shared by all sandboxes of its owner. The sandbox is woken. Mounting the same bucket at the same place again succeeds; another one
 * there is ERR_CONFLICT. ERR_INVALID: the place or a name; ERR_NOT_IMPLEMENTED: no mounts here;
 * what mounter.check and the provider say. */
void bucket_mount_add(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                      const struct bucket_mount_spec *spec, bucket_mount_done *done, void *context);

/* What waits is written back first; a failure of that is told, and the mount is gone all the same.
 * ERR_NOT_FOUND. `mount` of the answer is NULL. */
void bucket_mount_remove(struct domain *domain, const struct caller *caller,
                         struct sandbox *sandbox, const char *place, bucket_mount_done *done,
                         void *context);

void bucket_mount_each(const struct domain *domain, const struct id *sandbox,
                       void (*each)(void *context, const struct bucket_mount *mount),
                       void *context);
