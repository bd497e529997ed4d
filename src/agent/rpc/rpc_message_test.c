/* The words of the protocol: rpc_message.c, rpc_expression.c, rpc_table.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/operation.h"
#include "agent/rpc/rpc_expression.h"
#include "agent/rpc/rpc_message.h"
#include "agent/rpc/rpc_table.h"

#define IDS 3000

/* --- messages -------------------------------------------------------------------------------- */

static void messages_have_their_parts(void **state)
{
    struct error err = ERROR_INIT;
    struct rpc_message message;

    (void) state;
    assert_int_equal(rpc_message_read("[\"release\",-3,2]", 16, &message, &err), 0);
    assert_int_equal(message.type, RPC_RELEASE);
    assert_int_equal(message.id, -3);
    assert_int_equal(message.count, 2);
    json_decref(message.frame);
    assert_int_equal(rpc_message_read("[\"reject\",4,\"no\"]", 17, &message, &err), 0);
    assert_int_equal(message.type, RPC_REJECT);
    assert_string_equal(json_string_value(message.expression), "no");
    json_decref(message.frame);
    assert_int_equal(rpc_message_read("[\"reject\",4]", 12, &message, &err), -1);
    assert_string_equal(err.message, "not a message of this protocol");
}

static void halves_of_characters_are_mended(void **state)
{
    static const char frame[] =
        "[\"push\",\"\\ud83d\\ude00 \\ud83d \\ude00 \\\\ud83d \\ud83d\\ud83d\\ude00\\ud83d\"]";
    struct error err = ERROR_INIT;
    struct rpc_message message;

    (void) state;
    assert_int_equal(rpc_message_read(frame, strlen(frame), &message, &err), 0);
    assert_string_equal(json_string_value(message.expression),
                        "\xf0\x9f\x98\x80 \xef\xbf\xbd \xef\xbf\xbd \\ud83d "
                        "\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd");
    json_decref(message.frame);
    assert_int_equal(rpc_message_read("[\"push\",\"\\ud8", 13, &message, &err), -1);
    assert_int_equal(rpc_message_read("[\"push\",\"\\ud83d\\", 16, &message, &err), -1);
}

static void nesting_is_bounded(void **state)
{
    AUTO(text) struct text frame = TEXT_INIT(1024);
    struct error err = ERROR_INIT;
    struct rpc_message message;
    json_t *value;

    (void) state;
    text_append(&frame, "[\"push\",");
    for (int i = 0; i < RPC_DEPTH_MAX + 1; i++)
        text_append(&frame, "[[");
    for (int i = 0; i < RPC_DEPTH_MAX + 1; i++)
        text_append(&frame, "]]");
    text_append(&frame, "]");
    assert_int_equal(rpc_message_read(frame.data, frame.length, &message, &err), 0);
    assert_int_equal(rpc_expression_value(message.expression, &value, &err), 0);
    json_decref(value);
    json_decref(message.frame);

    text_clear(&frame);
    text_append(&frame, "[\"push\",");
    for (int i = 0; i < RPC_DEPTH_MAX + 2; i++)
        text_append(&frame, "[[");
    for (int i = 0; i < RPC_DEPTH_MAX + 2; i++)
        text_append(&frame, "]]");
    text_append(&frame, "]");
    assert_int_equal(rpc_message_read(frame.data, frame.length, &message, &err), 0);
    assert_int_equal(rpc_expression_value(message.expression, &value, &err), -1);
    assert_string_equal(err.message, "too much nesting");
    json_decref(message.frame);
}

/* --- expressions ----------------------------------------------------------------------------- */

/* The value of an expression as text, or what is wrong with it. */
static void assert_value(const char *expression, const char *expected)
{
    json_t *tree = json_loads(expression, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    struct error err = ERROR_INIT;
    json_t *value = NULL;

    assert_non_null(tree);
    if (rpc_expression_value(tree, &value, &err) < 0) {
        assert_string_equal(err.message, expected);
    } else if (!value) {
        assert_string_equal("undefined", expected);
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

        assert_string_equal(text, expected);
        free(text);
    }
    json_decref(value);
    json_decref(tree);
}

static void expressions_become_plain_json(void **state)
{
    (void) state;
    assert_value("5", "5");
    assert_value("\"x\"", "\"x\"");
    assert_value("null", "null");
    assert_value("[[]]", "[]");
    assert_value("[[1,[[\"a\"]],{\"b\":[[2]]}]]", "[1,[\"a\"],{\"b\":[2]}]");
    assert_value("[\"undefined\"]", "undefined");
    assert_value("{\"a\":[\"undefined\"],\"b\":[[[\"undefined\"]]]}", "{\"b\":[null]}");
    assert_value("[\"date\",1794767246639]", "\"2026-11-15T18:27:26.639Z\"");
    assert_value("[\"date\",null]", "null");
    assert_value("[\"date\",\"x\"]", "a date without its time");
    assert_value("[\"bigint\",\"-9223372036854775808\"]", "-9223372036854775808");
    assert_value("[\"bigint\",\"9223372036854775808\"]", "an integer that is too large, or none");
    assert_value("[\"nan\"]", "null");
    assert_value("\"a\\u0000b\"", "\\u0000 is not allowed");
    assert_value("[]", "a value that no argument can have: a stub, a promise, bytes, an error...");
    assert_value("[1]", "a value that no argument can have: a stub, a promise, bytes, an error...");
}

static void assert_bytes(const char *expression, const char *expected)
{
    json_t *tree = json_loads(expression, JSON_DECODE_ANY, NULL);
    struct error err = ERROR_INIT;
    AUTO(free) char *bytes = NULL;
    size_t length;

    if (rpc_expression_bytes(tree, &bytes, &length, &err) < 0) {
        assert_null(expected);
    } else {
        assert_non_null(expected);
        assert_int_equal(length, strlen(expected));
        assert_memory_equal(bytes, expected, length);
    }
    json_decref(tree);
}

static void bytes_need_no_padding(void **state)
{
    (void) state;
    assert_bytes("[\"bytes\",\"\"]", "");
    assert_bytes("[\"bytes\",\"YQ\"]", "a");
    assert_bytes("[\"bytes\",\"YQ==\"]", "a");
    assert_bytes("[\"bytes\",\"YWI\"]", "ab");
    assert_bytes("[\"bytes\",\"YWJj\"]", "abc");
    assert_bytes("[\"bytes\",\"YWJjZA\"]", "abcd");
    assert_bytes("\"text\"", "text");
    assert_bytes("[\"bytes\",\"YQ=\"]", NULL);
    assert_bytes("[\"bytes\",\"Y\"]", NULL);
    assert_bytes("[\"bytes\",\"Y-==\"]", NULL);
    assert_bytes("[\"bytes\",5]", NULL);
    assert_bytes("[\"bytes\"]", NULL);
    assert_bytes("5", NULL);
}

static void count_reference(void *context, enum rpc_reference kind, int64_t id)
{
    int64_t *sums = context;

    sums[kind] += id;
}

static void references_are_found_wherever_they_are(void **state)
{
    int64_t sums[3] = {0, 0, 0};
    json_t *tree = json_loads("[\"pipeline\",0,[\"a\",\"export\"],[[\"export\",-1],{\"x\":[[[\""
                              "promise\",-10],[\"readable\",5]]]},[\"error\",\"E\",\"m\",null,{"
                              "\"p\":[\"writable\",-100]}],[\"remap\",0,[],[[\"export\",-1000]],[]"
                              "],[[\"export\",7]],\"export\"]]",
                              0, NULL);

    (void) state;
    assert_non_null(tree);
    rpc_expression_visit(tree, count_reference, sums);
    /* [["export",7]] is an array that holds "export" and 7 */
    assert_int_equal(sums[RPC_STUB], -1111);
    assert_int_equal(sums[RPC_READABLE], 5);
    json_decref(tree);
}

static void wrapping_text_and_tree_agree(void **state)
{
    static const char json[] = "{\"a\":[1,[],{\"b\":[\"[\\\"]\\\\\",true]}],\"c\":\"]\"}";
    json_t *tree = json_loads(json, 0, NULL);
    AUTO(text) struct text whole = TEXT_INIT(1024);

    (void) state;
    rpc_expression_write(&whole, tree);
    json_decref(tree);
    assert_string_equal(whole.data,
                        "{\"a\":[[1,[[]],{\"b\":[[\"[\\\"]\\\\\",true]]}]],\"c\":\"]\"}");
    for (size_t split = 0; split < sizeof(json); split++) {
        AUTO(text) struct text pieces = TEXT_INIT(1024);
        struct rpc_wrap wrap = {.in_string = false};

        rpc_wrap_append(&wrap, &pieces, json, split);
        rpc_wrap_append(&wrap, &pieces, json + split, sizeof(json) - 1 - split);
        assert_string_equal(text_string(&pieces), whole.data);
    }
}

/* --- tables ---------------------------------------------------------------------------------- */

static void tables_keep_what_is_in_them(void **state)
{
    static bool there[IDS];
    struct rpc_table table = {.slots = NULL};
    struct rpc_slot slot;
    uint32_t random = 3;
    size_t count = 0;

    (void) state;
    for (int i = 0; i < 50000; i++) {
        int64_t id;

        random = random * 1664525u + 1013904223u;
        id = (random >> 8) % IDS;
        if (there[id])
            rpc_table_remove(&table, id - IDS / 2);
        else
            rpc_table_add(
                &table,
                &(struct rpc_slot){.id = id - IDS / 2, .object = &there[id], .size = (size_t) id});
        there[id] = !there[id];
        count += there[id] ? 1 : (size_t) -1;
        assert_int_equal(table.count, count);
    }
    for (int64_t id = 0; id < IDS; id++) {
        assert_int_equal(rpc_table_find(&table, id - IDS / 2, &slot), there[id]);
        if (there[id])
            assert_int_equal(slot.size, id);
    }
    while (rpc_table_any(&table, &slot)) {
        rpc_table_remove(&table, slot.id);
        count--;
    }
    assert_int_equal(count, 0);
    assert_null(table.slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_have_their_parts),
        cmocka_unit_test(halves_of_characters_are_mended),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(expressions_become_plain_json),
        cmocka_unit_test(bytes_need_no_padding),
        cmocka_unit_test(references_are_found_wherever_they_are),
        cmocka_unit_test(wrapping_text_and_tree_agree),
        cmocka_unit_test(tables_keep_what_is_in_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
