/* The server behind a real mount, in a mount namespace of the test. */
#include "mount/mount_testing.h"

/* --- files ----------------------------------------------------------------------------------- */

static void files_are_objects_when_they_are_closed(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture,
           "echo hello > a; test \"$(cat a)\" = hello; echo more >> a; wc -c < a | grep -qx 11");
    assert_string_equal(text_of(fixture, "home/a"), "hello\nmore\n");
    EXPECT(fixture, "printf 12345 > b; truncate -s 3 b; test \"$(cat b)\" = 123; "
                    "truncate -s 5 b; test $(stat -c %s b) = 5; : > b; test ! -s b");
    assert_int_equal(memory_find(&fixture->store, "home/b")->length, 0);
    EXPECT(fixture, "rm a b; test ! -e a; test -z \"$(ls)\"");
    assert_int_equal(fixture->store.count, 0);
}

static void a_change_in_the_middle_keeps_the_rest(void **state)
{
    struct fixture *fixture = *state;

    (void) put_text(fixture, "home/a", "0123456789");
    EXPECT(fixture, "printf XY | dd of=a bs=1 seek=4 conv=notrunc status=none; "
                    "test \"$(cat a)\" = 0123XY6789");
    assert_string_equal(text_of(fixture, "home/a"), "0123XY6789");
}

static void folders_are_made_listed_and_removed(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture,
           "mkdir -p x/y/z; echo 1 > x/y/f; test \"$(find . | sort | tr '\\n' ' ')\" = "
           "'. ./x ./x/y ./x/y/f ./x/y/z '; ! rmdir x/y 2>/dev/null; rm -r x; test ! -e x");
    assert_int_equal(fixture->store.count, 0);
}

static void folders_without_markers_are_there_and_stay(void **state)
{
    struct fixture *fixture = *state;

    (void) put_text(fixture, "home/deep/er/file", "text");
    (void) put_text(fixture, "elsewhere/file", "not ours");
    EXPECT(fixture, "test \"$(ls)\" = deep; test -d deep/er; test \"$(cat deep/er/file)\" = text; "
                    "rm deep/er/file; test -d deep/er; test -z \"$(ls deep/er)\"");
    assert_non_null(memory_find(&fixture->store, "home/deep/er/"));
    assert_non_null(memory_find(&fixture->store, "elsewhere/file"));
}

static void a_folder_of_many_pages_is_read_to_its_end(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 2500; i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "home/many/%04d", i);
        (void) put_text(fixture, key, "x");
    }
    EXPECT(fixture, "test $(ls -f many | wc -l) = 2502; test $(ls many | uniq | wc -l) = 2500");
    assert_true(fixture->store.lists >= 6);
    assert_true(fixture->store.heads < 20);
}

static void keys_that_no_file_can_have_are_left_out(void **state)
{
    struct fixture *fixture = *state;
    struct mount_counters counters;
    char key[400];

    (void) put_text(fixture, "home/d//b", "1");
    (void) put_text(fixture, "home/d/../b", "2");
    (void) put_text(fixture, "home/d/both", "file");
    (void) put_text(fixture, "home/d/both/inside", "hidden");
    (void) put_text(fixture, "home/d/good", "3");
    memset(key, 'x', sizeof(key));
    memcpy(key, "home/d/", 7);
    key[7 + 256] = '\0';
    (void) put_text(fixture, key, "4");
    EXPECT(fixture,
           "test \"$(ls d | tr '\\n' ' ')\" = 'both good '; test \"$(cat d/both)\" = file");
    mount_session_counters(fixture->session, &counters);
    assert_int_equal(counters.hidden, 4);
}

static void names_are_utf8(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture,
           "echo 1 > 'schön ☃ %20+'; test -f 'schön ☃ %20+'; "
           "LC_ALL=C touch $'bad\\xff' 2> ../error || grep -q 'Invalid or incomplete' ../error; "
           "rm -f ../error; ! test -e $'bad\\xff'");
    assert_non_null(memory_find(&fixture->store, "home/schön ☃ %20+"));
    assert_int_equal(fixture->store.count, 1);
}

static void removed_files_can_be_read_by_who_has_them_open(void **state)
{
    struct fixture *fixture = *state;

    (void) put_text(fixture, "home/a", "still here");
    EXPECT(fixture, "exec 3< a; rm a; test ! -e a; test \"$(cat <&3)\" = 'still here'; exec 3<&-; "
                    "exec 4<> b; echo 1 >&4; rm b; echo 2 >&4; exec 4>&-; test ! -e b");
    assert_int_equal(fixture->store.count, 0);
}

static void big_files_go_both_ways_exactly(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture,
           "head -c 20000000 /dev/urandom > ../big; cp ../big big; cmp big ../big; "
           "test \"$(sha256sum < big)\" = \"$(sha256sum < ../big)\"; "
           "dd if=big bs=1 skip=12345678 count=100 status=none | cmp - <(dd if=../big bs=1 "
           "skip=12345678 count=100 status=none); rm ../big");
    assert_int_equal(memory_find(&fixture->store, "home/big")->length, 20000000);
}

static void reading_again_does_not_ask_again(void **state)
{
    struct fixture *fixture = *state;
    struct mount_counters counters;
    unsigned int gets = 0;

    fixture->options.cache_limit = 3 << 20;
    end_session(fixture, 1000);
    begin_session(fixture);
    EXPECT(fixture, "head -c 10000000 /dev/zero > big; cat big > /dev/null");
    mount_session_counters(fixture->session, &counters);
    assert_true(counters.cache_bytes <= 3 << 20);
    assert_int_equal(counters.spool_bytes, 0);
    /* The kernel's own pages; now and then somebody on the machine makes it drop them. */
    for (int i = 0; i < 3; i++) {
        gets = fixture->store.gets;
        EXPECT(fixture, "cat big > /dev/null; cat big > /dev/null");
        if (fixture->store.gets == gets)
            break;
    }
    assert_int_equal(fixture->store.gets, gets);
    (void) put_text(fixture, "home/big", "small now");
    EXPECT(fixture, "sleep 1.1; test \"$(cat big)\" = 'small now'");
}

/* --- names ----------------------------------------------------------------------------------- */

static void files_are_renamed(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture, "echo 1 > a; mv a b; test ! -e a; test $(cat b) = 1; echo 2 > c; mv c b; "
                    "test $(cat b) = 2; mkdir d; mv b d/e; test $(cat d/e) = 2; "
                    "exec 3> new; echo x >&3; mv new other; echo y >&3; exec 3>&-; "
                    "test \"$(tr -d '\\n' < other)\" = xy; test ! -e new");
    assert_string_equal(text_of(fixture, "home/d/e"), "2\n");
    assert_string_equal(text_of(fixture, "home/other"), "x\ny\n");
    assert_null(memory_find(&fixture->store, "home/new"));
    EXPECT(fixture, "echo 3 > f; mv -n f other; test -e f; test \"$(head -c1 other)\" = x");
}

static void folders_are_renamed_with_all_that_is_in_them(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(
        fixture,
        "mkdir -p a/b; for i in 1 2 3; do echo $i > a/b/$i; done; mv a z; test ! -e a; "
        "test \"$(cat z/b/*| tr -d '\\n')\" = 123; mkdir full; echo 1 > full/x; "
        "! mv -T z full 2>/dev/null; test -d z/b; mkdir empty; mv -T z empty; test -f empty/b/1");
    assert_null(memory_find(&fixture->store, "home/a/b/1"));
    assert_null(memory_find(&fixture->store, "home/z/"));
    assert_string_equal(text_of(fixture, "home/empty/b/3"), "3\n");
}

static void a_folder_of_too_many_is_another_file_system(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i <= MOUNT_RENAME_MAX; i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "home/many/%06d", i);
        (void) put_text(fixture, key, "x");
    }
    EXPECT(fixture, "/usr/bin/python3 -Ic 'import os, errno\n"
                    "try: os.rename(\"many\", \"other\")\n"
                    "except OSError as e: assert e.errno == errno.EXDEV, e\n"
                    "else: raise SystemExit(1)'");
    assert_int_equal(fixture->store.copies, 0);
}

static void a_rename_that_fails_leaves_what_was(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture, "mkdir a; for i in 1 2 3; do echo $i > a/$i; done");
    atomic_store(&fixture->store.refuses_puts, ERR_FORBIDDEN);
    EXPECT(fixture, "! mv a b 2>/dev/null; test \"$(cat a/* | tr -d '\\n')\" = 123; "
                    "! mv a/1 a/4 2>/dev/null; test -f a/1");
    assert_null(memory_find(&fixture->store, "home/b/1"));
}

static void symbolic_links_are_kept(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture, "echo x > a; ln -s a b; test \"$(readlink b)\" = a; test \"$(cat b)\" = x; "
                    "find . -type l | grep -qx ./b; ! ln a c 2>/dev/null; ! mkfifo p 2>/dev/null");
    assert_string_equal(text_of(fixture, "home/b"), "a");
    assert_string_equal(mark_of(fixture, "home/b", "mode"), "41471");
    end_session(fixture, 1000);
    begin_session(fixture);
    EXPECT(fixture, "find . -type l | grep -qx ./b; test \"$(cat b)\" = x; rm b; test -f a");
}

/* --- marks ----------------------------------------------------------------------------------- */

static void modes_owners_and_times_are_kept(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture, "echo '#!/bin/sh' > run; chmod 750 run; chown 12:34 run; "
                    "touch -d @1234567890 run; mkdir -m 700 private; touch -d @1000000000 private");
    assert_string_equal(mark_of(fixture, "home/run", "mode"), "33256");
    assert_string_equal(mark_of(fixture, "home/run", "uid"), "12");
    assert_string_equal(mark_of(fixture, "home/run", "gid"), "34");
    assert_string_equal(mark_of(fixture, "home/run", "mtime"), "1234567890.000000000");
    assert_string_equal(text_of(fixture, "home/run"), "#!/bin/sh\n");
    end_session(fixture, 1000);
    begin_session(fixture);
    EXPECT(fixture, "test \"$(stat -c '%a %u %g %Y' run)\" = '750 12 34 1234567890'; ./run; "
                    "test \"$(stat -c '%a %Y' private)\" = '700 1000000000'");
}

static void copies_keep_their_times(void **state)
{
    struct fixture *fixture = *state;
    unsigned int puts;

    EXPECT(fixture, "echo x > ../old; touch -d @1111111111 ../old; chmod 600 ../old");
    puts = fixture->store.puts;
    EXPECT(fixture,
           "cp -p ../old new; rm ../old; test \"$(stat -c '%a %Y' new)\" = '600 1111111111'");
    assert_int_equal(fixture->store.puts, puts + 1);
}

static void files_of_others_have_the_owner_of_the_mount(void **state)
{
    struct fixture *fixture = *state;

    fixture->options.uid = 1000;
    fixture->options.gid = 100;
    fixture->options.file_mode = 0600;
    end_session(fixture, 1000);
    begin_session(fixture);
    (void) put_text(fixture, "home/a", "x");
    EXPECT(fixture, "test \"$(stat -c '%a %u %g %Y' a)\" = '600 1000 100 1700000000'; "
                    "test $(stat -c %u .) = 1000");
}

static void nothing_is_written_to_what_is_read_only(void **state)
{
    struct fixture *fixture = *state;

    (void) put_text(fixture, "home/a", "x");
    fixture->options.read_only = true;
    end_session(fixture, 1000);
    begin_session(fixture);
    EXPECT(fixture, "test $(cat a) = x; ! touch b 2>/dev/null; ! rm a 2>/dev/null; "
                    "! (echo y > a) 2>/dev/null; ! chmod 600 a 2>/dev/null; ! mkdir c 2>/dev/null; "
                    "! mv a b 2>/dev/null; (echo y > b) 2>&1 | grep -q 'Read-only file system'");
    assert_int_equal(fixture->store.count, 1);
}

/* --- programs -------------------------------------------------------------------------------- */

static void git_works(void **state)
{
    EXPECT(*state, "git init -q .; git config user.email a@b; git config user.name n; "
                   "for i in 1 2 3; do echo $i > f$i; git add -A; git commit -qm c$i; done; "
                   "test $(git log --oneline | wc -l) = 3; git fsck --no-progress; "
                   "git checkout -q -b other HEAD~1; test ! -e f3; git status --porcelain | wc -l "
                   "| grep -qx 0; "
                   "git gc -q; git fsck --no-progress");
}

static void sqlite_works(void **state)
{
    EXPECT(
        *state,
        "/usr/bin/python3 -Ic 'import sqlite3\n"
        "db = sqlite3.connect(\"x.db\")\n"
        "db.execute(\"create table t (a integer primary key, b text)\")\n"
        "for i in range(50):\n"
        "    db.execute(\"insert into t (b) values (?)\", (\"x\" * 1000,))\n"
        "    if i % 10 == 0: db.commit()\n"
        "db.commit(); db.close()\n"
        "db = sqlite3.connect(\"x.db\")\n"
        "assert db.execute(\"select count(*), sum(length(b)) from t\").fetchone() == (50, 50000)\n"
        "assert db.execute(\"pragma integrity_check\").fetchone() == (\"ok\",)'");
}

static void files_can_be_mapped(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture, "/usr/bin/python3 -Ic 'import mmap\n"
                    "open(\"m\", \"wb\").write(b\"x\" * 10000)\n"
                    "f = open(\"m\", \"r+b\")\n"
                    "m = mmap.mmap(f.fileno(), 0)\n"
                    "assert m[9999:10000] == b\"x\"\n"
                    "m[5000:5005] = b\"hello\"\n"
                    "m.flush(); m.close(); f.close()'; "
                    "dd if=m bs=1 skip=5000 count=5 status=none | grep -q hello");
    assert_memory_equal(text_of(fixture, "home/m") + 5000, "hello", 5);
}

static void trees_are_copied(void **state)
{
    EXPECT(
        *state,
        "cp -r /usr/share/doc/bash copy; diff -r /usr/share/doc/bash copy; du -s copy > /dev/null; "
        "tar cf - copy | tar tf - > /dev/null; rm -r copy; test -z \"$(ls)\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, finish_test)
        TEST(files_are_objects_when_they_are_closed),
        TEST(a_change_in_the_middle_keeps_the_rest),
        TEST(folders_are_made_listed_and_removed),
        TEST(folders_without_markers_are_there_and_stay),
        TEST(a_folder_of_many_pages_is_read_to_its_end),
        TEST(keys_that_no_file_can_have_are_left_out),
        TEST(names_are_utf8),
        TEST(removed_files_can_be_read_by_who_has_them_open),
        TEST(big_files_go_both_ways_exactly),
        TEST(reading_again_does_not_ask_again),
        TEST(files_are_renamed),
        TEST(folders_are_renamed_with_all_that_is_in_them),
        TEST(a_folder_of_too_many_is_another_file_system),
        TEST(a_rename_that_fails_leaves_what_was),
        TEST(symbolic_links_are_kept),
        TEST(modes_owners_and_times_are_kept),
        TEST(copies_keep_their_times),
        TEST(files_of_others_have_the_owner_of_the_mount),
        TEST(nothing_is_written_to_what_is_read_only),
        TEST(git_works),
        TEST(sqlite_works),
        TEST(files_can_be_mapped),
        TEST(trees_are_copied),
#undef TEST
    };

    return MOUNT_RUN(tests);
}
