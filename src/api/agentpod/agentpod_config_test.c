#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/agentpod/agentpod_config.h"
#include "base/text.h"

static int read_text(const char *text, struct pool *pool, struct agentpod_config *config,
                     struct error *err)
{
    AUTO(json) json_t *body = json_read(text, strlen(text), NULL, err);
    struct json_place root;

    assert_non_null(body);
    assert_int_equal(json_root_object(body, &root, err), 0);
    return agentpod_config_read(&root, pool, config, err);
}

static const char *content_of(const struct agentpod_config *config, const char *path)
{
    for (size_t i = 0; i < config->count; i++) {
        if (strcmp(config->files[i].path, path) == 0)
            return config->files[i].content;
    }
    return NULL;
}

static void no_config_writes_nothing(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct agentpod_config config;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(read_text("{}", &pool, &config, &err), 0);
    assert_int_equal(config.count, 0);
    assert_null(config.credentials);
    assert_int_equal(read_text("{\"config\":{}}", &pool, &config, &err), 0);
    assert_int_equal(config.count, 0);
}

static void every_key_has_its_file(void **state)
{
    static const char text[] =
        "{\"config\":{\"model\":\"m\",\"agents_md\":\"# hi\",\"files\":["
        "{\"type\":\"agent\",\"name\":\"review-1.2\",\"extension\":\"md\",\"content\":\"A\"},"
        "{\"type\":\"plugin\",\"name\":\"p\",\"extension\":\"ts\",\"content\":\"B\",\"isSystem\":"
        "true},"
        "{\"type\":\"tool\",\"name\":\"t\",\"extension\":\"js\",\"content\":\"\"},"
        "{\"type\":\"command\",\"name\":\"c\",\"extension\":\"md\",\"content\":\"D\"}]}}";
    AUTO(pool) struct pool pool = POOL_INIT;
    struct agentpod_config config;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(read_text(text, &pool, &config, &err), 0);
    assert_int_equal(config.count, 6);
    assert_string_equal(content_of(&config, "AGENTS.md"), "# hi");
    assert_string_equal(content_of(&config, ".opencode/agent/review-1.2.md"), "A");
    assert_string_equal(content_of(&config, ".opencode/plugin/p.ts"), "B");
    assert_string_equal(content_of(&config, ".opencode/tool/t.js"), "");
    assert_string_equal(content_of(&config, ".opencode/command/c.md"), "D");
    assert_string_equal(content_of(&config, ".opencode/opencode.json"), "{\n  \"model\": \"m\"\n}");
    assert_null(config.credentials);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const names[] = {
        "../x", "a/b", "/etc/x", ".hidden", "..", "", "a\\\\b", "x y", "a%2fb", "\\u00fc", "a\\nb",
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *text =
            pool_format(&pool,
                        "{\"config\":{\"files\":[{\"type\":\"agent\",\"name\":\"%s\","
                        "\"extension\":\"md\",\"content\":\"\"}]}}",
                        names[i]);
        struct agentpod_config config;
        struct error err = ERROR_INIT;

        assert_int_equal(read_text(text, &pool, &config, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.message, "config.files[0].name"));
    }
}

static void unknown_types_and_extensions_are_refused(void **state)
{
    static const char *const rest[] = {
        "\"type\":\"../agent\",\"extension\":\"md\"",
        "\"type\":\"mode\",\"extension\":\"md\"",
        "\"type\":\"agent\",\"extension\":\"sh\"",
        "\"type\":\"agent\",\"extension\":\"md/x\"",
        "\"type\":\"agent\"",
        "\"extension\":\"md\"",
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rest); i++) {
        const char *text = pool_format(
            &pool, "{\"config\":{\"files\":[{\"name\":\"n\",\"content\":\"\",%s}]}}", rest[i]);
        struct agentpod_config config;
        struct error err = ERROR_INIT;

        assert_int_equal(read_text(text, &pool, &config, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void credentials_never_enter_the_workspace(void **state)
{
    static const char text[] =
        "{\"config\":{\"provider\":{\"openai\":{\"options\":{\"apiKey\":\"SECRET1\",\"baseUrl\":"
        "\"u\"}},\"anthropic\":{\"options\":{\"apiKey\":\"SECRET2\"}},\"plain\":{}},"
        "\"auth\":{\"anthropic\":{\"type\":\"api\",\"key\":\"SECRET3\"},"
        "\"github\":{\"type\":\"oauth\",\"access\":\"SECRET4\"}}}}";
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(json) json_t *credentials = NULL;
    struct agentpod_config config;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(read_text(text, &pool, &config, &err), 0);
    assert_int_equal(config.count, 1);
    assert_null(strstr(config.files[0].content, "SECRET"));
    assert_non_null(strstr(config.files[0].content, "baseUrl"));
    credentials = json_read(config.credentials, strlen(config.credentials), NULL, &err);
    assert_int_equal(json_object_size(credentials), 3);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(credentials, "openai"), "key")),
        "SECRET1");
    /* What `auth` says wins. */
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(credentials, "anthropic"), "key")),
        "SECRET3");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(credentials, "github"), "refresh")), "");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(credentials, "github"), "expires")), 0);
}

static void credentials_that_are_none_are_refused_without_repeating_them(void **state)
{
    static const char *const cases[] = {
        "{\"type\":\"api\"}",
        "{\"type\":\"api\",\"key\":\"\"}",
        "{\"type\":\"oauth\",\"expires\":1}",
        "{\"type\":\"SECRET\",\"key\":\"SECRET\"}",
        "{\"key\":\"SECRET\"}",
        "\"SECRET\"",
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const char *text = pool_format(&pool, "{\"config\":{\"auth\":{\"p\":%s}}}", cases[i]);
        struct agentpod_config config;
        struct error err = ERROR_INIT;

        assert_int_equal(read_text(text, &pool, &config, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(strstr(err.message, "SECRET"));
    }
}

static void too_many_files_are_refused(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(JSON_SIZE_MAX);
    AUTO(pool) struct pool pool = POOL_INIT;
    struct agentpod_config config;
    struct error err = ERROR_INIT;

    (void) state;
    text_append(&text, "{\"config\":{\"files\":[");
    for (size_t i = 0; i <= AGENTPOD_FILES_MAX; i++)
        text_format(
            &text, "%s{\"type\":\"agent\",\"name\":\"n%zu\",\"extension\":\"md\",\"content\":\"\"}",
            i ? "," : "", i);
    text_append(&text, "]}}");
    assert_int_equal(read_text(text_string(&text), &pool, &config, &err), -1);
    assert_non_null(strstr(err.message, "at most 256"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_config_writes_nothing),
        cmocka_unit_test(every_key_has_its_file),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
        cmocka_unit_test(unknown_types_and_extensions_are_refused),
        cmocka_unit_test(credentials_never_enter_the_workspace),
        cmocka_unit_test(credentials_that_are_none_are_refused_without_repeating_them),
        cmocka_unit_test(too_many_files_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
