/* Opening: hello ──► list, page by page ──► adopt what runs ──► subscribe ──► open.
 *
 * Adoptions run beside each other and beside the next page. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "provider/provider_local_internal.h"

/* How often to look whether everything that is on its way down is down, and for how long. */
#define SETTLE_EVERY_MS 10
#define SETTLE_MAX_MS   10000

/* What every launcher can do. */
#define ALWAYS                                                                                     \
    (PROVIDER_RESTART | PROVIDER_PORTS | PROVIDER_STATS | PROVIDER_AGENT | PROVIDER_LIMITS |       \
     PROVIDER_DISK_JOBS)

/* A sandbox that is being taken over. */
struct adoption {
    struct local *local; /* borrowed */
    struct wire_entry entry;
};

/* One that is on its way down is so for somebody who is not there any more, and for too long. */
static enum run_state state_found(enum run_state state)
{
    return state == RUN_STATE_STOPPING ? RUN_STATE_BROKEN : state;
}

bool local_open_failed(struct local *local, const struct error *reason)
{
    struct opening *opening = &local->opening;

    if (!opening->call)
        return false;
    provider_call_answer(TAKE_PTR(opening->call), reason);
    return true;
}

static void give_up(struct local *local, const char *doing, const struct error *failure)
{
    struct error err = *failure;

    /* One that ended before it could be greeted is as much not there as one that ends later. */
    if (err.code == ERR_GONE)
        err.code = ERR_UNAVAILABLE;
    (void) error_wrap(&err, "%s", doing);
    (void) local_open_failed(local, &err);
}

static void on_subscribed(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct local *local = context;
    struct opening *opening = &local->opening;

    (void) reply;
    if (failure) {
        give_up(local, "subscribe to exits", failure);
        return;
    }
    for (size_t i = 0; i < opening->surplus_count; i++)
        local_discard(local, &opening->surplus[i], WIRE_KILL_EVERYTHING);
    free(TAKE_PTR(opening->surplus));
    stock_work(local);
    provider_call_answer(TAKE_PTR(opening->call), NULL);
}

/* Once everything was looked at. */
static void subscribe(struct local *local)
{
    struct opening *opening = &local->opening;
    struct wire_message message = {.number = WIRE_MESSAGE_SUBSCRIBE_EXIT};
    struct wire_answer answer = {.call = on_subscribed, .context = local};
    struct error err = ERROR_INIT;

    if (!opening->call || !opening->listed || opening->adoptions)
        return;
    if (launcher_link_ask(&local->link, &message, NULL, 0, answer, &err) < 0)
        give_up(local, "subscribe to exits", &err);
}

/* A ready sandbox can only be ended once the launcher serves us. */
static void reject(struct opening *opening, const struct id *id)
{
    if (opening->surplus_count >= PROVIDER_TABLE_MAX)
        return;
    opening->surplus =
        mem_resize(opening->surplus, (opening->surplus_count + 1) * sizeof(*opening->surplus));
    opening->surplus[opening->surplus_count++] = *id;
}

static void enter(struct local *local, const struct wire_entry *entry, unsigned int unenforced)
{
    struct provider_entry *known;

    if (entry->state == RUN_STATE_POOLED) {
        if (!stock_add(&local->stock, &entry->id))
            reject(&local->opening, &entry->id);
        return;
    }
    known = provider_table_add(&local->provider.sandboxes, &entry->id, state_found(entry->state));
    if (known)
        known->unenforced = unenforced;
}

/* What cannot be taken over is there all the same, and can be destroyed. */
static void enter_broken(struct local *local, struct wire_entry *entry, const struct error *failure)
{
    LOG_WARNING(local->log, "a sandbox cannot be taken over", log_text("sandbox", entry->id.text),
                log_text("error", failure->message));
    if (entry->state == RUN_STATE_POOLED) {
        reject(&local->opening, &entry->id);
        return;
    }
    entry->state = RUN_STATE_BROKEN;
    enter(local, entry, 0);
}

static void on_adopted(void *context, struct wire_incoming *reply, const struct error *failure)
{
    AUTO(free) struct adoption *adoption = context;
    struct local *local = adoption->local;

    local->opening.adoptions--;
    if (!local->opening.call || local->link.over)
        return;
    if (!failure)
        enter(local, &reply->message.sandbox.entry, reply->message.sandbox.unenforced);
    else if (failure->code != ERR_NOT_FOUND) /* else it went in the meantime */
        enter_broken(local, &adoption->entry, failure);
    subscribe(local);
}

static bool is_alive(const struct wire_entry *entry)
{
    return entry->state == RUN_STATE_POOLED || entry->state == RUN_STATE_RUNNING ||
           entry->state == RUN_STATE_FROZEN;
}

static int adopt(struct local *local, const struct wire_entry *entry, struct error *err)
{
    struct wire_message message = {
        .number = WIRE_MESSAGE_ADOPT,
        .adopt = {.id = entry->id, .pid = entry->pid, .start_time = entry->start_time}};
    AUTO(free) struct adoption *adoption = mem_alloc(sizeof(*adoption));
    struct wire_answer answer = {.call = on_adopted, .context = adoption};

    *adoption = (struct adoption){.local = local, .entry = *entry};
    if (launcher_link_ask(&local->link, &message, NULL, 0, answer, err) < 0)
        return -1;
    local->opening.adoptions++;
    (void) TAKE_PTR(adoption);
    return 0;
}

static int take_over(struct local *local, const struct wire_entry *entry, struct error *err)
{
    if (strcmp(entry->id.text, local->opening.after.text) <= 0)
        return error_set(err, ERR_INVALID, 0, "the launcher's list is not sorted");
    local->opening.after = entry->id;
    if (local->provider.sandboxes.count >= PROVIDER_TABLE_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "more than %d sandboxes", PROVIDER_TABLE_MAX);
    if (is_alive(entry))
        return adopt(local, entry, err);
    enter(local, entry, 0);
    return 0;
}

static void ask_page(struct local *local);

static void list_from_start(struct local *local)
{
    local->opening.after = (struct id){.text = ""};
    local->opening.stopping = false;
    ask_page(local);
}

void local_open_look_again(struct deadline *deadline)
{
    struct local *local = CONTAINER_OF(deadline, struct local, settle);

    if (local->opening.call)
        list_from_start(local);
}

/* What a daemon before us stopped keeps its disk, and what it destroyed goes: the launcher is at
 * it, and only it knows which. So that is waited for; nothing is taken over yet. */
static void settle(struct local *local, const struct wire_incoming *reply)
{
    struct opening *opening = &local->opening;
    const struct wire_entry_list *entries = &reply->message.listed.entries;

    for (size_t i = 0; i < entries->count; i++) {
        opening->stopping |= entries->items[i].state == RUN_STATE_STOPPING;
        opening->after = entries->items[i].id;
    }
    if (reply->message.listed.more) {
        ask_page(local);
    } else if (opening->stopping && loop_now(local->provider.loop) < opening->patient_until) {
        deadline_set(&local->settle, SETTLE_EVERY_MS);
    } else {
        opening->settled = true;
        list_from_start(local);
    }
}

static void on_listed(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct local *local = context;
    struct error err = ERROR_INIT;

    if (failure) {
        give_up(local, "list sandboxes", failure);
        return;
    }
    if (!local->opening.settled) {
        settle(local, reply);
        return;
    }
    for (size_t i = 0; i < reply->message.listed.entries.count; i++) {
        if (take_over(local, &reply->message.listed.entries.items[i], &err) < 0) {
            give_up(local, "take sandboxes over", &err);
            return;
        }
    }
    if (reply->message.listed.more) {
        ask_page(local);
        return;
    }
    local->opening.listed = true;
    subscribe(local);
}

static void ask_page(struct local *local)
{
    struct wire_message message = {.number = WIRE_MESSAGE_LIST,
                                   .list = {.after = local->opening.after}};
    struct wire_answer answer = {.call = on_listed, .context = local};
    struct error err = ERROR_INIT;

    if (launcher_link_ask(&local->link, &message, NULL, 0, answer, &err) < 0)
        give_up(local, "list sandboxes", &err);
}

static unsigned int capabilities_of(uint32_t features)
{
    static const struct {
        enum wire_feature feature;
        enum provider_capability capability;
    } pairs[] = {
        {WIRE_FEATURE_FREEZE, PROVIDER_FREEZE},   {WIRE_FEATURE_NAT, PROVIDER_NAT},
        {WIRE_FEATURE_OOM, PROVIDER_OOM},         {WIRE_FEATURE_SNAPSHOTS, PROVIDER_SNAPSHOTS},
        {WIRE_FEATURE_RECLAIM, PROVIDER_RECLAIM}, {WIRE_FEATURE_MOUNTS, PROVIDER_MOUNTS},
    };
    unsigned int capabilities = ALWAYS;

    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        if (features & WIRE_BIT(pairs[i].feature))
            capabilities |= pairs[i].capability;
    }
    return capabilities;
}

static void on_welcome(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct local *local = context;

    if (failure) {
        give_up(local, "greet the launcher", failure);
        return;
    }
    local->provider.capabilities = capabilities_of(reply->message.welcome.features);
    local->provider.enforced = reply->message.welcome.enforced;
    local->opening.patient_until = loop_now(local->provider.loop) + SETTLE_MAX_MS;
    list_from_start(local);
}

void local_open(struct provider_call *call)
{
    struct local *local = local_of(call->provider);
    struct wire_answer answer = {.call = on_welcome, .context = local};
    struct error err = ERROR_INIT;

    local->opening = (struct opening){.call = call};
    if (launcher_link_hello(&local->link, local->program, answer, &err) < 0)
        give_up(local, "greet the launcher", &err);
}
