/* Workspaces in memory, and away with those whose sandbox is gone; workspace_sync.c has the rest.
 */
#include "domain/workspace/workspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/workspace/workspace_internal.h"

#define LOOK_EVERY_NS ((uint64_t) 30 * 1000000000)

void workspace_manifest(char ret_key[static WORKSPACE_KEY_SIZE], const struct id *sandbox)
{
    (void) snprintf(ret_key, WORKSPACE_KEY_SIZE, "manifests/%s.json", sandbox->text);
}

/* --- memory ---------------------------------------------------------------------------------- */

struct workspace *workspace_by_sandbox(const struct domain *domain, const struct id *sandbox)
{
    struct table_link *at =
        table_find(&domain->workspaces->by_sandbox, domain_id_hash(domain, sandbox));

    for (; at; at = table_next(at)) {
        struct workspace *workspace = CONTAINER_OF(at, struct workspace, by_sandbox);

        if (id_equal(&workspace->sandbox, sandbox))
            return workspace;
    }
    return NULL;
}

static struct workspace *add(struct domain *domain, const struct id *sandbox,
                             const struct id *owner)
{
    struct workspace *workspace = mem_alloc(sizeof(*workspace));

    *workspace = (struct workspace){.sandbox = *sandbox, .owner = *owner};
    (void) snprintf(workspace->prefix, sizeof(workspace->prefix), "workspaces/%s/", sandbox->text);
    list_init(&workspace->orders);
    list_init(&workspace->due);
    workspace->by_sandbox.hash = domain_id_hash(domain, sandbox);
    table_add(&domain->workspaces->by_sandbox, &workspace->by_sandbox);
    list_append(&domain->workspaces->all, &workspace->link);
    return workspace;
}

struct workspace *workspace_need(struct domain *domain, const struct sandbox *sandbox)
{
    struct workspace *workspace = workspace_by_sandbox(domain, &sandbox->id);

    return workspace ? workspace : add(domain, &sandbox->id, &sandbox->owner);
}

void workspace_set_state(struct domain *domain, struct workspace *workspace,
                         const struct workspace_state *state)
{
    domain->workspaces->bytes += state->bytes - workspace->state.bytes;
    domain_drop(domain, &workspace->owner, SHARE_STORAGE, workspace->state.bytes);
    domain_hold_anyway(domain, &workspace->owner, SHARE_STORAGE, state->bytes);
    workspace->state = *state;
}

static void forget(struct domain *domain, struct workspace *workspace)
{
    workspace_set_state(domain, workspace, &(struct workspace_state){.files = 0});
    table_remove(&domain->workspaces->by_sandbox, &workspace->by_sandbox);
    list_remove(&workspace->due);
    list_remove(&workspace->link);
    free(workspace);
}

bool workspace_find(const struct domain *domain, const struct id *sandbox,
                    struct workspace_state *ret_state)
{
    const struct workspace *workspace = workspace_by_sandbox(domain, sandbox);

    if (!workspace || !*workspace->manifest)
        return false;
    *ret_state = workspace->state;
    return true;
}

uint64_t workspace_bytes(const struct domain *domain, const struct id *owner)
{
    uint64_t bytes = 0;

    if (!owner)
        return domain->workspaces->bytes;
    LIST_EACH (&domain->workspaces->all, at) {
        const struct workspace *workspace = CONTAINER_OF(at, struct workspace, link);

        if (id_equal(&workspace->owner, owner))
            bytes += workspace->state.bytes;
    }
    return bytes;
}

void workspace_fill_row(const struct workspace *workspace,
                        struct store_value values[static STORE_WORKSPACE_COLUMN_COUNT])
{
    values[STORE_WORKSPACE_SANDBOX] = store_text(workspace->sandbox.text);
    values[STORE_WORKSPACE_OWNER] = store_text(workspace->owner.text);
    values[STORE_WORKSPACE_PREFIX] = store_text(workspace->prefix);
    values[STORE_WORKSPACE_FILES] = store_integer((int64_t) workspace->state.files);
    values[STORE_WORKSPACE_BYTES] = store_integer((int64_t) workspace->state.bytes);
    values[STORE_WORKSPACE_MANIFEST] = store_text(workspace->manifest);
    values[STORE_WORKSPACE_SYNCED] = store_integer(workspace->state.synced_ms);
}

/* --- away with them -------------------------------------------------------------------------- */

struct purge {
    struct domain *domain;
    struct workspace *workspace;
};

static void purge_end(struct purge *purge, const struct error *failure)
{
    struct domain *domain = purge->domain;
    struct workspace *workspace = purge->workspace;

    workspace->is_purged = false;
    if (failure)
        LOG_WARNING(
            domain->options.log, "a workspace could not be removed and is tried again later",
            log_text("sandbox", workspace->sandbox.text), log_text("error", failure->message));
    else
        forget(domain, workspace);
    free(purge);
    domain->works--;
    domain_check_gone(domain);
}

static void row_gone(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    (void) receipt;
    purge_end(context, failure);
}

static void objects_gone(void *context, const struct error *failure)
{
    struct purge *purge = context;
    const struct store_condition condition = {.column = STORE_WORKSPACE_SANDBOX,
                                              .comparison = STORE_EQUAL,
                                              .value = store_text(purge->workspace->sandbox.text)};
    struct store_transaction *change;

    if (failure) {
        purge_end(purge, failure);
        return;
    }
    CRASH_POINT("workspace.purge.objects");
    change = store_begin(purge->domain->options.store);
    store_delete(change, STORE_WORKSPACE, &condition, 1);
    domain_commit(purge->domain, change, row_gone, purge);
}

static void manifest_gone(void *context, const struct error *failure)
{
    struct purge *purge = context;
    const struct vault *vault = purge->domain->options.vault;

    if (failure || purge->domain->stage != DOMAIN_OPEN) {
        struct error err = ERROR_INIT;

        (void) domain_is_open(purge->domain, &err);
        purge_end(purge, failure ? failure : &err);
        return;
    }
    vault->remove_prefix(vault->self, purge->workspace->prefix, objects_gone, purge);
}

static void purge(struct domain *domain, struct workspace *workspace)
{
    const struct vault *vault = domain->options.vault;
    struct purge *purge;
    char manifest[WORKSPACE_KEY_SIZE];

    if (workspace->is_purged || workspace->is_running || !vault || domain->stage != DOMAIN_OPEN)
        return;
    purge = mem_alloc(sizeof(*purge));
    *purge = (struct purge){.domain = domain, .workspace = workspace};
    workspace->is_purged = true;
    domain->works++;
    /* The list goes first: it must not name what is not there. */
    workspace_manifest(manifest, &workspace->sandbox);
    vault->remove_prefix(vault->self, manifest, manifest_gone, purge);
}

void workspace_rest(struct domain *domain, struct workspace *workspace)
{
    if (!list_is_empty(&workspace->orders) || workspace->is_running)
        return;
    if (!workspace->is_kept)
        forget(domain, workspace);
    else if (workspace->is_orphan)
        purge(domain, workspace);
}

/* --- the module ------------------------------------------------------------------------------ */

static void destroyed(struct domain *domain, const struct id *sandbox)
{
    struct workspace *workspace = workspace_by_sandbox(domain, sandbox);

    if (!workspace)
        return;
    workspace->is_orphan = true;
    workspace_fail_orders(workspace);
    workspace_rest(domain, workspace);
}

static void tick(struct domain *domain)
{
    struct workspaces *workspaces = domain->workspaces;
    uint64_t now = domain_now_ns(domain);

    if (now < workspaces->look_ns || domain->stage != DOMAIN_OPEN)
        return;
    workspaces->look_ns = now + LOOK_EVERY_NS;
    LIST_EACH (&workspaces->all, at) {
        struct workspace *workspace = CONTAINER_OF(at, struct workspace, link);

        if (!sandbox_set_by_id(domain, workspace->sandbox.text))
            workspace->is_orphan = true;
        if (workspace->is_orphan)
            workspace_rest(domain, workspace);
    }
}

static int load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct id sandbox = domain_row_id(&row[STORE_WORKSPACE_SANDBOX]);
    struct id owner = domain_row_id(&row[STORE_WORKSPACE_OWNER]);
    const struct workspace_state state = {
        .files = (uint64_t) row[STORE_WORKSPACE_FILES].integer,
        .bytes = (uint64_t) row[STORE_WORKSPACE_BYTES].integer,
        .synced_ms = row[STORE_WORKSPACE_SYNCED].integer,
    };
    struct workspace *workspace;

    (void) err;
    workspace = add(domain, &sandbox, &owner);
    workspace->is_kept = true;
    workspace_set_state(domain, workspace, &state);
    (void) snprintf(workspace->manifest, sizeof(workspace->manifest), "%s",
                    row[STORE_WORKSPACE_MANIFEST].bytes);
    return 0;
}

static void load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_WORKSPACE, STORE_WORKSPACE_SANDBOX, load_one, done, context);
}

/* Names with commas between them. */
static void split_excludes(struct workspaces *workspaces, const char *text)
{
    char *at = workspaces->exclude_text = mem_copy_text(text);

    workspaces->excludes = mem_alloc_array(strlen(text) / 2 + 1, sizeof(*workspaces->excludes));
    while (*at) {
        char *next = at + strcspn(at, ",");

        if (next > at)
            workspaces->excludes[workspaces->exclude_count++] = at;
        at = next;
        if (*at)
            *at++ = '\0';
    }
}

static void begin(struct domain *domain)
{
    struct workspaces *workspaces = mem_alloc(sizeof(*workspaces));
    const char *excludes = domain->options.sync_excludes;

    split_excludes(workspaces, excludes ? excludes : "");

    list_init(&workspaces->all);
    list_init(&workspaces->due);
    list_init(&workspaces->runs);
    domain->workspaces = workspaces;
}

static void end(struct domain *domain)
{
    if (!domain->workspaces)
        return;
    LIST_EACH (&domain->workspaces->all, at)
        free(CONTAINER_OF(at, struct workspace, link));
    table_done(&domain->workspaces->by_sandbox);
    free(domain->workspaces->exclude_text);
    free(domain->workspaces->excludes);
    free(domain->workspaces);
}

static bool is_mirrored(const struct domain *domain, const struct id *sandbox)
{
    struct workspace_state state;

    return workspace_find(domain, sandbox, &state);
}

const struct domain_module domain_workspaces = {.name = "workspaces",
                                                .begin = begin,
                                                .load = load,
                                                .destroyed = destroyed,
                                                .sleeping = workspace_sync_to_sleep,
                                                .is_mirrored = is_mirrored,
                                                .tick = tick,
                                                .end = end};
