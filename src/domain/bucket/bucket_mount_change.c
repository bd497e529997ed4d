/* Mounts that somebody asks for, and those of a sandbox that starts or ends. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "base/path.h"
#include "domain/bucket/bucket_mount_internal.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_use.h"

/* --- add ------------------------------------------------------------------------------------- */

struct adding {
    struct domain_task task;
    struct domain *domain;
    struct caller caller;
    struct sandbox *sandbox; /* a reference */
    struct sandbox_use use;
    struct bucket_mount *mount; /* NULL: not there yet, or gone again */
    bucket_mount_done *done;
    void *context;
    struct error failure;
};

static void added(struct adding *adding, const struct error *failure)
{
    struct domain *domain = adding->domain;

    adding->done(adding->context, failure, failure ? NULL : adding->mount);
    sandbox_use_end(&adding->use);
    sandbox_unref(adding->sandbox);
    free(adding);
    domain->works--;
    domain_check_gone(domain);
}

static void mount_change_refuse(struct domain_task *task)
{
    struct adding *adding = CONTAINER_OF(task, struct adding, task);

    added(adding, &adding->failure);
}

/* It was there when it was asked for; meanwhile somebody may have taken it away. */
static void answer_same(struct domain_task *task)
{
    struct adding *adding = CONTAINER_OF(task, struct adding, task);
    struct bucket_mount *wanted = TAKE_PTR(adding->mount);

    adding->mount = bucket_mount_find(adding->domain, &wanted->sandbox, wanted->place);
    if (!adding->mount)
        (void) error_set(&adding->failure, ERR_CONFLICT, 0, "%s was unmounted meanwhile: try again",
                         wanted->place);
    bucket_mount_free(wanted);
    added(adding, adding->mount ? NULL : &adding->failure);
}

/* It has no row yet: nobody else knows it. */
static void mount_change_give_up(struct adding *adding, const struct error *failure)
{
    struct bucket_mount *mount = TAKE_PTR(adding->mount);

    if (mount->session)
        bucket_mount_take_down(adding->domain, mount, false, NULL, NULL);
    bucket_mount_free(mount);
    added(adding, failure);
}

static void mount_change_on_told(void *context, const struct error *failure,
                                 const struct store_receipt *receipt)
{
    if (!failure)
        event_kept(context, receipt);
}

/* Its row may have come behind the end of the sandbox, and then nobody else takes it away. */
static void give_up_destroyed(struct adding *adding)
{
    struct domain *domain = adding->domain;
    struct store_transaction *change = store_begin(domain->options.store);
    struct error err = ERROR_INIT;

    bucket_mount_delete_row(change, adding->mount);
    domain_commit(domain, change, mount_change_on_told, domain);
    (void) error_set(&err, ERR_NOT_FOUND, 0, "the sandbox was destroyed");
    mount_change_give_up(adding, &err);
}

static void mount_change_on_kept(void *context, const struct error *failure,
                                 const struct store_receipt *receipt)
{
    struct adding *adding = context;

    if (failure) {
        mount_change_give_up(adding, failure);
        return;
    }
    event_kept(adding->domain, receipt);
    if (adding->mount->is_removed) {
        give_up_destroyed(adding);
        return;
    }
    adding->mount->is_kept = true;
    adding->mount->state = BUCKET_MOUNT_THERE;
    CRASH_POINT("mount.add.kept");
    added(adding, NULL);
}

static void on_brought(void *context, const struct error *failure, struct bucket_mount *mount)
{
    struct adding *adding = context;
    struct store_transaction *change;

    if (mount->is_removed) {
        adding->mount = NULL; /* freed by who brought it */
        added(adding, failure);
        return;
    }
    if (failure) {
        mount_change_give_up(adding, failure);
        return;
    }
    mount->state = BUCKET_MOUNT_OPENING; /* until it has its row it is ours to end */
    change = store_begin(adding->domain->options.store);
    bucket_mount_add_row(change, mount);
    bucket_mount_add_event(adding->domain, change, &adding->caller, mount, "mount.added");
    domain_commit(adding->domain, change, mount_change_on_kept, adding);
}

static void on_checked(void *context, const struct error *failure)
{
    struct adding *adding = context;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(adding->domain, &err))
        failure = &err;
    if (adding->mount->is_removed) {
        (void) error_set(&err, ERR_NOT_FOUND, 0, "the sandbox was destroyed");
        bucket_mount_free(TAKE_PTR(adding->mount));
        added(adding, &err);
    } else if (failure) {
        mount_change_give_up(adding, failure);
    } else {
        bucket_mount_bring(adding->domain, adding->mount, on_brought, adding);
    }
}

static void on_awake(struct sandbox_use *use, const struct error *failure)
{
    struct adding *adding = CONTAINER_OF(use, struct adding, use);
    const struct mounter *mounter = adding->domain->options.mounter;

    if (failure)
        mount_change_give_up(adding, failure);
    else
        mounter->check(mounter->self, &adding->mount->bucket, on_checked, adding);
}

static bool texts_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_bucket(const struct mounter_bucket *a, const struct mounter_bucket *b)
{
    return a->is_foreign == b->is_foreign && a->read_only == b->read_only &&
           a->is_virtual_host == b->is_virtual_host && texts_equal(a->bucket, b->bucket) &&
           texts_equal(a->prefix, b->prefix) && texts_equal(a->endpoint, b->endpoint) &&
           texts_equal(a->region, b->region) && texts_equal(a->access_key, b->access_key) &&
           texts_equal(a->secret_key, b->secret_key) &&
           texts_equal(a->session_token, b->session_token);
}

/* The others of its sandbox: not too many, and none in the way. `*ret_same`: the same is there. */
static int check_others(struct domain *domain, const struct bucket_mount *mount, bool *ret_same,
                        struct error *err)
{
    size_t count = 0;

    *ret_same = false;
    LIST_EACH (&domain->bucket_mounts->all, at) {
        const struct bucket_mount *other = CONTAINER_OF(at, struct bucket_mount, link);

        if (other == mount || other->is_removed || !id_equal(&other->sandbox, &mount->sandbox))
            continue;
        count++;
        if (strcmp(other->place, mount->place) == 0 && other->state == BUCKET_MOUNT_THERE &&
            is_same_bucket(&other->bucket, &mount->bucket))
            *ret_same = true;
        else if (path_is_inside(other->place, mount->place) ||
                 path_is_inside(mount->place, other->place))
            return error_set(err, ERR_CONFLICT, 0, "a bucket is mounted at %s already: unmount it",
                             other->place);
    }
    if (count >= BUCKET_MOUNTS_PER_SANDBOX && !*ret_same)
        return error_set(err, ERR_QUOTA, 0, "a sandbox has at most %d mounts",
                         BUCKET_MOUNTS_PER_SANDBOX);
    return 0;
}

static int mount_change_check(struct domain *domain, const struct caller *caller,
                              const struct bucket_mount_spec *spec, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    /* A bucket is its owner's, for all sandboxes: a key for one of them reaches no further. */
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "buckets belong to all sandboxes of their owner: mounting one needs a key "
                         "with the scope 'write'");
    if (!domain->options.mounter || !domain->options.provider ||
        !(provider_capabilities(domain->options.provider) & PROVIDER_MOUNTS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0,
                         "buckets cannot be mounted here: `burrow doctor` says why");
    return bucket_mount_check(spec, err);
}

void bucket_mount_add(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                      const struct bucket_mount_spec *spec, bucket_mount_done *done, void *context)
{
    struct adding *adding = mem_alloc(sizeof(*adding));
    struct bucket_mount *mount;
    bool is_same;

    *adding = (struct adding){.domain = domain,
                              .caller = *caller,
                              .sandbox = sandbox_ref(sandbox),
                              .done = done,
                              .context = context};
    domain->works++;
    if (mount_change_check(domain, caller, spec, &adding->failure) < 0) {
        domain_defer(domain, &adding->task, mount_change_refuse);
        return;
    }
    mount = bucket_mount_new(domain, sandbox, spec);
    if (check_others(domain, mount, &is_same, &adding->failure) < 0) {
        bucket_mount_free(mount);
        domain_defer(domain, &adding->task, mount_change_refuse);
        return;
    }
    adding->mount = mount;
    if (is_same) {
        mount->is_removed = true; /* only to look for the other with */
        domain_defer(domain, &adding->task, answer_same);
        return;
    }
    mount->state = BUCKET_MOUNT_OPENING;
    sandbox_use_begin(domain, sandbox, &adding->use, SANDBOX_USE_START, on_awake);
}

/* --- remove ---------------------------------------------------------------------------------- */

struct removing {
    struct domain_task task;
    struct domain *domain;
    struct caller caller;
    struct sandbox *sandbox;    /* a reference */
    struct bucket_mount *mount; /* NULL: refused */
    bucket_mount_done *done;
    void *context;
    struct error failure;
};

static void mount_change_removed(struct removing *removing)
{
    struct domain *domain = removing->domain;

    removing->done(removing->context, removing->failure.code ? &removing->failure : NULL, NULL);
    sandbox_unref(removing->sandbox);
    free(removing);
    domain->works--;
    domain_check_gone(domain);
}

static void refuse_removing(struct domain_task *task)
{
    mount_change_removed(CONTAINER_OF(task, struct removing, task));
}

static void on_taken_down(void *context, const struct error *failure)
{
    struct removing *removing = context;

    if (failure) {
        removing->failure = *failure;
        (void) error_wrap(&removing->failure, "unmounted, but not everything was written back");
    }
    bucket_mount_free(removing->mount);
    mount_change_removed(removing);
}

static void on_row_gone(void *context, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct removing *removing = context;

    if (failure) {
        removing->mount->is_removed = false;
        removing->failure = *failure;
        mount_change_removed(removing);
        return;
    }
    event_kept(removing->domain, receipt);
    bucket_mount_take_down(removing->domain, removing->mount, false, on_taken_down, removing);
}

static struct bucket_mount *find_to_remove(struct domain *domain, const struct caller *caller,
                                           const struct sandbox *sandbox, const char *place,
                                           struct error *err)
{
    struct bucket_mount *mount = bucket_mount_find(domain, &sandbox->id, place);

    if (!domain_is_open(domain, err))
        return NULL;
    if (!caller_may_enter(caller)) {
        (void) error_set(err, ERR_FORBIDDEN, 0, "this key may not unmount buckets");
        return NULL;
    }
    if (!mount || !mount->is_kept) {
        (void) error_set(err, ERR_NOT_FOUND, 0, "nothing is mounted at %.256s", place);
        return NULL;
    }
    if (mount->state == BUCKET_MOUNT_OPENING) {
        (void) error_set(err, ERR_CONFLICT, 0, "%s is being mounted: try again", mount->place);
        return NULL;
    }
    return mount;
}

void bucket_mount_remove(struct domain *domain, const struct caller *caller,
                         struct sandbox *sandbox, const char *place, bucket_mount_done *done,
                         void *context)
{
    struct removing *removing = mem_alloc(sizeof(*removing));
    struct store_transaction *change;

    *removing = (struct removing){.domain = domain,
                                  .caller = *caller,
                                  .sandbox = sandbox_ref(sandbox),
                                  .done = done,
                                  .context = context};
    domain->works++;
    removing->mount = find_to_remove(domain, caller, sandbox, place, &removing->failure);
    if (!removing->mount) {
        domain_defer(domain, &removing->task, refuse_removing);
        return;
    }
    removing->mount->is_removed = true; /* for everybody else */
    change = store_begin(domain->options.store);
    bucket_mount_delete_row(change, removing->mount);
    bucket_mount_add_event(domain, change, caller, removing->mount, "mount.removed");
    domain_commit(domain, change, on_row_gone, removing);
}

/* --- all of a sandbox ------------------------------------------------------------------------- */

/* Counts down; begun with one for itself. */
struct many {
    struct domain *domain;
    struct sandbox *sandbox; /* a reference */
    size_t left;
    bucket_mounts_done *done;
    void *context;
};

static struct many *many_new(struct domain *domain, struct sandbox *sandbox,
                             bucket_mounts_done *done, void *context)
{
    struct many *many = mem_alloc(sizeof(*many));

    *many = (struct many){.domain = domain,
                          .sandbox = sandbox_ref(sandbox),
                          .left = 1,
                          .done = done,
                          .context = context};
    domain->works++;
    return many;
}

static void one_done(struct many *many)
{
    struct domain *domain = many->domain;

    if (--many->left)
        return;
    if (many->done)
        many->done(many->context);
    sandbox_unref(many->sandbox);
    free(many);
    domain->works--;
    domain_check_gone(domain);
}

static bool is_of(const struct bucket_mount *mount, const struct sandbox *sandbox)
{
    return mount->is_kept && !mount->is_removed && id_equal(&mount->sandbox, &sandbox->id);
}

static bool has_any(const struct domain *domain, const struct sandbox *sandbox)
{
    LIST_EACH (&domain->bucket_mounts->all, at)
        if (is_of(CONTAINER_OF(at, struct bucket_mount, link), sandbox))
            return true;
    return false;
}

static void on_one_brought(void *context, const struct error *failure, struct bucket_mount *mount)
{
    struct many *many = context;
    struct domain *domain = many->domain;
    struct caller caller = caller_system();
    struct store_transaction *change;

    if (failure && !mount->is_removed && domain->stage == DOMAIN_OPEN) {
        LOG_WARNING(domain->options.log, "a mount could not be brought back",
                    log_text("sandbox", mount->sandbox.text), log_text("path", mount->place),
                    log_text("error", failure->message));
        change = store_begin(domain->options.store);
        bucket_mount_add_event(domain, change, &caller, mount, "mount.failed");
        domain_commit(domain, change, mount_change_on_told, domain);
    }
    one_done(many);
}

void bucket_mounts_restore(struct domain *domain, struct sandbox *sandbox, bool is_new,
                           bucket_mounts_done *done, void *context)
{
    struct many *many;

    if (!has_any(domain, sandbox) || !domain->options.mounter) {
        if (done)
            done(context);
        return;
    }
    many = many_new(domain, sandbox, done, context);
    LIST_EACH (&domain->bucket_mounts->all, at) {
        struct bucket_mount *mount = CONTAINER_OF(at, struct bucket_mount, link);

        if (!is_of(mount, sandbox) || mount->state == BUCKET_MOUNT_OPENING ||
            (mount->state == BUCKET_MOUNT_THERE && !is_new))
            continue;
        if (mount->session) /* of processes that are gone */
            bucket_mount_take_down(domain, mount, true, NULL, NULL);
        many->left++;
        bucket_mount_bring(domain, mount, on_one_brought, many);
    }
    one_done(many);
}

static void on_one_down(void *context, const struct error *failure)
{
    (void) failure; /* told in the log */
    one_done(context);
}

void bucket_mounts_release(struct domain *domain, struct sandbox *sandbox, bucket_mounts_done *done,
                           void *context)
{
    struct many *many;

    if (!has_any(domain, sandbox) || !domain->options.mounter) {
        done(context);
        return;
    }
    many = many_new(domain, sandbox, done, context);
    LIST_EACH (&domain->bucket_mounts->all, at) {
        struct bucket_mount *mount = CONTAINER_OF(at, struct bucket_mount, link);

        if (!is_of(mount, sandbox) || !mount->session || mount->state != BUCKET_MOUNT_THERE)
            continue;
        many->left++;
        bucket_mount_take_down(domain, mount, false, on_one_down, many);
    }
    one_done(many);
}
