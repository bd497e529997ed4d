#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/architecture.h"
#include "registry/registry_document.h"
/* After the headers it needs. */
#include <cmocka.h>

#define ONE  "1111111111111111111111111111111111111111111111111111111111111111"
#define TWO  "2222222222222222222222222222222222222222222222222222222222222222"
#define TREE "3333333333333333333333333333333333333333333333333333333333333333"

#define BLOB(digest, size) "{\"digest\":\"sha256:" digest "\",\"size\":" size "}"
#define FOR(digest, machine, os)                                                                   \
    "{\"digest\":\"sha256:" digest "\",\"size\":7,\"platform\":{\"architecture\":\"" machine       \
    "\",\"os\":\"" os "\"}}"

static struct error err;

static json_t *read_text(const char *text)
{
    json_t *document = registry_document_read(text, strlen(text), &err);

    if (!document)
        fail_msg("%s: %s", text, err.message);
    return document;
}

/* --- index ----------------------------------------------------------------------------------- */

static void check_choice(const char *list, const char *wanted)
{
    AUTO(text) struct text text = TEXT_INIT(4096);
    AUTO(json) json_t *index = NULL;
    struct registry_blob blob = {.size = 0};
    int r;

    text_format(&text, "{\"manifests\":[%s]}", list);
    index = read_text(text_string(&text));
    assert_true(registry_document_is_index(index));
    r = registry_index_choose(index, &blob, &err);
    assert_int_equal(r, wanted ? 0 : -1);
    assert_string_equal(blob.digest, wanted ? wanted : "");
    if (!wanted)
        assert_int_equal(err.code, ERR_INVALID);
}

static void of_an_index_the_one_for_this_machine_is_taken(void **state)
{
    const char *machine = architecture_name();
    AUTO(text) struct text ours = TEXT_INIT(4096);
    AUTO(text) struct text list = TEXT_INIT(4096);

    (void) state;
    text_format(&ours,
                "{\"digest\":\"sha256:" ONE "\",\"size\":7,\"platform\":{\"architecture\":\"%s\","
                "\"os\":\"linux\"}}",
                machine);
    check_choice(text_string(&ours), ONE);
    text_format(&list, "%s,%s,%s", FOR(TWO, "mips", "linux"), BLOB(TREE, "1"), text_string(&ours));
    check_choice(text_string(&list), ONE);
    check_choice(FOR(TWO, "mips", "linux") "," BLOB(TREE, "1"), TREE);
    check_choice(FOR(TWO, "mips", "linux"), NULL);
    check_choice("", NULL);
    text_clear(&list);
    text_format(&list,
                "{\"digest\":\"sha256:" TWO "\",\"size\":7,\"platform\":{\"architecture\":\"%s\","
                "\"os\":\"windows\"}}",
                machine);
    check_choice(text_string(&list), NULL);
    check_choice("{\"digest\":\"sha256:12\",\"size\":7}", NULL);
    check_choice("{\"digest\":\"sha256:" ONE "\"}", NULL);
    check_choice("1", NULL);
}

/* --- manifest -------------------------------------------------------------------------------- */

static void a_manifest_has_its_parts_in_order(void **state)
{
    AUTO(json)
    json_t *document = read_text("{\"schemaVersion\":2,\"config\":" BLOB(
        ONE, "10") ","
                   "\"layers\":[" BLOB(TWO, "20") "," BLOB(TREE, "30") "]}");
    AUTO(registry_manifest) struct registry_manifest manifest = REGISTRY_MANIFEST_INIT;

    (void) state;
    assert_false(registry_document_is_index(document));
    assert_int_equal(registry_manifest_read(document, &manifest, &err), 0);
    assert_string_equal(manifest.config.digest, ONE);
    assert_int_equal(manifest.config.size, 10);
    assert_int_equal(manifest.layer_count, 2);
    assert_string_equal(manifest.layers[0].digest, TWO);
    assert_string_equal(manifest.layers[1].digest, TREE);
    assert_int_equal(manifest.layers[1].size, 30);
}

static void what_is_no_manifest_is_refused(void **state)
{
    static const struct {
        const char *text;
        enum err_code code;
    } rows[] = {
        {"{}", ERR_INVALID},
        {"{\"fsLayers\":[]}", ERR_INVALID},
        {"{\"config\":" BLOB(ONE, "1") "}", ERR_INVALID},
        {"{\"config\":" BLOB(ONE, "1") ",\"layers\":[]}", ERR_INVALID},
        {"{\"config\":" BLOB(ONE, "-1") ",\"layers\":[" BLOB(TWO, "1") "]}", ERR_INVALID},
        {"{\"config\":" BLOB(ONE, "9999999") ",\"layers\":[" BLOB(TWO, "1") "]}", ERR_TOO_LARGE},
        {"{\"config\":" BLOB(ONE, "1") ",\"layers\":[" BLOB(TWO, "68719476737") "]}",
         ERR_TOO_LARGE},
        /* Each may be, all together may not. */
        {"{\"config\":" BLOB(ONE, "1") ",\"layers\":[" BLOB(TWO, "68719476736") "," BLOB(TREE,
                                                                                         "1") "]}",
         ERR_TOO_LARGE},
        {"{\"config\":" BLOB(ONE, "1") ",\"layers\":[" BLOB("x", "1") "]}", ERR_INVALID},
        {"{\"config\":" BLOB(ONE, "1") ",\"layers\":[7]}", ERR_INVALID},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(json) json_t *document = read_text(rows[i].text);
        AUTO(registry_manifest) struct registry_manifest manifest = REGISTRY_MANIFEST_INIT;

        if (registry_manifest_read(document, &manifest, &err) == 0)
            fail_msg("%s is taken", rows[i].text);
        assert_int_equal(err.code, rows[i].code);
    }
    assert_null(registry_document_read("[]", 2, &err));
    assert_null(registry_document_read("{", 1, &err));
}

static void more_layers_than_a_sandbox_can_have_are_refused(void **state)
{
    (void) state;
    for (int count = REGISTRY_LAYERS_MAX; count <= REGISTRY_LAYERS_MAX + 1; count++) {
        AUTO(text) struct text text = TEXT_INIT(1 << 20);
        AUTO(json) json_t *document = NULL;
        AUTO(registry_manifest) struct registry_manifest manifest = REGISTRY_MANIFEST_INIT;

        text_append(&text, "{\"config\":" BLOB(ONE, "1") ",\"layers\":[");
        for (int i = 0; i < count; i++)
            text_format(&text, "%s%s", i ? "," : "", BLOB(TWO, "1"));
        text_append(&text, "]}");
        document = read_text(text_string(&text));
        assert_int_equal(registry_manifest_read(document, &manifest, &err),
                         count > REGISTRY_LAYERS_MAX ? -1 : 0);
    }
    assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void a_configuration_names_as_many_layers_as_there_are(void **state)
{
    AUTO(json)
    json_t *config =
        read_text("{\"rootfs\":{\"diff_ids\":[\"sha256:" ONE "\",\"sha256:" TWO "\"]}}");
    AUTO(json) json_t *broken = read_text("{\"rootfs\":{\"diff_ids\":[\"sha256:1\",2]}}");
    AUTO(free) char(*digests)[REGISTRY_DIGEST_LENGTH + 1] = NULL;

    (void) state;
    assert_int_equal(registry_config_layers(config, 2, &digests, &err), 0);
    assert_string_equal(digests[0], ONE);
    assert_string_equal(digests[1], TWO);
    for (size_t count = 0; count < 4; count++) {
        char(*none)[REGISTRY_DIGEST_LENGTH + 1] = NULL;

        if (count != 2)
            assert_int_equal(registry_config_layers(config, count, &none, &err), -1);
        assert_int_equal(registry_config_layers(broken, count, &none, &err), -1);
        assert_null(none);
    }
}

/* --- tokens and failures --------------------------------------------------------------------- */

static void tokens_are_found_and_fit_for_a_header(void **state)
{
    static const struct {
        const char *text, *token;
    } rows[] = {
        {"{\"token\":\"abc\"}", "abc"},
        {"{\"access_token\":\"abc\",\"expires_in\":300}", "abc"},
        {"{\"access_token\":\"abc\",\"token\":\"def\"}", "def"},
        {"{}", NULL},
        {"{\"token\":\"\"}", NULL},
        {"{\"token\":7}", NULL},
        {"{\"token\":\"a\\r\\nHost: b\"}", NULL},
        {"{\"token\":\"a b\"}", NULL},
        {"{\"token\":\"\\u00e4\"}", NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(json) json_t *document = read_text(rows[i].text);
        const char *token = NULL;

        assert_int_equal(registry_token_read(document, &token, &err), rows[i].token ? 0 : -1);
        if (rows[i].token)
            assert_string_equal(token, rows[i].token);
    }
}

static void failures_are_shown_harmlessly(void **state)
{
    static const char *const rows[][2] = {
        {"{\"errors\":[{\"code\":\"DENIED\",\"message\":\"not for you\"}]}", "DENIED: not for you"},
        {"{\"errors\":[{\"code\":\"DENIED\"},{\"code\":\"OTHER\"}]}", "DENIED"},
        {"{\"errors\":[{\"message\":\"\\u001b[2Jboo\\n\"}]}", "?[2Jboo?"},
        {"{\"errors\":[]}", ""},
        {"{\"errors\":{}}", ""},
        {"<html>", ""},
        {"", ""},
    };
    char why[REGISTRY_WHY_MAX];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        registry_failure_read(rows[i][0], strlen(rows[i][0]), why);
        assert_string_equal(why, rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_an_index_the_one_for_this_machine_is_taken),
        cmocka_unit_test(a_manifest_has_its_parts_in_order),
        cmocka_unit_test(what_is_no_manifest_is_refused),
        cmocka_unit_test(more_layers_than_a_sandbox_can_have_are_refused),
        cmocka_unit_test(a_configuration_names_as_many_layers_as_there_are),
        cmocka_unit_test(tokens_are_found_and_fit_for_a_header),
        cmocka_unit_test(failures_are_shown_harmlessly),
    };

    return cmocka_run_group_tests_name("registry_document", tests, NULL, NULL);
}
