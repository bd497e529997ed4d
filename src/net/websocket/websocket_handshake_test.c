#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "net/websocket/websocket_handshake.h"

/* The example of RFC 6455, section 1.3. */
#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static struct websocket_upgrade good_request(void)
{
    return (struct websocket_upgrade){
        .method = "GET",
        .http_major = 1,
        .http_minor = 1,
        .upgrade = "websocket",
        .connection = "Upgrade",
        .key = KEY,
        .version = "13",
    };
}

static void good_request_gets_the_accept_value_of_the_rfc(void **state)
{
    struct websocket_upgrade request = good_request();
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(websocket_upgrade_check(&request, accept, &err), 0);
    assert_string_equal(accept, ACCEPT);
}

static void tokens_are_found_in_lists_in_any_case(void **state)
{
    struct websocket_upgrade request = good_request();
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];

    (void) state;
    request.upgrade = "h2c ,\tWebSocket";
    request.connection = "keep-alive, UPGRADE ,x";
    assert_int_equal(websocket_upgrade_check(&request, accept, NULL), 0);
}

struct refusal {
    size_t field; /* offset of the string in websocket_upgrade */
    const char *value;
    enum err_code code;
};

static void set_field(void *object, size_t offset, const char *value)
{
    *(const char **) (void *) ((char *) object + offset) = value;
}

#define FIELD(name) offsetof(struct websocket_upgrade, name)

static const struct refusal refusals[] = {
    {FIELD(method), "POST", ERR_METHOD},
    {FIELD(method), "get", ERR_METHOD},
    {FIELD(upgrade), NULL, ERR_UPGRADE_REQUIRED},
    {FIELD(upgrade), "", ERR_UPGRADE_REQUIRED},
    {FIELD(upgrade), "websockets", ERR_UPGRADE_REQUIRED},
    {FIELD(upgrade), "web socket", ERR_UPGRADE_REQUIRED},
    {FIELD(connection), NULL, ERR_UPGRADE_REQUIRED},
    {FIELD(connection), "keep-alive", ERR_UPGRADE_REQUIRED},
    {FIELD(connection), "xupgrade", ERR_UPGRADE_REQUIRED},
    {FIELD(version), NULL, ERR_UPGRADE_REQUIRED},
    {FIELD(version), "8", ERR_UPGRADE_REQUIRED},
    {FIELD(version), "13, 8", ERR_UPGRADE_REQUIRED},
    {FIELD(version), "013", ERR_UPGRADE_REQUIRED},
    {FIELD(key), NULL, ERR_INVALID},
    {FIELD(key), "", ERR_INVALID},
    {FIELD(key), "dGhlIHNhbXBsZSBub25jZQ=", ERR_INVALID},
    {FIELD(key), "dGhlIHNhbXBsZSBub25jZQ===", ERR_INVALID},
    {FIELD(key), "dGhlIHNhbXBsZSBub25jZR==", ERR_INVALID}, /* unused bits set */
    {FIELD(key), "dGhlIHNhbXBsZSBub25jZ*==", ERR_INVALID},
    {FIELD(key), "dGhlIHNhbXBsZSBub25jZQAA", ERR_INVALID}, /* 18 bytes */
    {FIELD(key), KEY ", " KEY, ERR_INVALID},
};

static void each_wrong_header_is_refused_with_its_code(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(refusals); i++) {
        struct websocket_upgrade request = good_request();
        char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE] = "untouched";
        struct error err = ERROR_INIT;

        set_field(&request, refusals[i].field, refusals[i].value);
        if (websocket_upgrade_check(&request, accept, &err) == 0)
            fail_msg("case %zu was accepted", i);
        assert_int_equal(err.code, refusals[i].code);
        assert_string_equal(accept, "untouched");
    }
}

static void old_http_is_refused(void **state)
{
    struct websocket_upgrade request = good_request();
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];
    struct error err = ERROR_INIT;

    (void) state;
    request.http_minor = 0;
    assert_int_equal(websocket_upgrade_check(&request, accept, &err), -1);
    assert_int_equal(err.code, ERR_HTTP_VERSION);
}

static void keys_are_valid_and_differ(void **state)
{
    char first[WEBSOCKET_HANDSHAKE_KEY_SIZE], second[WEBSOCKET_HANDSHAKE_KEY_SIZE];
    struct websocket_upgrade request = good_request();
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];

    (void) state;
    websocket_handshake_key(first);
    websocket_handshake_key(second);
    assert_string_not_equal(first, second);
    request.key = first;
    assert_int_equal(websocket_upgrade_check(&request, accept, NULL), 0);
}

static struct websocket_answer good_answer(void)
{
    return (struct websocket_answer){
        .status = 101, .upgrade = "WebSocket", .connection = "upgrade", .accept = ACCEPT};
}

static int check_answer(const struct websocket_answer *answer)
{
    struct error err = ERROR_INIT;
    int r = websocket_answer_check(answer, KEY, &err);

    assert_int_equal(err.code, r < 0 ? ERR_UPSTREAM : ERR_NONE);
    return r;
}

static void good_answer_is_accepted(void **state)
{
    struct websocket_answer answer = good_answer();

    (void) state;
    assert_int_equal(check_answer(&answer), 0);
}

#undef FIELD
#define FIELD(name) offsetof(struct websocket_answer, name)

static const struct refusal wrong_answers[] = {
    {FIELD(upgrade), NULL, 0},
    {FIELD(upgrade), "h2c", 0},
    {FIELD(connection), NULL, 0},
    {FIELD(connection), "close", 0},
    {FIELD(accept), NULL, 0},
    {FIELD(accept), "", 0},
    {FIELD(accept), "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 0},
    {FIELD(accept), ACCEPT "=", 0},
    {FIELD(extensions), "permessage-deflate", 0},
    {FIELD(protocol), "", 0},
    {FIELD(protocol), "soap", 0},
    {FIELD(protocol), "chat.v1, chat.v2", 0},
};

static void each_wrong_answer_is_refused(void **state)
{
    struct websocket_answer answer = good_answer();

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong_answers); i++) {
        answer = good_answer();
        set_field(&answer, wrong_answers[i].field, wrong_answers[i].value);
        if (check_answer(&answer) == 0)
            fail_msg("case %zu was accepted", i);
    }
    answer = good_answer();
    answer.status = 200;
    assert_int_equal(check_answer(&answer), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_request_gets_the_accept_value_of_the_rfc),
        cmocka_unit_test(tokens_are_found_in_lists_in_any_case),
        cmocka_unit_test(each_wrong_header_is_refused_with_its_code),
        cmocka_unit_test(old_http_is_refused),
        cmocka_unit_test(keys_are_valid_and_differ),
        cmocka_unit_test(good_answer_is_accepted),
        cmocka_unit_test(each_wrong_answer_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
