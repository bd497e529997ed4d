#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/format/tar_reader.h"
#include "base/memory.h"
#include "base/text.h"
#include "recipe/context.h"
#include "recipe/context_ignore.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

/* --- .dockerignore -------------------------------------------------------------------------- */

static void assert_ignored(const char *rules, const char *path, bool is_ignored)
{
    struct error err = ERROR_INIT;
    AUTO(context_ignore)
    struct context_ignore *ignore = context_ignore_read(rules, strlen(rules), &err);

    assert_non_null(ignore);
    if (context_ignore_matches(ignore, path) != is_ignored)
        fail_msg("'%s' by '%s'", path, rules);
}

static void the_last_line_that_names_a_path_decides(void **state)
{
    (void) state;
    assert_ignored("", "a", false);
    assert_ignored("# a\n\n a \n", "a", true);
    assert_ignored("a\n", "b/a", false); /* from the top on */
    assert_ignored("a/\n", "a/b/c", true);
    assert_ignored("/a/b\n", "a/b", true);
    assert_ignored("./a\n", "a", true);
    assert_ignored("*.log", "x.log", true);
    assert_ignored("*.log", "d/x.log", false);
    assert_ignored("**/*.log", "x.log", true);
    assert_ignored("**/*.log", "d/e/x.log", true);
    assert_ignored("*", ".hidden", true);
    assert_ignored("*\n!keep", "keep/x", false);
    assert_ignored("*\n!keep", "other", true);
    assert_ignored("d\n!d/keep\nd/keep/not", "d/keep/yes", false);
    assert_ignored("d\n!d/keep\nd/keep/not", "d/keep/not", true);
    assert_ignored("d\n!d/keep\nd/keep/not", "d/x", true);
}

/* Where Docker's patterns are not git's. */
static void two_stars_go_through_folders_wherever_they_stand(void **state)
{
    (void) state;
    assert_ignored("**.pem", "x.pem", true);
    assert_ignored("**.pem", "a/b/x.pem", true);
    assert_ignored("**.pem", "a/b/x.pem.pub", false);
    assert_ignored("keys/**.pem", "keys/a/b.pem", true);
    assert_ignored("keys/**.pem", "other/b.pem", false);
    assert_ignored("a**/b", "a/x/b", true);
    assert_ignored("a**/b", "ax/b", true);
    assert_ignored("d/**", "d/e/f", true);
    assert_ignored("[!a]", "b", false);
    assert_ignored("[!a]", "a", true);
    assert_ignored("[^a]", "b", true);
    assert_ignored("[^a]", "a", false);
}

static void lines_that_are_no_patterns_are_refused(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    assert_null(context_ignore_read("a\n[b\n", 5, &err));
    assert_memory_equal(err.message, "line 2: ", 8);
    assert_null(context_ignore_read("a\0b", 3, &err));
}

/* --- copying -------------------------------------------------------------------------------- */

struct place {
    char path[64];
    int folder;
    struct context *context;
};

static void put(const struct place *place, const char *path, const char *content, mode_t mode)
{
    int file = sys_file_open(place->folder, path, O_WRONLY | O_CREAT | O_TRUNC, mode);

    assert_true(file >= 0);
    assert_int_equal(fchmod(file, mode), 0);
    assert_int_equal(sys_file_write_full(file, content, strlen(content)), 0);
    (void) close(file);
}

static void make_place(struct place *place)
{
    (void) snprintf(place->path, sizeof(place->path), "/tmp/context-test-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    place->folder = sys_file_open(AT_FDCWD, place->path, O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(mkdirat(place->folder, "src", 0755), 0);
    assert_int_equal(mkdirat(place->folder, "src/deep", 0700), 0);
    assert_int_equal(mkdirat(place->folder, "log", 0755), 0);
    put(place, "a.txt", "A", 0644);
    put(place, "b.txt", "BB", 0755);
    put(place, "src/one.c", "1", 0644);
    put(place, "src/deep/two.c", "2", 0600);
    put(place, "log/x.log", "x", 0644);
    put(place, "log/keep", "k", 0644);
    put(place, ".dockerignore", "**/*.log\n", 0644);
    assert_int_equal(symlinkat("/etc/passwd", place->folder, "src/link"), 0);
}

static void open_place(struct place *place)
{
    struct error err = ERROR_INIT;

    place->context = context_open(place->path, &err);
    if (!place->context)
        fail_msg("%s", err.message);
}

static void remove_place(struct place *place)
{
    AUTO(close) int parent = -EBADF;

    context_close(place->context);
    (void) close(place->folder);
    parent = sys_file_open(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(sys_tree_delete(parent, strrchr(place->path, '/') + 1), 0);
}

static int note_entry(void *owner, const struct tar_entry *entry, struct error *err)
{
    (void) err;
    text_format(owner, "%c %s %o %u:%u%s%s=", entry->type, entry->path, entry->mode, entry->uid,
                entry->gid, *entry->link ? " > " : "", entry->link);
    return 0;
}

static int note_bytes(void *owner, const char *bytes, size_t length, struct error *err)
{
    (void) err;
    text_append_bytes(owner, bytes, length);
    return 0;
}

static int note_end(void *owner, struct error *err)
{
    (void) err;
    text_append_char(owner, '\n');
    return 0;
}

/* What an archive holds, a line for each entry. */
static void read_archive(int file, struct text *out)
{
    static const struct tar_reader_events events = {note_entry, note_bytes, note_end};
    AUTO(free) char *bytes = mem_alloc(1 << 20);
    ssize_t length = pread(file, bytes, 1 << 20, 0);
    struct error err = ERROR_INIT;
    struct tar_reader reader;

    assert_true(length > 0);
    tar_reader_init(&reader, &events, out);
    if (tar_reader_feed(&reader, bytes, (size_t) length, &err) < 0 ||
        tar_reader_finish(&reader, &err) < 0)
        fail_msg("%s", err.message);
    tar_reader_done(&reader);
}

static struct context_result assert_copies(const struct place *place, const char *const *sources,
                                           size_t count, const char *name, const char *expected)
{
    AUTO(text) struct text found = TEXT_INIT(65536);
    AUTO(close) int archive = memfd_create("archive", MFD_CLOEXEC);
    struct context_order order = {
        .sources = sources, .count = count, .name = name, .uid = 5, .gid = 6, .archive = archive};
    struct context_result result, seen;
    struct error err = ERROR_INIT;

    if (context_copy(place->context, &order, &result, &err) < 0)
        fail_msg("%s", err.message);
    read_archive(archive, &found);
    assert_string_equal(text_string(&found), expected);
    order = (struct context_order){.sources = sources, .count = count, .archive = -EBADF};
    assert_int_equal(context_copy(place->context, &order, &seen, &err), 0);
    assert_memory_equal(seen.digest, result.digest, sizeof(seen.digest));
    return result;
}

static void files_and_the_content_of_folders_are_copied(void **state)
{
    const char *const both[] = {"b.txt", "src/"}, *const one[] = {"./a.txt"},
                      *const log[] = {"log"};
    struct place place;

    (void) state;
    make_place(&place);
    open_place(&place);
    assert_false(assert_copies(&place, both, 2, NULL,
                               "0 b.txt 755 5:6=BB\n"
                               "5 deep/ 700 5:6=\n"
                               "0 deep/two.c 600 5:6=2\n"
                               "2 link 777 5:6 > /etc/passwd=\n"
                               "0 one.c 644 5:6=1\n")
                     .is_one_file);
    assert_true(assert_copies(&place, one, 1, "z", "0 z 644 5:6=A\n").is_one_file);
    assert_copies(&place, log, 1, NULL, "0 keep 644 5:6=k\n");
    remove_place(&place);
}

static void patterns_name_what_is_there(void **state)
{
    const char *const texts[] = {"*.txt"}, *const deep[] = {"s*/d?ep/*.c"};
    const char *const all[] = {"."};
    struct place place;

    (void) state;
    make_place(&place);
    put(&place, ".dockerignore", "*\n!log/keep\n!*.txt\n!src/deep\n", 0644);
    open_place(&place);
    assert_copies(&place, texts, 1, NULL, "0 a.txt 644 5:6=A\n0 b.txt 755 5:6=BB\n");
    assert_copies(&place, deep, 1, NULL, "0 two.c 600 5:6=2\n");
    assert_copies(&place, all, 1, NULL,
                  "0 a.txt 644 5:6=A\n0 b.txt 755 5:6=BB\n0 log/keep 644 5:6=k\n"
                  "5 src/deep/ 700 5:6=\n0 src/deep/two.c 600 5:6=2\n");
    remove_place(&place);
}

static void folders_above_a_copy_are_made_and_whose_it_is(void **state)
{
    const char *const sources[] = {"src/deep", "a.txt"};
    AUTO(text) struct text found = TEXT_INIT(65536);
    AUTO(close) int archive = memfd_create("archive", MFD_CLOEXEC);
    struct context_order order = {
        .sources = sources, .count = 2, .below = "x/y", .uid = 5, .gid = 6, .archive = archive};
    struct context_result made, plain;
    struct error err = ERROR_INIT;
    struct place place;

    (void) state;
    make_place(&place);
    open_place(&place);
    assert_int_equal(context_copy(place.context, &order, &made, &err), 0);
    read_archive(archive, &found);
    assert_string_equal(text_string(&found), "5 x/ 755 5:6=\n5 x/y/ 755 5:6=\n"
                                             "0 x/y/two.c 600 5:6=2\n0 x/y/a.txt 644 5:6=A\n");
    order = (struct context_order){.sources = sources, .count = 2, .archive = -EBADF};
    assert_int_equal(context_copy(place.context, &order, &plain, &err), 0);
    assert_memory_equal(made.digest, plain.digest, sizeof(made.digest));
    remove_place(&place);
}

static void digests_tell_what_is_in_it(void **state)
{
    const char *const source[] = {"src"};
    struct context_order order = {.sources = source, .count = 1, .archive = -EBADF};
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct context_result first, second;
    struct error err = ERROR_INIT;
    struct place place;

    (void) state;
    make_place(&place);
    open_place(&place);
    assert_int_equal(context_copy(place.context, &order, &first, &err), 0);
    assert_int_equal(utimensat(place.folder, "src/one.c", times, 0), 0);
    assert_int_equal(context_copy(place.context, &order, &second, &err), 0);
    assert_memory_equal(first.digest, second.digest, sizeof(first.digest));
    put(&place, "src/one.c", "2", 0644);
    assert_int_equal(context_copy(place.context, &order, &second, &err), 0);
    assert_memory_not_equal(first.digest, second.digest, sizeof(first.digest));
    put(&place, "src/one.c", "1", 0755);
    assert_int_equal(context_copy(place.context, &order, &second, &err), 0);
    assert_memory_not_equal(first.digest, second.digest, sizeof(first.digest));
    remove_place(&place);
}

static void links_at_the_top_are_not_read(void **state)
{
    AUTO(free) char *bytes = NULL;
    struct error err = ERROR_INIT;
    struct place place;
    size_t length;

    (void) state;
    make_place(&place);
    assert_int_equal(symlinkat("/etc/passwd", place.folder, "link"), 0);
    open_place(&place);
    assert_int_equal(context_read(place.context, "link", 100000, &bytes, &length, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(context_read(place.context, "none", 100000, &bytes, &length, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(context_read(place.context, "src", 100000, &bytes, &length, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(context_read(place.context, "b.txt", 1, &bytes, &length, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_int_equal(context_read(place.context, "b.txt", 2, &bytes, &length, &err), 0);
    assert_int_equal(length, 2);
    assert_string_equal(bytes, "BB");
    assert_int_equal(unlinkat(place.folder, ".dockerignore", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", place.folder, ".dockerignore"), 0);
    assert_null(context_open(place.path, &err));
    assert_int_equal(err.code, ERR_INVALID);
    remove_place(&place);
}

static void assert_refused(const struct place *place, const char *source, enum err_code code)
{
    const struct context_order order = {.sources = &source, .count = 1, .archive = -EBADF};
    struct context_result result;
    struct error err = ERROR_INIT;

    assert_int_equal(context_copy(place->context, &order, &result, &err), -1);
    assert_int_equal(err.code, code);
}

static void what_is_not_there_or_leads_out_is_refused(void **state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct place place;

    (void) state;
    make_place(&place);
    (void) snprintf(name.sun_path, sizeof(name.sun_path), "%s/log/socket", place.path);
    assert_int_equal(bind(listener, (const struct sockaddr *) &name, sizeof(name)), 0);
    (void) close(listener);
    open_place(&place);
    assert_refused(&place, "none", ERR_NOT_FOUND);
    assert_refused(&place, "*.none", ERR_NOT_FOUND);
    assert_refused(&place, "log/x.log", ERR_NOT_FOUND);
    assert_refused(&place, "src/link/x", ERR_NOT_FOUND); /* links are not followed */
    assert_refused(&place, "../x", ERR_INVALID);
    assert_refused(&place, "src/../../x", ERR_INVALID);
    assert_refused(&place, "log", ERR_INVALID);
    remove_place(&place);
}

/* Also where a later line takes something else back. */
static void what_is_left_out_is_not_there(void **state)
{
    const char *const log[] = {"log"};
    struct place place;

    (void) state;
    make_place(&place);
    put(&place, ".dockerignore", "*\n!log/keep\n", 0644);
    open_place(&place);
    assert_refused(&place, "a.txt", ERR_NOT_FOUND);
    assert_refused(&place, "*.txt", ERR_NOT_FOUND);
    assert_refused(&place, "src", ERR_NOT_FOUND);
    assert_refused(&place, "log/x.log", ERR_NOT_FOUND);
    assert_copies(&place, log, 1, NULL, "0 keep 644 5:6=k\n");
    remove_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_that_names_a_path_decides),
        cmocka_unit_test(two_stars_go_through_folders_wherever_they_stand),
        cmocka_unit_test(lines_that_are_no_patterns_are_refused),
        cmocka_unit_test(files_and_the_content_of_folders_are_copied),
        cmocka_unit_test(patterns_name_what_is_there),
        cmocka_unit_test(folders_above_a_copy_are_made_and_whose_it_is),
        cmocka_unit_test(digests_tell_what_is_in_it),
        cmocka_unit_test(links_at_the_top_are_not_read),
        cmocka_unit_test(what_is_not_there_or_leads_out_is_refused),
        cmocka_unit_test(what_is_left_out_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
