/* Paths, templates, comparisons and times of workflows, and what is wrong with what is drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "domain/workflow/workflow_graph.h"
#include "domain/workflow/workflow_value.h"
#include "json/json_read.h"

static json_t *value_of(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(value);
    return value;
}

static void a_path_finds_what_is_there(void **state)
{
    AUTO(json) json_t *scope = value_of("{\"a\":{\"b\":[{\"c d\":7},8]}}");

    (void) state;
    assert_int_equal(json_integer_value(workflow_value_at(scope, "a.b[0]['c d']")), 7);
    assert_int_equal(json_integer_value(workflow_value_at(scope, "a.b[1]")), 8);
    assert_ptr_equal(workflow_value_at(scope, ""), scope);
    for (size_t i = 0; i < 6; i++) {
        static const char *const none[] = {"a.x",  "a.b[2]",   "a.b[x]",
                                           "a.b[", "a.b['c d", "a.b[0].c.d"};

        assert_null(workflow_value_at(scope, none[i]));
    }
}

static void templates_are_filled_and_keep_their_type(void **state)
{
    AUTO(json) json_t *scope = value_of("{\"trigger\":{\"data\":{\"n\":7,\"s\":\"x\"}}}");
    AUTO(json)
    json_t *value = value_of("[\"{{trigger.data.n}}\",\"{{ trigger.data.s }}-{{trigger.data.n}}-"
                             "{{trigger.none}}\",{\"k\":\"{{trigger.none}}\"},1]");
    AUTO(json) json_t *wanted = value_of("[7,\"x-7-\",{\"k\":null},1]");
    AUTO(json) json_t *filled = workflow_value_fill(value, scope, NULL);

    (void) state;
    assert_true(json_equal(filled, wanted));
}

static void templates_that_cannot_be_say_why(void **state)
{
    static const char *const texts[] = {"\"{{open\"", "\"{{}}\"", "\"{{env.HOME}}\""};
    AUTO(json) json_t *scope = json_object();

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        AUTO(json) json_t *value = value_of(texts[i]);
        struct error err = ERROR_INIT;

        assert_null(workflow_value_fill(value, scope, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void comparisons_hold_or_do_not(void **state)
{
    static const struct {
        const char *actual, *operator, * expected;
        int holds;
    } rows[] = {
        {"7", "equals", "\"7\"", 1},
        {"\"a\"", "equals", "\"b\"", 0},
        {"\"abc\"", "contains", "\"b\"", 1},
        {"[1,2]", "contains", "2", 1},
        {"\"abc\"", "startsWith", "\"ab\"", 1},
        {"\"abc\"", "endsWith", "\"ab\"", 0},
        {"\"10\"", "greaterThan", "9", 1},
        {"9", "greaterThanOrEqual", "9", 1},
        {"\"x\"", "lessThan", "9", 0},
        {"\"\"", "isEmpty", "0", 1},
        {"[0]", "isNotEmpty", "0", 1},
        {"true", "isTrue", "0", 1},
        {"1", "regex", "\"a*\"", -1},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(json) json_t *actual = value_of(rows[i].actual);
        AUTO(json) json_t *expected = value_of(rows[i].expected);

        assert_int_equal(workflow_value_compare(rows[i].operator, actual, expected, NULL),
                         rows[i].holds);
    }
    assert_int_equal(workflow_value_compare("isEmpty", NULL, NULL, NULL), 1);
}

static void times_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {{"\"30s\"", 30000}, {"\"5 minutes\"", 300000},
                {"1500", 1500},     {"\"1h\"", 3600000},
                {"\"2\"", 2},       {"\"x\"", 0},
                {"\"5 y\"", 0},     {"-1", 0},
                {"null", 0}};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(json) json_t *value = value_of(rows[i].text);
        uint64_t ms = 0;

        assert_int_equal(workflow_value_duration(value, &ms), rows[i].ms != 0);
        assert_int_equal(ms, rows[i].ms);
    }
}

static void what_is_wrong_with_a_drawing_is_told(void **state)
{
    static const struct {
        const char *drawing, *error; /* NULL: nothing */
    } rows[] = {
        {"{}", "Workflow has no nodes"},
        {"{\"nodes\":[{\"id\":\"a\",\"type\":\"merge\",\"parameters\":{}}]}", NULL},
        {"{\"nodes\":[{\"id\":\"a\",\"data\":{\"nodeType\":\"merge\",\"label\":\"M\"}}],\"edges\":["
         "]}",
         NULL},
        {"{\"nodes\":[{\"id\":\"a\",\"type\":\"x\"}]}", "Unknown node type: x (node: a)"},
        {"{\"nodes\":[{\"type\":\"merge\"}]}", "Node 0 has no id"},
        {"{\"nodes\":[{\"id\":\"a\",\"type\":\"merge\"},{\"id\":\"a\",\"type\":\"merge\"}]}",
         "Two nodes have the id a"},
        {"{\"nodes\":[{\"id\":\"a\",\"type\":\"merge\"}],\"edges\":[{\"source\":\"a\",\"target\":"
         "\"b\"}]}",
         "A connection from a to b names a node that is not there"},
        {"{\"nodes\":[{\"id\":\"a\",\"type\":\"merge\"}],\"edges\":[{\"source\":\"a\",\"target\":"
         "\"a\"}]}",
         "Workflow contains a cycle: nodes must not lead back to themselves"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(json) json_t *drawing = value_of(rows[i].drawing);
        AUTO(json) json_t *graph = workflow_graph_normal(drawing);
        AUTO(json) json_t *errors = json_array();

        workflow_graph_check(graph, errors);
        if (rows[i].error)
            assert_string_equal(json_string_value(json_array_get(errors, 0)), rows[i].error);
        else
            assert_int_equal(json_array_size(errors), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_what_is_there),
        cmocka_unit_test(templates_are_filled_and_keep_their_type),
        cmocka_unit_test(templates_that_cannot_be_say_why),
        cmocka_unit_test(comparisons_hold_or_do_not),
        cmocka_unit_test(times_have_units),
        cmocka_unit_test(what_is_wrong_with_a_drawing_is_told),
    };

    json_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
