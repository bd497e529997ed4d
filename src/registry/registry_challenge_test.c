#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "registry/registry_challenge.h"
/* After the headers it needs. */
#include <cmocka.h>

#define NONE   REGISTRY_CHALLENGE_NONE
#define BASIC  REGISTRY_CHALLENGE_BASIC
#define BEARER REGISTRY_CHALLENGE_BEARER

static void challenges_of_the_wild_are_read(void **state)
{
    static const struct {
        const char *value;
        enum registry_challenge_kind kind;
        const char *realm, *service, *scope;
    } rows[] = {
        {"Basic realm=\"Registry Realm\"", BASIC, "Registry Realm", "", ""},
        {"Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\","
         "scope=\"repository:library/debian:pull\"",
         BEARER, "https://auth.docker.io/token", "registry.docker.io",
         "repository:library/debian:pull"},
        {"bearer Realm = \"r\" , SERVICE=s,error=\"invalid_token\"", BEARER, "r", "s", ""},
        {"Basic", BASIC, "", "", ""},
        {"Basic realm=\"a \\\"b\\\", Bearer realm=c\"", BASIC, "a \"b\", Bearer realm=c", "", ""},
        /* Several in one: the best stays. */
        {"Basic realm=\"b\", Bearer realm=\"t\",service=\"s\"", BEARER, "t", "s", ""},
        {"Bearer realm=\"t\", Basic realm=\"b\"", BEARER, "t", "", ""},
        {"Negotiate, Digest nonce=\"x\", Basic realm=\"b\"", BASIC, "b", "", ""},
        {",, ,Basic realm=b,,", BASIC, "b", "", ""},
        /* Unknown, or no challenge at all. */
        {"", NONE, "", "", ""},
        {"Negotiate abc==", NONE, "", "", ""},
        {"Bearer realm=\"cut off", NONE, "", "", ""},
        {"Bearer realm=", NONE, "", "", ""},
        {"\"Bearer\" realm=\"x\"", NONE, "", "", ""},
        {"Basic realm=\"b\", Bearer realm=\"cut off", BASIC, "b", "", ""},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        struct registry_challenge challenge = REGISTRY_CHALLENGE_INIT;

        registry_challenge_read(rows[i].value, &pool, &challenge);
        if (challenge.kind != rows[i].kind)
            fail_msg("%s: kind %d", rows[i].value, (int) challenge.kind);
        assert_string_equal(challenge.realm, rows[i].realm);
        assert_string_equal(challenge.service, rows[i].service);
        assert_string_equal(challenge.scope, rows[i].scope);
    }
}

static void of_several_headers_the_best_stays(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct registry_challenge challenge = REGISTRY_CHALLENGE_INIT;

    (void) state;
    registry_challenge_read("Basic realm=\"b\"", &pool, &challenge);
    registry_challenge_read("Bearer realm=\"t\"", &pool, &challenge);
    registry_challenge_read("Basic realm=\"c\"", &pool, &challenge);
    assert_int_equal(challenge.kind, BEARER);
    assert_string_equal(challenge.realm, "t");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(challenges_of_the_wild_are_read),
        cmocka_unit_test(of_several_headers_the_best_stays),
    };

    return cmocka_run_group_tests_name("registry_challenge", tests, NULL, NULL);
}
