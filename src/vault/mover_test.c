/* Backups, layers and the rest, from disks to objects and back, with the real keeper and a real
 * store. */
#include "vault/mover_testing.h"

/* What a workspace has, odd things included. */
static void fill(struct stage *stage, const struct disk_ref *disk)
{
    run_shell("cd '%s' && mkdir -p workspace/sub/deep && cd workspace && echo one > a && "
              "echo two > 'sub/with space' && printf 'x' > \"$(printf 'new\\nline')\" && "
              "ln -s sub link && : > empty && chmod 0750 sub && chmod 0400 a && "
              "touch -d '2001-02-03 04:05:06.7' a",
              disk_path(stage, disk));
}

static void on_archived(void *context, const struct error *failure,
                        const struct vault_archived *archived)
{
    struct answer *answer = context;

    assert_true((failure == NULL) == (archived != NULL));
    note(answer, failure);
    if (archived)
        answer->archived = *archived;
}

static void on_layer(void *context, const struct error *failure, const struct vault_layer *layer)
{
    struct answer *answer = context;

    note(answer, failure);
    if (layer)
        answer->layer = *layer;
}

static struct answer archive(struct stage *stage, const struct disk_ref *disk, const char *folder,
                             const char *key)
{
    const struct vault *vault = mover_vault(stage->mover);
    const char *excludes[] = {"skipped"};
    struct vault_archive what = {
        .disk = *disk, .folder = folder, .excludes = excludes, .exclude_count = 1, .key = key};
    struct answer answer = {.times = 0};

    vault->archive(vault->self, &what, NULL, on_archived, &answer);
    AWAIT(stage, &answer);
    return answer;
}

static struct answer restore(struct stage *stage, const char *key, const uint8_t *sum,
                             const struct id *sandbox)
{
    const struct vault *vault = mover_vault(stage->mover);
    struct vault_restore what = {
        .key = key, .sum = sum, .sandbox = *sandbox, .folder = "/workspace"};
    struct answer answer = {.times = 0};

    vault->restore(vault->self, &what, NULL, on_done, &answer);
    AWAIT(stage, &answer);
    return answer;
}

static void a_backup_comes_back_as_it_was(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage);
    struct id sandbox = id_new();
    struct answer made, answer;

    fill(stage, &disk);
    run_shell("mkdir '%s/workspace/skipped'", disk_path(stage, &disk));
    made = archive(stage, &disk, "/workspace", "backups/x/data.sqsh");
    expect_ok(&made);
    assert_int_equal(made.archived.files, 5);
    assert_true(made.archived.size > 0);
    run_shell("[ $(stat -c %%s '%s') = %llu ]", place(stage, "store", "backups/x/data.sqsh"),
              (unsigned long long) made.archived.size);
    answer = restore(stage, "backups/x/data.sqsh", made.archived.sum, &sandbox);
    expect_ok(&answer);
    run_shell("rmdir '%s/workspace/skipped'", disk_path(stage, &disk));
    run_shell("diff -r --no-dereference '%s/workspace' '%s'", disk_path(stage, &disk),
              place(stage, "agents", sandbox.text));
    run_shell("[ $(stat -c %%a '%s/a') = 400 ]", place(stage, "agents", sandbox.text));
}

static void what_fails_says_which_step_and_changes_nothing(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage), nowhere = {DISK_OF_SNAPSHOT, id_new()};
    struct id sandbox = id_new();
    uint8_t wrong[VAULT_SUM_SIZE] = {1};
    struct answer answer;

    fill(stage, &disk);
    answer = archive(stage, &disk, "/nothing", "backups/y/data.sqsh");
    expect_code(&answer, ERR_NOT_FOUND);
    answer = archive(stage, &nowhere, "/workspace", "backups/y/data.sqsh");
    expect_code(&answer, ERR_NOT_FOUND);
    answer = restore(stage, "backups/y/data.sqsh", NULL, &sandbox);
    expect_code(&answer, ERR_NOT_FOUND);
    answer = archive(stage, &disk, "/workspace", "backups/y/data.sqsh");
    expect_ok(&answer);
    answer = restore(stage, "backups/y/data.sqsh", wrong, &sandbox);
    expect_code(&answer, ERR_UPSTREAM);
    assert_int_equal(stage->extracts, 0);
    /* An object that is no archive: the agent is never asked. */
    run_shell("cp '%s' '%s'", stage->keeper, place(stage, "store", "backups/y/junk"));
    answer = restore(stage, "backups/y/junk", NULL, &sandbox);
    expect_code(&answer, ERR_INVALID);
    assert_int_equal(stage->extracts, 0);
    /* An agent that refuses: its reason counts, not the keeper's broken pipe. */
    stage->refuse_extract = true;
    run_shell("head -c 3000000 /dev/urandom > '%s/workspace/large'", disk_path(stage, &disk));
    answer = archive(stage, &disk, "/workspace", "backups/z/data.sqsh");
    expect_ok(&answer);
    answer = restore(stage, "backups/z/data.sqsh", NULL, &sandbox);
    expect_code(&answer, ERR_INVALID);
    assert_non_null(strstr(answer.failure.message, "tar failed"));
}

/* The agent answers before its kernel has written anything: the restore waits for that. */
static void a_restore_is_told_when_it_would_survive_a_power_cut(void **state)
{
    struct stage *stage = *state;
    const struct vault *vault = mover_vault(stage->mover);
    struct disk_ref disk = new_disk(stage);
    struct vault_restore what = {
        .key = "backups/x/data.sqsh", .sandbox = id_new(), .folder = "/workspace"};
    struct answer answer, late = {.times = 0};
    int closed = 0;

    fill(stage, &disk);
    answer = archive(stage, &disk, "/workspace", what.key);
    expect_ok(&answer);
    assert_int_equal(stage->flushes, 0);
    stage->refuse_flush = true;
    answer = restore(stage, what.key, NULL, &what.sandbox);
    expect_code(&answer, ERR_INTERNAL);
    assert_non_null(strstr(answer.failure.message, "may not survive a power cut: write back"));
    stage->hold_flush = true;
    vault->restore(vault->self, &what, NULL, on_done, &late);
    TURN_UNTIL(&stage->loop, stage->held_flush);
    /* Who closes waits for it, too. */
    mover_close(stage->mover, count_closed, &closed);
    for (int i = 0; i < 5; i++)
        testing_turn(&stage->loop);
    assert_int_equal(late.times + closed, 0);
    provider_call_answer(stage->held_flush, NULL);
    TURN_UNTIL(&stage->loop, closed);
    assert_int_equal(late.times, 1);
    expect_ok(&late);
    assert_int_equal(stage->flushes, 2);
}

static struct answer store(struct stage *stage, const struct disk_ref *disk,
                           const struct disk_ref *base, const struct id *owner)
{
    const struct vault *vault = mover_vault(stage->mover);
    const struct vault_asker asker = {.who = {.owner = *owner}, .haste = VAULT_LATER};
    struct answer answer = {.times = 0};

    vault->store_disk(vault->self, &asker, disk, base, NULL, on_layer, &answer);
    AWAIT(stage, &answer);
    return answer;
}

static struct answer fetch_onto(struct stage *stage, const struct disk_ref *start,
                                const struct vault_layer *layers, size_t count,
                                const struct id *owner, const struct id *target)
{
    const struct vault *vault = mover_vault(stage->mover);
    const struct vault_fetch what = {.asker = {.who = {.owner = *owner}, .haste = VAULT_WAKE},
                                     .target = *target,
                                     .start = *start,
                                     .layers = layers,
                                     .count = count};
    struct answer answer = {.times = 0};

    vault->fetch_disk(vault->self, &what, NULL, on_done, &answer);
    AWAIT(stage, &answer);
    return answer;
}

static struct answer fetch(struct stage *stage, const struct vault_layer *layers, size_t count,
                           const struct id *owner, const struct id *target)
{
    return fetch_onto(stage, &(struct disk_ref){.id.text = ""}, layers, count, owner, target);
}

static void a_disk_is_made_of_its_layers(void **state)
{
    struct stage *stage = *state;
    struct disk_ref first = new_disk(stage), second = new_disk(stage), none = {.set = 0};
    struct id owner = id_new(), other = id_new(), target = id_new();
    struct vault_layer layers[2];
    struct answer answer;

    fill(stage, &first);
    answer = store(stage, &first, &none, &owner);
    expect_ok(&answer);
    assert_true(answer.layer.is_new);
    layers[0] = answer.layer;
    answer = store(stage, &first, NULL, &owner);
    expect_ok(&answer);
    assert_false(answer.layer.is_new);
    assert_string_equal(answer.layer.id, layers[0].id);
    answer = store(stage, &first, NULL, &other); /* nobody sees what others have */
    expect_ok(&answer);
    assert_true(answer.layer.is_new);

    run_shell("cp -a '%s/.' '%s' && cd '%s/workspace' && rm a && echo three > b && rm link && "
              "mkdir link",
              disk_path(stage, &first), disk_path(stage, &second), disk_path(stage, &second));
    answer = store(stage, &second, &first, &owner);
    expect_ok(&answer);
    layers[1] = answer.layer;
    answer = fetch(stage, layers, 2, &owner, &target);
    expect_ok(&answer);
    expect_same(disk_path(stage, &second), place(stage, "disks", target.text));
    answer = fetch(stage, layers, 2, &owner, &target); /* it is there: nothing is mixed */
    expect_code(&answer, ERR_CONFLICT);
    expect_same(disk_path(stage, &second), place(stage, "disks", target.text));
}

static void what_is_here_already_is_not_fetched(void **state)
{
    struct stage *stage = *state;
    struct disk_ref first = new_disk(stage), second = new_disk(stage);
    struct disk_ref nowhere = {DISK_OF_SNAPSHOT, id_new()};
    struct id owner = id_new(), target = id_new(), other = id_new();
    struct vault_layer layer;
    struct answer answer;

    fill(stage, &first);
    run_shell("cp -a '%s/.' '%s' && cd '%s/workspace' && rm a && echo three > b",
              disk_path(stage, &first), disk_path(stage, &second), disk_path(stage, &second));
    answer = store(stage, &second, &first, &owner);
    expect_ok(&answer);
    layer = answer.layer;
    answer = fetch_onto(stage, &first, &layer, 1, &owner, &target);
    expect_ok(&answer);
    expect_same(disk_path(stage, &second), place(stage, "disks", target.text));
    answer = fetch_onto(stage, &first, &layer, 0, &owner, &other);
    expect_ok(&answer);
    expect_same(disk_path(stage, &first), place(stage, "disks", other.text));
    other = id_new();
    answer = fetch_onto(stage, &nowhere, &layer, 1, &owner, &other);
    expect_code(&answer, ERR_NOT_FOUND);
    layer.sum[0] ^= 1;
    answer = fetch_onto(stage, &first, &layer, 1, &owner, &other);
    expect_code(&answer, ERR_UPSTREAM);
    assert_int_equal(access(place(stage, "disks", other.text), F_OK), -1);
}

static void a_layer_that_is_damaged_leaves_no_disk(void **state)
{
    struct stage *stage = *state;
    struct disk_ref disk = new_disk(stage), later = new_disk(stage);
    struct id owner = id_new(), target = id_new();
    struct vault_layer layers[2];
    struct answer answer;
    char key[256];

    fill(stage, &disk);
    run_shell("cp -a '%s/.' '%s' && echo x > '%s/y'", disk_path(stage, &disk),
              disk_path(stage, &later), disk_path(stage, &later));
    answer = store(stage, &disk, NULL, &owner);
    expect_ok(&answer);
    layers[0] = answer.layer;
    answer = store(stage, &later, &disk, &owner);
    expect_ok(&answer);
    layers[1] = answer.layer;
    (void) snprintf(key, sizeof(key), "layers/%s/%s", owner.text, layers[1].id);
    run_shell("printf x | dd of='%s' bs=1 seek=30 conv=notrunc status=none",
              place(stage, "store", key));
    answer = fetch(stage, layers, 2, &owner, &target);
    expect_code(&answer, ERR_UPSTREAM);
    assert_non_null(strstr(answer.failure.message, "layer 2 of 2"));
    assert_int_equal(access(place(stage, "disks", target.text), F_OK), -1);
    answer = fetch(stage, layers, 0, &owner, &target);
    expect_code(&answer, ERR_INVALID);
    (void) snprintf(layers[0].id, sizeof(layers[0].id), "../../etc");
    answer = fetch(stage, layers, 1, &owner, &target);
    expect_code(&answer, ERR_INVALID);
}

/* --- looking --------------------------------------------------------------------------------- */

static void on_line(void *context, const char *line, size_t length)
{
    struct answer *answer = context;

    text_append_bytes(&answer->lines, line, length);
    text_append_char(&answer->lines, '\n');
}

static void on_measured(void *context, const struct error *failure, uint64_t files, uint64_t bytes)
{
    struct answer *answer = context;

    note(answer, failure);
    answer->files = files;
    answer->bytes = bytes;
}

static void differences_and_sizes_are_told(void **state)
{
    struct stage *stage = *state;
    const struct vault *vault = mover_vault(stage->mover);
    struct disk_ref older = new_disk(stage), newer = new_disk(stage);
    const struct vault_asker asker = {.who = {.owner = id_new()}, .haste = VAULT_ASKED};
    struct answer answer = {.lines = TEXT_INIT(4096)};

    run_shell("cd '%s' && echo 12345 > a && cp -a a '%s/a' && echo > '%s/b'",
              disk_path(stage, &older), disk_path(stage, &newer), disk_path(stage, &newer));
    vault->diff(vault->self, &asker, &newer, &older, on_line, on_done, &answer);
    AWAIT(stage, &answer);
    expect_ok(&answer);
    assert_string_equal(text_string(&answer.lines), "{\"added\":\"b\"}\n"); /* not the outcome */
    text_done(&answer.lines);
    answer = (struct answer){.times = 0};
    vault->measure(vault->self, &asker, &newer, on_measured, &answer);
    AWAIT(stage, &answer);
    expect_ok(&answer);
    assert_int_equal(answer.files, 2);
    assert_int_equal(answer.bytes, 7);
}

static void on_put(void *context, const struct error *failure, const struct object_info *info)
{
    (void) info;
    note(context, failure);
}

static void a_prefix_is_removed_with_all_behind_it(void **state)
{
    struct stage *stage = *state;
    const struct vault *vault = mover_vault(stage->mover);
    static struct answer puts[1210];
    struct answer answer = {.times = 0};

    for (int i = 0; i < 1210; i++) {
        char key[64];

        puts[i] = (struct answer){.times = 0};
        (void) snprintf(key, sizeof(key), i ? "here/%d" : "herewith", i);
        (void) objects_put_bytes(stage->objects, key, "x", 1, NULL, on_put, &puts[i]);
    }
    for (int i = 0; i < 1210; i++)
        TURN_UNTIL(&stage->loop, puts[i].times);
    vault->remove_prefix(vault->self, "here/", on_done, &answer);
    AWAIT(stage, &answer);
    expect_ok(&answer);
    run_shell("[ ! -e '%s' ] && [ -e '%s' ]", place(stage, "store", "here"),
              place(stage, "store", "herewith"));
    answer = (struct answer){.times = 0};
    vault->remove_prefix(vault->self, "", on_done, &answer);
    AWAIT(stage, &answer);
    expect_code(&answer, ERR_INVALID);
}

/* --- the end --------------------------------------------------------------------------------- */

static void closing_answers_all_that_is_open(void **state)
{
    struct stage *stage = *state;
    const struct vault *vault = mover_vault(stage->mover);
    struct disk_ref disk = new_disk(stage);
    struct answer answers[3] = {{.times = 0}}, late = {.times = 0};
    struct vault_archive what = {.disk = disk, .folder = "/workspace", .key = "k"};
    const struct vault_asker asker = {.who = {.owner = id_new()}, .haste = VAULT_ASKED};
    int closed = 0;

    fill(stage, &disk);
    vault->archive(vault->self, &what, NULL, on_archived, &answers[0]);
    vault->store_disk(vault->self, &asker, &disk, NULL, NULL, on_layer, &answers[1]);
    vault->measure(vault->self, &asker, &disk, on_measured, &answers[2]);
    mover_close(stage->mover, count_closed, &closed);
    assert_int_equal(answers[0].times, 0);
    TURN_UNTIL(&stage->loop, closed);
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        assert_int_equal(answers[i].times, 1);
        assert_true(!answers[i].failed || answers[i].failure.code == ERR_CANCELLED ||
                    answers[i].failure.code == ERR_UNAVAILABLE);
    }
    vault->measure(vault->self, &asker, &disk, on_measured, &late);
    AWAIT(stage, &late);
    expect_code(&late, ERR_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_backup_comes_back_as_it_was, set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(what_fails_says_which_step_and_changes_nothing, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(a_restore_is_told_when_it_would_survive_a_power_cut,
                                        set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(a_disk_is_made_of_its_layers, set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(what_is_here_already_is_not_fetched, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(a_layer_that_is_damaged_leaves_no_disk, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(differences_and_sizes_are_told, set_stage, strike_stage),
        cmocka_unit_test_setup_teardown(a_prefix_is_removed_with_all_behind_it, set_stage,
                                        strike_stage),
        cmocka_unit_test_setup_teardown(closing_answers_all_that_is_open, set_stage, strike_stage),
    };

    return cmocka_run_group_tests_name("mover", tests, NULL, NULL);
}
