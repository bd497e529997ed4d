#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "launcher/host/host_mounts.h"
#include "sys/process/sys_namespace.h"
#include "sys/sys_test.h"

#define KEPT "/tmp/kept"

/* Whether a namespace is mounted at that name. */
static bool is_namespace(int folder, const char *name)
{
    AUTO(close) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    struct statfs filesystem;

    CHECK(fd >= 0);
    CHECK_EQUAL(fstatfs(fd, &filesystem), 0);
    return filesystem.f_type == NSFS_MAGIC;
}

/* A host that shares its mounts, or not, with a file to keep a namespace on. */
static void make_host(unsigned long propagation)
{
    AUTO(close) int file = -EBADF;

    enter_private_mounts();
    CHECK_EQUAL(sys_mount_path_propagate("/", propagation, true), 0);
    file = open(KEPT, O_RDONLY | O_CREAT | O_CLOEXEC, 0400);
    CHECK(file >= 0);
}

static int unmount_kept(void)
{
    return sys_mount_unmount(KEPT, SYS_UNMOUNT_DETACH);
}

/* In a launcher: leaves, keeps a namespace, looks, and perhaps drops it. */
static void be_launcher(bool drops)
{
    AUTO(host_mounts) struct host_mounts host = HOST_MOUNTS_INIT;
    AUTO(close) int network = sys_namespace_open(0, "net"), folder = -EBADF, plain = -EBADF;
    struct error err = ERROR_INIT;

    CHECK_EQUAL(host_mounts_leave(&host, &err), 0);
    CHECK_EQUAL(mkdir("/tmp/ours", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "ours", "/tmp/ours", 0, NULL), 0);
    plain = open(KEPT, O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL(host_mounts_keep_namespace(&host, plain, KEPT), -EINVAL);
    CHECK_EQUAL(host_mounts_drop_namespace(&host, KEPT), -EINVAL);
    CHECK_EQUAL(host_mounts_keep_namespace(&host, network, KEPT), 0);
    CHECK_EQUAL(host_mounts_keep_namespace(&host, network, "/tmp/none"), -ENOENT);
    folder = host_mounts_open_folder(&host, "/tmp");
    CHECK(folder >= 0 && is_namespace(folder, "kept"));
    CHECK_EQUAL(host_mounts_open_folder(&host, "/tmp/none"), -ENOENT);
    if (drops)
        CHECK_EQUAL(host_mounts_drop_namespace(&host, KEPT), 0);
    CHECK(is_namespace(folder, "kept") == !drops);
    _exit(0);
}

static void run_launcher(bool drops)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        be_launcher(drops);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(status, 0);
}

/* The host has the namespace, and nothing else that its launcher mounted. */
static void look_at_host(unsigned long propagation)
{
    struct stat above, place;

    make_host(propagation);
    run_launcher(false);
    CHECK(is_namespace(AT_FDCWD, KEPT));
    CHECK_EQUAL(stat("/tmp", &above) + stat("/tmp/ours", &place), 0);
    CHECK_EQUAL(place.st_dev, above.st_dev);
    CHECK_EQUAL(unmount_kept(), 0);
    CHECK_EQUAL(rmdir("/tmp/ours"), 0);
    run_launcher(true);
    CHECK(!is_namespace(AT_FDCWD, KEPT));
    CHECK_EQUAL(unmount_kept(), -EINVAL);
}

static void on_shared_mounts(void)
{
    look_at_host(MS_SHARED);
}

static void on_private_mounts(void)
{
    look_at_host(MS_PRIVATE);
}

static void the_host_sees_a_kept_namespace_and_nothing_else(void **state)
{
    (void) state;
    run_in_child(on_shared_mounts, NEEDS_MOUNTS);
    run_in_child(on_private_mounts, NEEDS_MOUNTS);
}

static void stay(void)
{
    AUTO(close) int network = sys_namespace_open(0, "net"), folder = -EBADF;

    make_host(MS_SHARED);
    CHECK_EQUAL(host_mounts_keep_namespace(NULL, network, KEPT), 0);
    folder = host_mounts_open_folder(NULL, "/tmp");
    CHECK(is_namespace(folder, "kept"));
    CHECK_EQUAL(host_mounts_drop_namespace(NULL, KEPT), 0);
    CHECK(!is_namespace(folder, "kept"));
}

static void who_has_not_left_uses_its_own_mounts(void **state)
{
    (void) state;
    run_in_child(stay, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_sees_a_kept_namespace_and_nothing_else),
        cmocka_unit_test(who_has_not_left_uses_its_own_mounts),
    };

    return cmocka_run_group_tests_name("host_mounts", tests, NULL, NULL);
}
