/* What only a folder has: files that others can touch, links, full disks. The .c is included to
 * call it on our own thread, where faults can be armed. */
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "base/fault.h"
#include "objects/folder/objects_folder.c"
#include "objects/folder/objects_folder_testing.h"

static char *path_of(const struct contract *contract, const char *name)
{
    AUTO(free) char *root = root_of(contract);
    AUTO(text) struct text path = TEXT_INIT(8192);

    text_format(&path, "%s/%s", root, name);
    return text_take(&path);
}

static void write_file(const struct contract *contract, const char *name, const char *content)
{
    AUTO(free) char *path = path_of(contract, name);
    AUTO(close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

static bool is_there(const struct contract *contract, const char *name)
{
    AUTO(free) char *path = path_of(contract, name);

    return access(path, F_OK) == 0;
}

/* --- what it looks like ----------------------------------------------------------------------- */

static void an_object_is_a_plain_file(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *path = path_of(contract, "backups/x/meta.json");
    AUTO(free) char *data = NULL;
    size_t length;

    put_ok(contract, "backups/x/meta.json", "{}");
    assert_int_equal(sys_file_read_all(AT_FDCWD, path, 100, &data, &length), 0);
    assert_string_equal(data, "{}");
    assert_int_equal(count_names(contract, ".tmp"), 0);
}

static void a_key_in_the_way_of_another_is_refused(void **state)
{
    struct contract *contract = *state;
    struct object_put_options only_new = {.only_new = true};

    put_ok(contract, "a", "x");
    put_ok(contract, "b/c", "x");
    {
        AUTO(reply) struct reply *beneath = put_text(contract, "a/b", "y");
        AUTO(reply) struct reply *further = put_text(contract, "a/b/c/d", "y");
        AUTO(reply) struct reply *above = put_text(contract, "b", "y");
        AUTO(reply) struct reply *above_new = put_bytes(contract, "b", "y", 1, &only_new);

        expect_code(beneath, ERR_CONFLICT);
        expect_code(further, ERR_CONFLICT);
        expect_code(above, ERR_CONFLICT);
        expect_code(above_new, ERR_CONFLICT);
    }
    expect_content(contract, "a", "x");
    expect_content(contract, "b/c", "x");
    delete_ok(contract, "a");
    put_ok(contract, "a/b", "y");
    assert_int_equal(count_names(contract, ".tmp"), 0);
}

static void empty_folders_go_with_their_last_object(void **state)
{
    struct contract *contract = *state;

    put_ok(contract, "a/b/c/d", "x");
    put_ok(contract, "a/e", "x");
    delete_ok(contract, "a/b/c/d");
    assert_false(is_there(contract, "a/b"));
    assert_true(is_there(contract, "a"));
    delete_ok(contract, "a/e");
    assert_int_equal(count_names(contract, "."), 1); /* .tmp */
}

/* One that a crash left behind, say. */
static void an_empty_folder_is_nothing(void **state)
{
    struct contract *contract = *state;
    struct object_put_options only_new = {.only_new = true};
    AUTO(free) char *one = path_of(contract, "one");
    AUTO(free) char *two = path_of(contract, "two");
    AUTO(free) char *three = path_of(contract, "two/three");

    assert_int_equal(mkdir(one, 0700), 0);
    assert_int_equal(mkdir(two, 0700), 0);
    assert_int_equal(mkdir(three, 0700), 0);
    expect_listed(contract, "", true, 10, NULL, 0);
    expect_listed(contract, "", false, 10, NULL, 0);
    expect_missing(contract, "one");
    put_ok(contract, "one", "x");
    {
        AUTO(reply) struct reply *put = put_bytes(contract, "two/three", "x", 1, &only_new);

        expect_ok(put);
    }
    expect_content(contract, "one", "x");
}

static void a_file_put_by_hand_is_an_object(void **state)
{
    static const char *const keys[] = {"by-hand"};
    struct contract *contract = *state;

    write_file(contract, "by-hand", "content");
    expect_content(contract, "by-hand", "content");
    expect_listed(contract, "", false, 10, keys, 1);
    {
        AUTO(reply) struct reply *seen = head(contract, "by-hand");
        struct object_put_options options = {.only_tag = seen->info.tag};
        AUTO(reply) struct reply *copied = copy(contract, "by-hand", "copied");
        AUTO(reply) struct reply *put = put_bytes(contract, "by-hand", "y", 1, &options);

        assert_false(seen->info.has_sum);
        expect_ok(copied);
        expect_ok(put);
    }
    expect_content(contract, "copied", "content");
}

static void names_that_are_no_keys_are_not_seen(void **state)
{
    struct contract *contract = *state;

    write_file(contract, ".hidden", "x");
    write_file(contract, "%41", "x");
    write_file(contract, "\xff", "x");
    write_file(contract, "%", "x"); /* would be the key "" */
    expect_listed(contract, "", false, 10, NULL, 0);
    expect_missing(contract, ".hidden");
    expect_missing(contract, "A");
}

static void nothing_but_plain_files_is_read(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *link = path_of(contract, "link");
    AUTO(free) char *folder_link = path_of(contract, "away");
    AUTO(free) char *fifo = path_of(contract, "fifo");

    put_ok(contract, "real/x", "x");
    assert_int_equal(symlink("real/x", link), 0);
    assert_int_equal(symlink("real", folder_link), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_missing(contract, "link");
    expect_missing(contract, "away/x");
    expect_missing(contract, "fifo");
    expect_listed(contract, "", false, 10, (const char *const[]){"real/x"}, 1);
    {
        AUTO(reply) struct reply *through = put_text(contract, "away/y", "y");

        expect_code(through, ERR_CONFLICT);
    }
    put_ok(contract, "link", "replaced, not followed");
    expect_content(contract, "real/x", "x");
}

/* On a file system that can share blocks nothing is copied; elsewhere it is. */
static void a_file_of_the_same_file_system_is_put(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *path = path_of(contract, ".beside");
    AUTO(close) int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    AUTO(close) int back = file_of(0);
    AUTO(free) char *bytes = mem_alloc(1000001);

    assert_true(file >= 0);
    testing_fill(bytes, 1000001, 0);
    assert_int_equal(write(file, bytes, 1000001), 1000001);
    {
        AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);
        AUTO(reply) struct reply *got = NULL;

        expect_ok(put);
        assert_int_equal(put->info.size, 1000001);
        assert_int_equal(pwrite(file, "other", 5, 0), 5); /* what was put stays */
        got = get_file(contract, "key", back, put->info.sum);
        expect_ok(got);
    }
    expect_series(back, 1000001);
}

/* --- damage ----------------------------------------------------------------------------------- */

static void expect_damaged(struct contract *contract, const char *key)
{
    AUTO(close) int file = file_of(0);
    AUTO(reply) struct reply *got = get_bytes(contract, key);
    AUTO(reply) struct reply *written = get_file(contract, key, file, NULL);

    expect_code(got, ERR_UPSTREAM);
    expect_code(written, ERR_UPSTREAM);
}

static void bytes_that_are_not_what_was_put_are_seen(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *path = path_of(contract, "key");

    put_ok(contract, "key", "what was put");
    write_file(contract, "key", "What was put");
    expect_damaged(contract, "key");
    {
        AUTO(reply) struct reply *part = get_part(contract, "key", 0, 4);

        expect_ok(part); /* a part has no sum */
    }
    put_ok(contract, "key", "what was put");
    assert_int_equal(truncate(path, 5), 0);
    expect_damaged(contract, "key");
    put_ok(contract, "key", "what was put");
    assert_int_equal(truncate(path, 100), 0);
    expect_damaged(contract, "key");
    put_ok(contract, "key", "healed");
    expect_content(contract, "key", "healed");
}

static void a_damaged_label_is_seen(void **state)
{
    static const char *const labels[] = {
        "",
        "tag x",
        "tag \n",
        "sum 00\n",
        "tag x\nsum 0z\n",
        "meta a b\n",
        "tag x\nmeta a\n",
        "tag 1\nsum 2c26\n",
    };
    struct contract *contract = *state;
    AUTO(free) char *path = path_of(contract, "key");

    put_ok(contract, "key", "x");
    for (size_t i = 0; i < ARRAY_COUNT(labels); i++) {
        assert_int_equal(setxattr(path, "user.burrow.object", labels[i], strlen(labels[i]), 0), 0);
        expect_damaged(contract, "key");
        {
            AUTO(reply) struct reply *seen = head(contract, "key");
            AUTO(reply) struct reply *listed = list(contract, "", false, NULL, 10);

            expect_code(seen, ERR_UPSTREAM);
            expect_ok(listed);
            assert_int_equal(listed->count, 1);
            assert_string_equal(listed->entries[0].tag, "");
        }
    }
    assert_int_equal(setxattr(path, "user.burrow.object", "tag x\nnew word\n", 15, 0), 0);
    expect_content(contract, "key", "x");
}

/* --- temporary files -------------------------------------------------------------------------- */

static void what_was_half_put_is_removed_at_the_next_start(void **state)
{
    struct contract *contract = *state;

    write_file(contract, ".tmp/.burrow-0123456789abcdef.tmp", "half");
    {
        AUTO(free) char *root = root_of(contract);
        struct objects *other = objects_folder_new(&contract->loop, root, 0, NULL);

        assert_non_null(other); /* while another has it open nothing is removed */
        assert_int_equal(count_names(contract, ".tmp"), 1);
        objects_close(other, NULL, NULL);
    }
    reopen(contract);
    assert_int_equal(count_names(contract, ".tmp"), 0);
}

static void a_file_where_the_folder_should_be_is_an_error(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *path = path_of(contract, "file");
    struct error err = ERROR_INIT;

    write_file(contract, "file", "x");
    assert_null(objects_folder_new(&contract->loop, path, 0, &err));
    assert_non_null(strstr(err.message, path));
}

#define SMALL_FLOOR (UINT64_C(1) << 40) /* a part of that disk, as small as it is */

/* --- full disks ------------------------------------------------------------------------------- */

static void a_floor_of_the_disk_stays_free(void **state)
{
    struct contract *contract = *state;
    AUTO(free)
    char *place = path_of(contract, "small"), *filler = path_of(contract, "small/filler");
    AUTO(free) char *bytes = mem_alloc(3900 * 1024);
    struct objects *before = contract->objects;
    struct error err = ERROR_INIT;

    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(place, 0700), 0);
    assert_int_equal(mount("none", place, "tmpfs", 0, "size=4m"), 0);
    contract->objects = objects_folder_new(&contract->loop, place, SMALL_FLOOR, &err);
    if (!contract->objects)
        fail_msg("%s", err.message);
    put_ok(contract, "key", "old");
    assert_int_equal(sys_file_replace(AT_FDCWD, filler, bytes, 3900 * 1024, 0600), 0);
    {
        AUTO(reply) struct reply *put = put_text(contract, "key", "new");
        AUTO(reply) struct reply *copied = copy(contract, "key", "other");

        expect_code(put, ERR_NO_SPACE);
        expect_code(copied, ERR_NO_SPACE);
    }
    expect_content(contract, "key", "old");
    assert_int_equal(unlink(filler), 0);
    put_ok(contract, "key", "new");
    close_objects(contract);
    contract->objects = before;
    assert_int_equal(umount2(place, MNT_DETACH), 0);
    assert_int_equal(rmdir(place), 0);
}

static int64_t blocks_of(const struct contract *contract, const char *key, off_t size)
{
    AUTO(free) char *path = path_of(contract, key);
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, size);
    return status.st_blocks;
}

static void holes_stay_holes(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(0), back = file_of(0);
    off_t size = (off_t) 64 << 20;
    struct stat status;

    assert_int_equal(pwrite(file, "begin", 5, 0), 5);
    assert_int_equal(pwrite(file, "middle", 6, size / 2 + 10), 6);
    assert_int_equal(ftruncate(file, size), 0);
    {
        AUTO(reply) struct reply *put = put_file(contract, "holes", file, NULL);
        AUTO(reply) struct reply *copied = NULL, *got = NULL;

        expect_ok(put);
        copied = copy(contract, "holes", "copy");
        expect_ok(copied);
        got = get_file(contract, "copy", back, NULL);
        expect_ok(got);
    }
    assert_in_range(blocks_of(contract, "holes", size), 1, 1000);
    assert_in_range(blocks_of(contract, "copy", size), 1, 1000);
    assert_int_equal(fstat(back, &status), 0);
    assert_int_equal(status.st_size, size);
    assert_in_range(status.st_blocks, 1, 1000);
    {
        char text[6];

        assert_int_equal(pread(back, text, 6, size / 2 + 10), 6);
        assert_memory_equal(text, "middle", 6);
    }
}

static void limit_files(off_t size)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size ? (rlim_t) size : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_leaves_the_old_object(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(3 << 20);

    (void) signal(SIGXFSZ, SIG_IGN);
    put_ok(contract, "key", "old");
    limit_files(1 << 20);
    {
        AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);
        AUTO(reply) struct reply *new = put_file(contract, "deep/new", file, NULL);

        limit_files(0);
        expect_code(put, ERR_NO_SPACE);
        expect_code(new, ERR_NO_SPACE);
    }
    expect_content(contract, "key", "old");
    expect_missing(contract, "deep/new");
    assert_int_equal(count_names(contract, ".tmp"), 0);
    assert_false(is_there(contract, "deep"));
}

/* A call on this thread. */
struct direct {
    struct folder *folder;
    struct pool pool;
    atomic_bool cancelled;
    atomic_uint_least64_t done_bytes, retries;
    struct objects_work work;
};

static void direct_init(struct direct *direct, const struct contract *contract)
{
    AUTO(free) char *root = root_of(contract);

    *direct = (struct direct){.folder = folder_new(root)};
    assert_int_equal(folder_prepare(direct->folder), 0);
    direct->work = (struct objects_work){&direct->pool, &direct->cancelled, &direct->done_bytes,
                                         &direct->retries};
}

static void direct_done(struct direct *direct)
{
    pool_done(&direct->pool);
    folder_end(direct->folder);
}

static int put_direct(struct direct *direct, const char *key, const char *text, struct error *err)
{
    const struct objects_source source = {.bytes = text, .length = strlen(text), .fd = -EBADF};
    const struct object_put_options options = {.only_new = false};
    struct object_info info;

    return folder_put(direct->folder, &direct->work, key, &source, &options, &info, err);
}

/* Every system call of a put fails once. What failed may have happened all the same when the last
 * step fails: whole, then. */
static void a_put_that_fails_anywhere_leaves_nothing_half(void **state)
{
    struct contract *contract = *state;
    struct direct direct;
    unsigned int nth = 0, last = 0;
    bool reached = true;

    direct_init(&direct, contract);
    put_ok(contract, "a/key", "old");
    for (nth = 1; reached; nth++) {
        struct error err = ERROR_INIT;
        AUTO(reply) struct reply *got = NULL;
        int r;

        fault_arm(FAULT_SYSTEM_CALL, nth, ENOSPC);
        r = put_direct(&direct, "a/key", "new", &err);
        reached = fault_disarm(FAULT_SYSTEM_CALL);
        assert_int_equal(r, reached ? -1 : 0);
        if (reached)
            assert_int_equal(err.code, ERR_NO_SPACE);
        assert_int_equal(count_names(contract, ".tmp"), 0);
        got = get_bytes(contract, "a/key");
        expect_ok(got);
        if (strcmp(got->bytes, "old") != 0) {
            assert_string_equal(got->bytes, "new");
            last = last ? last : nth;
        }
    }
    assert_true(nth > 6);
    assert_int_equal(last, nth - 2); /* only once the new one has its place */
    direct_done(&direct);
}

static void a_new_folder_that_cannot_be_synced_is_an_error(void **state)
{
    struct contract *contract = *state;
    struct direct direct;
    bool reached = true;

    direct_init(&direct, contract);
    for (unsigned int nth = 1; reached; nth++) {
        struct error err = ERROR_INIT;

        fault_arm(FAULT_SYSTEM_CALL, nth, EIO);
        if (put_direct(&direct, "x/y/z", "new", &err) < 0)
            assert_true(err.code == ERR_UPSTREAM || err.code == ERR_INTERNAL);
        else
            reached = false;
        (void) fault_disarm(FAULT_SYSTEM_CALL);
        delete_ok(contract, "x/y/z");
    }
    assert_int_equal(count_names(contract, ".tmp"), 0);
    direct_done(&direct);
}

/* --- races ------------------------------------------------------------------------------------ */

#define RACERS 120

/* Puts into folders that others take away meanwhile. */
static void puts_and_deletes_do_not_hurt_each_other(void **state)
{
    struct contract *contract = *state;
    struct reply *puts[RACERS], *deletes[RACERS];

    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < RACERS; i++) {
            char key[32], other[32];
            const char *keys[] = {other};

            (void) snprintf(key, sizeof(key), "r/%zu/s/%zu", i % 3, i);
            (void) snprintf(other, sizeof(other), "r/%zu/s/%zu", i % 3, (i + RACERS / 2) % RACERS);
            puts[i] = reply_new();
            deletes[i] = reply_new();
            (void) objects_put_bytes(contract->objects, key, key, strlen(key), NULL, on_info,
                                     puts[i]);
            (void) objects_delete(contract->objects, keys, 1, on_done, deletes[i]);
        }
        for (size_t i = 0; i < RACERS; i++) {
            OBJECTS_WAIT(contract, puts[i]->times && deletes[i]->times);
            expect_ok(puts[i]);
            expect_ok(deletes[i]);
            reply_free(puts[i]);
            reply_free(deletes[i]);
        }
    }
    for (size_t i = 0; i < RACERS; i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "r/%zu/s/%zu", i % 3, i);
        delete_ok(contract, key);
    }
    assert_int_equal(count_names(contract, "."), 1);
    assert_int_equal(count_names(contract, ".tmp"), 0);
}

/* Another process that takes every empty folder away. */
struct sweeper {
    char *inner, *outer;
    atomic_bool is_over;
    atomic_int removed;
};

static void *sweep_on(void *data)
{
    struct sweeper *sweeper = data;

    while (!atomic_load(&sweeper->is_over)) {
        if (rmdir(sweeper->inner) == 0)
            atomic_fetch_add(&sweeper->removed, 1);
        (void) rmdir(sweeper->outer);
        (void) usleep(5000);
    }
    return NULL;
}

static void a_put_makes_its_folder_until_it_stays(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *inner = path_of(contract, "v/w");
    AUTO(free) char *outer = path_of(contract, "v");
    struct sweeper sweeper = {.inner = inner, .outer = outer};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, sweep_on, &sweeper), 0);
    /* Until it was in the way a few times; where syncing takes no time it hardly ever is. */
    for (int i = 0; i < 500 && atomic_load(&sweeper.removed) < 5; i++) {
        put_ok(contract, "v/w/key", "x");
        delete_ok(contract, "v/w/key");
    }
    atomic_store(&sweeper.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Many times, because each is over in microseconds. */
static void one_tag_is_good_for_one_put(void **state)
{
    struct contract *contract = *state;

    for (int round = 0; round < 60; round++) {
        AUTO(reply) struct reply *first = put_text(contract, "key", "first");
        struct object_put_options options = {.only_tag = first->info.tag};
        struct reply *replies[8];
        size_t won = 0;

        for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
            replies[i] = reply_new();
            (void) objects_put_bytes(contract->objects, "key", "x", 1, &options, on_info,
                                     replies[i]);
        }
        for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
            OBJECTS_WAIT(contract, replies[i]->times);
            won += !replies[i]->failed;
            reply_free(replies[i]);
        }
        assert_int_equal(won, 1);
    }
}

/* More names than one reading of a folder holds, and folders among them. */
static void a_wide_folder_is_listed_whole(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *wide = path_of(contract, "wide");
    size_t count = 2700, found = 0;
    AUTO(free) char *after = NULL;

    assert_int_equal(mkdir(wide, 0700), 0);
    for (size_t i = 0; i < count; i++) {
        char name[64];

        (void) snprintf(name, sizeof(name), "wide/%zu", i * 7919 % count + 10000);
        if (i % 100 == 0) {
            AUTO(free) char *folder = path_of(contract, name);

            assert_int_equal(mkdir(folder, 0700), 0);
            (void) snprintf(name, sizeof(name), "wide/%zu/x", i * 7919 % count + 10000);
        }
        write_file(contract, name, "x");
    }
    do {
        AUTO(reply) struct reply *page = list(contract, "wide/", true, after, 900);

        for (size_t i = 0; i < page->count; i++, found++) {
            char expected[32];

            (void) snprintf(expected, sizeof(expected), "wide/%zu", found + 10000);
            assert_memory_equal(page->entries[i].key, expected, strlen(expected));
            assert_int_equal(page->entries[i].key[strlen(expected)],
                             page->entries[i].is_folder ? '/' : '\0');
        }
        free(after);
        after = page->next ? mem_copy_text(page->next) : NULL;
    } while (after);
    assert_int_equal(found, count);
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(an_object_is_a_plain_file),
        FOLDER_TEST(a_key_in_the_way_of_another_is_refused),
        FOLDER_TEST(empty_folders_go_with_their_last_object),
        FOLDER_TEST(an_empty_folder_is_nothing),
        FOLDER_TEST(a_file_put_by_hand_is_an_object),
        FOLDER_TEST(names_that_are_no_keys_are_not_seen),
        FOLDER_TEST(nothing_but_plain_files_is_read),
        FOLDER_TEST(a_file_of_the_same_file_system_is_put),
        FOLDER_TEST(bytes_that_are_not_what_was_put_are_seen),
        FOLDER_TEST(a_damaged_label_is_seen),
        FOLDER_TEST(what_was_half_put_is_removed_at_the_next_start),
        FOLDER_TEST(a_file_where_the_folder_should_be_is_an_error),
        FOLDER_TEST(a_floor_of_the_disk_stays_free),
        FOLDER_TEST(holes_stay_holes),
        FOLDER_TEST(a_full_disk_leaves_the_old_object),
        FOLDER_TEST(a_put_that_fails_anywhere_leaves_nothing_half),
        FOLDER_TEST(a_new_folder_that_cannot_be_synced_is_an_error),
        FOLDER_TEST(puts_and_deletes_do_not_hurt_each_other),
        FOLDER_TEST(a_put_makes_its_folder_until_it_stays),
        FOLDER_TEST(one_tag_is_good_for_one_put),
        FOLDER_TEST(a_wide_folder_is_listed_whole),
    };

    return cmocka_run_group_tests_name("objects_folder", tests, NULL, NULL);
}
