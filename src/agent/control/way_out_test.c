#include <string.h>

#include "agent/agent_test.h"
#include "agent/control/way_out.h"
#include "json/json_read.h"

#define MARKED                                                                                     \
    "127.0.0.1 localhost\n"                                                                        \
    "# What follows leads to Burrow's egress broker, and is written by it.\n"                      \
    "127.66.0.1 github.com\n"                                                                      \
    "127.66.1.1 db.internal\n"                                                                     \
    "# Until here.\n"

static char *hosts_of(const char *before, const char *names)
{
    AUTO(json) json_t *read = json_read(names, strlen(names), NULL, NULL);

    assert_non_null(read);
    return way_out_hosts(before, read);
}

static void names_are_put_behind_what_is_there(void **state)
{
    AUTO(free)
    char *hosts =
        hosts_of("127.0.0.1 localhost", "[{\"address\":\"127.66.0.1\",\"name\":\"github.com\"},"
                                        "{\"address\":\"127.66.1.1\",\"name\":\"db.internal\"}]");

    (void) state;
    assert_string_equal(hosts, MARKED);
}

static void those_of_before_are_taken_away(void **state)
{
    AUTO(free)
    char *hosts =
        hosts_of(MARKED "10.0.0.1 mine\n", "[{\"address\":\"127.66.0.1\",\"name\":\"other.org\"}]");
    AUTO(free) char *none = hosts_of(MARKED "10.0.0.1 mine\n", "[]");

    (void) state;
    assert_null(strstr(hosts, "github.com"));
    assert_non_null(strstr(hosts, "10.0.0.1 mine\n"));
    assert_non_null(strstr(hosts, "127.66.0.1 other.org\n"));
    assert_string_equal(none, "127.0.0.1 localhost\n10.0.0.1 mine\n");
}

static void a_mark_without_the_other_stays(void **state)
{
    AUTO(free) char *hosts = hosts_of("# Until here.\n1.2.3.4 x\n", "[]");

    (void) state;
    assert_string_equal(hosts, "# Until here.\n1.2.3.4 x\n");
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const bad[] = {
        "[{\"address\":\"127.66.0.1\",\"name\":\"a b\"}]",
        "[{\"address\":\"127.66.0.1\",\"name\":\"a\\nb\"}]",
        "[{\"address\":\"127.66.0.1 x\",\"name\":\"a\"}]",
        "[{\"address\":\"127.66.0.1\",\"name\":\"\"}]",
        "[{\"name\":\"a\"}]",
        "[\"a\"]",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_null(hosts_of("", bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_put_behind_what_is_there),
        cmocka_unit_test(those_of_before_are_taken_away),
        cmocka_unit_test(a_mark_without_the_other_stays),
        cmocka_unit_test(what_is_no_name_is_refused),
    };

    return cmocka_run_group_tests_name("way_out", tests, NULL, NULL);
}
