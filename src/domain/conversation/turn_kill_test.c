/* Turns and kill -9: a process with a domain works, dies at any moment, and another one goes on with the
 * same rows and the same agents, which have outlived it. In the end no turn is lost, none was prompted
 * twice, and what each cost is counted once. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "base/rounds_testing.h"
#include "domain/conversation/harness_testing.h"
#include "domain/snapshot/snapshot_testing.h"

#define LIVES         6 /* of one round; the last ends everything */
#define CONVERSATIONS 3
#define ACKED_MAX     256

/* What outlives a process, besides its file: the agents, and what clients were told. */
struct kill_memory {
    struct fake_memory agents;
    struct caller caller;
    struct id sandbox, conversations[CONVERSATIONS];
    bool has_sandbox;
    size_t conversation_count;
    struct id acked[ACKED_MAX];
    size_t acked_count;
    char problem[256];
};

static const char *const points[] = {"turn.queued", "turn.marked", "turn.sent", "turn.ended",
                                     "turn.asked"};

struct kill_life {
    struct world *world;
    struct fake_harness fake;
    struct kill_memory *memory;
    uint64_t seed;
    int steps_left;
};

/* --- one life ---------------------------------------------------------------------------------- */

static uint32_t life_number(struct kill_life *life, uint32_t below)
{
    return testing_number(&life->seed) % below;
}

static void life_acked(void *context, const struct error *failure, const struct turn *turn,
                       bool is_new)
{
    struct kill_memory *memory = context;

    (void) is_new;
    if (!failure && memory->acked_count < ACKED_MAX)
        memory->acked[memory->acked_count++] = turn->id;
}

static struct conversation *life_conversation(struct kill_life *life)
{
    struct kill_memory *memory = life->memory;
    struct sandbox *sandbox =
        sandbox_find(life->world->domain, &memory->caller, memory->sandbox.text, NULL);

    if (memory->conversation_count < CONVERSATIONS) {
        struct conversation *made = begin_conversation(life->world, sandbox);

        memory->conversations[memory->conversation_count++] = made->id;
    }
    return conversation_by_id(
        life->world->domain,
        &memory->conversations[life_number(life, (uint32_t) memory->conversation_count)]);
}

static void life_ignore(void *context, const struct error *failure, const struct turn *turn)
{
    (void) context, (void) failure, (void) turn;
}

/* Something happens to one that is at work. */
static void life_disturb(struct kill_life *life)
{
    struct harness_turn *handle = fake_last(&life->fake);
    struct fake_turn *turn;

    if (!handle || handle->at == SIZE_MAX)
        return;
    turn = &life->memory->agents.turns[handle->at];
    switch (life_number(life, 5)) {
    case 0:
    case 1:
        turn->state = turn->state == FAKE_BUSY ? FAKE_DONE : turn->state;
        loop_defer(&life->world->loop, &handle->task);
        break;
    case 2:
        handle->listener->part(handle->context, "prt", "{\"type\":\"text\",\"text\":\"x\"}");
        break;
    case 3:
        handle->listener->permission(handle->context, "per_1", "{}");
        break;
    default:
        turn_cancel(life->world->domain, &life->memory->caller, NULL, turn->turn.text, life_ignore,
                    NULL);
        break;
    }
}

static void life_step(struct kill_life *life)
{
    struct conversation *conversation;

    if (life_number(life, 3) == 0) {
        conversation = life_conversation(life);
        if (conversation)
            turn_create(life->world->domain, &life->memory->caller, conversation,
                        &(struct turn_spec){.text = "work"}, life_acked, life->memory);
    } else {
        life_disturb(life);
    }
    for (uint32_t i = life_number(life, 4); i > 0; i--) {
        testing_turn(&life->world->loop);
        if (--life->steps_left <= 0)
            (void) kill(getpid(), SIGKILL);
    }
    if (life_number(life, 4) == 0)
        world_tick(life->world);
}

static void life_begin(struct kill_life *life, struct kill_memory *memory)
{
    life->memory = memory;
    life->world = world_new(NULL);
    fake_harness_init(&life->fake, life->world, &memory->agents);
    world_make_provider(life->world);
    if (memory->has_sandbox) {
        life->world->caller = memory->caller;
        provider_fake_add(life->world->provider, &memory->sandbox, RUN_STATE_RUNNING, NULL);
    }
    world_open(life->world);
    if (!memory->has_sandbox) {
        memory->caller = life->world->caller;
        memory->sandbox = world_create(life->world, "box")->id;
        memory->has_sandbox = true;
    }
    world_tick(life->world);
}

static void life_live(struct kill_memory *memory, uint64_t seed)
{
    struct kill_life life = {.seed = seed, .steps_left = 1};
    char point[64];

    life_begin(&life, memory);
    life.steps_left = 20 + (int) life_number(&life, 200);
    if (life_number(&life, 2)) {
        (void) snprintf(point, sizeof(point), "%s:%u",
                        points[life_number(&life, ARRAY_COUNT(points))], 1 + life_number(&life, 3));
        crash_point_arm(point);
    }
    for (;;)
        life_step(&life);
}

/* --- the end ------------------------------------------------------------------------------------ */

static size_t kill_prompted(const struct kill_memory *memory, const struct id *turn,
                            enum fake_state *ret_state)
{
    for (size_t i = 0; i < memory->agents.count; i++)
        if (id_equal(&memory->agents.turns[i].turn, turn)) {
            *ret_state = memory->agents.turns[i].state;
            return (size_t) memory->agents.turns[i].prompts;
        }
    return 0;
}

static void kill_check_turn(struct kill_life *life, const struct id *id)
{
    struct told_turn told = read_turn(life->world, id);
    struct kill_memory *memory = life->memory;
    enum fake_state state = FAKE_BUSY;
    size_t prompts = kill_prompted(memory, id, &state);

    if (told.told.failed)
        (void) snprintf(memory->problem, sizeof(memory->problem), "a turn is gone: %.100s",
                        told.told.failure.message);
    else if (!turn_state_is_over(told.state))
        (void) snprintf(memory->problem, sizeof(memory->problem), "a turn is %s for ever",
                        turn_state_text(told.state));
    else if (prompts > 1)
        (void) snprintf(memory->problem, sizeof(memory->problem), "a turn was sent %zu times",
                        prompts);
    else if (told.state == TURN_DONE && (!prompts || told.usage.cost_micros != 7))
        (void) snprintf(memory->problem, sizeof(memory->problem),
                        "a turn is done, was sent %zu times and cost %llu", prompts,
                        (unsigned long long) told.usage.cost_micros);
    else if (state == FAKE_DONE && told.state == TURN_FAILED)
        (void) snprintf(memory->problem, sizeof(memory->problem),
                        "a turn that the agent has done has failed: %s", told.message);
}

/* Everything comes to its end; then it is looked at. */
static void life_settle(struct kill_memory *memory)
{
    struct kill_life life = {.seed = 1, .steps_left = INT32_MAX};
    struct turn_counters counters;
    int turns = 0;

    for (size_t i = 0; i < memory->agents.count; i++)
        if (memory->agents.turns[i].state == FAKE_BUSY)
            memory->agents.turns[i].state = FAKE_DONE;
    life_begin(&life, memory);
    life.fake.is_quick = true;
    do {
        world_tick(life.world);
        world_wait(life.world);
        turn_count(life.world->domain, &counters);
    } while (counters.live && ++turns < 200);
    for (size_t i = 0; i < memory->acked_count && !*memory->problem; i++)
        kill_check_turn(&life, &memory->acked[i]);
    for (size_t i = 0; i < memory->agents.count && !*memory->problem; i++)
        kill_check_turn(&life, &memory->agents.turns[i].turn);
    _exit(0);
}

static int kill_in_child(struct kill_memory *memory, uint64_t seed, bool is_last)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (is_last)
            life_settle(memory);
        else
            life_live(memory, seed);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void kill_round(uint64_t seed)
{
    struct kill_memory *memory =
        mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static const char *const files[] = {"db", "db-wal", "db-shm"};
    char folder[256], path[300];
    uint64_t numbers = seed;
    int status;

    assert_true(memory != MAP_FAILED);
    (void) snprintf(folder, sizeof(folder), "%s/turn-kill-XXXXXX", scratch_parent());
    assert_non_null(mkdtemp(folder));
    (void) snprintf(path, sizeof(path), "%s/db", folder);
    world_store_path = path;
    world_keyring = keyring_new();
    for (int i = 0; i < LIVES; i++) {
        status = kill_in_child(memory, testing_number(&numbers), i == LIVES - 1);
        if (i < LIVES - 1 && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
            fail_msg("seed %llu, life %d: status %x", (unsigned long long) seed, i, status);
    }
    if (status || *memory->problem)
        fail_msg("seed %llu: %s (%x)", (unsigned long long) seed, memory->problem, status);
    print_message("# seed %llu: %zu turns, %zu of them told\n", (unsigned long long) seed,
                  memory->agents.count, memory->acked_count);
    keyring_free(TAKE_PTR(world_keyring));
    (void) munmap(memory, sizeof(*memory));
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        (void) unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void no_turn_is_lost_or_sent_twice(void **state)
{
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(8, 200); seed++)
        kill_round(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_turn_is_lost_or_sent_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
