/* A folder mirrored into objects and back. */
#include "base/rounds_testing.h"
#include "vault/mover_testing.h"

#define PREFIX   "workspaces/box/"
#define MANIFEST "manifests/box"

static void on_synced(void *context, const struct error *failure, const struct vault_synced *synced)
{
    struct answer *answer = context;

    assert_true((failure == NULL) == (synced != NULL));
    note(answer, failure);
    if (synced)
        answer->synced = *synced;
}

static struct answer sync_up_to(struct stage *stage, const struct disk_ref *disk,
                                uint64_t bytes_max)
{
    const struct vault *vault = mover_vault(stage->mover);
    const char *excludes[] = {"node_modules"};
    struct vault_sync what = {.disk = *disk,
                              .folder = "/workspace",
                              .prefix = PREFIX,
                              .manifest = MANIFEST,
                              .excludes = excludes,
                              .exclude_count = 1,
                              .bytes_max = bytes_max};
    struct answer answer = {.times = 0};

    vault->sync(vault->self, &what, NULL, on_synced, &answer);
    AWAIT(stage, &answer);
    return answer;
}

static struct answer sync_now(struct stage *stage, const struct disk_ref *disk)
{
    struct answer answer = sync_up_to(stage, disk, 0);

    expect_ok(&answer);
    return answer;
}

static void on_mirrored(void *context, const struct error *failure, uint64_t files, uint64_t bytes)
{
    struct answer *answer = context;

    note(answer, failure);
    answer->files = files;
    answer->bytes = bytes;
}

static struct answer bring_back(struct stage *stage, const struct id *sandbox)
{
    const struct vault *vault = mover_vault(stage->mover);
    struct vault_mirror what = {
        .prefix = PREFIX, .manifest = MANIFEST, .sandbox = *sandbox, .folder = "/workspace"};
    struct answer answer = {.times = 0};

    vault->restore_mirror(vault->self, &what, NULL, on_mirrored, &answer);
    AWAIT(stage, &answer);
    return answer;
}

/* Names with newlines and bytes that are no text, empty and large files, links, odd modes. */
static void fill(struct stage *stage, const struct disk_ref *disk)
{
    run_shell(
        "cd '%s' && mkdir -p workspace/sub/deep workspace/node_modules/x workspace/.git && "
        "cd workspace && echo one > a && echo two > 'sub/with space' && "
        "printf 'x' > \"$(printf 'new\\nline')\" && printf 'y' > \"$(printf 'no\\377text\\\\')\" "
        "&& "
        "ln -s sub link && ln -s /etc/passwd 'sub/other link' && : > empty && "
        "chmod 0750 sub && chmod 0400 a && touch -d '2001-02-03 04:05:06.789' a && "
        "head -c 2500000 /dev/urandom > large && echo z > a-b && mkdir a.d && echo q > a.d/q && "
        "echo ref > .git/HEAD && echo no > node_modules/x/y && "
        "for i in $(seq 60); do echo $i > sub/deep/file$i; done",
        disk_path(stage, disk));
}

static void a_mirror_comes_back_as_it_was(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct id sandbox = id_new();
    struct answer answer;

    fill(stage, &disk);
    answer = sync_now(stage, &disk);
    assert_int_equal(answer.synced.files, 69);
    assert_int_equal(answer.synced.total_files, 69);
    assert_int_equal(answer.synced.skipped, 1);
    run_shell("cmp '%s/workspace/sub/deep/file7' '%s'", disk_path(stage, &disk),
              place(stage, "store", PREFIX "sub/deep/file7"));
    answer = bring_back(stage, &sandbox);
    expect_ok(&answer);
    assert_int_equal(answer.files, 69);
    run_shell("rm -r '%s/workspace/node_modules' && touch -d 2020-01-01 '%s/workspace' '%s'",
              disk_path(stage, &disk), disk_path(stage, &disk),
              place(stage, "agents", sandbox.text));
    {
        char of_disk[PATH_MAX];

        (void) snprintf(of_disk, sizeof(of_disk), "%s/workspace", disk_path(stage, &disk));
        expect_same(of_disk, place(stage, "agents", sandbox.text));
    }
    run_shell("[ \"$(stat -c %%y '%s/a')\" = \"$(stat -c %%y '%s/workspace/a')\" ]",
              place(stage, "agents", sandbox.text), disk_path(stage, &disk));
}

static void only_changes_move_and_deletions_follow(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct id sandbox = id_new();
    struct answer answer;
    int jobs;

    fill(stage, &disk);
    (void) sync_now(stage, &disk);
    jobs = stage->jobs;
    answer = sync_now(stage, &disk);
    assert_int_equal(answer.synced.files, 0);
    assert_int_equal(answer.synced.unchanged, 69);
    assert_int_equal(answer.synced.removed, 0);
    assert_int_equal(stage->jobs, jobs + 1); /* nothing was read */
    /* The same size and time, other content. */
    run_shell("cd '%s/workspace' && chmod 0600 a && echo ONE > a && "
              "touch -d '2001-02-03 04:05:06.789' a && chmod 0400 a && rm large empty && "
              "echo new > a.d/r",
              disk_path(stage, &disk));
    answer = sync_now(stage, &disk);
    assert_int_equal(answer.synced.files, 2);
    assert_int_equal(answer.synced.unchanged, 66);
    assert_int_equal(answer.synced.removed, 2);
    assert_int_equal(answer.synced.total_files, 68);
    run_shell("[ ! -e '%s' ] && [ $(cat '%s') = ONE ]", place(stage, "store", PREFIX "large"),
              place(stage, "store", PREFIX "a"));
    /* A file for a folder, a folder for a file. */
    run_shell(
        "cd '%s/workspace' && rm -f a && mkdir a && echo in > a/in && rm -r sub && echo f > sub",
        disk_path(stage, &disk));
    answer = sync_now(stage, &disk);
    assert_int_equal(answer.synced.files, 2);
    answer = bring_back(stage, &sandbox);
    expect_ok(&answer);
    run_shell("rm -r '%s/workspace/node_modules' && diff -r --no-dereference '%s/workspace' '%s'",
              disk_path(stage, &disk), disk_path(stage, &disk),
              place(stage, "agents", sandbox.text));
    run_shell("[ $(find '%s' -type f -printf x | wc -c) = "
              "$(find '%s/workspace' -type f -printf x | wc -c) ]",
              place(stage, "store", PREFIX), disk_path(stage, &disk));
}

static void too_much_is_refused_before_anything_is_put(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct answer answer;

    fill(stage, &disk);
    answer = sync_up_to(stage, &disk, 1000000);
    expect_code(&answer, ERR_QUOTA);
    run_shell("[ ! -e '%s' ] && [ ! -e '%s' ]", place(stage, "store", PREFIX),
              place(stage, "store", MANIFEST));
    answer = sync_up_to(stage, &disk, 4000000);
    expect_ok(&answer);
}

/* A list that nobody should believe costs time, never files. */
static void a_damaged_list_is_not_believed(void **state)
{
    static const char *const damages[] = {
        "sort -r -o $list $list",                               /* another order */
        "sed -i s/path/math/ $list",                            /* no list */
        "sed -i 's/\"path\":\"a\"/\"path\":\"..\\/a\"/' $list", /* a way out */
        "truncate -s 100 $list",
    };
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);

    fill(stage, &disk);
    (void) sync_now(stage, &disk);
    for (size_t i = 0; i < ARRAY_COUNT(damages); i++) {
        struct answer answer;

        /* As if it had been put like that: without the sum that tells. */
        run_shell("list='%s'; %s && cp $list $list.new && mv $list.new $list",
                  place(stage, "store", MANIFEST), damages[i]);
        answer = sync_now(stage, &disk);
        assert_in_range(answer.synced.files, 68, 69); /* a first line may still have made sense */
        assert_int_equal(answer.synced.removed, 0);
        run_shell("[ $(find '%s' -type f -printf x | wc -c) = 69 ]", place(stage, "store", PREFIX));
    }
}

static void what_is_missing_or_refused_fails_as_a_whole(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct id sandbox = id_new();
    struct answer answer;

    answer = bring_back(stage, &sandbox);
    expect_code(&answer, ERR_NOT_FOUND);
    answer = sync_up_to(stage, &disk, 0);
    expect_code(&answer, ERR_NOT_FOUND); /* no such folder */
    fill(stage, &disk);
    (void) sync_now(stage, &disk);
    run_shell("mkdir '%s' && echo old > '%s/old'", place(stage, "agents", sandbox.text),
              place(stage, "agents", sandbox.text));
    stage->refuse_extract = true;
    answer = bring_back(stage, &sandbox);
    expect_code(&answer, ERR_INVALID);
    stage->refuse_extract = false;
    run_shell("rm '%s'", place(stage, "store", PREFIX "sub/deep/file9"));
    answer = bring_back(stage, &sandbox);
    expect_code(&answer, ERR_NOT_FOUND);
    run_shell("[ $(cat '%s/old') = old ]", place(stage, "agents", sandbox.text));
}

static void a_workspace_is_back_when_it_would_survive_a_power_cut(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct id sandbox = id_new();
    struct answer answer;

    fill(stage, &disk);
    (void) sync_now(stage, &disk);
    assert_int_equal(stage->flushes, 0);
    answer = bring_back(stage, &sandbox);
    expect_ok(&answer);
    assert_int_equal(stage->flushes, 1);
    stage->refuse_flush = true;
    answer = bring_back(stage, &sandbox);
    expect_code(&answer, ERR_INTERNAL);
    assert_non_null(strstr(answer.failure.message, "may not survive a power cut: write back"));
    assert_int_equal(answer.files, 0);
}

static void closing_ends_a_sync(void **state)
{
    struct stage *stage = *state;
    const struct vault *vault = mover_vault(stage->mover);
    struct disk_ref disk = new_disk(stage);
    struct vault_sync what = {
        .disk = disk, .folder = "/workspace", .prefix = PREFIX, .manifest = MANIFEST};
    struct vault_mirror mirror = {
        .prefix = PREFIX, .manifest = MANIFEST, .sandbox = id_new(), .folder = "/workspace"};

    fill(stage, &disk);
    (void) sync_now(stage, &disk);
    run_shell("cd '%s/workspace' && for f in sub/deep/*; do echo more >> $f; done",
              disk_path(stage, &disk));
    for (int turns = 0; turns < 12; turns++) {
        struct answer answers[2] = {{.times = 0}};
        struct mover_options options = {.loop = &stage->loop,
                                        .provider = &stage->provider,
                                        .objects = stage->objects,
                                        .inside = &stage->inside,
                                        .spool = place(stage, "spool", "")};
        int closed = 0;

        vault = mover_vault(stage->mover);
        vault->sync(vault->self, &what, NULL, on_synced, &answers[0]);
        vault->restore_mirror(vault->self, &mirror, NULL, on_mirrored, &answers[1]);
        for (int i = 0; i < turns; i++)
            testing_turn(&stage->loop);
        mover_close(stage->mover, count_closed, &closed);
        TURN_UNTIL(&stage->loop, closed);
        for (size_t i = 0; i < ARRAY_COUNT(answers); i++)
            assert_int_equal(answers[i].times, 1);
        mover_free(stage->mover);
        stage->mover = mover_new(&options);
    }
    (void) sync_now(stage, &disk);
}

/* What is to be cut off lies at a turn that the machine's load decides: every third place is tried
 * once (with BURROW_FULL every one), and then the others and all of them again, until it was met so
 * often that it was no accident. */
#define CUT_STEP   3
#define CUT_SOME   13
#define CUT_PLACES (CUT_STEP * CUT_SOME)
#define CUT_MET    4
#define CUT_ROUNDS (20 * CUT_PLACES)

static bool cut_again(int round, unsigned int met)
{
    return round < (int) rounds_of(CUT_SOME, CUT_PLACES) || (met < CUT_MET && round < CUT_ROUNDS);
}

static int cut_place(int round)
{
    return 1 + round % CUT_SOME * CUT_STEP + round / CUT_SOME % CUT_STEP;
}

/* Close the mover in the middle, `turns` of the loop after a sync was asked for. */
static void cut_off_a_sync(struct stage *stage, const struct disk_ref *disk, int turns)
{
    const struct vault *vault = mover_vault(stage->mover);
    const struct vault_sync what = {
        .disk = *disk, .folder = "/workspace", .prefix = PREFIX, .manifest = MANIFEST};
    const struct mover_options options = {.loop = &stage->loop,
                                          .provider = &stage->provider,
                                          .objects = stage->objects,
                                          .inside = &stage->inside,
                                          .spool = place(stage, "spool", "")};
    struct answer answer = {.times = 0};
    int closed = 0;

    vault->sync(vault->self, &what, NULL, on_synced, &answer);
    for (int i = 0; i < turns && !answer.times; i++)
        testing_turn(&stage->loop);
    mover_close(stage->mover, count_closed, &closed);
    TURN_UNTIL(&stage->loop, closed);
    mover_free(stage->mover);
    stage->mover = mover_new(&options);
}

static void expect_mirror(struct stage *stage, const struct disk_ref *disk)
{
    run_shell("diff -r '%s/workspace' '%s' && [ ! -e '%s' ]", disk_path(stage, disk),
              place(stage, "store", PREFIX), place(stage, "store", MANIFEST ".doubts"));
}

/* The list says what it said, and the objects are others already: who goes back to what was there
 * would find everything unchanged. */
static void what_a_sync_left_half_done_is_mended_by_the_next(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    unsigned int mended = 0;

    run_shell("mkdir -p '%s/workspace/d' && cd '%s/workspace' && echo 1 > a && echo 1 > d/b && "
              "echo 1 > gone && echo 1 > swap",
              disk_path(stage, &disk), disk_path(stage, &disk));
    (void) sync_now(stage, &disk);
    for (int round = 0; cut_again(round, mended); round++) {
        struct answer answer;

        run_shell("cd '%s/workspace' && echo 22 > a && echo 22 > d/b && rm gone swap && "
                  "echo 22 > new && mkdir swap && echo 22 > swap/c",
                  disk_path(stage, &disk));
        cut_off_a_sync(stage, &disk, cut_place(round));
        run_shell("cd '%s/workspace' && rm -r new swap && echo 1 > a && echo 1 > d/b && "
                  "echo 1 > gone && echo 1 > swap",
                  disk_path(stage, &disk));
        if (cut_place(round) % 3 == 0) /* and again */
            cut_off_a_sync(stage, &disk, cut_place(round) / 2);
        answer = sync_now(stage, &disk);
        mended += answer.synced.files > 0;
        expect_mirror(stage, &disk);
    }
    assert_true(mended >= CUT_MET);
}

/* Whoever lost the disk has the list: what it names can be brought back, wherever a sync ended. */
static void what_the_list_names_stays_until_there_is_another(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    unsigned int old_lists = 0;

    run_shell("mkdir -p '%s/workspace' && echo 1 > '%s/workspace/a'", disk_path(stage, &disk),
              disk_path(stage, &disk));
    for (int round = 0; cut_again(round, old_lists); round++) {
        struct id sandbox = id_new();
        struct answer answer;

        run_shell("echo 1 > '%s/workspace/f'", disk_path(stage, &disk));
        (void) sync_now(stage, &disk);
        /* A sync was cut off that put `left`, and began to delete f or to change it. */
        run_shell("echo 2 > '%s'", place(stage, "store", PREFIX "left"));
        run_shell(
            "for i in a f left; do echo '{\"path\":\"'$i'\",\"type\":\"doubt\"}'; done > '%s'",
            place(stage, "store", MANIFEST ".doubts"));
        run_shell("rm '%s/workspace/f'", disk_path(stage, &disk));
        cut_off_a_sync(stage, &disk, cut_place(round));
        answer = bring_back(stage, &sandbox);
        expect_ok(&answer);
        old_lists += answer.files == 2;
        (void) sync_now(stage, &disk);
        expect_mirror(stage, &disk);
    }
    assert_true(old_lists >= CUT_MET);
}

static void a_sync_cut_off_again_and_again_doubts_each_file_once(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    unsigned int doubted = 0;

    run_shell("mkdir -p '%s/workspace' && cd '%s/workspace' && echo 1 > a && echo 1 > f",
              disk_path(stage, &disk), disk_path(stage, &disk));
    (void) sync_now(stage, &disk);
    for (int round = 0; cut_again(round, doubted); round++) {
        run_shell("cd '%s/workspace' && echo %d > a && rm -f f", disk_path(stage, &disk), round);
        cut_off_a_sync(stage, &disk, cut_place(round));
        if (access(place(stage, "store", MANIFEST ".doubts"), F_OK) < 0)
            continue;
        run_shell("[ -z \"$(sort '%s' | uniq -d)\" ]", place(stage, "store", MANIFEST ".doubts"));
        doubted++;
    }
    assert_true(doubted >= CUT_MET);
}

static void doubts_that_make_no_sense_doubt_everything(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct answer answer;

    run_shell("mkdir -p '%s/workspace' && cd '%s/workspace' && echo 1 > a && echo 2 > b",
              disk_path(stage, &disk), disk_path(stage, &disk));
    (void) sync_now(stage, &disk);
    run_shell("echo '{\"path\":\"../../x\",\"type\":\"doubt\"}' > '%s'",
              place(stage, "store", MANIFEST ".doubts"));
    answer = sync_now(stage, &disk);
    assert_int_equal(answer.synced.files, 2);
    expect_mirror(stage, &disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mirror_comes_back_as_it_was, set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(only_changes_move_and_deletions_follow, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(too_much_is_refused_before_anything_is_put, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(a_damaged_list_is_not_believed, set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(what_is_missing_or_refused_fails_as_a_whole, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(a_workspace_is_back_when_it_would_survive_a_power_cut,
                                        set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(closing_ends_a_sync, set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(what_a_sync_left_half_done_is_mended_by_the_next, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(what_the_list_names_stays_until_there_is_another, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(a_sync_cut_off_again_and_again_doubts_each_file_once,
                                        set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(doubts_that_make_no_sense_doubt_everything, set_stage,
                                        strike_stage),
    };

    return cmocka_run_group_tests_name("mover_sync", tests, NULL, NULL);
}
