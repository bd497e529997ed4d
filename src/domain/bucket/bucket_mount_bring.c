/* One mount, up and down:
 *
 *     bring:      open ──► serve ──► attach
 *     take down:  end the session, which writes back ──► detach */
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/bucket/bucket_mount_internal.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"

/* --- down ------------------------------------------------------------------------------------ */

struct lowering {
    struct domain *domain;
    struct id sandbox;
    uint32_t number;
    bool is_gone;
    mounter_done *done;
    void *context;
    bool has_failed;
    struct error failure; /* of writing back */
};

static void lowered(struct lowering *lowering)
{
    struct domain *domain = lowering->domain;

    if (lowering->done)
        lowering->done(lowering->context, lowering->has_failed ? &lowering->failure : NULL);
    free(lowering);
    domain->works--;
    domain_check_gone(domain);
}

static void on_detached(void *context, const struct error *failure)
{
    struct lowering *lowering = context;

    if (failure && failure->code != ERR_NOT_FOUND)
        LOG_WARNING(lowering->domain->options.log, "a mount was not taken away",
                    log_text("sandbox", lowering->sandbox.text),
                    log_text("error", failure->message));
    lowered(lowering);
}

static void on_ended(void *context, const struct error *failure)
{
    struct lowering *lowering = context;
    struct domain *domain = lowering->domain;

    if (failure) {
        LOG_WARNING(domain->options.log, "a mount ended with unwritten changes",
                    log_text("sandbox", lowering->sandbox.text),
                    log_text("error", failure->message));
        lowering->has_failed = true;
        lowering->failure = *failure;
    }
    if (lowering->is_gone || domain->stage != DOMAIN_OPEN)
        lowered(lowering);
    else
        provider_detach_mount(domain->options.provider, &lowering->sandbox, lowering->number,
                              on_detached, lowering);
}

void bucket_mount_take_down(struct domain *domain, struct bucket_mount *mount, bool is_gone,
                            mounter_done *done, void *context)
{
    const struct mounter *mounter = domain->options.mounter;
    struct lowering *lowering = mem_alloc(sizeof(*lowering));
    struct mounter_session *session = TAKE_PTR(mount->session);

    *lowering = (struct lowering){.domain = domain,
                                  .sandbox = mount->sandbox,
                                  .number = mount->number,
                                  .is_gone = is_gone || !session,
                                  .done = done,
                                  .context = context};
    domain->works++;
    mount->state = BUCKET_MOUNT_AWAY;
    if (session)
        mounter->end(mounter->self, session, on_ended, lowering);
    else
        lowered(lowering);
}

/* Opened, and served by nobody. */
static void detach_unserved(struct domain *domain, const struct bucket_mount *mount)
{
    struct lowering *lowering = mem_alloc(sizeof(*lowering));

    *lowering =
        (struct lowering){.domain = domain, .sandbox = mount->sandbox, .number = mount->number};
    domain->works++;
    provider_detach_mount(domain->options.provider, &lowering->sandbox, lowering->number,
                          on_detached, lowering);
}

/* --- up -------------------------------------------------------------------------------------- */

struct bringing {
    struct domain *domain;
    struct bucket_mount *mount;
    bucket_mount_brought *done;
    void *context;
};

static void brought(struct bringing *bringing, const struct error *failure)
{
    struct domain *domain = bringing->domain;
    struct bucket_mount *mount = bringing->mount;
    struct error err = ERROR_INIT;
    bool is_removed = mount->is_removed;

    if (is_removed) {
        (void) error_set(&err, ERR_CANCELLED, 0, "the mount was taken away meanwhile");
        failure = &err;
    }
    if (failure && mount->session)
        bucket_mount_take_down(domain, mount, false, NULL, NULL);
    mount->state = failure ? BUCKET_MOUNT_FAILED : BUCKET_MOUNT_THERE;
    if (failure)
        mount->failure = *failure;
    bringing->done(bringing->context, failure, mount);
    if (is_removed)
        bucket_mount_free(mount);
    free(bringing);
    domain->works--;
    domain_check_gone(domain);
}

static void on_attached(void *context, const struct error *failure)
{
    CRASH_POINT("mount.bring.attached");
    brought(context, failure);
}

static void on_opened(void *context, const struct error *failure, uint32_t number, int fuse)
{
    struct bringing *bringing = context;
    struct domain *domain = bringing->domain;
    struct bucket_mount *mount = bringing->mount;
    const struct mounter *mounter = domain->options.mounter;
    struct error err = ERROR_INIT;

    if (failure) {
        brought(bringing, failure);
        return;
    }
    mount->number = number;
    mount->bucket.asker = domain_asker_of(domain, &mount->bucket.owner);
    mount->session = mounter->serve(mounter->self, &mount->bucket, fuse, &err);
    if (!mount->session) {
        detach_unserved(domain, mount);
        brought(bringing, &err);
        return;
    }
    if (mount->is_removed || !domain_is_open(domain, &err)) {
        brought(bringing, &err);
        return;
    }
    provider_attach_mount(domain->options.provider, &mount->sandbox, number, on_attached, bringing);
}

void bucket_mount_bring(struct domain *domain, struct bucket_mount *mount,
                        bucket_mount_brought *done, void *context)
{
    struct bringing *bringing = mem_alloc(sizeof(*bringing));

    *bringing =
        (struct bringing){.domain = domain, .mount = mount, .done = done, .context = context};
    domain->works++;
    mount->state = BUCKET_MOUNT_OPENING;
    provider_open_mount(domain->options.provider, &mount->sandbox, mount->place,
                        mount->bucket.read_only, on_opened, bringing);
}
