/* Tasks, teams and schedules, with agents that do as they are told. */
#include "domain/conversation/harness_testing.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_testing.h"
#include "domain/task/task.h"
#include "domain/task/task_internal.h"
#include "domain/task/task_schedule.h"
#include "domain/task/team.h"

struct task_office {
    struct world *world;
    struct fake_harness fake;
    struct fake_memory memory;
    struct text operations; /* "1{...};" what agents in sandboxes were asked */
    int operation_count;
    bool is_silent; /* operations are not answered */
    struct {
        inside_text_done *done;
        void *context;
    } held[8]; /* those that were not */
    size_t held_count;
    bool has_clone; /* the look for one finds it */
    enum err_code failure;
};

static struct task_office *task_office_of_inside;

struct operation_answer {
    struct loop_task task;
    struct task_office *office;
    inside_text_done *done;
    void *context;
    const char *text;
};

static void operation_tell(struct loop_task *task)
{
    AUTO(free) struct operation_answer *answer = CONTAINER_OF(task, struct operation_answer, task);
    struct error failure = ERROR_INIT;

    if (answer->office->failure)
        (void) error_set(&failure, answer->office->failure, 0, "it went wrong");
    answer->done(answer->context, failure.code ? &failure : NULL,
                 failure.code ? NULL : answer->text);
}

static void office_operate(void *self, const struct id *sandbox, enum inside_operation operation,
                           const char *json, uint64_t timeout_ms, inside_text_done *done,
                           void *context)
{
    struct task_office *office = task_office_of_inside;
    struct operation_answer *answer;

    (void) self, (void) sandbox, (void) timeout_ms;
    office->operation_count++;
    text_format(&office->operations, "%d%s;", (int) operation, json);
    if (office->is_silent) {
        office->held[office->held_count].done = done;
        office->held[office->held_count++].context = context;
        return;
    }
    answer = mem_alloc(sizeof(*answer));
    *answer = (struct operation_answer){
        .office = office,
        .done = done,
        .context = context,
        .text = operation == INSIDE_EXECUTE && strstr(json, "rev-parse") && !office->has_clone
                    ? "{\"exitCode\":1,\"stdout\":\"\"}"
                    : "{\"exitCode\":0,\"stdout\":\"+line\"}"};
    loop_task_init(&answer->task, operation_tell);
    loop_defer(&office->world->loop, &answer->task);
}

static void office_answer_held(struct task_office *office)
{
    for (size_t i = 0; i < office->held_count; i++)
        office->held[i].done(office->held[i].context, NULL, "{\"exitCode\":0}");
    office->held_count = 0;
}

static int office_zone(void *context, const char *name, char **ret_bytes, size_t *ret_length)
{
    (void) context, (void) name, (void) ret_bytes, (void) ret_length;
    return -1;
}

static int office_setup(void **state)
{
    struct task_office *office = mem_alloc(sizeof(*office));

    office->world = world_new(NULL);
    office->operations = (struct text) TEXT_INIT(1 << 20);
    task_office_of_inside = office;
    fake_harness_init(&office->fake, office->world, &office->memory);
    office->world->inside.operate = office_operate;
    office->world->options.read_zone = office_zone;
    world_open(office->world);
    world_tick(office->world);
    *state = office;
    return 0;
}

static int office_teardown(void **state)
{
    struct task_office *office = *state;

    office->is_silent = false;
    world_free(office->world);
    office_answer_held(office); /* nobody listens */
    text_done(&office->operations);
    free(office);
    return 0;
}

#define OFFICE_TEST(name) cmocka_unit_test_setup_teardown(name, office_setup, office_teardown)

/* --- calls ------------------------------------------------------------------------------------- */

struct told_task {
    struct told told;
    struct id id, sandbox, snapshot, turn;
    enum task_state state;
    char code[32], answer[64], message[200];
    struct harness_usage usage;
    char changes[512];
    bool is_new;
};

static void note_task(struct told_task *told, const struct error *failure, const struct task *task)
{
    note_told(&told->told, failure, NULL);
    if (!task)
        return;
    told->id = task->id;
    told->sandbox = task->sandbox;
    told->snapshot = task->snapshot;
    told->turn = task->turn;
    told->state = task->state;
    told->usage = task->usage;
    (void) snprintf(told->code, sizeof(told->code), "%s", task->error_code);
    (void) snprintf(told->message, sizeof(told->message), "%s", task->error_message);
    (void) snprintf(told->answer, sizeof(told->answer), "%s", task->answer);
    (void) snprintf(told->changes, sizeof(told->changes), "%s", task->changes ? task->changes : "");
}

static void on_task(void *context, const struct error *failure, const struct task *task)
{
    note_task(context, failure, task);
}

static void on_task_created(void *context, const struct error *failure, const struct task *task,
                            bool is_new)
{
    note_task(context, failure, task);
    ((struct told_task *) context)->is_new = is_new;
}

static struct told_task ask_task(struct task_office *office, const char *json)
{
    struct told_task told = {.is_new = false};
    AUTO(json) json_t *value = json_read(json, strlen(json), NULL, NULL);
    AUTO(task_spec) struct task_spec spec = TASK_SPEC_INIT;
    struct json_place place;
    struct error err = ERROR_INIT;

    assert_non_null(value);
    assert_int_equal(json_root_object(value, &place, &err), 0);
    if (task_spec_read(&place, NULL, &spec, &err) < 0) {
        note_told(&told.told, &err, NULL);
        return told;
    }
    task_create(office->world->domain, &office->world->caller, &spec, on_task_created, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&office->world->loop, told.told.times);
    return told;
}

static struct id begin_task(struct task_office *office, const char *json)
{
    struct told_task told = ask_task(office, json);

    expect_ok(&told.told);
    return told.id;
}

static struct told_task wait_task(struct task_office *office, const struct id *id)
{
    struct told_task told = {.is_new = false};

    (void) task_wait_begin(office->world->domain, &office->world->caller, id->text, on_task, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    expect_ok(&told.told);
    return told;
}

static struct told_task read_task(struct task_office *office, const struct id *id)
{
    struct told_task told = {.is_new = false};

    task_read(office->world->domain, &office->world->caller, id->text, false, on_task, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    return told;
}

static struct told_task cancel_task(struct task_office *office, const struct id *id)
{
    struct told_task told = {.is_new = false};

    task_cancel(office->world->domain, &office->world->caller, id->text, on_task, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    return told;
}

static bool has_handles(const struct task_office *office, int prompts)
{
    return office->fake.prompts >= prompts;
}

static struct sandbox *sandbox_of(struct task_office *office, const struct id *id)
{
    return sandbox_find(office->world->domain, &office->world->caller, id->text, NULL);
}

/* As after a restart; sandboxes run on. */
static void reopen(struct task_office *office)
{
    struct id ids[32];
    size_t count = 0;

    LIST_EACH (&office->world->domain->sandboxes->all, at)
        ids[count++] = CONTAINER_OF(at, struct sandbox, link)->id;
    world_close(office->world);
    world_make_provider(office->world);
    for (size_t i = 0; i < count; i++)
        provider_fake_add(office->world->provider, &ids[i], RUN_STATE_RUNNING, NULL);
    world_open(office->world);
    world_tick(office->world);
    world_settle(office->world);
}

/* --- tasks ------------------------------------------------------------------------------------- */

static void a_task_has_a_sandbox_a_turn_and_a_result(void **state)
{
    struct task_office *office = *state;
    struct id id =
        begin_task(office, "{\"text\":\"do it\",\"title\":\"work\",\"cleanup\":\"keep\"}");
    struct told_task told;

    TURN_UNTIL(&office->world->loop, has_handles(office, 1));
    world_settle(office->world);
    told = read_task(office, &id);
    assert_int_equal(told.state, TASK_RUNNING);
    assert_true(*told.snapshot.text != '\0');
    fake_finish(&office->fake);
    told = wait_task(office, &id);
    assert_int_equal(told.state, TASK_DONE);
    assert_string_equal(told.answer, "the answer");
    assert_int_equal(told.usage.cost_micros, 7);
    world_settle(office->world);
    assert_int_equal(sandbox_of(office, &told.sandbox)->status, SANDBOX_RUNNING);
    assert_int_equal(sandbox_of(office, &told.sandbox)->uses, 0);
    told = read_task(office, &id);
    assert_string_equal(told.answer, "the answer");
}

static void its_sandbox_goes_or_sleeps_afterwards(void **state)
{
    struct task_office *office = *state;
    struct told_task told;
    struct id id;

    office->fake.is_quick = true;
    id = begin_task(office, "{\"text\":\"a\",\"cleanup\":\"destroy\"}");
    told = wait_task(office, &id);
    assert_int_equal(told.state, TASK_DONE);
    world_settle(office->world);
    assert_null(sandbox_of(office, &told.sandbox));
    assert_string_equal(read_task(office, &id).answer, "the answer");
    id = begin_task(office, "{\"text\":\"b\"}");
    told = wait_task(office, &id);
    world_settle(office->world);
    assert_int_equal(sandbox_of(office, &told.sandbox)->status, SANDBOX_FROZEN);
}

static void a_repository_and_files_are_there_first(void **state)
{
    struct task_office *office = *state;
    struct id id;
    const char *seen;

    office->fake.is_quick = true;
    id = begin_task(office, "{\"text\":\"a\",\"git\":{\"url\":\"https://me:pw@host/x/repo.git\","
                            "\"branch\":\"main\",\"depth\":1},\"files\":[{\"path\":\"a.txt\","
                            "\"content\":\"hi\"},{\"path\":\"/tmp/b\",\"base64\":\"aGk=\"}]}");
    assert_int_equal(wait_task(office, &id).state, TASK_DONE);
    seen = text_string(&office->operations);
    assert_non_null(strstr(seen, "1{\"repoUrl\":\"https://me:pw@host/x/repo.git\",\"targetDir\":"
                                 "\"/workspace/repo\",\"branch\":\"main\",\"depth\":1};"));
    assert_non_null(strstr(seen, "2{\"path\":\"/workspace/repo/a.txt\",\"content\":\"hi\"};"));
    assert_non_null(
        strstr(seen, "2{\"path\":\"/tmp/b\",\"content\":\"aGk=\",\"encoding\":\"base64\"};"));
    assert_non_null(strstr(read_task(office, &id).changes, "\"patch\":\"+line\""));
}

static void a_clone_that_fails_fails_the_task(void **state)
{
    struct task_office *office = *state;
    struct told_task told;
    struct id id;

    office->failure = ERR_UPSTREAM;
    id = begin_task(office, "{\"text\":\"a\",\"git\":{\"url\":\"https://host/repo\"}}");
    told = wait_task(office, &id);
    assert_int_equal(told.state, TASK_FAILED);
    assert_string_equal(told.code, "upstream_failed");
    assert_non_null(strstr(told.message, "check out the repository"));
    assert_int_equal(office->fake.prompts, 0);
}

static void of_one_key_there_is_one_task(void **state)
{
    struct task_office *office = *state;
    struct told_task a = ask_task(office, "{\"text\":\"a\",\"idempotencyKey\":\"k\"}"), b;

    b = ask_task(office, "{\"text\":\"a\",\"idempotencyKey\":\"k\"}");
    assert_true(a.is_new && !b.is_new);
    assert_string_equal(a.id.text, b.id.text);
    assert_int_equal(office->world->domain->tasks_kept->live.count, 1);
}

static void bad_tasks_are_refused(void **state)
{
    struct task_office *office = *state;
    static const char *const texts[] = {
        "{}",
        "{\"text\":\"\"}",
        "{\"text\":\"a\",\"parts\":[{}]}",
        "{\"text\":\"a\",\"what\":1}",
        "{\"text\":\"a\",\"model\":\"nameless\"}",
        "{\"text\":\"a\",\"model\":{\"providerID\":\"x\"}}",
        "{\"text\":\"a\",\"git\":{}}",
        "{\"text\":\"a\",\"files\":[{\"path\":\"a\"}]}",
        "{\"text\":\"a\",\"cleanup\":\"burn\"}",
        "{\"text\":\"a\",\"backend\":\"moon\"}",
        "{\"text\":\"a\",\"timeout\":\"400d\"}",
        "{\"text\":\"a\",\"sandbox\":\"x\",\"image\":\"y\"}",
        "{\"text\":\"a\",\"kind\":\"robot\"}",
    };

    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct told_task told = ask_task(office, texts[i]);

        if (told.told.failure.code != ERR_INVALID)
            fail_msg("%s: %s", texts[i], told.told.failure.message);
    }
    assert_int_equal(office->world->domain->tasks_kept->live.count, 0);
    assert_true(list_is_empty(&office->world->domain->conversations->all));
}

static void a_task_in_a_sandbox_that_is_there_leaves_it(void **state)
{
    struct task_office *office = *state;
    struct sandbox *sandbox = world_create(office->world, "mine");
    struct id id;

    office->fake.is_quick = true;
    id = begin_task(office, "{\"text\":\"a\",\"sandbox\":\"mine\",\"cleanup\":\"destroy\"}");
    assert_int_equal(wait_task(office, &id).state, TASK_DONE);
    world_settle(office->world);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

static void a_task_is_undone(void **state)
{
    struct task_office *office = *state;
    struct told_task told = {.is_new = false};
    struct id id;

    office->fake.is_quick = true;
    id = begin_task(office, "{\"text\":\"a\",\"cleanup\":\"keep\"}");
    wait_task(office, &id);
    world_settle(office->world);
    task_undo(office->world->domain, &office->world->caller, id.text, on_task, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    expect_ok(&told.told);
    assert_int_equal(office->world->domain->counters.rolled_back, 1);
}

static void a_task_is_cancelled_wherever_it_is(void **state)
{
    struct task_office *office = *state;
    struct id id;

    provider_fake_hold(office->world->provider, PROVIDER_CALL_CREATE, true);
    id = begin_task(office, "{\"text\":\"while its sandbox is made\",\"cleanup\":\"destroy\"}");
    {
        struct told_task told = {.is_new = false};

        task_cancel(office->world->domain, &office->world->caller, id.text, on_task, &told);
        for (int i = 0; i < 5; i++)
            testing_turn(&office->world->loop);
        provider_fake_hold(office->world->provider, PROVIDER_CALL_CREATE, false);
        TURN_UNTIL(&office->world->loop, told.told.times);
        assert_int_equal(told.state, TASK_CANCELLED);
    }
    office->is_silent = true;
    id = begin_task(office, "{\"text\":\"b\",\"git\":{\"url\":\"https://host/repo\"}}");
    TURN_UNTIL(&office->world->loop, office->operation_count);
    assert_int_equal(cancel_task(office, &id).state, TASK_CANCELLED);
    office->is_silent = false;
    id = begin_task(office, "{\"text\":\"while it is at work\"}");
    TURN_UNTIL(&office->world->loop, has_handles(office, 1));
    assert_int_equal(cancel_task(office, &id).state, TASK_CANCELLED);
    assert_int_equal(cancel_task(office, &id).state, TASK_CANCELLED);
}

static void a_task_takes_no_longer_than_it_may(void **state)
{
    struct task_office *office = *state;
    struct id id = begin_task(office, "{\"text\":\"slow\",\"timeout\":\"5s\"}");
    struct told_task told;

    TURN_UNTIL(&office->world->loop, has_handles(office, 1));
    world_settle(office->world);
    world_pass(office->world, 7);
    told = wait_task(office, &id);
    assert_int_equal(told.state, TASK_FAILED);
    assert_string_equal(told.code, "task_timeout");
}

static void after_a_restart_a_task_goes_on_and_is_prompted_once(void **state)
{
    struct task_office *office = *state;
    struct id id = begin_task(office, "{\"text\":\"long\",\"cleanup\":\"keep\"}");
    struct told_task told;

    TURN_UNTIL(&office->world->loop, has_handles(office, 1));
    world_settle(office->world);
    reopen(office);
    fake_finish(&office->fake);
    told = wait_task(office, &id);
    assert_int_equal(told.state, TASK_DONE);
    assert_int_equal(office->memory.count, 1);
    assert_int_equal(office->memory.turns[0].prompts, 1);
}

static void one_that_was_being_prepared_is_prepared_again(void **state)
{
    struct task_office *office = *state;
    struct told_task told;
    struct id id;

    office->is_silent = true;
    id = begin_task(office, "{\"text\":\"b\",\"git\":{\"url\":\"https://host/repo\"}}");
    TURN_UNTIL(&office->world->loop, office->operation_count);
    reopen(office);
    assert_int_equal(office->operation_count, 2);
    office->is_silent = false;
    office_answer_held(office);
    office->fake.is_quick = true;
    told = wait_task(office, &id);
    assert_int_equal(told.state, TASK_DONE);
    assert_int_equal(office->memory.turns[0].prompts, 1);
}

static void a_task_is_deleted_with_its_log(void **state)
{
    struct task_office *office = *state;
    struct told_task told = {.is_new = false};
    struct id id;

    office->fake.is_quick = true;
    id = begin_task(office, "{\"text\":\"a\"}");
    wait_task(office, &id);
    task_delete(office->world->domain, &office->world->caller, id.text, on_task, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    assert_false(told.told.failed);
    world_pass_quietly(office->world, 3);
    assert_true(list_is_empty(&office->world->domain->conversations->all));
    told = read_task(office, &id);
    expect_code(&told.told, ERR_NOT_FOUND);
}

static void old_tasks_go(void **state)
{
    struct task_office *office = *state;
    struct told_task told;
    struct id id;

    office->fake.is_quick = true;
    id = begin_task(office, "{\"text\":\"a\"}");
    wait_task(office, &id);
    world_settle(office->world);
    clock_manual_advance(&office->world->clock, (uint64_t) TASK_KEPT_MS + 1000);
    world_pass_quietly(office->world, 3);
    told = read_task(office, &id);
    expect_code(&told.told, ERR_NOT_FOUND);
}

/* --- teams ------------------------------------------------------------------------------------- */

struct told_team {
    struct told told;
    struct id id;
    enum team_state state;
    size_t count;
    enum task_state members[TEAM_MEMBERS_MAX];
    struct id sandboxes[TEAM_MEMBERS_MAX];
    uint64_t cost;
};

static void on_team(void *context, const struct error *failure, const struct team *team)
{
    struct told_team *told = context;

    note_told(&told->told, failure, NULL);
    if (!team)
        return;
    told->id = team->id;
    told->state = team->state;
    told->count = team->member_count;
    told->cost = team->usage.cost_micros;
    for (size_t i = 0; i < team->member_count; i++) {
        told->members[i] = team->members[i].state;
        told->sandboxes[i] = team->members[i].sandbox;
    }
}

static struct told_team ask_team(struct task_office *office, const char *json)
{
    struct told_team told = {.count = 0};
    AUTO(json) json_t *value = json_read(json, strlen(json), NULL, NULL);
    struct json_place place;

    assert_int_equal(json_root_object(value, &place, NULL), 0);
    team_create(office->world->domain, &office->world->caller, &place, on_team, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    return told;
}

static struct told_team wait_team(struct task_office *office, const struct id *id)
{
    struct told_team told = {.count = 0};

    (void) team_wait_begin(office->world->domain, &office->world->caller, id->text, on_team, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    expect_ok(&told.told);
    return told;
}

static void a_team_is_what_its_members_are(void **state)
{
    static const enum task_state mixed[] = {TASK_DONE, TASK_FAILED},
                                 none[] = {TASK_FAILED, TASK_CANCELLED},
                                 all[] = {TASK_DONE, TASK_DONE}, some[] = {TASK_DONE, TASK_QUEUED};

    (void) state;
    assert_int_equal(team_state_of(mixed, 2, false), TEAM_PARTIAL);
    assert_int_equal(team_state_of(none, 2, false), TEAM_FAILED);
    assert_int_equal(team_state_of(none, 2, true), TEAM_CANCELLED);
    assert_int_equal(team_state_of(all, 2, true), TEAM_DONE);
    assert_int_equal(team_state_of(some, 2, true), TEAM_RUNNING);
}

static void so_many_members_work_at_a_time(void **state)
{
    struct task_office *office = *state;
    struct told_team told =
        ask_team(office, "{\"members\":[{\"role\":\"a\",\"text\":\"1\"},{\"text\":\"2\"},{\"text\":"
                         "\"3\"}],\"parallel\":2,\"cleanup\":\"keep\"}");

    expect_ok(&told.told);
    TURN_UNTIL(&office->world->loop, has_handles(office, 2));
    world_settle(office->world);
    assert_int_equal(office->fake.prompts, 2);
    office->fake.is_quick = true;
    fake_finish(&office->fake);
    TURN_UNTIL(&office->world->loop, has_handles(office, 3));
    fake_finish(&office->fake);
    world_settle(office->world);
    if (fake_last(&office->fake))
        fake_finish(&office->fake);
    told = wait_team(office, &told.id);
    assert_int_equal(told.state, TEAM_DONE);
    assert_int_equal(told.count, 3);
    assert_int_equal(told.cost, 21);
}

static void members_are_forks_of_one_checkout(void **state)
{
    struct task_office *office = *state;
    struct told_team told = ask_team(
        office, "{\"members\":[{\"text\":\"1\"},{\"text\":\"2\"}],\"shared\":\"fork\",\"git\":"
                "{\"url\":\"https://host/repo\"},\"cleanup\":\"keep\"}");
    const char *at;
    int clones = 0;

    office->fake.is_quick = true;
    expect_ok(&told.told);
    told = wait_team(office, &told.id);
    assert_int_equal(told.state, TEAM_DONE);
    for (at = text_string(&office->operations); (at = strstr(at, "repoUrl")); at++)
        clones++;
    assert_int_equal(clones, 1);
    world_settle(office->world);
    assert_int_equal(office->world->domain->counters.forked, 2);
    assert_non_null(sandbox_of(office, &told.sandboxes[0]));
    assert_non_null(sandbox_of(office, &told.sandboxes[1]));
    assert_int_equal(office->world->domain->sandboxes->counts[SANDBOX_RUNNING], 2);
}

static void a_team_is_cancelled_with_all_its_members(void **state)
{
    struct task_office *office = *state;
    struct told_team told = ask_team(
        office,
        "{\"members\":[{\"text\":\"1\"},{\"text\":\"2\"},{\"text\":\"3\"}],\"parallel\":1}");
    struct told_team cancelled = {.count = 0};

    TURN_UNTIL(&office->world->loop, has_handles(office, 1));
    team_cancel(office->world->domain, &office->world->caller, told.id.text, on_team, &cancelled);
    TURN_UNTIL(&office->world->loop, cancelled.told.times);
    assert_int_equal(cancelled.state, TEAM_CANCELLED);
    for (size_t i = 0; i < cancelled.count; i++)
        assert_int_equal(cancelled.members[i], TASK_CANCELLED);
    assert_int_equal(office->fake.prompts, 1);
}

static void a_bad_member_is_named_and_nothing_is_kept(void **state)
{
    struct task_office *office = *state;
    struct told_team told =
        ask_team(office, "{\"members\":[{\"text\":\"1\"},{\"text\":\"2\",\"what\":1}]}");

    expect_code(&told.told, ERR_INVALID);
    assert_non_null(strstr(told.told.failure.message, "what"));
    world_settle(office->world);
    assert_int_equal(office->world->domain->tasks_kept->live.count, 0);
    assert_true(list_is_empty(&office->world->domain->conversations->all));
}

static void a_team_goes_on_after_a_restart(void **state)
{
    struct task_office *office = *state;
    struct told_team told = ask_team(
        office, "{\"members\":[{\"text\":\"1\"},{\"text\":\"2\"}],\"parallel\":1,\"cleanup\":"
                "\"keep\"}");

    TURN_UNTIL(&office->world->loop, has_handles(office, 1));
    world_settle(office->world);
    reopen(office);
    office->fake.is_quick = true;
    fake_finish(&office->fake);
    told = wait_team(office, &told.id);
    assert_int_equal(told.state, TEAM_DONE);
    assert_int_equal(office->memory.count, 2);
    for (size_t i = 0; i < office->memory.count; i++)
        assert_int_equal(office->memory.turns[i].prompts, 1);
}

/* --- schedules --------------------------------------------------------------------------------- */

struct told_schedule {
    struct told told;
    struct task_schedule *schedule;
};

static void on_schedule(void *context, const struct error *failure, struct task_schedule *schedule)
{
    struct told_schedule *told = context;

    note_told(&told->told, failure, NULL);
    told->schedule = schedule;
}

static struct told_schedule ask_schedule(struct task_office *office, const char *json)
{
    struct told_schedule told = {.schedule = NULL};
    AUTO(json) json_t *value = json_read(json, strlen(json), NULL, NULL);
    struct json_place place;

    assert_int_equal(json_root_object(value, &place, NULL), 0);
    schedule_create(office->world->domain, &office->world->caller, &place, on_schedule, &told);
    TURN_UNTIL(&office->world->loop, told.told.times);
    return told;
}

static void a_schedule_begins_a_task_when_it_is_time(void **state)
{
    struct task_office *office = *state;
    struct told_schedule told = ask_schedule(
        office, "{\"name\":\"m\",\"cron\":\"*/5 * * * *\",\"task\":{\"text\":\"tick\"}}");
    int64_t next;

    expect_ok(&told.told);
    next = told.schedule->next_ms;
    assert_true(next > domain_wall_ms(office->world->domain) && next % 300000 == 0);
    office->fake.is_quick = true;
    world_pass_quietly(office->world, 300);
    assert_int_equal(office->fake.prompts, 1);
    assert_int_equal(told.schedule->next_ms, next + 300000);
    world_pass_quietly(office->world, 300);
    assert_int_equal(office->fake.prompts, 2);
}

static void one_that_is_not_over_is_in_the_way(void **state)
{
    struct task_office *office = *state;
    struct told_schedule told = ask_schedule(
        office, "{\"name\":\"m\",\"cron\":\"* * * * *\",\"task\":{\"text\":\"slow\"}}");

    expect_ok(&told.told);
    world_pass_quietly(office->world, 180);
    assert_int_equal(office->fake.prompts, 1);
    assert_string_equal(told.schedule->detail, "no task: the one of the last time is not over");
}

static void missed_times_are_made_up_for_once(void **state)
{
    struct task_office *office = *state;
    struct told_schedule told = ask_schedule(
        office, "{\"name\":\"m\",\"cron\":\"* * * * *\",\"task\":{\"text\":\"tick\"}}");

    expect_ok(&told.told);
    office->fake.is_quick = true;
    clock_manual_advance(&office->world->clock, 3600 * 1000);
    world_pass_quietly(office->world, 5);
    assert_int_equal(office->fake.prompts, 1);
    told = ask_schedule(office, "{\"name\":\"n\",\"cron\":\"* * * * *\",\"missed\":\"skip\","
                                "\"task\":{\"text\":\"tick\"},\"paused\":false}");
    clock_manual_advance(&office->world->clock, 3600 * 1000);
    world_pass_quietly(office->world, 2);
    assert_string_equal(told.schedule->detail, "no task: its time was missed");
}

static void a_clock_that_is_put_back_delays_nothing(void **state)
{
    struct task_office *office = *state;
    struct told_schedule told = ask_schedule(
        office, "{\"name\":\"m\",\"cron\":\"* * * * *\",\"task\":{\"text\":\"tick\"}}");

    office->fake.is_quick = true;
    world_pass_quietly(office->world, 2);
    office->world->clock.wall_ms -= INT64_C(86400000);
    world_pass_quietly(office->world, 61);
    assert_int_equal(office->fake.prompts, 1);
    assert_true(told.schedule->next_ms - domain_wall_ms(office->world->domain) <= 60000);
}

static void a_schedule_survives_a_restart_and_fires_once(void **state)
{
    struct task_office *office = *state;
    struct told_schedule told = ask_schedule(
        office, "{\"name\":\"m\",\"cron\":\"* * * * *\",\"task\":{\"text\":\"tick\"}}");

    expect_ok(&told.told);
    reopen(office);
    office->fake.is_quick = true;
    world_pass_quietly(office->world, 60);
    assert_int_equal(office->fake.prompts, 1);
}

static void schedules_say_what_is_wrong(void **state)
{
    struct task_office *office = *state;
    static const char *const texts[] = {
        "{\"name\":\"a\",\"task\":{\"text\":\"a\"}}",
        "{\"name\":\"a\",\"cron\":\"* * * *\",\"task\":{\"text\":\"a\"}}",
        "{\"name\":\"a\",\"cron\":\"@daily\",\"task\":{}}",
        "{\"name\":\"a\",\"cron\":\"@daily\",\"task\":{\"text\":\"a\",\"x\":1}}",
        "{\"name\":\"a\",\"cron\":\"@daily\",\"timeZone\":\"Mars/Base\",\"task\":{\"text\":\"a\"}}",
        "{\"name\":\"a\",\"cron\":\"0 0 30 2 *\",\"task\":{\"text\":\"a\"}}",
        "{\"name\":\"a\",\"cron\":\"@daily\",\"overlap\":\"x\",\"task\":{\"text\":\"a\"}}",
    };

    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct told_schedule told = ask_schedule(office, texts[i]);

        expect_code(&told.told, ERR_INVALID);
    }
    assert_true(list_is_empty((struct list *) (void *) office->world->domain->schedules));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OFFICE_TEST(a_task_has_a_sandbox_a_turn_and_a_result),
        OFFICE_TEST(its_sandbox_goes_or_sleeps_afterwards),
        OFFICE_TEST(a_repository_and_files_are_there_first),
        OFFICE_TEST(a_clone_that_fails_fails_the_task),
        OFFICE_TEST(of_one_key_there_is_one_task),
        OFFICE_TEST(bad_tasks_are_refused),
        OFFICE_TEST(a_task_in_a_sandbox_that_is_there_leaves_it),
        OFFICE_TEST(a_task_is_undone),
        OFFICE_TEST(a_task_is_cancelled_wherever_it_is),
        OFFICE_TEST(a_task_takes_no_longer_than_it_may),
        OFFICE_TEST(after_a_restart_a_task_goes_on_and_is_prompted_once),
        OFFICE_TEST(one_that_was_being_prepared_is_prepared_again),
        OFFICE_TEST(a_task_is_deleted_with_its_log),
        OFFICE_TEST(old_tasks_go),
        cmocka_unit_test(a_team_is_what_its_members_are),
        OFFICE_TEST(so_many_members_work_at_a_time),
        OFFICE_TEST(members_are_forks_of_one_checkout),
        OFFICE_TEST(a_team_is_cancelled_with_all_its_members),
        OFFICE_TEST(a_bad_member_is_named_and_nothing_is_kept),
        OFFICE_TEST(a_team_goes_on_after_a_restart),
        OFFICE_TEST(a_schedule_begins_a_task_when_it_is_time),
        OFFICE_TEST(one_that_is_not_over_is_in_the_way),
        OFFICE_TEST(missed_times_are_made_up_for_once),
        OFFICE_TEST(a_clock_that_is_put_back_delays_nothing),
        OFFICE_TEST(a_schedule_survives_a_restart_and_fires_once),
        OFFICE_TEST(schedules_say_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
