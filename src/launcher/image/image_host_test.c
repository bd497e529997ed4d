#include <string.h>

#include "launcher/image/image_host.h"
#include "launcher/root_test_kit.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"
#include "sys/file/sys_tree.h"

static struct error err;

/* A small host of our own, with things that must not get out. */

static void write_text(const char *folder, const char *path, const char *text, mode_t mode)
{
    char full[256], *slash;
    FILE *file;

    (void) snprintf(full, sizeof(full), "%s/%s", folder, path);
    slash = strrchr(full, '/');
    *slash = '\0';
    assert_int_equal(sys_file_make_directories(AT_FDCWD, full, 0755), 0);
    *slash = '/';
    file = fopen(full, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(full, mode), 0);
}

static void make_link(const char *folder, const char *path, const char *target)
{
    char full[256];

    (void) snprintf(full, sizeof(full), "%s/%s", folder, path);
    assert_int_equal(symlink(target, full), 0);
}

static void make_host(const char *root)
{
    write_text(root, "usr/bin/program", "x", 0755);
    write_text(root, "usr/local/bin/secret-tool", "x", 0755);
    write_text(root, "usr/local/share/ca-certificates/own.crt", "own certificate", 0644);
    write_text(root, "var/lib/dpkg/status", "Package: one\n", 0644);
    write_text(root, "root/.ssh/id", "x", 0600);
    write_text(root, "etc/shadow", "root:secret", 0640);
    write_text(root, "etc/gitconfig", "token", 0644);
    write_text(root, "etc/mime.types", "text/plain txt", 0644);
    write_text(root, "etc/services", "not for all", 0640);
    write_text(root, "etc/java-17-openjdk/deep/jvm.cfg", "-server", 0644);
    write_text(root, "etc/ssl/certs/good.pem", "certificate", 0644);
    write_text(root, "etc/ssl/certs/bad.pem", "-----BEGIN PRIVATE KEY-----", 0644);
    write_text(root, "etc/ssl/private/key", "-----BEGIN PRIVATE KEY-----", 0644);
    make_link(root, "etc/ssl/certs/own.pem", "/usr/local/share/ca-certificates/own.crt");
    make_link(root, "etc/ssl/certs/stolen.pem", "/root/.ssh/id");
    make_link(root, "etc/ssl/certs/hash.0", "good.pem");
    write_text(root, "etc/alternatives/README", "x", 0644);
    make_link(root, "etc/alternatives/awk", "/usr/bin/mawk");
    make_link(root, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
    make_link(root, "bin", "usr/bin");
    write_text(root, "sbin/old", "x", 0755);
}

static bool exists(int lower, const char *path)
{
    return faccessat(lower, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect_text(int lower, const char *path, const char *text)
{
    AUTO(free) char *data = NULL;
    size_t length;

    assert_int_equal(sys_file_read_all(lower, path, 4096, &data, &length), 0);
    assert_string_equal(data, text);
}

static void expect_link(int lower, const char *path, const char *target)
{
    char text[256];
    ssize_t length = readlinkat(lower, path, text, sizeof(text) - 1);

    assert_true(length > 0);
    text[length] = '\0';
    assert_string_equal(text, target);
}

struct place {
    char folder[SCRATCH_SIZE];
    char host[SCRATCH_SIZE + 8];
    char images[SCRATCH_SIZE + 8];
    struct image_registry *registry; /* owned */
    struct image_host_options options;
};

static void make_place(struct place *place)
{
    make_scratch(place->folder);
    (void) snprintf(place->host, sizeof(place->host), "%s/host", place->folder);
    (void) snprintf(place->images, sizeof(place->images), "%s/images", place->folder);
    make_host(place->host);
    assert_int_equal(image_registry_open(place->images, &place->registry, &err), 0);
    place->options = (struct image_host_options){.root = place->host};
}

static void end_place(struct place *place)
{
    image_registry_free(place->registry);
    remove_scratch(place->folder);
}

static void prepare(struct place *place, struct image_view *ret_view)
{
    if (image_host_prepare(place->registry, &place->options, &err) < 0 ||
        image_open(place->registry, IMAGE_HOST, ret_view, &err) < 0)
        fail_msg("%s", err.message);
}

static void only_what_is_public_comes_in(void **state)
{
    static const char *const hidden[] = {"etc/shadow",
                                         "etc/gitconfig",
                                         "etc/services",
                                         "etc/ssl/private",
                                         "root/.ssh",
                                         "etc/ssl/certs/bad.pem",
                                         "etc/ssl/certs/stolen.pem",
                                         "usr/local",
                                         "var/lib/dpkg"};
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;

    (void) state;
    if (geteuid() != 0)
        skip_without("root, to give files away");
    make_place(&place);
    place.options.nameserver = "192.0.2.53";
    (void) umask(077);
    prepare(&place, &view);
    (void) umask(022);
    for (size_t i = 0; i < ARRAY_COUNT(hidden); i++) {
        if (exists(view.lowers[0], hidden[i]))
            fail_msg("'%s' is in the image", hidden[i]);
    }
    expect_text(view.lowers[0], "etc/mime.types", "text/plain txt");
    expect_text(view.lowers[0], "etc/java-17-openjdk/deep/jvm.cfg", "-server");
    expect_text(view.lowers[0], "etc/ssl/certs/own.pem", "own certificate");
    expect_text(view.lowers[0], "etc/resolv.conf", "nameserver 192.0.2.53\n");
    expect_link(view.lowers[0], "etc/ssl/certs/hash.0", "good.pem");
    expect_link(view.lowers[0], "etc/alternatives/awk", "/usr/bin/mawk");
    expect_link(view.lowers[0], "etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
    expect_link(view.lowers[0], "home/user/workspace", "/workspace");
    expect_link(view.lowers[0], "home/workspace", "/workspace");
    expect_link(view.lowers[0], "bin", "usr/bin");
    end_place(&place);
}

static void modes_do_not_depend_on_the_umask(void **state)
{
    static const struct {
        const char *path;
        mode_t mode;
        uid_t owner;
    } expected[] = {{".", S_IFDIR | 0755, 0},
                    {"tmp", S_IFDIR | 01777, 0},
                    {"root", S_IFDIR | 0700, 0},
                    {"home/user", S_IFDIR | 0755, 1000},
                    {"workspace", S_IFDIR | 0777, 0},
                    {"etc/passwd", S_IFREG | 0644, 0},
                    {"etc/ssl/certs", S_IFDIR | 0755, 0}};
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;

    (void) state;
    if (geteuid() != 0)
        skip_without("root, to give files away");
    make_place(&place);
    (void) umask(077);
    prepare(&place, &view);
    (void) umask(022);
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        struct stat status;

        assert_int_equal(fstatat(view.lowers[0], expected[i].path, &status, 0), 0);
        assert_int_equal(status.st_mode, expected[i].mode);
        assert_int_equal(status.st_uid, expected[i].owner);
    }
    end_place(&place);
}

static void the_mounts_follow_the_host_and_the_options(void **state)
{
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT, local = IMAGE_VIEW_INIT;

    (void) state;
    if (geteuid() != 0)
        skip_without("root, to give files away");
    make_place(&place);
    prepare(&place, &view);
    assert_int_equal(view.mount_count, 3);
    assert_string_equal(view.mounts[0].target, "usr");
    assert_true(view.mounts[0].read_only && view.mounts[0].source >= 0);
    assert_string_equal(view.mounts[1].target, "usr/local");
    assert_string_equal(view.mounts[1].inside, "var/usrlocal");
    assert_true(view.mounts[1].source < 0 && !view.mounts[1].read_only);
    /* Not a link there: mounted here. */
    assert_string_equal(view.mounts[2].target, "sbin");
    assert_true(view.mounts[2].read_only);
    place.options.with_usr_local = true;
    prepare(&place, &local);
    assert_string_equal(local.mounts[1].target, "usr/local");
    assert_true(local.mounts[1].read_only && local.mounts[1].source >= 0);
    assert_string_not_equal(view.digest, local.digest);
    end_place(&place);
}

static void count_skeletons(const struct place *place, int expected)
{
    char path[SCRATCH_SIZE + 32];
    struct stat status;

    (void) snprintf(path, sizeof(path), "%s/.host", place->images);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_nlink - 2, expected);
}

static void a_skeleton_serves_one_package_state(void **state)
{
    struct place place;
    AUTO(image_view) struct image_view first = IMAGE_VIEW_INIT;
    AUTO(image_view) struct image_view second = IMAGE_VIEW_INIT;
    AUTO(image_view) struct image_view third = IMAGE_VIEW_INIT;
    struct stat one, two;

    (void) state;
    if (geteuid() != 0)
        skip_without("root, to give files away");
    make_place(&place);
    prepare(&place, &first);
    prepare(&place, &second);
    assert_string_equal(first.digest, second.digest);
    assert_int_equal(fstat(first.lowers[0], &one), 0);
    assert_int_equal(fstat(second.lowers[0], &two), 0);
    assert_int_equal(one.st_ino, two.st_ino);
    write_text(place.host, "var/lib/dpkg/status", "Package: two\n", 0644);
    prepare(&place, &third);
    assert_string_not_equal(first.digest, third.digest);
    assert_int_equal(strlen(third.digest), IMAGE_DIGEST_SIZE - 1);
    count_skeletons(&place, 2);
    assert_int_equal(image_host_prune(place.registry, &err), 0);
    count_skeletons(&place, 1);
    assert_true(exists(third.lowers[0], "etc/passwd"));
    end_place(&place);
}

static void a_system_without_dpkg_has_an_identity_too(void **state)
{
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    char path[SCRATCH_SIZE + 64];

    (void) state;
    if (geteuid() != 0)
        skip_without("root, to give files away");
    make_place(&place);
    (void) snprintf(path, sizeof(path), "%s/var/lib/dpkg/status", place.host);
    assert_int_equal(unlink(path), 0);
    prepare(&place, &view);
    assert_int_equal(strlen(view.digest), IMAGE_DIGEST_SIZE - 1);
    end_place(&place);
}

/* The real thing: this machine's programs in a sandbox's root. */

static char real_place[SCRATCH_SIZE];

/* The programs inside run without /proc and /dev, which are not the image's. */
static int run_inside(const char *const *arguments)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root",
                                              NULL};
    int status = 0;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        (void) execve(arguments[0], (char *const *) arguments, (char *const *) environment);
        _exit(126);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_script(const char *script)
{
    return run_inside((const char *const[]){"/bin/bash", "-c", script, NULL});
}

struct inside {
    int user_namespace;
    int lower;
    int disk;
    int mounts[IMAGE_MOUNTS_MAX]; /* detached */
    struct image_view view;
};

static void attach_mounts(struct inside *inside)
{
    AUTO(close) int root = open("/tmp/root", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < inside->view.mount_count; i++) {
        const struct image_mount *mount = &inside->view.mounts[i];
        AUTO(close)
        int place = sys_open_beneath(root, mount->target, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
        int source = inside->mounts[i];

        CHECK(place >= 0);
        if (source < 0)
            source = sys_mount_copy(root, mount->inside, false);
        CHECK(source >= 0);
        CHECK_EQUAL(sys_mount_attach(source, place, ""), 0);
    }
}

static void look_around_inside(void *context)
{
    struct inside *inside = context;
    struct stat status;

    enter_test_user_namespace(inside->user_namespace);
    mount_test_overlay(inside->lower, inside->disk);
    attach_mounts(inside);
    pivot_test_root();
    CHECK_EQUAL(run_inside((const char *const[]){"/bin/true", NULL}), 0);
    CHECK_EQUAL(run_script("exit 7"), 7);
    CHECK_EQUAL(stat("/usr/bin/env", &status), 0);
    CHECK_EQUAL(status.st_uid, 0);
    CHECK_EQUAL(run_script("[ \"$(id -un)\" = root ] && [ ~user = /home/user ]"), 0);
    if (access("/usr/bin/python3", X_OK) == 0)
        CHECK_EQUAL(
            run_inside((const char *const[]){"/usr/bin/python3", "-c",
                                             "import ssl, json; open('/workspace/x', 'w')", NULL}),
            0);
    if (access("/usr/bin/mawk", X_OK) == 0)
        CHECK_EQUAL(run_script("[ \"$(echo a b | awk '{print $2}')\" = b ]"), 0);
    CHECK_EQUAL(run_script("echo x > /home/user/workspace/file && [ -s /workspace/file ] && "
                           "[ -s /home/workspace/file ]"),
                0);
    CHECK_EQUAL(open("/usr/bin/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0755), -1);
    CHECK_EQUAL(errno, EROFS);
    CHECK_EQUAL(run_script("printf '#!/bin/sh\\nexit 5\\n' > /usr/local/bin/mine && "
                           "chmod +x /usr/local/bin/mine && mine"),
                5);
    CHECK_EQUAL(run_script("shopt -s nullglob dotglob; set -- /root/* /opt/* /srv/* /var/lib/* "
                           "/tmp/* /home/user/*; [ $# -eq 1 ]"),
                0);
    CHECK_EQUAL(access("/etc/shadow", F_OK), -1);
    CHECK_EQUAL(run_script("echo changed > /etc/hosts && rm /etc/mime.types || true; "
                           "[ \"$(< /etc/hosts)\" = changed ]"),
                0);
}

static void make_disk_folders(void)
{
    char path[SCRATCH_SIZE + 16];

    (void) snprintf(path, sizeof(path), "%s/disk/u", real_place);
    CHECK_EQUAL(sys_file_make_directories(AT_FDCWD, path, 0755), 0);
    CHECK_EQUAL(chmod(path, 0755), 0);
    (void) snprintf(path, sizeof(path), "%s/disk/w", real_place);
    CHECK_EQUAL(mkdir(path, 0700), 0);
}

static void live_in_the_host_image(void)
{
    struct image_host_options options = {.root = NULL};
    AUTO(image_registry) struct image_registry *registry = NULL;
    struct inside inside = {.view = IMAGE_VIEW_INIT};
    char images[SCRATCH_SIZE + 16], disk[SCRATCH_SIZE + 16];
    AUTO(close) int folder = -EBADF;

    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
        _exit(CHILD_UNABLE);
    (void) snprintf(images, sizeof(images), "%s/images", real_place);
    (void) snprintf(disk, sizeof(disk), "%s/disk", real_place);
    CHECK_EQUAL(image_registry_open(images, &registry, &err), 0);
    CHECK_EQUAL(image_host_prepare(registry, &options, &err), 0);
    CHECK_EQUAL(image_open(registry, IMAGE_HOST, &inside.view, &err), 0);
    make_disk_folders();
    folder = open(disk, O_PATH | O_DIRECTORY | O_CLOEXEC);
    leave_chroot();
    CHECK_EQUAL(sys_mount_path_propagate("/", MS_PRIVATE, true), 0);
    inside.user_namespace = make_test_user_namespace();
    inside.lower = make_test_lower(inside.view.lowers[0], inside.user_namespace);
    inside.disk = sys_mount_copy(folder, "", false);
    CHECK_EQUAL(sys_mount_set_id_map(inside.disk, inside.user_namespace), 0);
    for (size_t i = 0; i < inside.view.mount_count; i++)
        inside.mounts[i] =
            inside.view.mounts[i].source < 0
                ? -EBADF
                : make_test_lower(inside.view.mounts[i].source, inside.user_namespace);
    run_forked(look_around_inside, &inside);
}

/* The skeleton and the disk need a filesystem that can be idmapped, which a tmpfs is not before
 * Linux 6.3: hence no private /tmp. What the child leaves is deleted by its parent. */
static void this_machines_programs_run_in_the_image(void **state)
{
    (void) state;
    make_scratch_in(SCRATCH_USUAL, real_place);
    run_in_child(live_in_the_host_image, NEEDS_ROOT);
}

static int remove_real_place(void **state)
{
    AUTO(close) int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void) state;
    return sys_tree_delete(parent, strrchr(real_place, '/') + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_public_comes_in),
        cmocka_unit_test(modes_do_not_depend_on_the_umask),
        cmocka_unit_test(the_mounts_follow_the_host_and_the_options),
        cmocka_unit_test(a_skeleton_serves_one_package_state),
        cmocka_unit_test(a_system_without_dpkg_has_an_identity_too),
        cmocka_unit_test_teardown(this_machines_programs_run_in_the_image, remove_real_place),
    };

    return cmocka_run_group_tests_name("image_host", tests, NULL, NULL);
}
