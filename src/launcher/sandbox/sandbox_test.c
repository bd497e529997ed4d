/* A whole sandbox, from plan to agent. The agent is this very program, started from a memfd: it
 * looks around as PID 1 and answers what it saw on the socket it inherits. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/disk/disk_pool_test_kit.h"
#include "launcher/image/image_host.h"
#include "launcher/network/network_socket.h"
#include "launcher/sandbox/sandbox.h"
#include "launcher/wall/capability.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_namespace.h"

#define NEEDS_SANDBOX "a sandbox (root, user namespaces, idmapped mounts, btrfs on a loop device)"
#define PATIENCE_MS   10000
#define AGENT_SECONDS 20
#define PROGRAM_MAX   ((size_t) 64 << 20)
#define REPORT_MAX    4096

/* --- inside --------------------------------------------------------------------------------- */

static bool can_write(const char *path)
{
    AUTO(close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    return fd >= 0;
}

static void tell_status_line(FILE *out, const char *name)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");

    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, name, strlen(name)) == 0)
            (void) fprintf(out, "%s", line);
    }
    if (status)
        (void) fclose(status);
}

static void look_around(FILE *out)
{
    struct statvfs usr = {0};
    char host[64] = "";

    (void) gethostname(host, sizeof(host));
    (void) statvfs("/usr", &usr);
    (void) fprintf(out, "pid %d uid %d gid %d host %s\n", (int) getpid(), (int) getuid(),
                   (int) getgid(), host);
    tell_status_line(out, "CapEff:");
    tell_status_line(out, "Seccomp:");
    tell_status_line(out, "NoNewPrivs:");
    (void) fprintf(out, "workspace %d usr %d usr-read-only %d sys %d proc-sys %d\n",
                   can_write("/workspace/file"), can_write("/usr/file"),
                   (usr.f_flag & ST_RDONLY) != 0, can_write("/sys/file"),
                   can_write("/proc/sys/kernel/domainname"));
    (void) fprintf(out, "host-data %d unshare %d mount %d\n", access("/tmp/big", F_OK) == 0,
                   unshare(CLONE_NEWUSER) == 0,
                   syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, NULL) == 0);
    (void) fprintf(out, "null %d ptmx %d shm %d\n", can_write("/dev/null"),
                   access("/dev/ptmx", R_OK | W_OK) == 0, can_write("/dev/shm/file"));
}

static void time_is_up(int number)
{
    _exit(128 + number);
}

static int be_agent(void)
{
    int connection;
    FILE *out;

    /* A handler of our own: PID 1 does not die of signals it leaves to the default. */
    (void) signal(SIGALRM, time_is_up);
    (void) alarm(AGENT_SECONDS);
    (void) fcntl(3, F_SETFL, 0); /* the listener comes non-blocking */
    connection = accept4(3, NULL, NULL, SOCK_CLOEXEC);
    out = connection < 0 ? NULL : fdopen(connection, "w");
    if (!out)
        return 1;
    look_around(out);
    (void) fclose(out);
    for (;;)
        (void) pause();
}

/* --- outside -------------------------------------------------------------------------------- */

struct stage {
    struct sandbox_host host;
    struct cgroup_host *cgroups;
    struct seccomp_filter filter;
    struct process_limits limits;
    int sockets; /* folder */
};

static char base_name[64];

static int own_program(void)
{
    AUTO(free) char *bytes = NULL;
    size_t length = 0;
    int fd;

    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, "/proc/self/exe", PROGRAM_MAX, &bytes, &length), 0);
    fd = sys_memfd_from_bytes("agent", SYS_MEMFD_PROGRAM, bytes, length);
    CHECK(fd >= 0);
    CHECK_EQUAL(process_limit_hide_image(fd), 0);
    return fd;
}

static void set_stage(struct stage *stage)
{
    static const struct image_host_options image = {.with_usr_local = false};
    struct cgroup_host_options groups = {.name = base_name};
    struct id_range_options ids = {.folder = "/tmp/big/run"};

    enter_pool_place();
    *stage = (struct stage){.host = {.capabilities = capability_kept()}};
    stage->host.pool = open_pool(&small_pool);
    CHECK_OK(cgroup_host_open(&groups, &stage->cgroups, &test_error));
    CHECK_OK(image_registry_open("/tmp/big/images", &stage->host.images, &test_error));
    CHECK_OK(image_host_prepare(stage->host.images, &image, &test_error));
    CHECK_OK(id_range_table_open(&ids, &stage->host.ids, &test_error));
    CHECK_EQUAL(seccomp_filter_init(&stage->filter, SECCOMP_WALLS_ALL), 0);
    CHECK_EQUAL(process_limits_plan(&stage->limits, 0), 0);
    CHECK_OK(network_agent_folder("/tmp/big/agents", 0, 0, &stage->sockets, &test_error));
    stage->host.cgroups = stage->cgroups;
    stage->host.filter = &stage->filter;
    stage->host.limits = &stage->limits;
    stage->host.agent = own_program();
    stage->host.home = sys_namespace_open(0, "net");
    CHECK(stage->host.home >= 0);
}

static void strike_stage(struct stage *stage)
{
    cgroup_host_remove_base(stage->cgroups);
    cgroup_host_free(stage->cgroups);
    id_range_table_free(stage->host.ids);
    image_registry_free(stage->host.images);
    CHECK_OK(disk_pool_unmount(stage->host.pool, &test_error));
    (void) fd_close(stage->host.agent);
    (void) fd_close(stage->host.home);
    (void) fd_close(stage->sockets);
}

static struct sandbox_plan make_plan(void)
{
    return (struct sandbox_plan){
        .id = id_new(),
        .hostname = "box",
        .image = IMAGE_HOST,
        .limits = {.memory_bytes = 256 * MEGABYTE,
                   .pids = 64,
                   .cpu_millis = 1000,
                   .disk_bytes = 64 * MEGABYTE},
    };
}

static void start(struct stage *stage, const struct sandbox_plan *plan, struct sandbox *ret_sandbox)
{
    AUTO(close) int listener = -EBADF;

    CHECK_OK(network_agent_listen(stage->sockets, 0, 0, &plan->id, &listener, &test_error));
    CHECK_OK(sandbox_start(&stage->host, plan, listener, ret_sandbox, &test_error));
    CHECK_EQUAL(sys_file_poll(ret_sandbox->status, POLLIN, PATIENCE_MS) >= 0, true);
}

static void ask_agent(const struct id *id, char ret_report[static REPORT_MAX])
{
    struct sys_address address;
    char path[128];
    AUTO(close) int fd = -EBADF;
    ssize_t got;

    (void) snprintf(path, sizeof(path), "unix:/tmp/big/agents/%s.sock", id->text);
    CHECK_EQUAL(sys_address_parse(path, &address), 0);
    fd = sys_socket_create(&address);
    CHECK(fd >= 0);
    CHECK_EQUAL(sys_file_set_nonblocking(fd, false), 0);
    CHECK_EQUAL(sys_socket_connect(fd, &address), 0);
    got = sys_file_read_full(fd, ret_report, REPORT_MAX - 1);
    CHECK(got > 0);
    ret_report[got] = '\0';
}

static void check_says(const char *report, const char *words)
{
    if (strstr(report, words))
        return;
    (void) fprintf(stderr, "the agent does not say '%s' but:\n%s\n", words, report);
    _exit(1);
}

static void check_nothing_left(struct stage *stage, const struct id *id)
{
    struct id_range range;
    struct cgroup cgroup;
    struct disk disk = DISK_INIT;

    CHECK_EQUAL(id_range_find(stage->host.ids, id, &range, NULL), -1);
    CHECK_EQUAL(cgroup_adopt(stage->cgroups, id, &cgroup, NULL, NULL), -1);
    CHECK_EQUAL(disk_pool_open_disk(stage->host.pool, id, &disk, NULL), -1);
}

static void try_whole_life(void)
{
    struct stage stage;
    struct sandbox_plan plan = make_plan();
    struct sandbox sandbox = SANDBOX_INIT;
    char report[REPORT_MAX], caps[64];

    set_stage(&stage);
    start(&stage, &plan, &sandbox);
    CHECK_OK(sandbox_ready(&sandbox, &test_error));
    ask_agent(&plan.id, report);
    check_says(report, "pid 1 uid 0 gid 0 host box\n");
    (void) snprintf(caps, sizeof(caps), "CapEff:\t%016llx\n",
                    (unsigned long long) capability_kept());
    check_says(report, caps);
    check_says(report, "Seccomp:\t2\n");
    check_says(report, "NoNewPrivs:\t1\n");
    check_says(report, "workspace 1 usr 0 usr-read-only 1 sys 0 proc-sys 0\n");
    check_says(report, "host-data 0 unshare 0 mount 0\n");
    check_says(report, "null 1 ptmx 1 shm 1\n");
    CHECK_OK(sandbox_kill(&sandbox, PATIENCE_MS, &test_error));
    CHECK_OK(sandbox_remove(&stage.host, &sandbox, false, &test_error));
    sandbox_forget(&sandbox);
    check_nothing_left(&stage, &plan.id);
    strike_stage(&stage);
}

static void try_failures(void)
{
    struct stage stage;
    struct sandbox_plan plan = make_plan();
    struct sandbox sandbox = SANDBOX_INIT;

    set_stage(&stage);
    plan.image = "unknown";
    CHECK_EQUAL(sandbox_start(&stage.host, &plan, 0, &sandbox, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    check_nothing_left(&stage, &plan.id);

    plan = make_plan();
    (void) fd_close(stage.host.agent);
    stage.host.agent = sys_memfd_from_bytes("agent", SYS_MEMFD_PROGRAM, "no program", 10);
    start(&stage, &plan, &sandbox);
    CHECK_EQUAL(sandbox_ready(&sandbox, &test_error), -1);
    CHECK(strstr(test_error.message, "start the agent: Exec format error") != NULL);
    CHECK_OK(sandbox_kill(&sandbox, PATIENCE_MS, &test_error));
    CHECK_OK(sandbox_remove(&stage.host, &sandbox, false, &test_error));
    sandbox_forget(&sandbox);
    check_nothing_left(&stage, &plan.id);
    strike_stage(&stage);
}

/* Whatever became of the child: its sandboxes die, and their groups go. */
static int remove_groups(void **state)
{
    struct cgroup_host_options options = {.name = base_name};
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    AUTO(free) struct id *ids = NULL;
    size_t count = 0;

    (void) state;
    if (cgroup_host_open(&options, &host, NULL) < 0)
        return -1;
    (void) cgroup_list(host, &ids, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        struct cgroup cgroup;

        if (cgroup_adopt(host, &ids[i], &cgroup, NULL, NULL) == 0) {
            (void) cgroup_kill(&cgroup, PATIENCE_MS, NULL);
            (void) cgroup_remove(&cgroup, PATIENCE_MS, NULL);
        }
    }
    cgroup_host_remove_base(host);
    return 0;
}

static void the_agent_is_pid_1_behind_all_walls(void **state)
{
    (void) state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip_without("a program without sanitizers, which the walls do not let run");
#endif
    run_in_child(try_whole_life, NEEDS_SANDBOX);
}

static void a_failed_start_is_named_and_leaves_nothing(void **state)
{
    (void) state;
    run_in_child(try_failures, NEEDS_SANDBOX);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_agent_is_pid_1_behind_all_walls, remove_groups),
        cmocka_unit_test_teardown(a_failed_start_is_named_and_leaves_nothing, remove_groups),
    };

    if (argc > 1 && strcmp(argv[0], "burrow-agent") == 0)
        return be_agent();
    (void) snprintf(base_name, sizeof(base_name), "burrow-test-%d", (int) getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
