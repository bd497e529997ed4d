/* Puts and deletes whose answers are lost, late or refused. */
#include "base/memory.h"
#include "objects/s3/s3_testing.h"

#define PARTS_BYTES ((size_t) S3_PART_MIN + 1000) /* an upload of two parts */

static const struct s3_settings small_parts = {.allow_private = true,
                                               .limits = {.part_size = S3_PART_MIN}};

static int put_parts(struct testing_store *store, const struct object_put_options *options,
                     struct object_info *ret_info)
{
    AUTO(free) char *bytes = mem_alloc(PARTS_BYTES);
    struct objects_source source = {.bytes = bytes, .length = PARTS_BYTES, .fd = -EBADF};

    return s3_put(store->client, &store->work, "some/key", &source, options, ret_info, &store->err);
}

static bool is_request(const struct testing_store *store, const char *start)
{
    return strncmp(store->head, start, strlen(start)) == 0;
}

static void answer_upload(struct text *answer)
{
    answer_status(answer, "200 OK", "",
                  "<InitiateMultipartUploadResult xmlns=\"x\"><UploadId>u&amp;1</UploadId>"
                  "</InitiateMultipartUploadResult>");
}

static void answer_complete(struct text *answer)
{
    answer_status(answer, "200 OK", "Date: Mon, 16 Nov 2026 10:00:00 GMT\r\n",
                  "\n \n<CompleteMultipartUploadResult><ETag>&quot;whole-2&quot;</ETag>"
                  "</CompleteMultipartUploadResult>");
}

/* --- parts -------------------------------------------------------------------------------------
 */

static void fail_once_each(struct testing_store *store, unsigned int number, struct text *answer)
{
    switch (number) {
    case 0:
        answer_upload(answer);
        break;
    case 1:
        answer_error(answer, "500 Internal", "InternalError");
        break;
    case 4: /* 200, and then it failed after all */
        answer_error(answer, "200 OK", "InternalError");
        break;
    case 5:
        answer_complete(answer);
        break;
    default:
        assert_true(is_request(store, "PUT "));
        answer_ok(answer);
    }
}

static void a_part_that_fails_is_sent_again_alone(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct object_info info;
    const char *heads;

    (void) state;
    testing_start(&store, &small_parts, fail_once_each);
    testing_expect(&store, put_parts(&store, NULL, &info), ERR_NONE);
    assert_int_equal(store.requests, 6);
    assert_int_equal(store.retries, 2);
    assert_int_equal(store.done_bytes, PARTS_BYTES);
    assert_int_equal(info.size, PARTS_BYTES);
    assert_string_equal(info.tag, "whole-2");
    assert_int_equal(info.modified_ms, 1794823200000);
    assert_true(info.has_sum);
    testing_stop(&store);
    heads = text_string(&store.heads);
    assert_non_null(strstr(heads, "POST /bucket/some/key?uploads= HTTP/1.1"));
    assert_non_null(strstr(heads, "PUT /bucket/some/key?partNumber=1&uploadId=u%261 HTTP/1.1"));
    assert_non_null(strstr(heads, "PUT /bucket/some/key?partNumber=2&uploadId=u%261 HTTP/1.1"));
}

static void refuse_second(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    if (number == 0)
        answer_upload(answer);
    else if (number == 1)
        answer_ok(answer);
    else if (number == 2)
        answer_error(answer, "403 Forbidden", "AccessDenied");
    else
        answer_status(answer, "204 No Content", "", "");
}

static void an_upload_that_fails_is_aborted(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct object_info info;

    (void) state;
    testing_start(&store, &small_parts, refuse_second);
    testing_expect(&store, put_parts(&store, NULL, &info), ERR_FORBIDDEN);
    assert_int_equal(store.requests, 4);
    testing_stop(&store);
    assert_true(is_request(&store, "DELETE /bucket/some/key?uploadId=u%261 "));
}

/* The upload was completed; the answer was lost, and then it is not known any more. */
static void lose_completion(struct testing_store *store, unsigned int number, struct text *answer)
{
    AUTO(text) struct text headers = TEXT_INIT(1024);

    if (number == 0) {
        answer_upload(answer);
    } else if (is_request(store, "PUT ")) {
        answer_ok(answer);
    } else if (is_request(store, "HEAD ")) {
        text_format(&headers, "ETag: \"whole-2\"\r\n%s: %s\r\n", S3_META_PUT, store->put_id);
        answer_status(answer, "200 OK", text_string(&headers), "");
    } else if (number > 3) {
        answer_error(answer, "404 Not Found", "NoSuchUpload");
    }
}

static void a_completion_whose_answer_was_lost_is_found(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct object_info info;

    (void) state;
    testing_start(&store, &small_parts, lose_completion);
    testing_expect(&store, put_parts(&store, NULL, &info), ERR_NONE);
    assert_string_equal(info.tag, "whole-2");
}

/* --- conditions --------------------------------------------------------------------------------
 */

static void lose_conditional(struct testing_store *store, unsigned int number, struct text *answer)
{
    AUTO(text) struct text headers = TEXT_INIT(1024);

    if (number == 0) { /* is it there? */
        answer_status(answer, "404 Not Found", "", "");
    } else if (is_request(store, "HEAD /bucket ")) {
        answer_status(answer, "200 OK", "", "");
    } else if (is_request(store, "HEAD ")) {
        text_format(&headers, "ETag: \"mine\"\r\n%s: %s\r\n", S3_META_PUT, store->put_id);
        answer_status(answer, "200 OK", text_string(&headers), "");
    } else if (number > 2) {
        answer_error(answer, "412 Precondition Failed", "PreconditionFailed");
    }
}

static void a_conditional_put_whose_answer_was_lost_is_found(void **state)
{
    struct object_put_options options = {.only_new = true};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, lose_conditional);
    testing_expect(&store, testing_put(&store, "x", &options), ERR_NONE);
    testing_stop(&store);
    assert_non_null(strstr(text_string(&store.heads), "if-none-match: *\r\n"));
}

static void be_overtaken(struct testing_store *store, unsigned int number, struct text *answer)
{
    if (number == 0)
        answer_status(answer, "404 Not Found", "", "");
    else if (is_request(store, "HEAD /bucket "))
        answer_status(answer, "200 OK", "", "");
    else if (is_request(store, "HEAD "))
        answer_status(answer, "200 OK", "ETag: \"theirs\"\r\n", "");
    else
        answer_error(answer, "412 Precondition Failed", "PreconditionFailed");
}

static void somebody_faster_is_a_conflict(void **state)
{
    struct object_put_options options = {.only_new = true};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, be_overtaken);
    testing_expect(&store, testing_put(&store, "x", &options), ERR_CONFLICT);
}

static void know_no_conditions(struct testing_store *store, unsigned int number,
                               struct text *answer)
{
    char condition[64];

    (void) number;
    if (is_request(store, "HEAD "))
        answer_status(answer, "200 OK", "ETag: \"old\"\r\n", "");
    else if (*testing_header(store, "if-match", condition, sizeof(condition)))
        answer_error(answer, "501 Not Implemented", "NotImplemented");
    else
        answer_ok(answer);
}

static void a_store_without_conditions_is_looked_at_first(void **state)
{
    struct object_put_options right = {.only_tag = "old"}, wrong = {.only_tag = "other"};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, know_no_conditions);
    testing_expect(&store, testing_put(&store, "x", &right), ERR_NONE);
    assert_int_equal(store.requests, 3);
    testing_expect(&store, testing_put(&store, "x", &wrong), ERR_CONFLICT);
    assert_int_equal(store.requests, 4);
}

/* --- answers to puts ---------------------------------------------------------------------------
 */

static void answer_no_tag(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_status(answer, "200 OK", "", "");
}

static void a_put_without_a_tag_is_an_error(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, answer_no_tag);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UPSTREAM);
}

static void find_other_bytes(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_error(answer, "400 Bad Request", "XAmzContentSHA256Mismatch");
}

static void bytes_that_changed_on_the_way_are_told(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, find_other_bytes);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UPSTREAM);
    assert_non_null(strstr(store.err.message, "not those that were sent"));
}

/* --- deletes -----------------------------------------------------------------------------------
 */

static const char *const keys[] = {"a", "b<&>", "c\x01"};

static void know_no_deletes(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    if (is_request(store, "POST "))
        answer_error(answer, "501 Not Implemented", "NotImplemented");
    else
        answer_status(answer, "204 No Content", "", "");
}

static void a_store_that_deletes_singly_is_asked_so(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, know_no_deletes);
    testing_expect(&store, s3_remove(store.client, &store.work, keys, 3, &store.err), ERR_NONE);
    assert_int_equal(store.requests, 4); /* what XML cannot hold, POST, and two */
    testing_expect(&store, s3_remove(store.client, &store.work, keys, 3, &store.err), ERR_NONE);
    assert_int_equal(store.requests, 7); /* and not POST again */
}

static void leave_one(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    if (is_request(store, "POST "))
        answer_status(answer, "200 OK", "",
                      "<DeleteResult><Error><Key>a</Key><Code>NoSuchKey</Code></Error><Error>"
                      "<Key>b&lt;&amp;&gt;</Key><Code>InternalError</Code></Error></DeleteResult>");
    else if (is_request(store, "DELETE /bucket/b%3C%26%3E "))
        answer_error(answer, "403 Forbidden", "AccessDenied");
    else
        answer_status(answer, "204 No Content", "", "");
}

static void what_was_not_deleted_is_tried_alone_and_told(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, leave_one);
    testing_expect(&store, s3_remove(store.client, &store.work, keys, 2, &store.err),
                   ERR_FORBIDDEN);
    assert_int_equal(store.requests, 2);
    testing_stop(&store);
    assert_non_null(strstr(text_string(&store.heads), "content-md5: "));
}

static int set_up(void **state)
{
    (void) state;
    (void) signal(SIGPIPE, SIG_IGN);
    return outbound_global_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_fails_is_sent_again_alone),
        cmocka_unit_test(an_upload_that_fails_is_aborted),
        cmocka_unit_test(a_completion_whose_answer_was_lost_is_found),
        cmocka_unit_test(a_conditional_put_whose_answer_was_lost_is_found),
        cmocka_unit_test(somebody_faster_is_a_conflict),
        cmocka_unit_test(a_store_without_conditions_is_looked_at_first),
        cmocka_unit_test(a_put_without_a_tag_is_an_error),
        cmocka_unit_test(bytes_that_changed_on_the_way_are_told),
        cmocka_unit_test(a_store_that_deletes_singly_is_asked_so),
        cmocka_unit_test(what_was_not_deleted_is_tried_alone_and_told),
    };

    return cmocka_run_group_tests_name("s3_put", tests, set_up, NULL);
}
