#include "domain/sandbox/sandbox_record.h"
#include "model/spec_testing.h"
#include "net/net_testing.h"

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
        sandbox->spec = spec_random(&seed, 4);
        sandbox->status = (enum sandbox_status)(spec_random_number(&seed) % SANDBOX_STATUS_COUNT);
        sandbox_set_reason(sandbox, "because of %d", i);
        sandbox->inside = i % 3 ? spec_random_text(&seed, 20, false) : NULL;
        sandbox->is_ended_by_request = spec_random_number(&seed) % 2;
        sandbox->unenforced = spec_random_number(&seed) % 64;
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
        assert_true(sandbox_spec_equal(&back->spec, &sandbox->spec));
        assert_int_equal(back->status, sandbox->status);
        assert_string_equal(back->reason, sandbox->reason);
        assert_int_equal(back->inside == NULL, sandbox->inside == NULL);
        if (back->inside)
            assert_string_equal(back->inside, sandbox->inside);
        assert_int_equal(back->is_ended_by_request, sandbox->is_ended_by_request);
        assert_int_equal(back->unenforced, sandbox->unenforced);
        assert_int_equal(back->created_ms, 1);
        assert_int_equal(back->updated_ms, 2);
        assert_int_equal(back->active_ms, 3);
        assert_int_equal(back->started_ms, sandbox->started_ms);
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
        cmocka_unit_test(a_sandbox_comes_back_from_its_row),
        cmocka_unit_test(a_row_that_cannot_be_read_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
