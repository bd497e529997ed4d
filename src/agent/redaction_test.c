#include <stdlib.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/redaction.h"

static const char *redact(struct text *out, const struct redaction *redaction, const char *text)
{
    text_clear(out);
    redaction_append(redaction, out, text, strlen(text));
    return text_string(out);
}

static void a_secret_is_masked_wherever_it_stands(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(1000);
    struct redaction redaction = {.count = 0};

    (void) state;
    redaction_add(&redaction, "s3cret");
    assert_string_equal(redact(&out, &redaction, "s3cret"), "******");
    assert_string_equal(redact(&out, &redaction, "xs3crets3crety"), "x************y");
    assert_string_equal(redact(&out, &redaction, "s3cres3cret"), "s3cre******");
    assert_string_equal(redact(&out, &redaction, "s3cre"), "s3cre");
}

static void credentials_of_unknown_urls_are_masked(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(1000);
    const struct redaction none = {.count = 0};

    (void) state;
    assert_string_equal(redact(&out, &none, "fatal: 'https://a:b@c/d@e' x@y"),
                        "fatal: 'https://******@c/d@e' x@y");
    assert_string_equal(redact(&out, &none, "http://a@b@c"), "http://******@c");
    assert_string_equal(redact(&out, &none, "http://c http://"), "http://c http://");
}

static void short_and_empty_secrets_do_not_spoil_the_text(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(1000);
    struct redaction redaction = {.count = 0};

    (void) state;
    redaction_add(&redaction, NULL);
    redaction_add(&redaction, "");
    redaction_add(&redaction, "abc");
    redaction_add(&redaction, "*****");
    assert_int_equal(redaction.count, 0);
    assert_string_equal(redact(&out, &redaction, "abc *****"), "abc *****");
}

/* Short alphabets make secrets that overlap themselves, each other and the mask. */
static void no_secret_survives_or_comes_to_be(void **state)
{
    static const char letters[] = "ab*";

    (void) state;
    srandom(1);
    for (int round = 0; round < 20000; round++) {
        AUTO(text) struct text out = TEXT_INIT(4096);
        struct redaction redaction = {.count = 0};
        char secrets[2][8] = {{0}}, text[64] = {0};

        for (size_t i = 0; i < 2; i++) {
            for (size_t j = 0; j < 4 + (size_t) random() % 3; j++)
                secrets[i][j] = letters[random() % 3];
            redaction_add(&redaction, secrets[i]);
        }
        for (size_t i = 0; i < sizeof(text) - 1; i++)
            text[i] = letters[random() % 3];
        (void) redact(&out, &redaction, text);
        assert_false(out.overflowed);
        for (size_t i = 0; i < redaction.count; i++)
            assert_null(strstr(text_string(&out), redaction.secrets[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_masked_wherever_it_stands),
        cmocka_unit_test(credentials_of_unknown_urls_are_masked),
        cmocka_unit_test(short_and_empty_secrets_do_not_spoil_the_text),
        cmocka_unit_test(no_secret_survives_or_comes_to_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
