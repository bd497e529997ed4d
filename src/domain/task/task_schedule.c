#include "domain/task/task_schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/identity/owner.h"
#include "domain/task/task_internal.h"

#define MS         1000
#define DETAIL_MAX 400

struct task_schedules {
    struct list all;
    int64_t wall_ms; /* at the last tick: a clock that was put back is noticed */
};

static const char *const overlaps[OVERLAP_COUNT] = {"skip", "allow", "replace"};
static const char *const misses[MISSED_COUNT] = {"skip", "once"};

const char *schedule_overlap_text(enum schedule_overlap overlap)
{
    return overlaps[overlap];
}

const char *schedule_missed_text(enum schedule_missed missed)
{
    return misses[missed];
}

/* --- memory ------------------------------------------------------------------------------------ */

static struct task_schedule *schedule_new(struct domain *domain)
{
    struct task_schedule *schedule = mem_alloc(sizeof(*schedule));

    list_append(&domain->schedules->all, &schedule->link);
    return schedule;
}

static void schedule_free(struct task_schedule *schedule)
{
    list_remove(&schedule->link);
    share_release(&schedule->claim);
    time_zone_free(schedule->place);
    free(schedule->name);
    free(schedule->cron);
    free(schedule->zone);
    free(schedule->spec);
    free(schedule->detail);
    free(schedule);
}

static void schedule_rest(struct task_schedule *schedule)
{
    schedule->is_busy = false;
    if (schedule->is_gone)
        schedule_free(schedule);
}

static bool schedule_is_seen(const struct caller *caller, const struct task_schedule *schedule)
{
    return schedule->is_kept && !schedule->is_gone && caller->scope != CALLER_SANDBOX &&
           caller->scope != CALLER_PORT && caller_sees_owner(caller, &schedule->owner);
}

struct task_schedule *schedule_find(const struct domain *domain, const struct caller *caller,
                                    const char *name_or_id, struct error *err)
{
    LIST_EACH (&domain->schedules->all, at) {
        struct task_schedule *schedule = CONTAINER_OF(at, struct task_schedule, link);

        if (schedule_is_seen(caller, schedule) && (strcmp(schedule->id.text, name_or_id) == 0 ||
                                                   (id_equal(&schedule->owner, &caller->owner) &&
                                                    strcmp(schedule->name, name_or_id) == 0)))
            return schedule;
    }
    (void) error_set(err, ERR_NOT_FOUND, 0, "there is no schedule '%.64s'", name_or_id);
    return NULL;
}

void schedule_each(const struct domain *domain, const struct caller *caller,
                   void (*each)(void *context, struct task_schedule *schedule), void *context)
{
    LIST_EACH (&domain->schedules->all, at) {
        struct task_schedule *schedule = CONTAINER_OF(at, struct task_schedule, link);

        if (schedule_is_seen(caller, schedule))
            each(context, schedule);
    }
}

/* --- rows -------------------------------------------------------------------------------------- */

static struct store_value schedule_time(int64_t time_ms)
{
    return time_ms ? store_integer(time_ms) : store_null();
}

static void schedule_put_row(struct store_transaction *rows, const struct task_schedule *schedule)
{
    char policy[128];

    (void) snprintf(policy, sizeof(policy), "{\"overlap\":\"%s\",\"missed\":\"%s\",\"paused\":%s}",
                    overlaps[schedule->overlap], misses[schedule->missed],
                    schedule->is_paused ? "true" : "false");
    const struct store_value values[STORE_SCHEDULE_COLUMN_COUNT] = {
        [STORE_SCHEDULE_ID] = store_text(schedule->id.text),
        [STORE_SCHEDULE_OWNER] = store_text(schedule->owner.text),
        [STORE_SCHEDULE_NAME] = store_text(schedule->name),
        [STORE_SCHEDULE_CRON] = store_text(schedule->cron),
        [STORE_SCHEDULE_ZONE] = store_text(schedule->zone),
        [STORE_SCHEDULE_POLICY] = store_text(policy),
        [STORE_SCHEDULE_SPEC] = store_text(schedule->spec),
        [STORE_SCHEDULE_NEXT] = schedule_time(schedule->next_ms),
        [STORE_SCHEDULE_LAST] = schedule_time(schedule->last_ms),
        [STORE_SCHEDULE_LAST_TASK] =
            *schedule->last_task.text ? store_text(schedule->last_task.text) : store_null(),
        [STORE_SCHEDULE_DETAIL] = store_text(schedule->detail),
        [STORE_SCHEDULE_CREATED] = store_integer(schedule->created_ms),
        [STORE_SCHEDULE_UPDATED] = store_integer(schedule->updated_ms),
    };

    store_put(rows, STORE_SCHEDULE, values);
}

static void schedule_add_event(struct domain *domain, struct store_transaction *rows,
                               const struct caller *caller, const struct task_schedule *schedule,
                               const char *type)
{
    char data[256];

    (void) snprintf(data, sizeof(data), "{\"scheduleId\":\"%s\",\"taskId\":\"%s\"}",
                    schedule->id.text, schedule->last_task.text);
    event_add(domain, rows, caller, &schedule->owner, "system", type, data);
}

/* --- read -------------------------------------------------------------------------------------- */

static struct time_zone *schedule_read_zone(const struct domain *domain, const char *name,
                                            struct error *err)
{
    AUTO(free) char *bytes = NULL;
    struct time_zone *zone;
    size_t length = 0;

    if (strcmp(name, "UTC") == 0)
        return time_zone_read(NULL, 0, NULL);
    if (!time_zone_name_is_valid(name) || !domain->options.read_zone ||
        domain->options.read_zone(domain->options.context, name, &bytes, &length) < 0) {
        (void) error_set(err, ERR_INVALID, 0,
                         "there is no time zone '%.64s' on this machine; use one such as "
                         "Europe/Berlin, or UTC",
                         name);
        return NULL;
    }
    zone = time_zone_read(bytes, length, err);
    if (!zone)
        (void) error_wrap(err, "time zone '%.64s'", name);
    return zone;
}

static int schedule_read_word(const struct json_place *object, const char *key,
                              const char *const words[], unsigned int count, unsigned int *ret_at,
                              const char *form, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(object, key, JSON_OPTIONAL, 16, &text, err) < 0)
        return -1;
    for (unsigned int i = 0; text && i < count; i++)
        if (strcmp(words[i], text) == 0) {
            *ret_at = i;
            return 0;
        }
    return text ? json_refuse_field(object, key, form, err) : 0;
}

static int schedule_read_task(const struct json_place *object, char **ret_spec, struct error *err)
{
    AUTO(task_spec) struct task_spec spec = TASK_SPEC_INIT;
    AUTO(text) struct text text = TEXT_INIT(TASK_SPEC_MAX);
    struct json_place task;

    if (json_field_object(object, "task", JSON_OPTIONAL, &task, err) < 0)
        return -1;
    if (!task.value)
        return 0;
    if (task_spec_read(&task, NULL, &spec, err) < 0)
        return -1;
    if (spec.key || spec.sandbox_name)
        return error_set(err, ERR_INVALID, 0,
                         "'idempotencyKey' and 'sandboxName' are of one task, and a schedule has "
                         "many");
    if (!spec.text == !spec.parts)
        return error_set(err, ERR_INVALID, 0, "a task needs either 'text' or 'parts'");
    if (task_spec_write(&spec, &text, err) < 0)
        return -1;
    free(*ret_spec);
    *ret_spec = text_take(&text);
    return 0;
}

static int64_t schedule_next(const struct task_schedule *schedule, int64_t after_ms)
{
    int64_t next;

    if (schedule->is_paused)
        return 0;
    next = cron_next(&schedule->when, schedule->place, after_ms / MS);
    return next < 0 ? 0 : next * MS;
}

static void schedule_take_text(char **text, const char *value)
{
    if (!value)
        return;
    free(*text);
    *text = mem_copy_text(value);
}

/* Over what it has: all of its members are there afterwards. */
static int schedule_read(struct domain *domain, const struct json_place *object,
                         struct task_schedule *schedule, struct error *err)
{
    static const char *const known[] = {"name",   "cron",   "timeZone", "overlap",
                                        "missed", "paused", "task"};
    unsigned int overlap = schedule->overlap, missed = schedule->missed;
    const char *name = NULL, *cron = NULL, *zone = NULL;

    if (json_known_fields(object, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(object, "name", JSON_OPTIONAL, SCHEDULE_NAME_MAX, &name, err) < 0 ||
        json_field_text(object, "cron", JSON_OPTIONAL, CRON_TEXT_MAX, &cron, err) < 0 ||
        json_field_text(object, "timeZone", JSON_OPTIONAL, TIME_ZONE_NAME_MAX, &zone, err) < 0 ||
        json_field_boolean(object, "paused", JSON_OPTIONAL, &schedule->is_paused, err) < 0 ||
        schedule_read_word(object, "overlap", overlaps, OVERLAP_COUNT, &overlap,
                           "skip, allow or replace", err) < 0 ||
        schedule_read_word(object, "missed", misses, MISSED_COUNT, &missed, "skip or once", err) <
            0 ||
        schedule_read_task(object, &schedule->spec, err) < 0)
        return -1;
    schedule->overlap = (enum schedule_overlap) overlap;
    schedule->missed = (enum schedule_missed) missed;
    schedule_take_text(&schedule->name, name);
    schedule_take_text(&schedule->cron, cron);
    schedule_take_text(&schedule->zone, zone);
    if (!schedule->cron || !schedule->spec)
        return error_set(err, ERR_INVALID, 0, "a schedule needs a 'cron' and a 'task'");
    if (domain_check_name(schedule->name, SCHEDULE_NAME_MAX, "field 'name'", err) < 0 ||
        cron_parse(schedule->cron, &schedule->when, err) < 0)
        return -1;
    time_zone_free(schedule->place);
    schedule->place = schedule_read_zone(domain, schedule->zone, err);
    if (!schedule->place)
        return -1;
    schedule->next_ms = schedule_next(schedule, domain_wall_ms(domain));
    if (!schedule->next_ms && !schedule->is_paused)
        return error_set(err, ERR_INVALID, 0, "'%s' never comes", schedule->cron);
    return 0;
}

/* --- changed ----------------------------------------------------------------------------------- */

struct schedule_change {
    struct domain_change base;
    struct task_schedule *schedule;
    struct task_schedule *old; /* of a change: what it was, to be there again after a failure */
    schedule_done *done;
    void *context;
    bool is_new, is_delete;
};

static struct schedule_change *schedule_change_new(struct domain *domain,
                                                   const struct caller *caller,
                                                   domain_change_end *end, schedule_done *done,
                                                   void *context)
{
    struct schedule_change *change = domain_change_new(sizeof(*change), domain, caller, end);

    change->done = done;
    change->context = context;
    return change;
}

static int schedule_check(struct domain *domain, const struct caller *caller, struct error *err)
{
    if (!domain_is_open(domain, err) || conversation_check_harness(domain, err) < 0)
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change schedules");
    return domain_check_share(domain, &caller->owner, SHARE_SCHEDULES, 1, err);
}

static void schedule_is_made(struct domain_change *base, const struct error *failure,
                             const struct store_receipt *receipt)
{
    struct schedule_change *change = CONTAINER_OF(base, struct schedule_change, base);

    (void) receipt;
    if (!failure)
        change->schedule->is_kept = true;
    change->done(change->context, failure, failure ? NULL : change->schedule);
    if (failure)
        schedule_free(change->schedule);
    free(change);
}

void schedule_create(struct domain *domain, const struct caller *caller,
                     const struct json_place *object, schedule_done *done, void *context)
{
    struct schedule_change *change =
        schedule_change_new(domain, caller, schedule_is_made, done, context);
    struct task_schedule *schedule = change->schedule = schedule_new(domain);
    struct store_transaction *rows;

    schedule->id = id_new();
    schedule->owner = caller->owner;
    schedule->zone = mem_copy_text("UTC");
    schedule->detail = mem_copy_text("");
    schedule->name = mem_copy_text(schedule->id.text);
    schedule->missed = MISSED_ONCE;
    schedule->created_ms = schedule->updated_ms = domain_wall_ms(domain);
    if (schedule_check(domain, caller, &change->base.failure) < 0 ||
        schedule_read(domain, object, schedule, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    domain_claim_anyway(domain, &schedule->owner, SHARE_SCHEDULES, 1, &schedule->claim);
    rows = store_begin(domain->options.store);
    schedule_put_row(rows, schedule);
    schedule_add_event(domain, rows, caller, schedule, "schedule.created");
    domain_change_commit(&change->base, rows);
}

/* A copy without its place in the list, for a change to be made on. */
static struct task_schedule *schedule_copy(const struct task_schedule *schedule)
{
    struct task_schedule *copy = mem_alloc(sizeof(*copy));

    *copy = *schedule;
    list_init(&copy->link);
    copy->claim = (struct share_claim) SHARE_CLAIM_NONE;
    copy->place = NULL;
    copy->name = mem_copy_text(schedule->name);
    copy->cron = mem_copy_text(schedule->cron);
    copy->zone = mem_copy_text(schedule->zone);
    copy->spec = mem_copy_text(schedule->spec);
    copy->detail = mem_copy_text(schedule->detail);
    return copy;
}

/* What a change is about becomes the other's; that one gets what is to be freed. */
static void schedule_swap(struct task_schedule *schedule, struct task_schedule *copy)
{
    struct task_schedule old = *schedule;

    schedule->name = copy->name;
    schedule->cron = copy->cron;
    schedule->zone = copy->zone;
    schedule->spec = copy->spec;
    schedule->place = copy->place;
    schedule->when = copy->when;
    schedule->overlap = copy->overlap;
    schedule->missed = copy->missed;
    schedule->is_paused = copy->is_paused;
    schedule->next_ms = copy->next_ms;
    schedule->updated_ms = copy->updated_ms;
    copy->name = old.name;
    copy->cron = old.cron;
    copy->zone = old.zone;
    copy->spec = old.spec;
    copy->place = old.place;
}

static void schedule_is_changed(struct domain_change *base, const struct error *failure,
                                const struct store_receipt *receipt)
{
    struct schedule_change *change = CONTAINER_OF(base, struct schedule_change, base);
    struct task_schedule *schedule = change->schedule;

    (void) receipt;
    if (!failure && change->is_delete)
        schedule->is_gone = true;
    else if (!failure)
        schedule_swap(schedule, change->old);
    if (change->old)
        schedule_free(change->old);
    change->done(change->context, failure, failure || change->is_delete ? NULL : schedule);
    if (!base->is_refused)
        schedule_rest(schedule);
    free(change);
}

static int schedule_check_change(struct domain *domain, const struct caller *caller,
                                 struct task_schedule *schedule, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change schedules");
    if (schedule->is_busy)
        return error_set(err, ERR_CONFLICT, 0,
                         "the schedule is being changed, or at its time, right now; try again");
    return 0;
}

void schedule_change(struct domain *domain, const struct caller *caller,
                     struct task_schedule *schedule, const struct json_place *object,
                     schedule_done *done, void *context)
{
    struct schedule_change *change =
        schedule_change_new(domain, caller, schedule_is_changed, done, context);
    struct error *err = &change->base.failure;
    struct store_transaction *rows;

    change->schedule = schedule;
    if (schedule_check_change(domain, caller, schedule, err) == 0) {
        change->old = schedule_copy(schedule);
        change->old->updated_ms = domain_wall_ms(domain);
        if (schedule_read(domain, object, change->old, err) == 0) {
            schedule->is_busy = true;
            rows = store_begin(domain->options.store);
            schedule_put_row(rows, change->old);
            schedule_add_event(domain, rows, caller, schedule, "schedule.changed");
            domain_change_commit(&change->base, rows);
            return;
        }
    }
    domain_change_refuse(&change->base);
}

void schedule_delete(struct domain *domain, const struct caller *caller,
                     struct task_schedule *schedule, schedule_done *done, void *context)
{
    struct schedule_change *change =
        schedule_change_new(domain, caller, schedule_is_changed, done, context);
    struct store_transaction *rows;

    change->schedule = schedule;
    change->is_delete = true;
    if (schedule_check_change(domain, caller, schedule, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    schedule->is_busy = true;
    rows = store_begin(domain->options.store);
    domain_delete_rows(rows, STORE_SCHEDULE, STORE_SCHEDULE_ID, &schedule->id);
    schedule_add_event(domain, rows, caller, schedule, "schedule.deleted");
    domain_change_commit(&change->base, rows);
}

/* --- at its time ------------------------------------------------------------------------------- */

struct schedule_firing {
    struct domain *domain;
    struct task_schedule *schedule;
    struct caller caller;
    int64_t due_ms;
    bool moves;         /* the next time is found; not when somebody runs it by hand */
    task_created *done; /* NULL: by itself */
    void *context;
};

static void schedule_fired_kept(void *context, const struct error *failure,
                                const struct store_receipt *receipt)
{
    AUTO(free) struct schedule_firing *firing = context;

    if (!failure)
        event_kept(firing->domain, receipt);
    schedule_rest(firing->schedule);
}

/* What came of it, and when it is time again. */
static void schedule_note(struct schedule_firing *firing, const char *detail)
{
    struct task_schedule *schedule = firing->schedule;
    struct domain *domain = firing->domain;
    struct store_transaction *rows;

    schedule_take_text(&schedule->detail, detail);
    schedule->last_ms = firing->due_ms;
    if (firing->moves)
        schedule->next_ms = schedule_next(schedule, domain_wall_ms(domain));
    if (schedule->is_gone || domain->stage != DOMAIN_OPEN) {
        schedule_rest(schedule);
        free(firing);
        return;
    }
    rows = store_begin(domain->options.store);
    schedule_put_row(rows, schedule);
    schedule_add_event(domain, rows, &firing->caller, schedule, "schedule.fired");
    domain_commit(domain, rows, schedule_fired_kept, firing);
}

static void schedule_task_made(void *context, const struct error *failure, const struct task *task,
                               bool is_new)
{
    struct schedule_firing *firing = context;
    char detail[DETAIL_MAX];

    if (firing->done)
        firing->done(firing->context, failure, task, is_new);
    if (!failure) {
        CRASH_POINT("schedule.task.made");
        firing->schedule->last_task = task->id;
        schedule_note(firing, "a task was begun");
        return;
    }
    (void) snprintf(detail, sizeof(detail), "no task: %s", failure->message);
    schedule_note(firing, detail);
}

static void schedule_begin_task(struct schedule_firing *firing)
{
    const struct task_schedule *schedule = firing->schedule;
    AUTO(json) json_t *document = json_read(schedule->spec, strlen(schedule->spec), NULL, NULL);
    AUTO(task_spec) struct task_spec spec = TASK_SPEC_INIT;
    struct json_place root;
    struct error err = ERROR_INIT;
    char key[64 + ID_SIZE];

    if (!document || json_root_object(document, &root, &err) < 0 ||
        task_spec_read(&root, NULL, &spec, &err) < 0) {
        schedule_task_made(firing, &err, NULL, false);
        return;
    }
    (void) snprintf(key, sizeof(key), "schedule-%s-%" PRId64, schedule->id.text, firing->due_ms);
    spec.key = key;
    task_create_scheduled(firing->domain, &firing->caller, &spec, &schedule->id, schedule_task_made,
                          firing);
}

static void schedule_replaced(void *context, const struct error *failure, const struct task *task)
{
    (void) failure, (void) task;
    schedule_begin_task(context);
}

static struct schedule_firing *schedule_firing_new(struct domain *domain,
                                                   struct task_schedule *schedule)
{
    struct schedule_firing *firing = mem_alloc(sizeof(*firing));

    *firing = (struct schedule_firing){.domain = domain,
                                       .schedule = schedule,
                                       .caller = task_caller_of(&schedule->owner),
                                       .due_ms = domain_wall_ms(domain)};
    schedule->is_busy = true;
    return firing;
}

static bool schedule_may_fire(struct schedule_firing *firing)
{
    const struct task_schedule *schedule = firing->schedule;
    const struct owner *owner = owner_find(firing->domain, &schedule->owner);
    int64_t late = domain_wall_ms(firing->domain) - firing->due_ms;

    if (owner && owner->is_disabled)
        schedule_note(firing, "no task: its user is disabled");
    else if (late > SCHEDULE_LATE_MS && schedule->missed == MISSED_SKIP)
        schedule_note(firing, "no task: its time was missed");
    else if (schedule->overlap == OVERLAP_SKIP &&
             task_live(firing->domain, schedule->last_task.text))
        schedule_note(firing, "no task: the one of the last time is not over");
    else
        return true;
    return false;
}

static void schedule_fire(struct domain *domain, struct task_schedule *schedule)
{
    struct schedule_firing *firing = schedule_firing_new(domain, schedule);

    firing->due_ms = schedule->next_ms;
    firing->moves = true;
    if (!schedule_may_fire(firing))
        return;
    if (schedule->overlap == OVERLAP_REPLACE && task_live(domain, schedule->last_task.text))
        task_cancel(domain, &firing->caller, schedule->last_task.text, schedule_replaced, firing);
    else
        schedule_begin_task(firing);
}

struct schedule_refusal {
    struct domain_task task;
    struct error failure;
    task_created *done;
    void *context;
};

static void schedule_refused(struct domain_task *task)
{
    AUTO(free) struct schedule_refusal *refusal = CONTAINER_OF(task, struct schedule_refusal, task);

    refusal->done(refusal->context, &refusal->failure, NULL, false);
}

void schedule_run(struct domain *domain, const struct caller *caller,
                  struct task_schedule *schedule, task_created *done, void *context)
{
    struct schedule_refusal *refusal = mem_alloc(sizeof(*refusal));
    struct schedule_firing *firing;

    if (schedule_check_change(domain, caller, schedule, &refusal->failure) < 0) {
        refusal->done = done;
        refusal->context = context;
        list_init(&refusal->task.link);
        domain_defer(domain, &refusal->task, schedule_refused);
        return;
    }
    free(refusal);
    firing = schedule_firing_new(domain, schedule);
    firing->done = done;
    firing->context = context;
    schedule_begin_task(firing);
}

/* --- the module -------------------------------------------------------------------------------- */

static void schedules_begin(struct domain *domain)
{
    domain->schedules = mem_alloc(sizeof(*domain->schedules));
    list_init(&domain->schedules->all);
}

static int schedule_word_at(json_t *policy, const char *key, const char *const words[],
                            unsigned int count)
{
    const char *text = json_string_value(json_object_get(policy, key));

    for (unsigned int i = 0; text && i < count; i++)
        if (strcmp(words[i], text) == 0)
            return (int) i;
    return 0;
}

static int schedule_load_one(struct domain *domain, const struct store_value *row,
                             struct error *err)
{
    struct task_schedule *schedule = schedule_new(domain);
    AUTO(json)
    json_t *policy =
        json_read(row[STORE_SCHEDULE_POLICY].bytes, row[STORE_SCHEDULE_POLICY].length, NULL, NULL);
    struct error ignored = ERROR_INIT;

    schedule->id = domain_row_id(&row[STORE_SCHEDULE_ID]);
    schedule->owner = domain_row_id(&row[STORE_SCHEDULE_OWNER]);
    schedule->last_task = domain_row_id(&row[STORE_SCHEDULE_LAST_TASK]);
    schedule->name = mem_copy_text(row[STORE_SCHEDULE_NAME].bytes);
    schedule->cron = mem_copy_text(row[STORE_SCHEDULE_CRON].bytes);
    schedule->zone = mem_copy_text(row[STORE_SCHEDULE_ZONE].bytes);
    schedule->spec = mem_copy_text(row[STORE_SCHEDULE_SPEC].bytes);
    schedule->detail = mem_copy_text(row[STORE_SCHEDULE_DETAIL].bytes);
    schedule->overlap =
        (enum schedule_overlap) schedule_word_at(policy, "overlap", overlaps, OVERLAP_COUNT);
    schedule->missed =
        (enum schedule_missed) schedule_word_at(policy, "missed", misses, MISSED_COUNT);
    schedule->is_paused = json_is_true(json_object_get(policy, "paused"));
    schedule->next_ms = row[STORE_SCHEDULE_NEXT].integer;
    schedule->last_ms = row[STORE_SCHEDULE_LAST].integer;
    schedule->created_ms = row[STORE_SCHEDULE_CREATED].integer;
    schedule->updated_ms = row[STORE_SCHEDULE_UPDATED].integer;
    schedule->is_kept = true;
    domain_claim_anyway(domain, &schedule->owner, SHARE_SCHEDULES, 1, &schedule->claim);
    if (cron_parse(schedule->cron, &schedule->when, err) < 0)
        return error_wrap(err, "schedule %s", schedule->id.text);
    schedule->place = schedule_read_zone(domain, schedule->zone, &ignored);
    if (!schedule->place) { /* the machine has lost its zones: that is no reason not to start */
        LOG_WARNING(domain->options.log, "a schedule goes by UTC from now on",
                    log_text("schedule", schedule->id.text), log_text("error", ignored.message));
        schedule->place = time_zone_read(NULL, 0, NULL);
    }
    return 0;
}

static void schedules_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_SCHEDULE, STORE_SCHEDULE_ID, schedule_load_one, done, context);
}

static void schedules_tick(struct domain *domain)
{
    struct task_schedules *schedules = domain->schedules;
    int64_t now = domain_wall_ms(domain);
    bool was_put_back = now + SCHEDULE_LATE_MS < schedules->wall_ms;

    schedules->wall_ms = now;
    LIST_EACH (&schedules->all, at) {
        struct task_schedule *schedule = CONTAINER_OF(at, struct task_schedule, link);

        if (!schedule->is_kept || schedule->is_busy || schedule->is_gone || !schedule->next_ms)
            continue;
        if (was_put_back)
            schedule->next_ms = schedule_next(schedule, now);
        if (schedule->next_ms && schedule->next_ms <= now)
            schedule_fire(domain, schedule);
    }
}

static void schedules_owner_deleted(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->schedules->all, at) {
        struct task_schedule *schedule = CONTAINER_OF(at, struct task_schedule, link);

        if (!id_equal(&schedule->owner, owner))
            continue;
        schedule->is_gone = true;
        if (!schedule->is_busy)
            schedule_free(schedule);
    }
}

static void schedules_end(struct domain *domain)
{
    if (!domain->schedules)
        return;
    LIST_EACH (&domain->schedules->all, at)
        schedule_free(CONTAINER_OF(at, struct task_schedule, link));
    free(TAKE_PTR(domain->schedules));
}

const struct domain_module domain_task_schedules = {
    .name = "schedules",
    .begin = schedules_begin,
    .load = schedules_load,
    .owner_deleted = schedules_owner_deleted,
    .tick = schedules_tick,
    .end = schedules_end,
};
