/* For tests of dialects: mounts and backups of a domain that only writes down what it was asked
 * for. Included by test programs only. */
#pragma once

#include <stdio.h>

#include "domain/backup/backup.h"
#include "domain/bucket/bucket_mount.h"

#define STORED_ID "8f14e45f-ceea-467f-a8f3-0123456789ab"

static struct {
    char asked[512];       /* the last call, as a line */
    enum err_code failure; /* of the next ones; ERR_NONE: they succeed */
} stored;

static inline const struct error *stored_failure(struct error *err)
{
    if (stored.failure == ERR_NONE)
        return NULL;
    (void) error_set(err, stored.failure, 0, "as the test wanted it");
    return err;
}

static inline const char *stored_text(const char *text)
{
    return text ? text : "-";
}

void bucket_mount_add(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                      const struct bucket_mount_spec *spec, bucket_mount_done *done, void *context)
{
    struct bucket_mount mount = {.bucket = spec->bucket, .place = (char *) spec->place};
    const struct error *failure;
    struct error err;

    (void) domain, (void) caller, (void) sandbox;
    (void) snprintf(stored.asked, sizeof(stored.asked), "mount %s %s %s %s%s %s %s %s", spec->place,
                    stored_text(spec->bucket.bucket), stored_text(spec->bucket.prefix),
                    spec->bucket.is_foreign ? "foreign" : "ours",
                    spec->bucket.read_only ? " read-only" : "", stored_text(spec->bucket.endpoint),
                    stored_text(spec->bucket.region), stored_text(spec->bucket.secret_key));
    failure = stored_failure(&err);
    done(context, failure, failure ? NULL : &mount);
}

void bucket_mount_remove(struct domain *domain, const struct caller *caller,
                         struct sandbox *sandbox, const char *place, bucket_mount_done *done,
                         void *context)
{
    struct error err;

    (void) domain, (void) caller, (void) sandbox;
    (void) snprintf(stored.asked, sizeof(stored.asked), "unmount %s", place);
    done(context, stored_failure(&err), NULL);
}

static inline void stored_answer(const char *dir, backup_done *done, void *context)
{
    struct backup backup = {.id = STORED_ID, .dir = dir};
    const struct error *failure;
    struct error err;

    failure = stored_failure(&err);
    done(context, failure, failure ? NULL : &backup);
}

void backup_make(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                 const struct backup_spec *spec, backup_done *done, void *context)
{
    (void) domain, (void) caller, (void) sandbox;
    (void) snprintf(stored.asked, sizeof(stored.asked), "backup %s %s %lld%s %zu %s",
                    stored_text(spec->dir), stored_text(spec->name), (long long) spec->ttl,
                    spec->gitignore ? " gitignore" : "", spec->exclude_count,
                    stored_text(spec->compression));
    stored_answer(spec->dir ? spec->dir : "/workspace", done, context);
}

void backup_restore(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    const char *id, const char *dir, backup_done *done, void *context)
{
    (void) domain, (void) caller, (void) sandbox;
    (void) snprintf(stored.asked, sizeof(stored.asked), "restore %s %s", id, stored_text(dir));
    stored_answer(dir ? dir : "/workspace", done, context);
}
