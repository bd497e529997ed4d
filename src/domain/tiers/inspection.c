/* The stages one after the other, and the first two of them: disks and snapshots. inspection_rows.c
 * and inspection_probe.c have the rest. */
#include "domain/tiers/inspection.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/tiers/inspection_internal.h"

static void (*const stages[])(struct inspection *inspection) = {
    inspection_look_at_disks,   inspection_look_at_snapshots, inspection_look_at_marks,
    inspection_look_at_layers,  inspection_look_at_backups,   inspection_look_at_workspaces,
    inspection_look_at_objects, inspection_look_at_buckets};

/* --- the end --------------------------------------------------------------------------------- */

static void end(struct domain_task *task)
{
    struct inspection *inspection = CONTAINER_OF(task, struct inspection, task);
    struct domain *domain = inspection->domain;
    const struct error *failure = inspection->has_failed ? &inspection->failure : NULL;

    if (inspection->is_counted)
        domain->is_inspecting = false;
    LOG_INFO(domain->options.log, failure ? "the inspection was not finished" : "inspected",
             log_text("error", failure ? failure->message : ""),
             log_number("lost", (int64_t) inspection->inspected.lost),
             log_number("garbage", (int64_t) inspection->inspected.garbage));
    inspection->done(inspection->context, failure, failure ? NULL : &inspection->inspected);
    layer_marks_done(&inspection->marks);
    free(inspection->suspects);
    free(inspection->after_key);
    free(inspection);
    domain->works--;
    domain_check_gone(domain);
}

void inspection_fail(struct inspection *inspection, const struct error *failure)
{
    inspection->has_failed = true;
    inspection->failure = *failure;
    domain_defer(inspection->domain, &inspection->task, end);
}

bool inspection_goes_on(struct inspection *inspection, const struct error *failure)
{
    struct error err = ERROR_INIT;

    if (!failure && domain_is_open(inspection->domain, &err))
        return true;
    inspection_fail(inspection, failure ? failure : &err);
    return false;
}

void inspection_tell(struct inspection *inspection, enum finding_kind kind, const char *what,
                     const char *name, const char *format, ...)
{
    char detail[FINDING_DETAIL_MAX];
    const struct finding finding = {.kind = kind, .what = what, .name = name, .detail = detail};
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    if (kind == FINDING_LOST) {
        inspection->inspected.lost++;
        LOG_ERROR(inspection->domain->options.log, "something is lost", log_text("what", what),
                  log_text("name", name), log_text("detail", detail));
    } else {
        inspection->inspected.garbage++;
    }
    inspection->found(inspection->context, &finding);
}

static void run_stage(struct domain_task *task)
{
    struct inspection *inspection = CONTAINER_OF(task, struct inspection, task);

    if (inspection_goes_on(inspection, NULL))
        stages[inspection->stage](inspection);
}

void inspection_next(struct inspection *inspection)
{
    inspection->stage++;
    inspection->owner[0] = inspection->after[0] = '\0';
    domain_defer(inspection->domain, &inspection->task,
                 inspection->stage < ARRAY_COUNT(stages) ? run_stage : end);
}

/* --- suspects -------------------------------------------------------------------------------- */

static void suspect(struct inspection *inspection, const struct id *id, enum finding_kind kind)
{
    size_t count = inspection->suspect_count++;

    inspection->suspects =
        mem_resize(inspection->suspects, (count + 1) * sizeof(*inspection->suspects));
    inspection->suspects[count] = (struct suspect){.id = *id, .kind = kind};
}

static void forget_suspects(struct inspection *inspection)
{
    free(inspection->suspects);
    inspection->suspects = NULL;
    inspection->suspect_count = inspection->next_suspect = 0;
    inspection->is_second_look = false;
}

/* Whether something else is under way: it may have snapshots without a row. */
static bool is_busy(const struct inspection *inspection)
{
    return inspection->domain->works > 1;
}

/* --- disks ----------------------------------------------------------------------------------- */

static int compare_sandbox(const void *id, const void *sandbox)
{
    return strcmp(id, ((const struct provider_sandbox *) sandbox)->id.text);
}

struct disks {
    const struct provider_sandbox *all;
    size_t count;
};

static const struct provider_sandbox *find_disk(const struct disks *disks, const struct id *id)
{
    return disks->count
               ? bsearch(id->text, disks->all, disks->count, sizeof(*disks->all), compare_sandbox)
               : NULL;
}

/* What is being changed may be without a disk for that time; what is stored, or comes back from its
 * mirror, is so until it wakes. */
static bool needs_disk(const struct domain *domain, const struct sandbox *sandbox)
{
    return sandbox->status != SANDBOX_UNKNOWN && !sandbox->creation && !sandbox->is_held &&
           !sandbox->stored && !sandbox->is_disk_lost && !sandbox->is_rebuilding &&
           strcmp(sandbox->node, domain->options.node) == 0;
}

static void ask_disk(struct inspection *inspection);

/* The row is looked at behind the answer: a disk is there before its row, and goes after it, or
 * after the row says that it is stored. */
static void on_disk(void *context, const struct error *failure, uint64_t bytes)
{
    struct inspection *inspection = context;
    const struct id *id = &inspection->suspects[inspection->next_suspect++].id;
    const struct sandbox *sandbox = sandbox_set_by_id(inspection->domain, id->text);
    bool is_wanted = sandbox && needs_disk(inspection->domain, sandbox);

    (void) bytes;
    if (failure && failure->code == ERR_NOT_FOUND && is_wanted)
        inspection_tell(inspection, FINDING_LOST, "sandbox", id->text, "its disk is not there");
    else if (failure && (failure->code == ERR_UNAVAILABLE || failure->code == ERR_INTERNAL) &&
             !inspection_goes_on(inspection, failure))
        return;
    ask_disk(inspection);
}

static void on_disks(void *context, const struct error *failure,
                     const struct provider_sandbox *sandboxes, size_t count);

/* The provider knows by heart which sandboxes it has; how much is on a disk it has to look up. */
static void ask_disk(struct inspection *inspection)
{
    struct provider *provider = inspection->domain->options.provider;
    struct disk_ref disk = {.set = DISK_OF_SANDBOX};
    const struct suspect *all = inspection->suspects;

    if (!inspection_goes_on(inspection, NULL))
        return;
    while (inspection->next_suspect < inspection->suspect_count &&
           all[inspection->next_suspect].kind != FINDING_LOST)
        inspection->next_suspect++;
    if (inspection->next_suspect == inspection->suspect_count ||
        !(provider_capabilities(provider) & PROVIDER_SNAPSHOTS)) {
        inspection->is_second_look = true;
        provider_list(provider, on_disks, inspection);
        return;
    }
    disk.id = all[inspection->next_suspect].id;
    provider_disk_usage(provider, &disk, on_disk, inspection);
}

static void suspect_disks(struct inspection *inspection, const struct disks *disks)
{
    struct domain *domain = inspection->domain;

    LIST_EACH (&domain->sandboxes->all, at) {
        const struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        inspection->inspected.sandboxes++;
        if (needs_disk(domain, sandbox))
            suspect(inspection, &sandbox->id, FINDING_LOST);
    }
    for (size_t i = 0; i < disks->count; i++)
        if (!sandbox_set_by_id(domain, disks->all[i].id.text))
            suspect(inspection, &disks->all[i].id, FINDING_GARBAGE);
}

static void tell_disks(struct inspection *inspection, const struct disks *disks)
{
    for (size_t i = 0; i < inspection->suspect_count; i++) {
        const struct suspect *one = &inspection->suspects[i];
        const struct sandbox *sandbox = sandbox_set_by_id(inspection->domain, one->id.text);
        const struct provider_sandbox *disk = find_disk(disks, &one->id);

        if (sandbox && disk && disk->state == RUN_STATE_BROKEN)
            inspection_tell(inspection, FINDING_LOST, "sandbox", one->id.text,
                            "parts of it are missing");
        if (one->kind == FINDING_GARBAGE && !sandbox && disk)
            inspection_tell(inspection, FINDING_GARBAGE, "disk", one->id.text,
                            "no sandbox has it; it is taken away at the next start at the latest");
    }
}

static void on_disks(void *context, const struct error *failure,
                     const struct provider_sandbox *sandboxes, size_t count)
{
    struct inspection *inspection = context;
    const struct disks disks = {.all = sandboxes, .count = count};

    if (!inspection_goes_on(inspection, failure))
        return;
    if (!inspection->is_second_look) {
        suspect_disks(inspection, &disks);
        ask_disk(inspection);
        return;
    }
    tell_disks(inspection, &disks);
    forget_suspects(inspection);
    inspection_next(inspection);
}

void inspection_look_at_disks(struct inspection *inspection)
{
    if (inspection->domain->options.provider)
        provider_list(inspection->domain->options.provider, on_disks, inspection);
    else
        inspection_next(inspection);
}

/* --- snapshots ------------------------------------------------------------------------------- */

static int compare_id(const void *text, const void *id)
{
    return strcmp(text, ((const struct id *) id)->text);
}

struct copies {
    const struct id *all;
    size_t count;
};

static bool has_copy(const struct copies *copies, const struct id *id)
{
    return copies->count &&
           bsearch(id->text, copies->all, copies->count, sizeof(*copies->all), compare_id);
}

static bool is_lost(const struct domain *domain, const struct snapshot *snapshot,
                    const struct copies *copies)
{
    return snapshot->is_kept && !snapshot->is_gone && !snapshot->is_going &&
           snapshot->state != SNAPSHOT_IS_STORED && !has_copy(copies, &snapshot->id) &&
           strcmp(snapshot->node, domain->options.node) == 0;
}

static void suspect_snapshots(struct inspection *inspection, const struct copies *copies)
{
    struct domain *domain = inspection->domain;

    LIST_EACH (&domain->snapshots->all, at) {
        const struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        inspection->inspected.snapshots++;
        if (is_lost(domain, snapshot, copies))
            suspect(inspection, &snapshot->id, FINDING_LOST);
    }
    for (size_t i = 0; i < copies->count; i++)
        if (!snapshot_set_by_id(domain, copies->all[i].text))
            suspect(inspection, &copies->all[i], FINDING_GARBAGE);
}

static void tell_snapshots(struct inspection *inspection, const struct copies *copies)
{
    bool is_quiet = !inspection->was_busy && !is_busy(inspection);

    for (size_t i = 0; i < inspection->suspect_count; i++) {
        const struct suspect *one = &inspection->suspects[i];
        const struct snapshot *snapshot = snapshot_set_by_id(inspection->domain, one->id.text);

        if (one->kind == FINDING_LOST && snapshot && is_lost(inspection->domain, snapshot, copies))
            inspection_tell(inspection, FINDING_LOST, "snapshot", one->id.text,
                            "its disk is not there");
        if (one->kind == FINDING_GARBAGE && !snapshot && is_quiet && has_copy(copies, &one->id))
            inspection_tell(inspection, FINDING_GARBAGE, "snapshot", one->id.text,
                            "it has no row; `burrow gc` takes it away");
    }
}

static void on_snapshots(void *context, const struct error *failure, const struct id *ids,
                         size_t count)
{
    struct inspection *inspection = context;
    const struct copies copies = {.all = ids, .count = count};

    if (!inspection_goes_on(inspection, failure))
        return;
    if (inspection->is_second_look)
        tell_snapshots(inspection, &copies);
    else
        suspect_snapshots(inspection, &copies);
    if (inspection->is_second_look || inspection->suspect_count == 0) {
        forget_suspects(inspection);
        inspection_next(inspection);
        return;
    }
    inspection->is_second_look = true;
    inspection->was_busy = is_busy(inspection);
    provider_list_snapshots(inspection->domain->options.provider, on_snapshots, inspection);
}

void inspection_look_at_snapshots(struct inspection *inspection)
{
    struct provider *provider = inspection->domain->options.provider;

    if (provider && provider_capabilities(provider) & PROVIDER_SNAPSHOTS)
        provider_list_snapshots(provider, on_snapshots, inspection);
    else
        inspection_next(inspection);
}

/* --- the beginning --------------------------------------------------------------------------- */

void inspection_run(struct domain *domain, bool is_deep, inspection_found *found,
                    inspection_done *done, void *context)
{
    struct inspection *inspection = mem_alloc(sizeof(*inspection));
    struct error err = ERROR_INIT;

    inspection->domain = domain;
    inspection->is_deep = is_deep;
    inspection->found = found;
    inspection->done = done;
    inspection->context = context;
    domain->works++;
    if (domain_is_open(domain, &err) && domain->is_inspecting)
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "an inspection is under way already");
    if (err.code != ERR_NONE) {
        inspection_fail(inspection, &err);
        return;
    }
    inspection->is_counted = domain->is_inspecting = true;
    domain_defer(domain, &inspection->task, run_stage);
}
