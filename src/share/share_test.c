/* share_test --write writes the table of docs/operations.md anew, from the top of the tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/document_testing.h"
#include "share/share.h"
/* After the headers it needs. */
#include <cmocka.h>

#define DESCRIPTORS 8000 /* 1,000 of them are the reserve */

static struct share_asker tenant(uint8_t number)
{
    uint8_t bytes[ID_RANDOM_SIZE] = {number};

    return (struct share_asker){.owner = id_from_bytes(bytes)};
}

static int books_open(void **state)
{
    *state = shares_new(DESCRIPTORS);
    return 0;
}

static int books_close(void **state)
{
    shares_free(*state);
    return 0;
}

static void an_owner_gets_his_part_and_no_more(void **state)
{
    struct share_asker ann = tenant(1), bob = tenant(2);
    struct share_claim held = SHARE_CLAIM_NONE, more = SHARE_CLAIM_NONE, other = SHARE_CLAIM_NONE;
    struct error err = ERROR_INIT;

    assert_int_equal(share_claim(*state, &ann, SHARE_TEMPLATES, 256, &held, &err), 0);
    assert_int_equal(share_claim(*state, &ann, SHARE_TEMPLATES, 1, &more, &err), -1);
    assert_int_equal(err.code, ERR_QUOTA);
    assert_string_equal(err.message,
                        "templates: 256 of at most 256 templates are yours already; delete some");
    assert_null(more.account);
    assert_int_equal(share_claim(*state, &bob, SHARE_TEMPLATES, 1, &other, &err), 0);
    assert_int_equal(shares_held(*state, &ann.owner, SHARE_TEMPLATES), 256);
    assert_int_equal(shares_held_by_all(*state, SHARE_TEMPLATES), 257);

    share_release(&held);
    share_release(&held); /* nothing is held any more */
    assert_int_equal(shares_held(*state, &ann.owner, SHARE_TEMPLATES), 0);
    assert_int_equal(shares_held_by_all(*state, SHARE_TEMPLATES), 1);
    assert_int_equal(share_claim(*state, &ann, SHARE_TEMPLATES, 1, &more, &err), 0);
    share_release(&more);
    share_release(&other);
}

static void all_tenants_together_leave_the_reserve(void **state)
{
    struct share_claim claims[61] = {SHARE_CLAIM_NONE}, admins = SHARE_CLAIM_NONE;
    struct share_asker admin = tenant(200);
    struct error err = ERROR_INIT;

    admin.may_use_reserve = true;
    for (uint8_t i = 0; i < 60; i++) {
        struct share_asker asker = tenant(i);

        assert_int_equal(share_claim(*state, &asker, SHARE_EVENT_STREAMS, 64, &claims[i], &err), 0);
    }
    struct share_asker last = tenant(60);

    assert_int_equal(share_claim(*state, &last, SHARE_EVENT_STREAMS, 1, &claims[60], &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_string_equal(err.message, "event_streams: all 3840 open event streams that there may be "
                                     "here are taken; try again later");
    assert_int_equal(share_claim(*state, &admin, SHARE_EVENT_STREAMS, 256, &admins, &err), 0);
    assert_int_equal(share_claim_resize(&admins, 257, &err), -1);
    assert_int_equal(admins.amount, 256);
    for (size_t i = 0; i < 60; i++)
        share_release(&claims[i]);
    share_release(&admins);
}

static void descriptors_are_counted_over_all_rows(void **state)
{
    struct share_claim terminals[8] = {SHARE_CLAIM_NONE}, files[4] = {SHARE_CLAIM_NONE};
    struct share_asker ann = tenant(1), bob = tenant(2), eve = tenant(3);
    struct error err = ERROR_INIT;

    assert_int_equal(shares_set_limits(*state, "spool_files=0,terminals=0", &err), 0);
    assert_int_equal(share_claim(*state, &ann, SHARE_TERMINALS, 1000, &terminals[0], &err), 0);
    assert_int_equal(share_claim(*state, &ann, SHARE_SPOOL_FILES, 1500, &files[0], &err), 0);
    assert_int_equal(share_claim(*state, &ann, SHARE_SPOOL_FILES, 1, &files[1], &err), -1);
    assert_int_equal(err.code, ERR_QUOTA);
    assert_non_null(strstr(err.message, "descriptors: 3500 of at most 3500"));

    assert_int_equal(share_claim(*state, &bob, SHARE_SPOOL_FILES, 3500, &files[1], &err), 0);
    assert_int_equal(share_claim(*state, &eve, SHARE_SPOOL_FILES, 1, &files[2], &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    eve.may_use_reserve = true;
    assert_int_equal(share_claim(*state, &eve, SHARE_SPOOL_FILES, 500, &files[2], &err), 0);
    assert_int_equal(share_claim(*state, &eve, SHARE_SPOOL_FILES, 1, &files[3], &err), -1);
    share_release(&terminals[0]);
    for (size_t i = 0; i < 3; i++)
        share_release(&files[i]);
}

static void a_claim_grows_and_shrinks(void **state)
{
    struct share_claim claim = SHARE_CLAIM_NONE;
    struct share_asker ann = tenant(1);
    struct error err = ERROR_INIT;

    assert_int_equal(share_claim(*state, &ann, SHARE_SPOOL_BYTES, SHARE_GB, &claim, &err), 0);
    assert_int_equal(share_claim_resize(&claim, 9 * SHARE_GB, &err), -1);
    assert_string_equal(err.message,
                        "spool_bytes: 1 GiB of at most 8 GiB written to mounted buckets and not "
                        "stored yet are yours already; write less at a time");
    assert_int_equal(share_claim_resize(&claim, 8 * SHARE_GB, &err), 0);
    assert_int_equal(share_claim_resize(&claim, 1, &err), 0);
    assert_int_equal(shares_held(*state, &ann.owner, SHARE_SPOOL_BYTES), 1);
    share_release(&claim);
    assert_int_equal(shares_held_by_all(*state, SHARE_SPOOL_BYTES), 0);
}

static void what_is_there_already_is_counted_and_not_refused(void **state)
{
    struct share_claim old = SHARE_CLAIM_NONE, one = SHARE_CLAIM_NONE;
    struct share_asker ann = tenant(1);
    struct error err = ERROR_INIT;

    share_claim_anyway(*state, &ann, SHARE_BUCKETS, 5000, &old);
    assert_int_equal(share_claim(*state, &ann, SHARE_BUCKETS, 1, &one, &err), -1);
    share_release(&old);
    assert_int_equal(share_claim(*state, &ann, SHARE_BUCKETS, 1, &one, &err), 0);
    share_release(&one);
}

static void storage_ends_at_the_quota_of_its_owner(void **state)
{
    struct share_claim claim = SHARE_CLAIM_NONE;
    struct share_asker ann = tenant(1), bob = tenant(2), bare = ann;
    struct error err = ERROR_INIT;

    ann.storage_max = 100;
    ann.may_use_reserve = true; /* a quota is one for administrators, too */
    assert_int_equal(share_claim(*state, &ann, SHARE_STORAGE, 60, &claim, &err), 0);
    assert_int_equal(share_claim_resize(&claim, 101, &err), -1);
    assert_non_null(strstr(err.message, "storage: 60 "));
    assert_int_equal(share_hold(*state, &bob, SHARE_STORAGE, SHARE_GB, &err), 0);

    bare.is_bare = true; /* who knows nothing of him changes nothing */
    share_hold_anyway(*state, &bare, SHARE_STORAGE, 10);
    assert_int_equal(share_claim_resize(&claim, 101, &err), -1);
    ann.storage_max = 200;
    share_note(*state, &ann);
    assert_int_equal(share_claim_resize(&claim, 190, &err), 0);
    share_claim_set(&claim, 500); /* as it was counted */
    assert_int_equal(shares_held(*state, &ann.owner, SHARE_STORAGE), 510);
    share_release(&claim);
    share_drop(*state, &ann.owner, SHARE_STORAGE, 11); /* never below nothing */
    assert_int_equal(shares_held(*state, &ann.owner, SHARE_STORAGE), 0);
    assert_int_equal(shares_held_by_all(*state, SHARE_STORAGE), SHARE_GB);
}

static void limits_are_read_and_what_is_wrong_with_them_is_said(void **state)
{
    struct share_claim claim = SHARE_CLAIM_NONE;
    struct share_asker ann = tenant(1);
    struct error err = ERROR_INIT;

    assert_int_equal(shares_set_limits(*state, "", &err), 0);
    assert_int_equal(shares_set_limits(*state, "templates=2,spool_bytes=1M", &err), 0);
    assert_int_equal(share_claim(*state, &ann, SHARE_TEMPLATES, 3, &claim, &err), -1);
    assert_int_equal(share_claim(*state, &ann, SHARE_SPOOL_BYTES, SHARE_MB + 1, &claim, &err), -1);
    assert_int_equal(shares_set_limits(*state, "template=2", &err), -1);
    assert_non_null(
        strstr(err.message, "there is no share 'template'; there are: event_streams, "));
    assert_int_equal(shares_set_limits(*state, "templates", &err), -1);
    assert_string_equal(err.message, "'templates' must be NAME=NUMBER");
    assert_int_equal(shares_set_limits(*state, "templates=many", &err), -1);
    assert_string_equal(err.message, "templates must be a number, such as 64; not 'many'");
}

static void the_gauges_say_who_has_most_and_what_was_refused(void **state)
{
    struct share_claim held = SHARE_CLAIM_NONE, two = SHARE_CLAIM_NONE, no = SHARE_CLAIM_NONE;
    AUTO(text) struct text out = TEXT_INIT(1 << 16);
    struct share_asker ann = tenant(1), bob = tenant(2);
    struct error err = ERROR_INIT;

    assert_int_equal(share_claim(*state, &ann, SHARE_TERMINALS, 7, &held, &err), 0);
    assert_int_equal(share_claim(*state, &bob, SHARE_TERMINALS, 2, &two, &err), 0);
    assert_int_equal(share_claim(*state, &bob, SHARE_TERMINALS, 127, &no, &err), -1);
    shares_write_metrics(*state, &out);
    assert_non_null(strstr(text_string(&out), "\nburrow_share_held{share=\"terminals\"} 9\n"));
    assert_non_null(strstr(text_string(&out), "\nburrow_share_most{share=\"terminals\"} 7\n"));
    assert_non_null(
        strstr(text_string(&out), "\nburrow_share_refused_total{share=\"terminals\"} 1\n"));
    assert_non_null(strstr(text_string(&out), "\nburrow_share_descriptors 18\n"));
    share_release(&held);
    share_release(&two);
}

static const struct document_part part = {
    .page = "docs/operations.md",
    .first = "<!-- shares: made from src/share/share.def by share_test --write -->\n",
    .last = "<!-- shares end -->\n",
    .put = shares_write_table};

static void the_page_says_what_the_shares_say(void **state)
{
    (void) state;
    if (!document_is_true(&part))
        fail_msg("docs/operations.md is not what share.def says: run share_test --write");
}

int main(int argc, char **argv)
{
#define WITH_BOOKS(test) cmocka_unit_test_setup_teardown(test, books_open, books_close)
    const struct CMUnitTest tests[] = {
        WITH_BOOKS(an_owner_gets_his_part_and_no_more),
        WITH_BOOKS(all_tenants_together_leave_the_reserve),
        WITH_BOOKS(descriptors_are_counted_over_all_rows),
        WITH_BOOKS(a_claim_grows_and_shrinks),
        WITH_BOOKS(what_is_there_already_is_counted_and_not_refused),
        WITH_BOOKS(storage_ends_at_the_quota_of_its_owner),
        WITH_BOOKS(limits_are_read_and_what_is_wrong_with_them_is_said),
        WITH_BOOKS(the_gauges_say_who_has_most_and_what_was_refused),
        cmocka_unit_test(the_page_says_what_the_shares_say),
    };

    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return document_write(&part);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
