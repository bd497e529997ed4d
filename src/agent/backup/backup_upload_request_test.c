#include <string.h>

#include "agent/agent_test.h"
#include "agent/backup/backup_upload_request.h"

static int read_answer(const char *text, char etag[static BACKUP_UPLOAD_ETAG_MAX])
{
    return backup_upload_answer(text, strlen(text), etag);
}

static void status_and_etag_are_read(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *etag;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nETag: \"a b\"\r\n\r\nETag: body", 200, "\"a b\""},
        {"HTTP/1.1 200 OK\r\netag:x \r\n\r\n", 200, "x"},
        {"HTTP/2 403\r\nA: b\r\n\r\n", 403, ""},
        {"HTTP/1.1 100 Continue\r\nETag: no\r\n\r\nHTTP/1.1 201 Created\r\nETag: yes\r\n\r\n", 201,
         "yes"},
        {"", -1, ""},
        {"HTTP/1.1 200 OK\r\nETag: x\r\n", -1, NULL},
        {"HTTP/1.1 20 OK\r\n\r\n", -1, NULL},
        {"nonsense\r\n\r\n", -1, NULL},
        {"HTTP/1.1 100 Continue\r\n\r\n", -1, NULL},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char etag[BACKUP_UPLOAD_ETAG_MAX];

        assert_int_equal(read_answer(rows[i].text, etag), rows[i].status);
        if (rows[i].etag)
            assert_string_equal(etag, rows[i].etag);
    }
}

static void an_endless_etag_is_none(void **state)
{
    char text[1000] = "HTTP/1.1 200 OK\r\nETag: ", etag[BACKUP_UPLOAD_ETAG_MAX];
    size_t start = strlen(text);

    (void) state;
    memset(text + start, 'x', BACKUP_UPLOAD_ETAG_MAX);
    memcpy(text + start + BACKUP_UPLOAD_ETAG_MAX, "\r\n\r\n", 5);
    assert_int_equal(read_answer(text, etag), 200);
    assert_string_equal(etag, "");
}

static int read_request(const char *text, struct pool *pool, struct backup_upload_request *request,
                        enum api_code *code)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(json) json_t *json = json_read(text, strlen(text), NULL, NULL);
    int r = backup_upload_request_read(json, pool, request, &error);

    assert_null(strstr(error.message, "s3cret"));
    assert_null(strstr(text_string(&error.context), "s3cret"));
    *code = error.code;
    return r;
}

static void parts_come_in_order_and_outlive_their_json(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct backup_upload_request request;
    enum api_code code;

    (void) state;
    assert_int_equal(
        read_request("{\"archivePath\":\"/var/backups/x\",\"parts\":["
                     "{\"partNumber\":2,\"offset\":5,\"size\":1,\"url\":\"https://h/2?s3cret\"},"
                     "{\"partNumber\":1,\"offset\":0,\"size\":5,\"url\":\"https://h/1?s3cret\"}]}",
                     &pool, &request, &code),
        0);
    assert_int_equal(request.count, 2);
    assert_int_equal(request.parts[0].number, 1);
    assert_string_equal(request.parts[1].url, "https://h/2?s3cret");
    assert_string_equal(request.archive, "/var/backups/x");
}

static void only_tls_is_taken(void **state)
{
    static const char *const urls[] = {"http://h/s3cret", "ftp://h/s3cret",    "s3cret",
                                       "unix:/s3cret",    "https://s3cret@h/", "https://h/#s3cret"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(urls); i++) {
        AUTO(pool) struct pool pool = POOL_INIT;
        struct backup_upload_request request;
        enum api_code code;

        assert_int_equal(
            read_request(pool_format(&pool,
                                     "{\"archivePath\":\"/var/backups/x\",\"parts\":[{"
                                     "\"partNumber\":2,\"offset\":5,\"size\":1,\"url\":\"%s\"}]}",
                                     urls[i]),
                         &pool, &request, &code),
            -1);
        assert_int_equal(code, API_INVALID_BACKUP_CONFIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_etag_are_read),
        cmocka_unit_test(an_endless_etag_is_none),
        cmocka_unit_test(parts_come_in_order_and_outlive_their_json),
        cmocka_unit_test(only_tls_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
