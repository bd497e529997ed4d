/* Lists of stores that go on in their own way, and of those that lie. */
#include "objects/s3/s3_testing.h"

static const char *page; /* what the store answers; set before it starts */

static void tell_page(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_status(answer, "200 OK", "", page);
}

static int list_page(struct testing_store *store, const struct object_query *query,
                     struct object_list *ret_list)
{
    return s3_list(store->client, &store->work, query, ret_list, &store->err);
}

#define PAGE(truncated, entries)                                                                   \
    "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>" truncated                    \
    "</IsTruncated>" entries "</ListBucketResult>"
#define OBJECT(key) "<Contents><Key>" key "</Key><Size>5</Size></Contents>"
#define FOLDER(key) "<CommonPrefixes><Prefix>" key "</Prefix></CommonPrefixes>"

static void objects_and_folders_are_sorted_together(void **state)
{
    struct object_query query = {.prefix = "", .folders = true, .limit = 10};
    AUTO(testing_store) struct testing_store store;
    struct object_list list;

    (void) state;
    page = PAGE("true", OBJECT("a") OBJECT("c+d%2Be") FOLDER("b/"));
    testing_start(&store, NULL, tell_page);
    testing_expect(&store, list_page(&store, &query, &list), ERR_NONE);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.entries[0].key, "a");
    assert_string_equal(list.entries[1].key, "b/");
    assert_true(list.entries[1].is_folder);
    assert_string_equal(list.entries[2].key, "c d+e");
    assert_string_equal(list.next, "c d+e");
}

static void a_folder_that_is_told_again_is_left_out(void **state)
{
    struct object_query query = {.prefix = "", .folders = true, .after = "b/", .limit = 1};
    AUTO(testing_store) struct testing_store store;
    struct object_list list;

    (void) state;
    page = PAGE("true", FOLDER("b/") FOLDER("c/"));
    testing_start(&store, NULL, tell_page);
    testing_expect(&store, list_page(&store, &query, &list), ERR_NONE);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.entries[0].key, "c/");
    assert_string_equal(list.next, "c/");
    testing_stop(&store);
    assert_non_null(strstr(text_string(&store.heads), "max-keys=2&"));
    assert_non_null(strstr(text_string(&store.heads), "start-after=b%2F "));
}

static void a_store_that_passed_the_folder_gives_one_too_many(void **state)
{
    struct object_query query = {.prefix = "", .folders = true, .after = "b/", .limit = 1};
    AUTO(testing_store) struct testing_store store;
    struct object_list list;

    (void) state;
    page = PAGE("false", FOLDER("c/") FOLDER("d/"));
    testing_start(&store, NULL, tell_page);
    testing_expect(&store, list_page(&store, &query, &list), ERR_NONE);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.next, "c/"); /* the other one comes with the next page */
}

static const char *const lies[] = {
    PAGE("true", ""),                           /* more of nothing, for ever */
    PAGE("true", OBJECT("p/a")),                /* told before */
    PAGE("true", OBJECT("p/0")),                /* long before */
    PAGE("false", OBJECT("q/a")),               /* of somebody else */
    PAGE("false", OBJECT("p/c") OBJECT("p/c")), /* twice */
    PAGE("false", OBJECT("")),                  /* nothing */
    PAGE("false", OBJECT("p/%zz")),             /* no escape */
    PAGE("false", OBJECT("p/%00")),             /* no text */
    PAGE("false", "<Contents><Size>5</Size></Contents>"),
    PAGE("false", "<Contents><Key>p/b</Key><Size>-5</Size></Contents>"),
    "<ListAllMyBucketsResult/>",
    "<html><body>Welcome</body></html>",
    "",
};

static void lies_are_found(void **state)
{
    struct object_query query = {.prefix = "p/", .after = "p/a", .limit = 10};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(lies); i++) {
        AUTO(testing_store) struct testing_store store;
        struct object_list list;

        page = lies[i];
        testing_start(&store, NULL, tell_page);
        testing_expect(&store, list_page(&store, &query, &list), ERR_UPSTREAM);
    }
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
        cmocka_unit_test(objects_and_folders_are_sorted_together),
        cmocka_unit_test(a_folder_that_is_told_again_is_left_out),
        cmocka_unit_test(a_store_that_passed_the_folder_gives_one_too_many),
        cmocka_unit_test(lies_are_found),
    };

    return cmocka_run_group_tests_name("s3_list", tests, set_up, NULL);
}
