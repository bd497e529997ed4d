#include <string.h>
#include <sys/mman.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "json/json_read.h"
#include "keeper/archive/archive_make.h"
#include "keeper/squash/squash_image.h"
#include "keeper/tree/tree_test_kit.h"

#define NAMES_MAX ((size_t) 4096)

struct fixture {
    char path[SCRATCH_SIZE];
    int view; /* owned, like the next */
    int file;
    struct error err;
    json_t *archived; /* owned: what was said at the end */
};

static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){.file = -EBADF};
    make_scratch(fixture->path);
    fixture->view = open_place(AT_FDCWD, fixture->path);
}

static void tear_down(struct fixture *fixture)
{
    json_decref(fixture->archived);
    (void) fd_close(fixture->file);
    CHECK_EQUAL(sys_tree_empty(fixture->view), 0);
    (void) close(fixture->view);
    assert_int_equal(rmdir(fixture->path), 0);
}

static int file_of(const char *text)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQUAL(sys_file_pwrite_full(fd, text, strlen(text), 0), 0);
    return fd;
}

/* The line at the end, when that is the outcome; else NULL. */
static json_t *outcome(const char *said)
{
    size_t length = strlen(said), start = 0;
    json_t *line;

    for (size_t i = 0; i + 1 < length; i++)
        if (said[i] == '\n')
            start = i + 1;
    line = json_read(said + start, length - start, NULL, NULL);
    if (json_object_get(line, "archived"))
        return line;
    json_decref(line);
    return NULL;
}

static int make(struct fixture *fixture, const char *options)
{
    int input = file_of(options);
    char *said;

    (void) fd_close(fixture->file);
    fixture->file = file_of("");
    json_decref(fixture->archived);
    error_clear(&fixture->err);
    said = SAID(archive_make(fixture->view, input, fixture->file, output, &fixture->err));
    fixture->archived = outcome(said);
    CHECK((fixture->archived != NULL) == (said_result == 0));
    free(said);
    (void) close(input);
    return said_result;
}

static int64_t told(const struct fixture *fixture, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(fixture->archived, "archived"), key));
}

/* The names in a folder of the image, with what is below them, each with a space behind it. */
static void add_names(struct squash_image *image, uint64_t place, struct text *names)
{
    struct squash_inode inode;
    struct squash_folder folder;
    struct error err;

    CHECK_EQUAL(squash_image_inode(image, place, &inode, &err), 0);
    squash_folder_init(&folder, &inode);
    while (squash_folder_next(image, &folder, &err) == 1) {
        text_append(names, folder.name);
        text_append(names, folder.type == SQUASH_FOLDER ? "( " : " ");
        if (folder.type == SQUASH_FOLDER) {
            add_names(image, folder.place, names);
            text_append(names, ") ");
        }
    }
}

static void assert_names(const struct fixture *fixture, const char *expected)
{
    AUTO(text) struct text names = TEXT_INIT(NAMES_MAX);
    struct squash_image *image;
    struct error err;

    CHECK_EQUAL(squash_image_new(fixture->file, &image, &err), 0);
    add_names(image, squash_image_superblock(image)->root, &names);
    squash_image_free(image);
    assert_string_equal(text_string(&names), expected);
}

static void the_report_tells_what_is_in_the_file(void **state)
{
    uint8_t digest[SHA256_SIZE];
    char hex[HEX_TEXT_SIZE(SHA256_SIZE)];
    struct fixture fixture;
    struct stat status;
    AUTO(free) char *bytes = NULL;
    int work, below;

    (void) state;
    set_up(&fixture);
    work = make_place(fixture.view, "work");
    below = make_place(work, "below");
    make_content(work, "a", "12345");
    make_content(below, "b", "123");
    CHECK_EQUAL(symlinkat("a", work, "link"), 0);
    (void) close(work);
    (void) close(below);
    assert_int_equal(make(&fixture, "{\"folder\":\"/work\"}"), 0);
    CHECK_EQUAL(fstat(fixture.file, &status), 0);
    assert_int_equal(told(&fixture, "files"), 3);
    assert_int_equal(told(&fixture, "folders"), 2);
    assert_int_equal(told(&fixture, "bytes"), 8);
    assert_int_equal(told(&fixture, "size"), status.st_size);
    bytes = malloc((size_t) status.st_size);
    CHECK_EQUAL(sys_file_pread_full(fixture.file, bytes, (size_t) status.st_size, 0),
                status.st_size);
    sha256_bytes(bytes, (size_t) status.st_size, digest);
    (void) hex_encode(digest, sizeof(digest), hex);
    assert_string_equal(hex, json_string_value(json_object_get(
                                 json_object_get(fixture.archived, "archived"), "sha256")));
    assert_names(&fixture, "a below( b ) link ");
    tear_down(&fixture);
}

static void options_that_are_wrong_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"folder\":\"work\"}",
        "{\"folder\":5}",
        "{\"folder\":\"/work\",\"other\":1}",
        "{\"folder\":\"/work\",\"compression\":\"lzo\"}",
        "{\"folder\":\"/work\",\"compression\":\"gzip\",\"level\":10}",
        "{\"folder\":\"/work\",\"threads\":0}",
        "{\"folder\":\"/work\",\"excludes\":[\"\"]}",
        "{\"folder\":\"/work\",\"excludes\":\"a\"}",
        "{\"folder\":\"/work/file\"}",
    };
    struct fixture fixture;
    int work;

    (void) state;
    set_up(&fixture);
    work = make_place(fixture.view, "work");
    make_content(work, "file", "");
    (void) close(work);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_int_equal(make(&fixture, wrong[i]), -1);
        assert_int_equal(fixture.err.code, ERR_INVALID);
    }
    assert_int_equal(make(&fixture, "{\"folder\":\"/nothing\"}"), -1);
    assert_int_equal(fixture.err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(fixture.err.message, "/nothing"));
    tear_down(&fixture);
}

/* A link in the sandbox leads to what the sandbox would find there. */
static void a_link_to_the_folder_does_not_lead_out_of_the_view(void **state)
{
    struct fixture fixture;
    int work;

    (void) state;
    set_up(&fixture);
    work = make_place(fixture.view, "work");
    make_content(work, "mine", "");
    (void) close(work);
    CHECK_EQUAL(symlinkat("/work", fixture.view, "absolute"), 0);
    CHECK_EQUAL(symlinkat("../../../../work", fixture.view, "above"), 0);
    CHECK_EQUAL(symlinkat("/etc", fixture.view, "host"), 0);
    assert_int_equal(make(&fixture, "{\"folder\":\"/absolute\"}"), 0);
    assert_names(&fixture, "mine ");
    assert_int_equal(make(&fixture, "{\"folder\":\"/above/\"}"), 0);
    assert_names(&fixture, "mine ");
    assert_int_equal(make(&fixture, "{\"folder\":\"/host\"}"), -1);
    assert_int_equal(fixture.err.code, ERR_NOT_FOUND);
    tear_down(&fixture);
}

static void what_is_ignored_is_left_out(void **state)
{
    struct fixture fixture;
    int work, folder;

    (void) state;
    set_up(&fixture);
    work = make_place(fixture.view, "work");
    make_content(work, ".gitignore", "*.o\n!keep.o\nbuild/\n");
    make_content(work, "a.c", "");
    make_content(work, "a.o", "");
    make_content(work, "keep.o", "");
    folder = make_place(work, "build");
    make_content(folder, "keep.o", "");
    (void) close(folder);
    folder = make_place(work, "src");
    make_content(folder, "b.o", "");
    make_content(folder, "node", "");
    (void) close(folder);
    (void) close(work);
    assert_int_equal(make(&fixture, "{\"folder\":\"/work\",\"gitignore\":true}"), 0);
    assert_names(&fixture, ".gitignore a.c keep.o src( node ) ");
    assert_int_equal(told(&fixture, "ignored"), 3);
    assert_int_equal(
        make(&fixture, "{\"folder\":\"/work\",\"excludes\":[\"s*\",\"build/keep.o\"]}"), 0);
    assert_names(&fixture, ".gitignore a.c a.o build( ) keep.o ");
    assert_int_equal(
        make(&fixture, "{\"folder\":\"/work\",\"gitignore\":true,\"excludes\":[\"node\"]}"), 0);
    assert_names(&fixture, ".gitignore a.c keep.o src( ) ");
    tear_down(&fixture);
}

static void a_folder_in_a_work_tree_is_under_the_rules_above_it(void **state)
{
    struct fixture fixture;
    int top, inner, folder;

    (void) state;
    set_up(&fixture);
    make_content(fixture.view, ".gitignore", "c\n"); /* above the work tree */
    top = make_place(fixture.view, "top");
    make_content(top, ".gitignore", "a\n/inner/deep/b\n");
    inner = make_place(top, "inner");
    folder = make_place(inner, "deep");
    make_content(folder, "a", "");
    make_content(folder, "b", "");
    make_content(folder, "c", "");
    assert_int_equal(make(&fixture, "{\"folder\":\"/top/inner/deep\",\"gitignore\":true}"), 0);
    assert_names(&fixture, "a b c "); /* no work tree: only its own rules count */
    (void) close(make_place(top, ".git"));
    assert_int_equal(make(&fixture, "{\"folder\":\"/top//inner/deep/\",\"gitignore\":true}"), 0);
    assert_names(&fixture, "c ");
    make_content(inner, ".gitignore", "!a\n");
    assert_int_equal(make(&fixture, "{\"folder\":\"/top/inner/deep\",\"gitignore\":true,"
                                    "\"excludes\":[\"deep/c\"]}"),
                     0);
    assert_names(&fixture, "a c ");
    (void) close(top);
    (void) close(inner);
    (void) close(folder);
    tear_down(&fixture);
}

static void times_that_do_not_fit_are_counted(void **state)
{
    static const struct timespec before[2] = {{-1000, 0}, {-1000, 0}};
    struct fixture fixture;

    (void) state;
    set_up(&fixture);
    make_content(fixture.view, "old", "");
    CHECK_EQUAL(utimensat(fixture.view, "old", before, 0), 0);
    assert_int_equal(make(&fixture, "{\"folder\":\"/\",\"compression\":\"xz\",\"level\":0}"), 0);
    assert_int_equal(told(&fixture, "times_changed"), 1);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_report_tells_what_is_in_the_file),
        cmocka_unit_test(options_that_are_wrong_are_refused),
        cmocka_unit_test(a_link_to_the_folder_does_not_lead_out_of_the_view),
        cmocka_unit_test(what_is_ignored_is_left_out),
        cmocka_unit_test(a_folder_in_a_work_tree_is_under_the_rules_above_it),
        cmocka_unit_test(times_that_do_not_fit_are_counted),
    };

    return cmocka_run_group_tests_name("archive_make", tests, NULL, NULL);
}
