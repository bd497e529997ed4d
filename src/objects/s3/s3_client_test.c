/* Settings: which are refused, and what becomes of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "objects/s3/s3_client.h"

#define SECRET "a-secret/with+signs="

static struct s3_settings right(void)
{
    return (struct s3_settings){.endpoint = "https://s3.example.org",
                                .bucket = "bucket",
                                .access_key = "id",
                                .secret_key = SECRET};
}

static void expect_places(const struct s3_settings *settings, const char *text, const char *host,
                          const char *path)
{
    struct error err = ERROR_INIT;
    AUTO(s3_client) struct s3_client *client = s3_client_new(settings, &err);
    AUTO(text) struct text key = TEXT_INIT(1024);

    if (!client)
        fail_msg("%s", err.message);
    assert_string_equal(client->text, text);
    assert_string_equal(client->host, host);
    s3_client_path(client, "a b/c", &key);
    assert_string_equal(text_string(&key), path);
}

static void the_bucket_is_in_the_path_or_in_the_host(void **state)
{
    struct s3_settings settings = right();

    (void) state;
    expect_places(&settings, "s3 https://s3.example.org/bucket", "s3.example.org",
                  "/bucket/a%20b/c");
    settings.style = S3_STYLE_VIRTUAL;
    expect_places(&settings, "s3 https://bucket.s3.example.org", "bucket.s3.example.org",
                  "/a%20b/c");
    settings.endpoint = "http://S3.Example.org:80/";
    expect_places(&settings, "s3 http://bucket.s3.example.org", "bucket.s3.example.org",
                  "/a%20b/c");
    settings.style = S3_STYLE_PATH;
    settings.endpoint = "http://[::1]:9000/storage/v1/";
    expect_places(&settings, "s3 http://[::1]:9000/storage/v1/bucket", "[::1]:9000",
                  "/storage/v1/bucket/a%20b/c");
}

static void what_is_empty_was_not_set(void **state)
{
    struct s3_settings settings = right();
    AUTO(s3_client) struct s3_client *client = NULL;

    (void) state;
    settings.region = settings.session_token = settings.ca_file = settings.prefix = "";
    client = s3_client_new(&settings, NULL);
    assert_non_null(client);
    assert_string_equal(client->key.region, "us-east-1");
    assert_null(client->key.session_token);
    assert_null(client->ca_file);
}

static void the_bucket_itself_has_a_path(void **state)
{
    struct s3_settings settings = right();
    AUTO(s3_client) struct s3_client *client = s3_client_new(&settings, NULL);
    AUTO(text) struct text path = TEXT_INIT(64), root = TEXT_INIT(64);
    AUTO(s3_client) struct s3_client *other = NULL;

    (void) state;
    s3_client_path(client, NULL, &path);
    assert_string_equal(text_string(&path), "/bucket");
    settings.style = S3_STYLE_VIRTUAL;
    other = s3_client_new(&settings, NULL);
    s3_client_path(other, NULL, &root);
    assert_string_equal(text_string(&root), "/");
}

static void expect_refused(const struct s3_settings *settings, const char *word)
{
    struct error err = ERROR_INIT;
    AUTO(s3_client) struct s3_client *client = s3_client_new(settings, &err);

    assert_null(client);
    assert_int_equal(err.code, ERR_INVALID);
    if (!strstr(err.message, word))
        fail_msg("no '%s' in: %s", word, err.message);
    assert_null(strstr(err.message, "a-secret"));
}

static void wrong_endpoints_are_refused(void **state)
{
    static const char *const wrong[] = {NULL,
                                        "",
                                        "s3.example.org",
                                        "ftp://s3.example.org",
                                        "unix:/run/s3",
                                        "https://user:a-secret@s3.example.org",
                                        "https://s3.example.org/?x=y",
                                        "https://"};
    struct s3_settings settings = right();

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        settings.endpoint = wrong[i];
        expect_refused(&settings, "endpoint");
    }
}

static void wrong_buckets_are_refused(void **state)
{
    static const char *const wrong[] = {NULL, "", "a/b", "..", "a b", "a?b", "\xc3\xa4"};
    struct s3_settings settings = right();

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        settings.bucket = wrong[i];
        expect_refused(&settings, "bucket");
    }
    settings.style = S3_STYLE_VIRTUAL;
    settings.bucket = "Upper_case";
    expect_refused(&settings, "use style 'path'");
    settings.bucket = "bucket";
    settings.endpoint = "http://127.0.0.1:9000";
    expect_refused(&settings, "use style 'path'");
}

static void wrong_keys_are_refused_without_being_quoted(void **state)
{
    struct s3_settings settings = right();

    (void) state;
    settings.secret_key = SECRET "\n";
    expect_refused(&settings, "secret key");
    settings.secret_key = "";
    expect_refused(&settings, "secret key");
    settings = right();
    settings.access_key = SECRET; /* the wrong way round */
    expect_refused(&settings, "access key");
    settings = right();
    settings.session_token = SECRET "\r\nx: y";
    expect_refused(&settings, "session token");
    settings = right();
    settings.region = "eu west";
    expect_refused(&settings, "region");
    settings = right();
    settings.limits.part_size = 1024;
    expect_refused(&settings, "part");
}

static void a_prefix_counts_for_the_length_of_keys(void **state)
{
    struct s3_settings settings = right();
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(s3_client) struct s3_client *client = NULL;
    struct error err = ERROR_INIT;
    char key[OBJECTS_KEY_MAX + 1];
    const char *whole;

    (void) state;
    settings.prefix = "room/";
    client = s3_client_new(&settings, &err);
    memset(key, 'k', sizeof(key));
    key[OBJECTS_KEY_MAX - 5] = '\0';
    assert_int_equal(s3_client_key(client, &pool, key, &whole, &err), 0);
    assert_int_equal(strlen(whole), OBJECTS_KEY_MAX);
    assert_memory_equal(whole, "room/k", 6);
    key[OBJECTS_KEY_MAX - 5] = 'k';
    key[OBJECTS_KEY_MAX - 4] = '\0';
    assert_int_equal(s3_client_key(client, &pool, key, &whole, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bucket_is_in_the_path_or_in_the_host),
        cmocka_unit_test(the_bucket_itself_has_a_path),
        cmocka_unit_test(what_is_empty_was_not_set),
        cmocka_unit_test(wrong_endpoints_are_refused),
        cmocka_unit_test(wrong_buckets_are_refused),
        cmocka_unit_test(wrong_keys_are_refused_without_being_quoted),
        cmocka_unit_test(a_prefix_counts_for_the_length_of_keys),
    };

    return cmocka_run_group_tests_name("s3_client", tests, NULL, NULL);
}
