#include "domain/sandbox/sandbox_record.h"
#include "net/net_testing.h"

/* --- random specs ----------------------------------------------------------------------------- */

/* Any characters that JSON makes trouble with. */
static char *random_text(uint64_t *seed, size_t maximum)
{
    static const char *const pieces[] = {"a", "Z", "0", " ", "\"", "\\", "\n",   "\x01",
                                         "/", "ä", "€", "😀", "{",  "}",  "null", "\x7f"};
    AUTO(text) struct text text = TEXT_INIT(maximum);
    size_t count = testing_number(seed) % 20;

    for (size_t i = 0; i < count; i++)
        text_append(&text, pieces[testing_number(seed) % ARRAY_COUNT(pieces)]);
    return text_take(&text);
}

static char *maybe_text(uint64_t *seed)
{
    return testing_number(seed) % 2 ? random_text(seed, 100) : NULL;
}

static void random_pairs(uint64_t *seed, struct sandbox_pairs *pairs, size_t maximum)
{
    size_t count = testing_number(seed) % (maximum + 1);

    for (size_t i = 0; i < count; i++) {
        AUTO(free) char *value = random_text(seed, 200);
        char name[32];

        (void) snprintf(name, sizeof(name), "name_%zu", i);
        sandbox_pairs_set(pairs, name, value);
    }
}

static uint64_t random_number(uint64_t *seed, uint64_t maximum)
{
    uint64_t number = (uint64_t) testing_number(seed) << 31 | testing_number(seed);

    return testing_number(seed) % 3 == 0 ? 0 : number % maximum;
}

static void random_rules(uint64_t *seed, struct sandbox_spec *spec)
{
    spec->rule_count = testing_number(seed) % 5;
    if (spec->rule_count)
        spec->rules = mem_alloc_array(spec->rule_count, sizeof(*spec->rules));
    for (size_t i = 0; i < spec->rule_count; i++)
        spec->rules[i] =
            (struct network_rule){.allow = testing_number(seed) % 2,
                                  .to.address = (uint32_t) random_number(seed, UINT32_MAX),
                                  .to.bits = (uint8_t) (testing_number(seed) % 33),
                                  .protocol = (enum network_protocol)(testing_number(seed) % 3),
                                  .ports.first = (uint16_t) testing_number(seed),
                                  .ports.last = UINT16_MAX};
}

static struct sandbox_spec random_spec(uint64_t *seed)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    spec.name = maybe_text(seed);
    spec.image = maybe_text(seed);
    spec.kind = maybe_text(seed);
    spec.folder = maybe_text(seed);
    random_pairs(seed, &spec.environment, 20);
    random_pairs(seed, &spec.labels, 10);
    random_pairs(seed, &spec.binds, 5);
    random_rules(seed, &spec);
    spec.limits.memory_bytes = random_number(seed, INT64_MAX);
    spec.limits.swap_bytes =
        testing_number(seed) % 3 == 0 ? UINT64_MAX : random_number(seed, INT64_MAX);
    spec.limits.pids = (uint32_t) random_number(seed, UINT32_MAX);
    spec.limits.cpu_millis = (uint32_t) random_number(seed, UINT32_MAX);
    spec.limits.disk_bytes = random_number(seed, INT64_MAX);
    spec.limits.files = (uint32_t) random_number(seed, UINT32_MAX);
    spec.network = testing_number(seed) % 2 ? NETWORK_NAT : NETWORK_NONE;
    spec.has_network = spec.network == NETWORK_NAT || testing_number(seed) % 2;
    spec.sleep_after_ms = random_number(seed, SANDBOX_DURATION_MAX);
    spec.keep_alive = testing_number(seed) % 2;
    spec.max_runtime_ms = random_number(seed, SANDBOX_DURATION_MAX);
    spec.lifetime_ms = random_number(seed, SANDBOX_DURATION_MAX);
    spec.snapshot_every_ms = random_number(seed, SANDBOX_DURATION_MAX);
    spec.snapshot_keep_for_ms = random_number(seed, SANDBOX_DURATION_MAX);
    spec.snapshot_keep = (uint32_t) random_number(seed, SANDBOX_SNAPSHOT_KEEP_MAX);
    return spec;
}

/* --- comparing -------------------------------------------------------------------------------- */

static void expect_same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a)
        assert_string_equal(a, b);
}

static void expect_same_pairs(const struct sandbox_pairs *a, const struct sandbox_pairs *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i].name, b->items[i].name);
        assert_string_equal(a->items[i].value, b->items[i].value);
    }
}

/* All but the name, which is not in the JSON. */
static void expect_same_spec(const struct sandbox_spec *a, const struct sandbox_spec *b)
{
    expect_same_text(a->image, b->image);
    expect_same_text(a->kind, b->kind);
    expect_same_text(a->folder, b->folder);
    expect_same_pairs(&a->environment, &b->environment);
    expect_same_pairs(&a->labels, &b->labels);
    expect_same_pairs(&a->binds, &b->binds);
    assert_int_equal(a->rule_count, b->rule_count);
    for (size_t i = 0; i < a->rule_count; i++) {
        assert_int_equal(a->rules[i].allow, b->rules[i].allow);
        assert_int_equal(a->rules[i].to.address, b->rules[i].to.address);
        assert_int_equal(a->rules[i].to.bits, b->rules[i].to.bits);
        assert_int_equal(a->rules[i].protocol, b->rules[i].protocol);
        assert_int_equal(a->rules[i].ports.first, b->rules[i].ports.first);
        assert_int_equal(a->rules[i].ports.last, b->rules[i].ports.last);
    }
    assert_int_equal(a->limits.memory_bytes, b->limits.memory_bytes);
    assert_int_equal(a->limits.swap_bytes, b->limits.swap_bytes);
    assert_int_equal(a->limits.pids, b->limits.pids);
    assert_int_equal(a->limits.cpu_millis, b->limits.cpu_millis);
    assert_int_equal(a->limits.disk_bytes, b->limits.disk_bytes);
    assert_int_equal(a->limits.files, b->limits.files);
    assert_int_equal(a->network, b->network);
    assert_int_equal(a->has_network, b->has_network);
    assert_int_equal(a->sleep_after_ms, b->sleep_after_ms);
    assert_int_equal(a->keep_alive, b->keep_alive);
    assert_int_equal(a->max_runtime_ms, b->max_runtime_ms);
    assert_int_equal(a->lifetime_ms, b->lifetime_ms);
    assert_int_equal(a->snapshot_every_ms, b->snapshot_every_ms);
    assert_int_equal(a->snapshot_keep_for_ms, b->snapshot_keep_for_ms);
    assert_int_equal(a->snapshot_keep, b->snapshot_keep);
}

static void a_spec_comes_back_from_its_json(void **state)
{
    uint64_t seed = 3;

    (void) state;
    for (int i = 0; i < 500; i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = random_spec(&seed);
        AUTO(sandbox_spec) struct sandbox_spec back = SANDBOX_SPEC_INIT;
        AUTO(text) struct text json = TEXT_INIT(SANDBOX_SPEC_MAX);
        struct error err = ERROR_INIT;

        sandbox_spec_write(&spec, &json);
        assert_false(json.overflowed);
        if (sandbox_spec_read(json.data, json.length, &back, &err) < 0)
            fail_msg("%s: %s", err.message, json.data);
        expect_same_spec(&spec, &back);
        assert_null(back.name);
    }
}

static void a_copy_is_the_same_and_shares_nothing(void **state)
{
    uint64_t seed = 4;

    (void) state;
    for (int i = 0; i < 100; i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = random_spec(&seed);
        AUTO(sandbox_spec) struct sandbox_spec copy = sandbox_spec_copy(&spec);

        expect_same_spec(&spec, &copy);
        expect_same_text(spec.name, copy.name);
        assert_true(!spec.rules || spec.rules != copy.rules);
        sandbox_spec_done(&spec);
        sandbox_pairs_set(&copy.labels, "more", "of it");
    }
}

static void a_sandbox_comes_back_from_its_row(void **state)
{
    uint64_t seed = 5;

    (void) state;
    for (int i = 0; i < 100; i++) {
        AUTO(sandbox) struct sandbox *sandbox = sandbox_new();
        AUTO(sandbox) struct sandbox *back = NULL;
        AUTO(sandbox_row) struct sandbox_row row = {.values = {{.is_null = true}}};
        struct error err = ERROR_INIT;

        sandbox->id = id_new();
        sandbox->owner = id_new();
        (void) snprintf(sandbox->node, sizeof(sandbox->node), "node-%d", i);
        sandbox->epoch = i;
        sandbox->spec = random_spec(&seed);
        sandbox->status = (enum sandbox_status)(testing_number(&seed) % SANDBOX_STATUS_COUNT);
        sandbox_set_reason(sandbox, "because of %d", i);
        sandbox->inside = maybe_text(&seed);
        sandbox->is_ended_by_request = testing_number(&seed) % 2;
        sandbox->unenforced = testing_number(&seed) % 64;
        sandbox->created_ms = 1;
        sandbox->updated_ms = 2;
        sandbox->active_ms = 3;
        sandbox->started_ms = i % 2 ? 4 : 0;
        sandbox_row_init(&row, sandbox, NULL);
        back = sandbox_from_row(row.values, &err);
        if (!back)
            fail_msg("%s", err.message);
        assert_string_equal(back->id.text, sandbox->id.text);
        assert_string_equal(back->owner.text, sandbox->owner.text);
        assert_string_equal(back->node, sandbox->node);
        assert_int_equal(back->epoch, sandbox->epoch);
        expect_same_text(back->spec.name, sandbox->spec.name);
        expect_same_spec(&back->spec, &sandbox->spec);
        assert_int_equal(back->status, sandbox->status);
        assert_string_equal(back->reason, sandbox->reason);
        expect_same_text(back->inside, sandbox->inside);
        assert_int_equal(back->is_ended_by_request, sandbox->is_ended_by_request);
        assert_int_equal(back->unenforced, sandbox->unenforced);
        assert_int_equal(back->created_ms, 1);
        assert_int_equal(back->updated_ms, 2);
        assert_int_equal(back->active_ms, 3);
        assert_int_equal(back->started_ms, sandbox->started_ms);
    }
}

static void fields_of_a_newer_daemon_are_ignored(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    const char *json = "{\"colour\":\"red\",\"image\":\"host\",\"future\":{\"a\":[1]}}";
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(sandbox_spec_read(json, strlen(json), &spec, &err), 0);
    assert_string_equal(spec.image, "host");
    assert_int_equal(spec.sleep_after_ms, SANDBOX_SLEEP_AFTER_DEFAULT_MS);
    assert_false(spec.has_network);
}

static void what_is_no_spec_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{",
        "{\"image\":1}",
        "{\"environment\":[]}",
        "{\"environment\":{\"A\":1}}",
        "{\"limits\":{\"memory\":-1}}",
        "{\"limits\":{\"pids\":4294967296}}",
        "{\"network\":\"host\"}",
        "{\"rules\":[{}]}",
        "{\"rules\":[1]}",
        ("{\"rules\":[{\"allow\":true,\"address\":0,\"bits\":33,\"protocol\":0,\"first\":0,"
         "\"last\":0}]}"),
        "{\"sleepAfterMs\":-1}",
        "{\"keepAlive\":1}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct sandbox_spec spec = SANDBOX_SPEC_INIT;
        struct error err = ERROR_INIT;

        assert_int_equal(sandbox_spec_read(wrong[i], strlen(wrong[i]), &spec, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(spec.image);
    }
}

static void a_row_that_cannot_be_read_is_named(void **state)
{
    AUTO(sandbox) struct sandbox *sandbox = sandbox_new();
    AUTO(sandbox_row) struct sandbox_row row = {.values = {{.is_null = true}}};
    struct error err = ERROR_INIT;

    (void) state;
    sandbox->id = id_new();
    sandbox_row_init(&row, sandbox, NULL);
    row.values[STORE_SANDBOX_STATUS] = store_text("dreaming");
    assert_null(sandbox_from_row(row.values, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_non_null(strstr(err.message, sandbox->id.text));
    sandbox_row_done(&row);
    sandbox_row_init(&row, sandbox, NULL);
    row.values[STORE_SANDBOX_SPEC] = store_text("{\"image\":7}");
    assert_null(sandbox_from_row(row.values, &err));
    assert_int_equal(err.code, ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_comes_back_from_its_json),
        cmocka_unit_test(a_copy_is_the_same_and_shares_nothing),
        cmocka_unit_test(a_sandbox_comes_back_from_its_row),
        cmocka_unit_test(fields_of_a_newer_daemon_are_ignored),
        cmocka_unit_test(what_is_no_spec_is_refused),
        cmocka_unit_test(a_row_that_cannot_be_read_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
