/* What is stored in buckets, counted in a real folder store. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "mount/bucket_ledger.h"
#include "net/net_testing.h"
#include "objects/folder/objects_folder.h"
/* After the headers they need. */
#include <cmocka.h>

#define STEP BUCKET_LEDGER_STEP

struct ledger_bench {
    struct loop loop;
    char folder[64];
    struct objects *objects;
    struct shares *shares;
    struct bucket_ledger *ledger;
    struct share_asker ann, bob;
    size_t pending;
    bool is_over;
};

static void ledger_bench_on_put(void *context, const struct error *failure,
                                const struct object_info *info)
{
    (void) info;
    assert_null(failure);
    ((struct ledger_bench *) context)->pending--;
}

static void ledger_bench_on_gone(void *context, const struct error *failure)
{
    assert_null(failure);
    ((struct ledger_bench *) context)->pending--;
}

static void ledger_bench_on_over(void *context)
{
    ((struct ledger_bench *) context)->is_over = true;
}

static void ledger_bench_on_closed(void *context, const struct error *failure)
{
    (void) failure;
    ledger_bench_on_over(context);
}

/* Straight into the store, as another daemon or a mount would. */
static void ledger_bench_store(struct ledger_bench *bench, const struct share_asker *who,
                               const char *key, size_t length)
{
    AUTO(free) char *bytes = calloc(1, length + 1);
    char whole[256];

    (void) snprintf(whole, sizeof(whole), "%s/%s", who->owner.text, key);
    bench->pending++;
    (void) objects_put_bytes(bench->objects, whole, bytes, length, NULL, ledger_bench_on_put,
                             bench);
    TURN_UNTIL(&bench->loop, !bench->pending);
}

static void ledger_bench_remove(struct ledger_bench *bench, const struct share_asker *who,
                                const char *key)
{
    const char *keys[1];
    char whole[256];

    (void) snprintf(whole, sizeof(whole), "%s/%s", who->owner.text, key);
    keys[0] = whole;
    bench->pending++;
    (void) objects_delete(bench->objects, keys, 1, ledger_bench_on_gone, bench);
    TURN_UNTIL(&bench->loop, !bench->pending);
}

static void ledger_bench_begin(struct ledger_bench *bench)
{
    bench->ledger = bucket_ledger_new(&bench->loop, bench->objects, bench->shares, NULL);
    TURN_UNTIL(&bench->loop, bucket_ledger_is_counted(bench->ledger));
}

static int ledger_bench_open(void **state)
{
    struct ledger_bench *bench = calloc(1, sizeof(*bench));
    struct error err = ERROR_INIT;

    assert_int_equal(loop_init(&bench->loop, NULL), 0);
    (void) snprintf(bench->folder, sizeof(bench->folder), "/tmp/burrow-ledger-test-XXXXXX");
    assert_non_null(mkdtemp(bench->folder));
    bench->objects = objects_folder_new(&bench->loop, bench->folder, 0, &err);
    if (!bench->objects)
        fail_msg("%s", err.message);
    bench->shares = shares_new(8000);
    bench->ann = (struct share_asker){.owner = id_new(), .storage_max = 10 * STEP};
    bench->bob = (struct share_asker){.owner = id_new()};
    *state = bench;
    return 0;
}

static int ledger_bench_remove_path(const char *path, const struct stat *status, int type,
                                    struct FTW *place)
{
    (void) status, (void) type, (void) place;
    return remove(path);
}

static int ledger_bench_close(void **state)
{
    struct ledger_bench *bench = *state;

    bench->is_over = false;
    bucket_ledger_stop(bench->ledger, ledger_bench_on_over, bench);
    TURN_UNTIL(&bench->loop, bench->is_over);
    bench->is_over = false;
    objects_close(bench->objects, ledger_bench_on_closed, bench);
    TURN_UNTIL(&bench->loop, bench->is_over);
    bucket_ledger_free(bench->ledger);
    shares_free(bench->shares);
    loop_done(&bench->loop);
    (void) nftw(bench->folder, ledger_bench_remove_path, 16, FTW_DEPTH | FTW_PHYS);
    free(bench);
    return 0;
}

struct waiting_put {
    struct bucket_put put;
    bool is_told, is_refused;
    struct error why;
};

static void waiting_put_told(struct bucket_put *put, const struct error *refused)
{
    struct waiting_put *waiting = CONTAINER_OF(put, struct waiting_put, put);

    waiting->is_told = true;
    waiting->is_refused = refused != NULL;
    if (refused)
        waiting->why = *refused;
}

static void what_is_there_is_counted_when_the_daemon_starts(void **state)
{
    struct ledger_bench *bench = *state;

    ledger_bench_store(bench, &bench->ann, "a/one", 1);
    ledger_bench_store(bench, &bench->ann, "a/two", STEP + 1);
    ledger_bench_store(bench, &bench->ann, "b/empty", 0);
    ledger_bench_store(bench, &bench->bob, "b/x/y", 3);
    ledger_bench_begin(bench);
    assert_int_equal(shares_held(bench->shares, &bench->ann.owner, SHARE_STORAGE), 4 * STEP);
    assert_int_equal(shares_held(bench->shares, &bench->ann.owner, SHARE_BUCKETS), 2);
    assert_int_equal(shares_held(bench->shares, &bench->bob.owner, SHARE_STORAGE), STEP);
}

static void a_put_is_refused_beyond_the_quota_and_what_was_deleted_counts_no_more(void **state)
{
    struct ledger_bench *bench = *state;
    struct waiting_put more = {.put.told = waiting_put_told};
    struct bucket_put put;
    struct bucket_book *book;
    struct error err = ERROR_INIT;

    ledger_bench_store(bench, &bench->ann, "a/old", 6 * STEP);
    ledger_bench_begin(bench);
    book = bucket_book_open(bench->ledger, &bench->ann, "a", &err);
    assert_non_null(book);
    assert_true(bucket_put_begin(&put, book, 4 * STEP, 0));
    bucket_put_end(&put, false); /* it failed: nothing came of it */
    assert_false(bucket_put_begin(&more.put, book, 5 * STEP, 0));
    TURN_UNTIL(&bench->loop, more.is_told);
    if (!more.is_refused)
        fail_msg("it was let through: %llu bytes are known",
                 (unsigned long long) shares_held(bench->shares, &bench->ann.owner, SHARE_STORAGE));
    assert_int_equal(more.why.code, ERR_QUOTA);
    assert_non_null(strstr(more.why.message, "storage: 24 KiB of at most 40 KiB"));

    /* In place of what is there it fits. */
    assert_true(bucket_put_begin(&put, book, 9 * STEP, 6 * STEP));
    bucket_put_end(&put, false);

    /* Nobody told the ledger; whoever would be refused has it look. */
    ledger_bench_remove(bench, &bench->ann, "a/old");
    more.is_told = false;
    assert_false(bucket_put_begin(&more.put, book, 5 * STEP, 0));
    TURN_UNTIL(&bench->loop, more.is_told);
    assert_false(more.is_refused);
    bucket_put_end(&more.put, true);
    assert_int_equal(shares_held(bench->shares, &bench->ann.owner, SHARE_STORAGE), 5 * STEP);
    bucket_book_close(book);
}

static void whoever_waits_may_go_and_others_are_not_held_up(void **state)
{
    struct ledger_bench *bench = *state;
    struct waiting_put much = {.put.told = waiting_put_told};
    struct bucket_book *anns, *bobs;
    struct error err = ERROR_INIT;
    struct bucket_put put;

    ledger_bench_begin(bench);
    anns = bucket_book_open(bench->ledger, &bench->ann, "a", &err);
    bobs = bucket_book_open(bench->ledger, &bench->bob, "a", &err);
    assert_false(bucket_put_begin(&much.put, anns, 11 * STEP, 0));
    assert_true(bucket_put_begin(&put, bobs, 1000 * STEP, 0)); /* he has no quota */
    bucket_put_end(&put, true);
    bucket_put_end(&much.put, false); /* it was given up */
    testing_turn(&bench->loop);
    assert_false(much.is_told);
    bucket_book_close(anns);
    bucket_book_close(bobs);
}

static void an_owner_has_so_many_buckets(void **state)
{
    struct ledger_bench *bench = *state;
    struct bucket_book *one, *same, *two;
    struct error err = ERROR_INIT;

    assert_int_equal(shares_set_limits(bench->shares, "buckets=1", &err), 0);
    ledger_bench_begin(bench);
    one = bucket_book_open(bench->ledger, &bench->ann, "one", &err);
    same = bucket_book_open(bench->ledger, &bench->ann, "one", &err);
    assert_non_null(one);
    assert_ptr_equal(one, same);
    assert_null(bucket_book_open(bench->ledger, &bench->ann, "two", &err));
    assert_int_equal(err.code, ERR_QUOTA);
    two = bucket_book_open(bench->ledger, &bench->bob, "two", &err);
    assert_non_null(two);
    bucket_book_close(one);
    bucket_book_close(same);
    bucket_book_close(two);
    assert_int_equal(shares_held_by_all(bench->shares, SHARE_BUCKETS), 0); /* they had nothing */
}

static void all_that_an_owner_has_is_removed(void **state)
{
    struct ledger_bench *bench = *state;

    ledger_bench_store(bench, &bench->ann, "a/one", 1);
    ledger_bench_store(bench, &bench->ann, "b/c/two", 1);
    ledger_bench_store(bench, &bench->bob, "a/three", 1);
    ledger_bench_begin(bench);
    bench->pending++;
    bucket_ledger_remove(bench->ledger, &bench->ann.owner, ledger_bench_on_gone, bench);
    TURN_UNTIL(&bench->loop, !bench->pending);
    assert_int_equal(shares_held(bench->shares, &bench->ann.owner, SHARE_STORAGE), 0);
    assert_int_equal(shares_held(bench->shares, &bench->bob.owner, SHARE_STORAGE), STEP);
}

#define LEDGER_TEST(name)                                                                          \
    cmocka_unit_test_setup_teardown(name, ledger_bench_open, ledger_bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(what_is_there_is_counted_when_the_daemon_starts),
        LEDGER_TEST(a_put_is_refused_beyond_the_quota_and_what_was_deleted_counts_no_more),
        LEDGER_TEST(whoever_waits_may_go_and_others_are_not_held_up),
        LEDGER_TEST(an_owner_has_so_many_buckets),
        LEDGER_TEST(all_that_an_owner_has_is_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
