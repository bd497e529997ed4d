#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "api/agent/repository.h"

/* The real one brings all of the client with it. */
int agent_reply_error(const struct agent_reply *reply, struct error *err)
{
    (void) err;
    return reply->status == 200 ? 0 : -1;
}

static void what_is_shown_holds_no_credentials(void **state)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"https://host/a.git", "https://host/a.git"},
        {"https://me:pass@host/a.git", "https://host/a.git"},
        {"https://token@host:8443/a", "https://host:8443/a"},
        {"HTTP://me:p@ss@host/a", "HTTP://host/a"},
        {"https://host/a@b", "https://host/a@b"},
        {"https://host?x=a@b", "https://host?x=a@b"},
        {"ssh://git@host/a.git", "ssh://git@host/a.git"},
        {"git@host:a.git", "git@host:a.git"},
        {"file:///srv/a@b.git", "file:///srv/a@b.git"},
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_string_equal(repository_shown(cases[i].url, &pool), cases[i].shown);
}

static void no_wish_asks_nothing(void **state)
{
    struct repository_walk none = {.repository = {.url = NULL}};
    struct agent_request request = {.method = NULL};

    (void) state;
    assert_false(repository_ask_look(&none.walk, &request));
    assert_false(repository_ask_clone(&none.walk, &request));
}

static void only_a_finished_clone_of_the_same_url_is_there(void **state)
{
    static const struct {
        const char *output;
        int code;
        bool is_there;
    } cases[] = {
        {"https://host/a\n", 0, true},       {"https://host/a", 0, true},
        {"https://host/a\n", 1, false},      {"https://host/ab\n", 0, false},
        {"https://host/a/../b\n", 0, false}, {"", 0, false},
    };
    struct repository_walk mine = {
        .repository = {.url = "https://host/a", .shown = "https://host/a"}};
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        json_t *json = json_pack("{s:s,s:i}", "stdout", cases[i].output, "exitCode", cases[i].code);
        struct agent_reply reply = {.status = 200, .json = json, .code = "", .message = ""};

        assert_int_equal(repository_take_look(&mine.walk, &reply, &err), 0);
        assert_int_equal(mine.repository.is_there, cases[i].is_there);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_holds_no_credentials),
        cmocka_unit_test(no_wish_asks_nothing),
        cmocka_unit_test(only_a_finished_clone_of_the_same_url_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
