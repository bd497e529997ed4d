#include "agent/agent_test.h"
#include "agent/file/mime.c"

static void the_table_is_sorted_and_in_lower_case(void **state)
{
    (void) state;
    for (size_t i = 1; i < ARRAY_COUNT(extensions); i++)
        assert_true(strcmp(extensions[i - 1].extension, extensions[i].extension) < 0);
    for (size_t i = 0; i < ARRAY_COUNT(extensions); i++) {
        assert_non_null(strchr(extensions[i].type, '/'));
        assert_true(strlen(extensions[i].extension) < EXTENSION_MAX - 1);
        for (const char *at = extensions[i].extension; *at; at++)
            assert_true((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9'));
    }
}

static void names_tell_the_type(void **state)
{
    static const char *const cases[][2] = {
        {"a.txt", "text/plain"},          {"a.JSON", "application/json"},
        {"a.tar.gz", "application/gzip"}, {"a.png", "image/png"},
        {"a.js", "text/javascript"},      {".gitignore", "text/plain"},
        {"Makefile", "text/x-makefile"},  {"a.7z", "application/x-7z-compressed"},
        {"a.zst", "application/zstd"},    {"a.ts", "text/javascript"},
    };
    static const char *const unknown[] = {
        "", "a", "a.", ".", "a.nosuchthing", "txt", "a.txttxttxttxttxttxttxttxttxt"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_string_equal(mime_of_name(cases[i][0]), cases[i][1]);
    for (size_t i = 0; i < ARRAY_COUNT(unknown); i++)
        assert_null(mime_of_name(unknown[i]));
}

#define ASSERT_BYTES(bytes, type) assert_string_equal(mime_of_bytes(bytes, sizeof(bytes) - 1), type)

static void content_tells_the_type(void **state)
{
    (void) state;
    ASSERT_BYTES("", MIME_EMPTY);
    ASSERT_BYTES("hello\n", MIME_TEXT);
    ASSERT_BYTES("Gr\xc3\xbc\xc3\x9f\x65\n", MIME_TEXT);
    ASSERT_BYTES("caf\xe9\n", MIME_TEXT);
    ASSERT_BYTES("a\0b", MIME_UNKNOWN);
    ASSERT_BYTES("\x7f"
                 "ELF\2\1\1",
                 "application/x-executable");
    ASSERT_BYTES("\x89PNG\r\n\x1a\n", "image/png");
    ASSERT_BYTES("\x89PNG\r\n\x1a", MIME_UNKNOWN); /* cut short: no signature */
    ASSERT_BYTES("\xff\xd8\xff\xe0", "image/jpeg");
    ASSERT_BYTES("\x1f\x8b\x08", "application/gzip");
    ASSERT_BYTES("PK\3\4", "application/zip");
    ASSERT_BYTES("%PDF-1.7\n", "application/pdf");
    ASSERT_BYTES("#!/bin/sh\necho\n", "text/x-shellscript");
    ASSERT_BYTES("<!DOCTYPE HTML>\n", "text/html");
    ASSERT_BYTES("BMW is a word\n", MIME_TEXT);
    ASSERT_BYTES("MZ\x90\0", "application/x-dosexec");
}

static void the_text_rules_are_those_of_clients(void **state)
{
    static const char *const text[] = {
        "text/plain",       "image/svg+xml", "application/ld+json", "application/json",
        "application/x-sh", MIME_EMPTY,      "application/yaml",    "application/toml"};
    static const char *const binary[] = {"image/png",
                                         "application/octet-stream",
                                         "application/pdf",
                                         "application/zip",
                                         "font/woff",
                                         "",
                                         "+xm"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(text); i++)
        assert_true(mime_is_text(text[i]));
    for (size_t i = 0; i < ARRAY_COUNT(binary); i++)
        assert_false(mime_is_text(binary[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sorted_and_in_lower_case),
        cmocka_unit_test(names_tell_the_type),
        cmocka_unit_test(content_tells_the_type),
        cmocka_unit_test(the_text_rules_are_those_of_clients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
