/* Ten thousand sleeping sandboxes: what they cost in memory, and what a tick costs is said. */
#include <malloc.h>

#include "domain/domain_testing.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/recovery.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/sandbox/sandbox_set.h"

#define SANDBOXES  10000
#define BYTES_EACH 2048 /* the whole daemon may take 50 MB for them */
#define TICKS      1000

static size_t used_bytes(void)
{
    return mallinfo2().uordblks;
}

/* As domain_open does with rows, without the store in between. */
static void load(struct world *world, int nth)
{
    AUTO(sandbox_row) struct sandbox_row row = {.values = {{.is_null = true}}};
    AUTO(sandbox) struct sandbox *model = sandbox_new();
    struct sandbox *sandbox;
    struct error err = ERROR_INIT;
    char name[32];

    (void) snprintf(name, sizeof(name), "sandbox-%d", nth);
    model->id = id_new();
    model->owner = world->caller.owner;
    model->spec.name = mem_copy_text(name);
    model->spec.kind = mem_copy_text("native");
    sandbox_pairs_set(&model->spec.environment, "MODE", "production");
    sandbox_pairs_set(&model->spec.labels, "team", "blue");
    model->status = SANDBOX_FROZEN;
    model->created_ms = WORLD_START_MS + nth;
    sandbox_set_reason(model, "idle");
    sandbox_row_init(&row, model, NULL);
    sandbox = sandbox_from_row(row.values, &err);
    assert_non_null(sandbox);
    sandbox_ref(sandbox);
    sandbox_set_reserve(world->domain, sandbox);
    sandbox_set_identify(world->domain, sandbox);
    sandbox_set_list(world->domain, sandbox);
    expiry_watch(world->domain, sandbox);
}

static void ten_thousand_asleep_cost_little(void **state)
{
    struct world *world = *state;
    size_t before = used_bytes(), each;
    uint64_t began, took;

    for (int i = 0; i < SANDBOXES; i++)
        load(world, i);
    each = (used_bytes() - before) / SANDBOXES;
    print_message("# %zu bytes each\n", each);
    /* Sanitizers count their own; the plain build says. */
    assert_true(each < BYTES_EACH);
    began = clock_monotonic_ns(clock_system());
    for (int i = 0; i < TICKS; i++) {
        clock_manual_advance(&world->clock, 1000);
        domain_tick(world->domain);
    }
    took = clock_monotonic_ns(clock_system()) - began;
    print_message("# %llu ns a tick\n", (unsigned long long) took / TICKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(ten_thousand_asleep_cost_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
