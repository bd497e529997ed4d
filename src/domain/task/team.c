/* Teams: their members are tasks, held until it is their turn. */
#include "domain/task/team.h"

#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/conversation/turn_usage.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/event/event.h"
#include "domain/list_cursor.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/task/task_internal.h"

#define KEEP_AGAIN_NS UINT64_C(1000000000)
#define TEAMS_PAGE    16

struct team_member {
    struct id id;
    enum task_state state;
};

struct live_team {
    struct list link;
    struct domain *domain;
    struct caller caller;
    struct team team; /* its title is owned here; without members */
    struct team_member members[TEAM_MEMBERS_MAX];
    size_t member_count;
    struct id base;             /* the sandbox of the checkout */
    struct task_spec spec;      /* of the checkout */
    struct live_task *checkout; /* while it is made */
    bool is_kept, is_ready, is_cancelled, is_ended, is_reading;
    uint64_t end_ns;
    struct list waits;
};

struct teams {
    struct list all; /* of live_team.link: those that are not over */
    bool is_recovered;
};

struct team_wait {
    struct list link;
    struct domain *domain;
    struct caller caller;
    bool is_busy, is_over, cancels;
    team_done *done;
    void *context;
};

static void team_advance(struct live_team *live);

/* --- memory ------------------------------------------------------------------------------------ */

static struct live_team *team_live(const struct domain *domain, const struct id *id)
{
    LIST_EACH (&domain->teams->all, at) {
        struct live_team *live = CONTAINER_OF(at, struct live_team, link);

        if (id_equal(&live->team.id, id))
            return live;
    }
    return NULL;
}

static struct live_team *live_team_new(struct domain *domain, const struct caller *caller)
{
    struct live_team *live = mem_alloc(sizeof(*live));

    live->domain = domain;
    live->caller = *caller;
    list_init(&live->waits);
    list_append(&domain->teams->all, &live->link);
    return live;
}

static void live_team_free(struct live_team *live)
{
    list_remove(&live->link);
    if (live->checkout) {
        live->checkout->conversation = NULL;
        live_task_unref(live->checkout);
    }
    task_spec_done(&live->spec);
    free((char *) live->team.title);
    free(live);
}

/* --- rows -------------------------------------------------------------------------------------- */

static void team_put_row(struct store_transaction *rows, const struct live_team *live)
{
    const struct team *team = &live->team;
    AUTO(text) struct text spec = TEXT_INIT(TASK_SPEC_MAX * 2);
    char policy[128];

    (void) task_spec_write(&live->spec, &spec, NULL);
    (void) snprintf(policy, sizeof(policy), "{\"parallel\":%u,\"shared\":%s,\"cancels\":%s}",
                    team->parallel, team->is_shared ? "true" : "false",
                    team->cancels ? "true" : "false");
    const struct store_value values[STORE_TEAM_COLUMN_COUNT] = {
        [STORE_TEAM_ID] = store_text(team->id.text),
        [STORE_TEAM_OWNER] = store_text(team->owner.text),
        [STORE_TEAM_STATE] = store_text(team_state_text(team->state)),
        [STORE_TEAM_TITLE] = store_text(team->title),
        [STORE_TEAM_POLICY] = store_text(policy),
        [STORE_TEAM_SPEC] = store_bytes(text_string(&spec), spec.length),
        [STORE_TEAM_BASE] = *live->base.text ? store_text(live->base.text) : store_null(),
        [STORE_TEAM_CREATED] = store_integer(team->created_ms),
        [STORE_TEAM_ENDED] = team->ended_ms ? store_integer(team->ended_ms) : store_null(),
    };

    store_put(rows, STORE_TEAM, values);
}

static void team_from_row(const struct store_value *row, struct team *ret_team)
{
    AUTO(json)
    json_t *policy =
        json_read(row[STORE_TEAM_POLICY].bytes, row[STORE_TEAM_POLICY].length, NULL, NULL);

    *ret_team = (struct team){
        .id = domain_row_id(&row[STORE_TEAM_ID]),
        .owner = domain_row_id(&row[STORE_TEAM_OWNER]),
        .state = team_state_from_text(row[STORE_TEAM_STATE].bytes),
        .parallel = (unsigned int) json_integer_value(json_object_get(policy, "parallel")),
        .is_shared = json_is_true(json_object_get(policy, "shared")),
        .cancels = json_is_true(json_object_get(policy, "cancels")),
        .title = row[STORE_TEAM_TITLE].bytes,
        .created_ms = row[STORE_TEAM_CREATED].integer,
        .ended_ms = row[STORE_TEAM_ENDED].integer,
    };
}

static void team_add_event(struct live_team *live, struct store_transaction *rows, const char *type)
{
    char data[256];

    (void) snprintf(data, sizeof(data), "{\"teamId\":\"%s\",\"state\":\"%s\",\"members\":%zu}",
                    live->team.id.text, team_state_text(live->team.state), live->member_count);
    event_add(live->domain, rows, &live->caller, &live->team.owner, "system", type, data);
}

/* A team is of several sandboxes: a key for one of them sees none. */
static bool team_is_seen(const struct caller *caller, const struct team *team)
{
    return caller_sees_owner(caller, &team->owner) && caller->scope != CALLER_SANDBOX &&
           caller->scope != CALLER_PORT;
}

/* --- read -------------------------------------------------------------------------------------- */

struct team_reading {
    struct domain *domain;
    struct domain_task task;
    struct caller caller;
    struct team team;
    char *title; /* owned */
    char id[ID_SIZE];
    team_done *done;
    void *context;
};

static void team_reading_end(struct team_reading *reading, const struct error *failure,
                             const struct team *team)
{
    reading->done(reading->context, failure, team);
    free(reading->title);
    free(reading);
}

static void team_got_members(void *context, const struct error *failure,
                             const struct store_rows *rows)
{
    struct team_reading *reading = context;
    struct task members[TEAM_MEMBERS_MAX];
    AUTO(pool) struct pool pool = POOL_INIT;
    struct team *team = &reading->team;

    if (failure) {
        team_reading_end(reading, failure, NULL);
        return;
    }
    team->usage.is_cost_known = rows->count > 0;
    for (size_t i = 0; i < rows->count && i < TEAM_MEMBERS_MAX; i++) {
        const struct live_task *live;

        task_from_row(rows->rows[i], &pool, &members[i]);
        live = task_live(reading->domain, members[i].id.text);
        if (live && !live->is_ended)
            members[i].state = task_state_now(live);
        turn_usage_add(&team->usage, &members[i].usage);
        team->member_count = i + 1;
    }
    team->members = members;
    team_reading_end(reading, NULL, team);
}

static void team_find_members(struct domain *domain, const struct id *team, store_rows_done *done,
                              void *context)
{
    const struct store_condition mine = {STORE_TASK_TEAM, STORE_EQUAL, store_text(team->text)};
    const struct store_query query = {.kind = STORE_TASK,
                                      .conditions = &mine,
                                      .condition_count = 1,
                                      .order = STORE_TASK_PLACE,
                                      .limit = TEAM_MEMBERS_MAX};

    domain_find(domain, &query, done, context);
}

static void team_got_row(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct team_reading *reading = context;
    struct error err = ERROR_INIT;

    if (!failure && rows->count)
        team_from_row(rows->rows[0], &reading->team);
    if (!failure && rows->count && team_is_seen(&reading->caller, &reading->team)) {
        reading->team.title = reading->title = mem_copy_text(reading->team.title);
        team_find_members(reading->domain, &reading->team.id, team_got_members, reading);
        return;
    }
    (void) error_set(&err, ERR_NOT_FOUND, 0, "there is no team '%.40s'", reading->id);
    team_reading_end(reading, failure ? failure : &err, NULL);
}

static void team_read_now(struct domain_task *task)
{
    struct team_reading *reading = CONTAINER_OF(task, struct team_reading, task);
    const struct store_condition mine = {STORE_TEAM_ID, STORE_EQUAL, store_text(reading->id)};
    const struct store_query query = {.kind = STORE_TEAM,
                                      .conditions = &mine,
                                      .condition_count = 1,
                                      .order = STORE_TEAM_ID,
                                      .limit = 1};

    domain_find(reading->domain, &query, team_got_row, reading);
}

void team_read(struct domain *domain, const struct caller *caller, const char *id, team_done *done,
               void *context)
{
    struct team_reading *reading = mem_alloc(sizeof(*reading));

    *reading = (struct team_reading){
        .domain = domain, .caller = *caller, .done = done, .context = context};
    list_init(&reading->task.link);
    if (id_is_valid(id))
        memcpy(reading->id, id, ID_SIZE);
    domain_defer(domain, &reading->task, team_read_now);
}

/* --- waited for -------------------------------------------------------------------------------- */

static void team_wait_told(void *context, const struct error *failure, const struct team *team)
{
    AUTO(free) struct team_wait *wait = context;

    if (!wait->is_over)
        wait->done(wait->context, failure, team);
}

/* It is over: what it came to is read. */
static void team_tell_waits(struct live_team *live)
{
    struct list *link;

    while ((link = list_first(&live->waits))) {
        struct team_wait *wait = CONTAINER_OF(link, struct team_wait, link);

        list_remove(link);
        wait->is_busy = true;
        team_read(wait->domain, &wait->caller, live->team.id.text, team_wait_told, wait);
    }
}

static void team_stop(struct live_team *live)
{
    live->is_cancelled = true;
    for (size_t i = 0; i < live->member_count; i++) {
        struct live_task *member = task_live(live->domain, live->members[i].id.text);

        if (member)
            task_stop(member, "cancelled", "the team was cancelled");
    }
}

static void team_wait_read(void *context, const struct error *failure, const struct team *team)
{
    struct team_wait *wait = context;
    struct live_team *live = failure ? NULL : team_live(wait->domain, &team->id);
    struct error err = ERROR_INIT;

    if (!failure && wait->cancels && !caller_may_write(&wait->caller)) {
        (void) error_set(&err, ERR_FORBIDDEN, 0, "this key may not cancel teams");
        team_wait_told(wait, &err, NULL);
    } else if (!live || wait->is_over) {
        team_wait_told(wait, failure, team);
    } else {
        wait->is_busy = false;
        list_append(&live->waits, &wait->link);
        if (wait->cancels)
            team_stop(live);
    }
}

static struct team_wait *team_wait_new(struct domain *domain, const struct caller *caller,
                                       const char *id, bool cancels, team_done *done, void *context)
{
    struct team_wait *wait = mem_alloc(sizeof(*wait));

    *wait = (struct team_wait){.domain = domain,
                               .caller = *caller,
                               .is_busy = true,
                               .cancels = cancels,
                               .done = done,
                               .context = context};
    list_init(&wait->link);
    team_read(domain, caller, id, team_wait_read, wait);
    return wait;
}

struct team_wait *team_wait_begin(struct domain *domain, const struct caller *caller,
                                  const char *id, team_done *done, void *context)
{
    return team_wait_new(domain, caller, id, false, done, context);
}

void team_wait_end(struct team_wait *wait)
{
    wait->is_over = true;
    if (wait->is_busy)
        return;
    list_remove(&wait->link);
    free(wait);
}

void team_cancel(struct domain *domain, const struct caller *caller, const char *id,
                 team_done *done, void *context)
{
    (void) team_wait_new(domain, caller, id, true, done, context);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void team_base_gone(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct domain *domain = context;

    (void) sandbox;
    if (failure)
        LOG_WARNING(domain->options.log, "the sandbox of a team is still there",
                    log_text("error", failure->message));
    domain->works--;
    domain_check_gone(domain);
}

static void team_drop_base(struct live_team *live)
{
    struct sandbox *base =
        *live->base.text ? sandbox_set_by_id(live->domain, live->base.text) : NULL;
    const struct caller caller = caller_system();

    if (!base)
        return;
    live->domain->works++;
    sandbox_destroy(live->domain, &caller, base, team_base_gone, live->domain);
}

static void team_end_kept(void *context, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct live_team *live = context;

    if (failure) {
        live->end_ns = domain_now_ns(live->domain) + KEEP_AGAIN_NS;
        return;
    }
    event_kept(live->domain, receipt);
    team_drop_base(live);
    team_tell_waits(live);
    live_team_free(live);
}

static void team_end_keep(struct live_team *live)
{
    struct store_transaction *rows = store_begin(live->domain->options.store);

    live->end_ns = 0;
    team_put_row(rows, live);
    team_add_event(live, rows, "team.ended");
    domain_commit(live->domain, rows, team_end_kept, live);
}

static void team_check_end(struct live_team *live)
{
    enum task_state states[TEAM_MEMBERS_MAX];
    enum team_state state;

    for (size_t i = 0; i < live->member_count; i++)
        states[i] = live->members[i].state;
    state = team_state_of(states, live->member_count, live->is_cancelled);
    if (live->is_ended || live->checkout || !team_state_is_over(state))
        return;
    live->is_ended = true;
    live->team.state = state;
    live->team.ended_ms = domain_wall_ms(live->domain);
    team_end_keep(live);
}

void team_member_over(struct domain *domain, const struct task *task)
{
    struct live_team *live = *task->team.text ? team_live(domain, &task->team) : NULL;

    if (!live)
        return;
    for (size_t i = 0; i < live->member_count; i++)
        if (id_equal(&live->members[i].id, &task->id))
            live->members[i].state = task->state;
    if (live->team.cancels && task->state == TASK_FAILED)
        team_stop(live);
    team_advance(live);
}

/* --- at work ----------------------------------------------------------------------------------- */

static size_t team_at_work(const struct live_team *live)
{
    size_t count = 0;

    for (size_t i = 0; i < live->member_count; i++) {
        const struct live_task *member = task_live(live->domain, live->members[i].id.text);

        count += member && !member->is_held;
    }
    return count;
}

static void team_advance(struct live_team *live)
{
    const struct id *base = live->team.is_shared ? &live->base : NULL;

    for (size_t i = 0; live->is_ready && i < live->member_count; i++) {
        struct live_task *member = task_live(live->domain, live->members[i].id.text);

        if (member && member->is_held && !member->is_ended &&
            team_at_work(live) < live->team.parallel)
            task_release(member, base);
    }
    team_check_end(live);
}

static void team_base_kept(void *context, const struct error *failure,
                           const struct store_receipt *receipt)
{
    struct live_team *live = context;

    (void) receipt; /* without its row it is found by its name */
    live->is_reading = false;
    if (!failure)
        CRASH_POINT("team.base.kept");
    live->is_ready = true;
    if (live->domain->stage == DOMAIN_OPEN)
        team_advance(live);
}

static struct live_team *team_of_checkout(const struct live_task *checkout)
{
    LIST_EACH (&checkout->domain->teams->all, at) {
        struct live_team *live = CONTAINER_OF(at, struct live_team, link);

        if (live->checkout == checkout)
            return live;
    }
    return NULL;
}

/* The end of making the checkout. */
void team_base_ready(void *context, const struct error *failure)
{
    struct live_task *checkout = context;
    struct live_team *live = team_of_checkout(checkout);
    struct domain *domain = checkout->domain;
    struct store_transaction *rows;

    if (checkout->is_using)
        sandbox_use_end(&checkout->use);
    checkout->is_using = false;
    if (!live || domain->stage != DOMAIN_OPEN)
        return;
    live->base = checkout->task.sandbox;
    live->checkout = NULL;
    live_task_unref(checkout);
    if (failure) {
        for (size_t i = 0; i < live->member_count; i++) {
            struct live_task *member = task_live(domain, live->members[i].id.text);

            if (member)
                task_stop(member, error_code_text(failure->code),
                          "the repository of the team could not be checked out");
        }
        team_check_end(live);
        return;
    }
    live->is_reading = true;
    rows = store_begin(domain->options.store);
    team_put_row(rows, live);
    domain_commit(domain, rows, team_base_kept, live);
}

static bool team_has_held(const struct live_team *live)
{
    for (size_t i = 0; i < live->member_count; i++) {
        const struct live_task *member = task_live(live->domain, live->members[i].id.text);

        if (member && member->is_held)
            return true;
    }
    return false;
}

static void team_go(struct live_team *live)
{
    struct live_task *checkout;

    if (!live->team.is_shared || !team_has_held(live)) {
        live->is_ready = true;
        team_advance(live);
        return;
    }
    checkout = live_task_new(live->domain, &live->caller);
    checkout->task.id = live->team.id;
    checkout->task.owner = live->team.owner;
    checkout->is_kept = checkout->is_going = true;
    if (task_copy_spec(&live->spec, &checkout->spec, NULL) < 0)
        checkout->spec = (struct task_spec) TASK_SPEC_INIT; /* it was read before: not to be */
    live->checkout = checkout;
    sequence_begin(&checkout->sequence, live->domain, &task_base_sequence, &live->team.id,
                   checkout);
}

/* --- begun ------------------------------------------------------------------------------------- */

struct team_creation {
    struct domain_change base;
    struct live_team *live; /* NULL: refused */
    team_done *done;
    void *context;
};

static void team_drop_members(struct live_team *live)
{
    for (size_t i = 0; i < live->member_count; i++) {
        struct live_task *member = task_live(live->domain, live->members[i].id.text);
        struct conversation *conversation = member ? member->conversation : NULL;

        if (!member)
            continue;
        conversation_ref(conversation);
        task_dropped(member);
        conversation_unref(live->domain, conversation);
    }
    live->member_count = 0;
}

static void team_made_read(void *context, const struct error *failure, const struct team *team)
{
    AUTO(free) struct team_creation *creation = context;

    creation->done(creation->context, failure, team);
}

static void team_is_made(struct domain_change *base, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct team_creation *creation = CONTAINER_OF(base, struct team_creation, base);
    struct live_team *live = creation->live;
    struct id id;

    (void) receipt;
    if (failure) {
        if (live) {
            team_drop_members(live);
            live_team_free(live);
        }
        creation->done(creation->context, failure, NULL);
        free(creation);
        return;
    }
    CRASH_POINT("team.kept");
    id = live->team.id;
    live->is_kept = true;
    live->is_reading = false;
    for (size_t i = 0; i < live->member_count; i++)
        task_prepared(task_live(base->domain, live->members[i].id.text));
    team_go(live);
    team_read(base->domain, &base->caller, id.text, team_made_read, creation);
}

static int team_read_policy(const struct json_place *object, struct live_team *live,
                            struct error *err)
{
    const char *on_failure = NULL, *shared = NULL, *title = NULL;
    int64_t parallel = TEAM_PARALLEL;

    if (json_field_text(object, "onFailure", JSON_OPTIONAL, 16, &on_failure, err) < 0 ||
        json_field_text(object, "shared", JSON_OPTIONAL, 16, &shared, err) < 0 ||
        json_field_text(object, "title", JSON_OPTIONAL, CONVERSATION_TITLE_MAX, &title, err) < 0 ||
        json_field_integer(object, "parallel", JSON_OPTIONAL, 1, TEAM_PARALLEL_MAX, &parallel,
                           err) < 0)
        return -1;
    if (on_failure && strcmp(on_failure, "continue") != 0 && strcmp(on_failure, "cancel") != 0)
        return json_refuse_field(object, "onFailure", "continue or cancel", err);
    if (shared && strcmp(shared, "none") != 0 && strcmp(shared, "fork") != 0)
        return json_refuse_field(object, "shared", "none or fork", err);
    live->team.cancels = on_failure && strcmp(on_failure, "cancel") == 0;
    live->team.is_shared = shared && strcmp(shared, "fork") == 0;
    live->team.parallel = (unsigned int) parallel;
    live->team.title = mem_copy_text(title ? title : "");
    if (live->team.is_shared && !json_object_get(object->value, "git"))
        return json_refuse_field(object, "git", "there, when members share a checkout", err);
    return 0;
}

/* What all members have, with what this one has over it. */
static json_t *team_member_object(const struct json_place *object, json_t *member)
{
    static const char *const own[] = {"members", "parallel", "onFailure",
                                      "shared",  "title",    "idempotencyKey"};
    json_t *merged = json_copy(object->value);

    for (size_t i = 0; i < ARRAY_COUNT(own); i++)
        (void) json_object_del(merged, own[i]);
    (void) json_object_update(merged, member);
    return merged;
}

static int team_add_member(struct live_team *live, const struct json_place *object,
                           const struct json_place *member, struct store_transaction *rows,
                           struct error *err)
{
    static const char *const more[] = {"role", NULL};
    AUTO(json) json_t *merged = team_member_object(object, member->value);
    const struct json_place place = {
        .value = merged, .parent = member->parent, .key = member->key, .index = member->index};
    AUTO(task_spec) struct task_spec spec = TASK_SPEC_INIT;
    struct task_order order = {
        .team = live->team.id, .place = (unsigned int) live->member_count, .is_held = true};
    struct live_task *task;

    if (json_field_text(&place, "role", JSON_OPTIONAL, TEAM_ROLE_MAX, &order.role, err) < 0 ||
        task_spec_read(&place, more, &spec, err) < 0)
        return -1;
    if (spec.sandbox)
        return json_refuse_field(&place, "sandbox", "left out: members have sandboxes of their own",
                                 err);
    task = task_prepare(live->domain, &live->caller, &spec, &order, rows, err);
    if (!task)
        return -1;
    live->members[live->member_count++] =
        (struct team_member){.id = task->task.id, .state = TASK_QUEUED};
    return 0;
}

/* The checkout that they share: what makes its sandbox, and the repository. */
static int team_read_base(struct live_team *live, const struct json_place *object,
                          struct error *err)
{
    static const char *const kept[] = {"git", "image", "template", "env", "egress", "folder"};
    AUTO(json) json_t *base = json_object();
    const struct json_place place = {.value = base};

    for (size_t i = 0; i < ARRAY_COUNT(kept); i++) {
        json_t *value = json_object_get(object->value, kept[i]);

        if (value)
            json_object_set(base, kept[i], value);
    }
    return task_spec_read(&place, NULL, &live->spec, err);
}

static int team_fill(struct live_team *live, const struct json_place *object,
                     struct store_transaction *rows, struct error *err)
{
    struct json_place members, member;
    size_t count;

    live->team.id = id_new();
    live->team.owner = live->caller.owner;
    live->team.created_ms = domain_wall_ms(live->domain);
    if (team_read_policy(object, live, err) < 0 || team_read_base(live, object, err) < 0 ||
        json_field_array(object, "members", JSON_REQUIRED, &members, err) < 0)
        return -1;
    count = json_array_size(members.value);
    if (count < 1 || count > TEAM_MEMBERS_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'members' must have 1 to %d members",
                         TEAM_MEMBERS_MAX);
    for (size_t i = 0; i < count; i++)
        if (json_item_object(&members, i, &member, err) < 0 ||
            team_add_member(live, object, &member, rows, err) < 0)
            return -1;
    team_put_row(rows, live);
    team_add_event(live, rows, "team.created");
    return 0;
}

void team_create(struct domain *domain, const struct caller *caller,
                 const struct json_place *object, team_done *done, void *context)
{
    struct team_creation *creation =
        domain_change_new(sizeof(*creation), domain, caller, team_is_made);
    struct store_transaction *rows = store_begin(domain->options.store);

    creation->done = done;
    creation->context = context;
    creation->live = live_team_new(domain, caller);
    creation->live->is_reading = true; /* nobody looks for its members in the store yet */
    if (team_fill(creation->live, object, rows, &creation->base.failure) == 0) {
        domain_change_commit(&creation->base, rows);
        return;
    }
    store_abandon(rows);
    domain_change_refuse(&creation->base);
}

/* --- listed ------------------------------------------------------------------------------------ */

struct team_listing {
    struct domain *domain;
    struct domain_task task;
    struct caller caller;
    struct list_cursor cursor;
    bool has_cursor;
    size_t limit;
    struct error failure;
    team_list_done *done;
    void *context;
};

static void team_refuse_list(struct domain_task *task)
{
    AUTO(free) struct team_listing *listing = CONTAINER_OF(task, struct team_listing, task);

    listing->done(listing->context, &listing->failure, NULL, 0, NULL);
}

static void team_got_list(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct team_listing *listing = context;
    AUTO(free) struct team *teams = NULL;
    AUTO(pool) struct pool pool = POOL_INIT;
    size_t count = 0;
    bool has_more = false;

    teams = mem_alloc_array((failure ? 0 : rows->count) + 1, sizeof(*teams));
    for (size_t i = 0; !failure && i < rows->count && !has_more; i++) {
        struct team *team = &teams[count];

        team_from_row(rows->rows[i], team);
        if ((listing->has_cursor &&
             !list_cursor_precedes(&listing->cursor, team->created_ms, &team->id)) ||
            !team_is_seen(&listing->caller, team))
            continue;
        has_more = count == listing->limit;
        count += !has_more;
    }
    listing->done(listing->context, failure, teams, count,
                  has_more
                      ? list_cursor_write(teams[count - 1].created_ms, &teams[count - 1].id, &pool)
                      : NULL);
}

void team_list(struct domain *domain, const struct caller *caller, const char *after, size_t limit,
               team_list_done *done, void *context)
{
    struct team_listing *listing = mem_alloc(sizeof(*listing));
    struct store_condition conditions[2];
    struct store_query query = {.kind = STORE_TEAM,
                                .conditions = conditions,
                                .order = STORE_TEAM_CREATED,
                                .is_descending = true,
                                .limit = limit + 8};

    *listing = (struct team_listing){.domain = domain,
                                     .caller = *caller,
                                     .has_cursor = after != NULL,
                                     .limit = limit,
                                     .done = done,
                                     .context = context};
    list_init(&listing->task.link);
    if (after && list_cursor_read(&listing->cursor, after, &listing->failure) < 0) {
        domain_defer(domain, &listing->task, team_refuse_list);
        return;
    }
    if (caller->scope < CALLER_ADMIN)
        conditions[query.condition_count++] =
            (struct store_condition){STORE_TEAM_OWNER, STORE_EQUAL, store_text(caller->owner.text)};
    if (after)
        conditions[query.condition_count++] = (struct store_condition){
            STORE_TEAM_CREATED, STORE_LESS, store_integer(listing->cursor.created_ms + 1)};
    domain_find(domain, &query, team_got_list, listing);
}

/* --- after a restart --------------------------------------------------------------------------- */

static void team_members_found(void *context, const struct error *failure,
                               const struct store_rows *rows)
{
    struct live_team *live = context;

    live->is_reading = false;
    if (failure || live->domain->stage != DOMAIN_OPEN)
        return; /* the tick tries again */
    live->member_count = 0;
    for (size_t i = 0; i < rows->count && i < TEAM_MEMBERS_MAX; i++)
        live->members[live->member_count++] = (struct team_member){
            .id = domain_row_id(&rows->rows[i][STORE_TASK_ID]),
            .state = task_state_from_text(rows->rows[i][STORE_TASK_STATE].bytes)};
    live->is_kept = true;
    for (size_t i = 0; i < live->member_count; i++) {
        struct live_task *member = task_live(live->domain, live->members[i].id.text);

        if (member)
            member->base = live->base;
    }
    team_go(live);
}

static int team_load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    AUTO(json) json_t *document = NULL;
    struct live_team *live;
    struct json_place root;
    struct caller caller;
    struct team team;

    (void) err;
    team_from_row(row, &team);
    if (team.state != TEAM_RUNNING)
        return 0;
    caller = task_caller_of(&team.owner);
    live = live_team_new(domain, &caller);
    live->team = team;
    live->team.title = mem_copy_text(team.title);
    live->base = domain_row_id(&row[STORE_TEAM_BASE]);
    document = json_read(row[STORE_TEAM_SPEC].bytes, row[STORE_TEAM_SPEC].length, NULL, NULL);
    live->spec = (struct task_spec) TASK_SPEC_INIT;
    if (document && json_root_object(document, &root, NULL) == 0)
        (void) task_spec_read(&root, NULL, &live->spec, NULL);
    return 0;
}

static void teams_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_TEAM, STORE_TEAM_ID, team_load_one, done, context);
}

static void teams_begin(struct domain *domain)
{
    domain->teams = mem_alloc(sizeof(*domain->teams));
    list_init(&domain->teams->all);
}

static void teams_tick(struct domain *domain)
{
    LIST_EACH (&domain->teams->all, at) {
        struct live_team *live = CONTAINER_OF(at, struct live_team, link);

        if (live->is_ended && live->end_ns && live->end_ns <= domain_now_ns(domain)) {
            team_end_keep(live);
        } else if (!live->is_kept && !live->is_reading && !live->member_count) {
            live->is_reading = true;
            team_find_members(domain, &live->team.id, team_members_found, live);
        }
    }
}

static void teams_closing(struct domain *domain)
{
    struct error reason = ERROR_INIT;

    (void) domain_is_open(domain, &reason);
    LIST_EACH (&domain->teams->all, at) {
        struct live_team *live = CONTAINER_OF(at, struct live_team, link);
        struct live_task *checkout = live->checkout;
        struct list *link;

        while ((link = list_first(&live->waits))) {
            list_remove(link);
            team_wait_told(CONTAINER_OF(link, struct team_wait, link), &reason, NULL);
        }
        if (checkout && checkout->call) {
            task_call_leave(checkout);
            sequence_next(&checkout->sequence, &reason);
        }
    }
}

static void teams_end(struct domain *domain)
{
    if (!domain->teams)
        return;
    LIST_EACH (&domain->teams->all, at)
        live_team_free(CONTAINER_OF(at, struct live_team, link));
    free(TAKE_PTR(domain->teams));
}

const struct domain_module domain_teams = {
    .name = "teams",
    .begin = teams_begin,
    .load = teams_load,
    .tick = teams_tick,
    .closing = teams_closing,
    .end = teams_end,
};
