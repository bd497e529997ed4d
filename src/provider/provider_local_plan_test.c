#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "provider/provider_local.h"
#include "provider/provider_local_plan.h"

static const struct id id_a = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};

static struct provider_spec plain_spec(void)
{
    return (struct provider_spec){.id = id_a, .hostname = "demo"};
}

static void expect_invalid(const struct provider_spec *spec)
{
    struct wire_plan plan;
    struct error err = ERROR_INIT;

    assert_int_equal(provider_local_plan(spec, "host", &plan, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void the_image_is_the_default_unless_named(void **state)
{
    struct provider_spec spec = plain_spec();
    struct wire_plan plan;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    assert_string_equal(plan.image, "host");
    spec.image = "debian";
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    assert_string_equal(plan.image, "debian");
}

static void an_origin_is_copied_and_none_is_none(void **state)
{
    struct provider_spec spec = plain_spec();
    struct wire_plan plan;
    struct error err = ERROR_INIT;

    (void) state;
    spec.origin.set = DISK_OF_SNAPSHOT; /* of nothing: whatever the set says */
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    assert_string_equal(plan.origin.id.text, "");
    spec.origin.id = id_a;
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    assert_int_equal(plan.origin.set, DISK_OF_SNAPSHOT);
    assert_string_equal(plan.origin.id.text, id_a.text);
    spec.origin.set = DISK_OF_SANDBOX;
    expect_invalid(&spec); /* its own */
}

static void texts_that_are_too_long_are_refused(void **state)
{
    char longest[WIRE_NAME_MAX + 2], place[WIRE_PATH_MAX + 2];
    struct provider_bind bind = {.source = "tools", .place = place};
    struct provider_spec spec = plain_spec();
    struct wire_plan plan;
    struct error err = ERROR_INIT;

    (void) state;
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    spec.hostname = longest;
    expect_invalid(&spec);
    spec.hostname = longest + 1;
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    spec.image = longest;
    expect_invalid(&spec);
    spec.image = NULL;
    memset(place, 'a', sizeof(place) - 1);
    place[0] = '/';
    place[sizeof(place) - 1] = '\0';
    spec.binds = &bind;
    spec.bind_count = 1;
    expect_invalid(&spec);
    place[sizeof(place) - 2] = '\0';
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    bind.source = NULL;
    expect_invalid(&spec);
}

static void too_much_is_refused(void **state)
{
    struct network_rule rules[WIRE_RULES_MAX + 1] = {{.ports.last = UINT16_MAX}};
    struct provider_bind binds[WIRE_BINDS_MAX + 1] = {{.source = "tools", .place = "/opt"}};
    struct provider_spec spec = plain_spec();

    (void) state;
    spec.network = NETWORK_NAT;
    spec.rules = rules;
    spec.rule_count = WIRE_RULES_MAX + 1;
    expect_invalid(&spec);
    spec.rule_count = 0;
    spec.binds = binds;
    spec.bind_count = WIRE_BINDS_MAX + 1;
    expect_invalid(&spec);
}

static void what_the_launcher_would_refuse_is_refused_here(void **state)
{
    struct network_rule rule = {.to = {.address = 0x0a000001, .bits = 8}, .ports.last = UINT16_MAX};
    struct provider_bind bind = {.source = "tools", .place = "/proc/x"};
    struct provider_spec spec = plain_spec();

    (void) state;
    spec.limits.memory_bytes = UINT64_MAX;
    expect_invalid(&spec);
    spec = plain_spec();
    spec.rules = &rule; /* without nat, and bits beyond the prefix */
    spec.rule_count = 1;
    expect_invalid(&spec);
    spec.network = NETWORK_NAT;
    expect_invalid(&spec);
    spec = plain_spec();
    spec.binds = &bind;
    spec.bind_count = 1;
    expect_invalid(&spec);
}

static void a_plan_can_be_printed(void **state)
{
    struct provider_spec spec = plain_spec();
    AUTO(text) struct text text = TEXT_INIT(4096);
    struct error err = ERROR_INIT;

    (void) state;
    spec.limits.pids = 77;
    assert_int_equal(provider_local_print_plan(&spec, &text, &err), 0);
    assert_non_null(strstr(text_string(&text), "demo"));
    assert_non_null(strstr(text_string(&text), "host"));
    assert_non_null(strstr(text_string(&text), "77"));
    spec.hostname = "-";
    assert_int_equal(provider_local_print_plan(&spec, &text, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void an_owner_is_named_and_not_told(void **state)
{
    struct provider_spec spec = plain_spec();
    struct wire_plan plan, again, other;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    assert_string_equal(plan.owner.text, "");
    spec.owner = id_new();
    assert_int_equal(provider_local_plan(&spec, "host", &plan, &err), 0);
    assert_int_equal(provider_local_plan(&spec, "host", &again, &err), 0);
    assert_true(id_is_valid(plan.owner.text));
    assert_string_equal(plan.owner.text, again.owner.text);
    assert_string_not_equal(plan.owner.text, spec.owner.text);
    spec.owner = id_new();
    assert_int_equal(provider_local_plan(&spec, "host", &other, &err), 0);
    assert_string_not_equal(plan.owner.text, other.owner.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_is_named_and_not_told),
        cmocka_unit_test(the_image_is_the_default_unless_named),
        cmocka_unit_test(an_origin_is_copied_and_none_is_none),
        cmocka_unit_test(texts_that_are_too_long_are_refused),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(what_the_launcher_would_refuse_is_refused_here),
        cmocka_unit_test(a_plan_can_be_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
