/* Operations of one job, or of the store alone: diff, measure, remove_prefix. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "vault/mover_internal.h"

/* --- diff ------------------------------------------------------------------------------------ */

struct diff {
    struct work work;
    struct provider_disk_job job;
    vault_line *line;
    vault_done *done;
};

static void diff_finished(struct work *work, const struct error *failure)
{
    struct diff *diff = CONTAINER_OF(work, struct diff, work);

    diff->done(diff->work.context, failure);
    free(diff);
}

static void diff_line(void *context, const char *line, size_t length)
{
    struct diff *diff = context;

    diff->line(diff->work.context, line, length);
}

static void diff_done(void *context, const struct error *failure, const char *outcome,
                      size_t length)
{
    struct diff *diff = context;

    (void) outcome, (void) length;
    work_end(&diff->work, failure);
}

static void diff_run(struct work *work)
{
    work_run(work, &CONTAINER_OF(work, struct diff, work)->job, diff_line, diff_done);
}

void mover_diff(void *self, const struct vault_asker *asker, const struct disk_ref *newer,
                const struct disk_ref *older, vault_line *line, vault_done *done, void *context)
{
    struct diff *diff = mem_alloc(sizeof(*diff));

    diff->job = (struct provider_disk_job){
        .kind = DISK_JOB_DIFF, .on = *newer, .base = *older, .input = -EBADF, .data = -EBADF};
    diff->line = line;
    diff->done = done;
    diff->work.context = context;
    work_begin_in_turn(&diff->work, self, asker, diff_finished, NULL, diff_run);
}

/* --- measure --------------------------------------------------------------------------------- */

struct measure {
    struct work work;
    struct provider_disk_job job;
    uint64_t files, bytes;
    vault_measure_done *done;
};

static void measure_finished(struct work *work, const struct error *failure)
{
    struct measure *measure = CONTAINER_OF(work, struct measure, work);

    measure->done(measure->work.context, failure, failure ? 0 : measure->files,
                  failure ? 0 : measure->bytes);
    free(measure);
}

/* The one outcome that is not inside of a member: {"files":3,...}. */
static int read_measure(const char *line, size_t length, struct measure *measure, struct error *err)
{
    AUTO(outcome) struct outcome outcome = {.root = json_read(line, length, NULL, err)};

    if (!outcome.root || json_root_object(outcome.root, &outcome.inner, err) < 0)
        return -1;
    if (outcome_count(&outcome, "files", &measure->files, err) < 0)
        return -1;
    return outcome_count(&outcome, "bytes", &measure->bytes, err);
}

static void measure_done(void *context, const struct error *failure, const char *outcome,
                         size_t length)
{
    struct measure *measure = context;
    struct error err = ERROR_INIT;

    if (!failure && read_measure(outcome, length, measure, &err) < 0)
        failure = &err;
    work_end(&measure->work, failure);
}

static void measure_run(struct work *work)
{
    work_run(work, &CONTAINER_OF(work, struct measure, work)->job, NULL, measure_done);
}

void mover_measure(void *self, const struct vault_asker *asker, const struct disk_ref *disk,
                   vault_measure_done *done, void *context)
{
    struct measure *measure = mem_alloc(sizeof(*measure));

    measure->job = (struct provider_disk_job){
        .kind = DISK_JOB_MEASURE, .on = *disk, .input = -EBADF, .data = -EBADF};
    measure->done = done;
    measure->work.context = context;
    work_begin_in_turn(&measure->work, self, asker, measure_finished, NULL, measure_run);
}

/* --- remove_prefix --------------------------------------------------------------------------- */

struct removal {
    struct work work;
    char *prefix; /* owned */
    bool is_last; /* nothing was behind the page that is being deleted */
    vault_done *done;
};

static void removal_finished(struct work *work, const struct error *failure)
{
    struct removal *removal = CONTAINER_OF(work, struct removal, work);

    removal->done(removal->work.context, failure);
    free(removal->prefix);
    free(removal);
}

static void list_page(struct removal *removal);

static void page_deleted(void *context, const struct error *failure)
{
    struct removal *removal = context;

    removal->work.call = NULL;
    if (failure || removal->is_last)
        work_end(&removal->work, failure);
    else if (work_goes_on(&removal->work))
        list_page(removal);
}

static void page_listed(void *context, const struct error *failure, const struct object_list *list)
{
    struct removal *removal = context;
    const char *keys[OBJECTS_DELETE_MAX];

    removal->work.call = NULL;
    if (failure || !list->count) {
        work_end(&removal->work, failure);
        return;
    }
    if (!work_goes_on(&removal->work))
        return;
    for (size_t i = 0; i < list->count; i++)
        keys[i] = list->entries[i].key;
    removal->is_last = !list->next;
    removal->work.call =
        objects_delete(removal->work.mover->objects, keys, list->count, page_deleted, removal);
}

/* Always the first page: those before it are gone. */
static void list_page(struct removal *removal)
{
    struct object_query query = {.prefix = removal->prefix, .limit = OBJECTS_DELETE_MAX};

    removal->work.call = objects_list(removal->work.mover->objects, &query, page_listed, removal);
}

_Static_assert(OBJECTS_DELETE_MAX <= OBJECTS_PAGE_MAX, "what is listed at once is deleted at once");

void mover_remove_prefix(void *self, const char *prefix, vault_done *done, void *context)
{
    struct removal *removal = mem_alloc(sizeof(*removal));

    removal->prefix = mem_copy_text(prefix);
    removal->done = done;
    removal->work.context = context;
    if (!work_begin(&removal->work, self, removal_finished, NULL))
        return;
    /* Everything is never what somebody meant. */
    if (*prefix)
        list_page(removal);
    else
        work_fail(&removal->work, ERR_INVALID, 0, "a prefix of nothing");
}
