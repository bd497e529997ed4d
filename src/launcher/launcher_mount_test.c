/* Mounts that a daemon serves, by the protocol of a whole launcher. The server is a small one of
 * the test's own: its root is an empty folder, and whoever looks for "hang" waits for ever. */
#include <linux/fuse.h>
#include <linux/sched.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "launcher/fuse/fuse_mount.h"
#include "launcher/launcher_test_kit.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

#define PLACE       "/persist"
#define OWNER       7   /* of what servers have */
#define OWNED       200 /* no errno */
#define PATIENCE_MS 10000

static bool can_run(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void) printf("# skip: programs without sanitizers, which the walls do not let run\n");
    return false;
#endif
    if (geteuid() == 0 && fuse_mount_try() == 0)
        return true;
    (void) printf("# skip: root and FUSE\n");
    return false;
}

static int set_up(void **state)
{
    struct kit *kit = calloc(1, sizeof(*kit));

    *state = kit;
    if (!can_run())
        return 0;
    kit_make(kit);
    kit_start(kit);
    return 0;
}

static int tear_down(void **state)
{
    struct kit *kit = *state;

    if (kit->launcher) {
        (void) kit_stop(kit);
        kit_remove(kit);
    }
    free(kit);
    return 0;
}

#define NEEDS(kit)                                                                                 \
    do {                                                                                           \
        if (!(kit)->launcher)                                                                      \
            skip();                                                                                \
    } while (0)

/* --- a server -------------------------------------------------------------------------------- */

static void reply(int fuse, uint64_t unique, int error, const void *bytes, size_t length)
{
    struct fuse_out_header head = {
        .len = (uint32_t) (sizeof(head) + length), .error = error, .unique = unique};
    char message[512];

    memcpy(message, &head, sizeof(head));
    if (length)
        memcpy(message + sizeof(head), bytes, length);
    (void) !write(fuse, message, head.len);
}

static void greet(int fuse, const struct fuse_in_header *head, const struct fuse_init_in *in)
{
    struct fuse_init_out out = {.major = 7,
                                .minor = 38,
                                .max_readahead = in->max_readahead,
                                .max_write = 4096,
                                .flags = FUSE_INIT_EXT};

    reply(fuse, head->unique, 0, &out, sizeof(out));
}

/* A byte is told for everybody who looks for "hang" and now waits. */
static _Noreturn void serve(int fuse, int told)
{
    static char buffer[64 * 1024];
    struct fuse_attr_out root = {
        .attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 1, .uid = OWNER}};
    struct fuse_in_header head;

    while (read(fuse, buffer, sizeof(buffer)) > 0) {
        const char *body = buffer + sizeof(head);

        memcpy(&head, buffer, sizeof(head));
        if (head.opcode == FUSE_INIT)
            greet(fuse, &head, (const void *) body);
        else if (head.opcode == FUSE_GETATTR)
            reply(fuse, head.unique, 0, &root, sizeof(root));
        else if (head.opcode == FUSE_LOOKUP && strcmp(body, "hang") == 0)
            (void) !write(told, "!", 1);
        else if (head.opcode == FUSE_LOOKUP)
            reply(fuse, head.unique, -ENOENT, NULL, 0);
        else if (head.opcode != FUSE_FORGET && head.opcode != FUSE_INTERRUPT)
            reply(fuse, head.unique, -ENOSYS, NULL, 0);
    }
    _exit(0);
}

struct server {
    pid_t pid;
    int told; /* where it is heard */
};

/* A process that serves it, and alone has the descriptor. */
static struct server start_server(int fuse)
{
    struct server server;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    server = (struct server){.pid = fork(), .told = ends[0]};
    assert_true(server.pid >= 0);
    if (server.pid == 0) {
        int told = fcntl(ends[1], F_DUPFD, 5); /* where the next two do not overwrite it */

        (void) dup2(fuse, 3);
        (void) dup2(told, 4);
        (void) syscall(SYS_close_range, 5u, ~0u, 0);
        serve(3, 4);
    }
    (void) close(fuse);
    (void) close(ends[1]);
    return server;
}

/* The server has the question by then, so that whatever ends the mount breaks it off. */
static void wait_until_somebody_hangs(const struct server *server)
{
    struct pollfd wait = {.fd = server->told, .events = POLLIN};
    char byte;

    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_int_equal(read(server->told, &byte, 1), 1);
}

static void end_server(const struct server *server)
{
    (void) kill(server->pid, SIGKILL);
    assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
    (void) close(server->told);
}

/* --- questions ------------------------------------------------------------------------------- */

static struct wire_sandbox start_whole(struct kit *kit)
{
    struct wire_plan plan = kit_plan();
    struct kit_answer answer;

    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, &plan, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
    return answer.message.sandbox;
}

static struct wire_entry start_sandbox(struct kit *kit)
{
    return start_whole(kit).entry;
}

static void ask_open(struct kit *kit, const struct id *id, const char *place,
                     struct kit_answer *answer)
{
    struct wire_message message = {.number = WIRE_MESSAGE_OPEN_MOUNT, .open_mount = {.id = *id}};

    (void) snprintf(message.open_mount.place, sizeof(message.open_mount.place), "%s", place);
    kit_ask(kit, &message, answer);
}

static void ask_change(struct kit *kit, enum wire_number number, const struct id *id,
                       uint32_t mount, struct kit_answer *answer)
{
    struct wire_message message = {.number = number};

    if (number == WIRE_MESSAGE_ATTACH_MOUNT)
        message.attach_mount = (struct wire_mount){.id = *id, .mount = mount};
    else
        message.detach_mount = (struct wire_mount){.id = *id, .mount = mount};
    kit_ask(kit, &message, answer);
}

/* Its server. */
static struct server mount_it(struct kit *kit, const struct id *id, const char *place,
                              uint32_t *ret_number)
{
    struct kit_answer answer;
    struct server server;

    ask_open(kit, id, place, &answer);
    kit_expect(&answer, WIRE_MESSAGE_MOUNT_OPENED);
    assert_int_equal(answer.fd_count, 1);
    *ret_number = answer.message.mount_opened.mount;
    server = start_server(answer.fds[0]);
    ask_change(kit, WIRE_MESSAGE_ATTACH_MOUNT, id, *ret_number, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    return server;
}

static void ask_destroy(struct kit *kit, const struct id *id)
{
    struct kit_answer answer;

    kit_kill(kit, id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static size_t count_mounts(const struct wire_entry *sandbox, const char *place)
{
    unsigned int minors[8];

    return fuse_mount_find((pid_t) sandbox->pid, place, minors, 8);
}

/* A process of the sandbox that looks for a name in the mount; its exit status is the errno it got,
 * or OWNED for what belongs to the one whom servers say.
 * The parent is outside, and waits for it. */
static pid_t look_inside(const struct wire_entry *sandbox, const char *path)
{
    AUTO(close) int pidfd = sys_process_open((pid_t) sandbox->pid);
    pid_t pid;

    assert_true(pidfd >= 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct stat about;
        int status;
        pid_t inner;

        if (sys_namespace_enter(pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0)
            _exit(255);
        /* Also here: the launcher ends with the last copy of the conversation, while this waits. */
        (void) syscall(SYS_close_range, 3u, ~0u, 0);
        inner = fork();
        if (inner == 0) {
            /* The kernel asks a server only for those whom it can name to it. */
            if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
                _exit(252);
            _exit(stat(path, &about) < 0 ? errno : about.st_uid == OWNER ? OWNED : 0);
        }
        if (waitpid(inner, &status, 0) != inner)
            _exit(254);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 253);
    }
    return pid;
}

static int result_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int64_t now_ms(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- tests ----------------------------------------------------------------------------------- */

static void a_mount_is_seen_with_the_ids_of_the_sandbox(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct stat about;
    char path[64];
    uint32_t number;
    struct server server;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    server = mount_it(kit, &sandbox.id, PLACE "/deep", &number);
    (void) snprintf(path, sizeof(path), "/proc/%u/root" PLACE "/deep", sandbox.pid);
    /* Nobody outside, root included, can be made to wait for a server. */
    assert_int_equal(stat(path, &about), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(count_mounts(&sandbox, PLACE "/deep"), 1);
    assert_int_equal(result_of(look_inside(&sandbox, PLACE "/deep")), OWNED);
    assert_int_equal(result_of(look_inside(&sandbox, PLACE "/deep/x")), ENOENT);
    ask_destroy(kit, &sandbox.id);
    end_server(&server);
}

static void places_are_checked(void **state)
{
    static const char *const bad[] = {"/proc/x", "/dev", "/dev/shm/x", "/sys/fs", "/proc"};
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct kit_answer answer;
    uint32_t number;
    struct server server;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        ask_open(kit, &sandbox.id, bad[i], &answer);
        kit_expect_failure(&answer, ERR_INVALID);
    }
    server = mount_it(kit, &sandbox.id, PLACE, &number);
    ask_open(kit, &sandbox.id, PLACE, &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    ask_open(kit, &sandbox.id, PLACE "/inside", &answer);
    kit_expect_failure(&answer, ERR_CONFLICT);
    ask_open(kit, &sandbox.id, PLACE "-beside", &answer);
    kit_expect(&answer, WIRE_MESSAGE_MOUNT_OPENED);
    (void) close(answer.fds[0]);
    ask_change(kit, WIRE_MESSAGE_DETACH_MOUNT, &sandbox.id, 77, &answer);
    kit_expect_failure(&answer, ERR_NOT_FOUND);
    end_server(&server);
}

/* /bin is a link of the image, /usr something that is mounted. */
static void links_and_other_mounts_are_not_covered(void **state)
{
    static const struct {
        const char *place;
        enum err_code code;
    } rows[] = {{"/bin", ERR_INVALID}, {"/bin/x", ERR_INVALID}, {"/usr", ERR_CONFLICT}};
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct kit_answer answer;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct server server;

        ask_open(kit, &sandbox.id, rows[i].place, &answer);
        kit_expect(&answer, WIRE_MESSAGE_MOUNT_OPENED);
        server = start_server(answer.fds[0]);
        ask_change(kit, WIRE_MESSAGE_ATTACH_MOUNT, &sandbox.id, answer.message.mount_opened.mount,
                   &answer);
        kit_expect_failure(&answer, rows[i].code);
        end_server(&server);
    }
}

static void so_many_and_no_more(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct kit_answer answer;
    char place[32];

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    for (int i = 0; i < 16; i++) {
        (void) snprintf(place, sizeof(place), "/m/%d", i);
        ask_open(kit, &sandbox.id, place, &answer);
        kit_expect(&answer, WIRE_MESSAGE_MOUNT_OPENED);
        (void) close(answer.fds[0]);
    }
    ask_open(kit, &sandbox.id, "/m/more", &answer);
    kit_expect_failure(&answer, ERR_UNAVAILABLE);
    ask_change(kit, WIRE_MESSAGE_DETACH_MOUNT, &sandbox.id, 3, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    ask_open(kit, &sandbox.id, "/m/more", &answer);
    kit_expect(&answer, WIRE_MESSAGE_MOUNT_OPENED);
    (void) close(answer.fds[0]);
}

static void who_hangs_in_a_mount_can_be_destroyed(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    uint32_t number;
    struct server server;
    pid_t looking;
    int64_t before;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    server = mount_it(kit, &sandbox.id, PLACE, &number);
    looking = look_inside(&sandbox, PLACE "/hang");
    wait_until_somebody_hangs(&server);
    assert_int_equal(waitpid(looking, NULL, WNOHANG), 0);
    before = now_ms();
    ask_destroy(kit, &sandbox.id);
    assert_true(now_ms() - before < PATIENCE_MS);
    (void) result_of(looking);
    end_server(&server);
}

/* As look_inside, by a process that counts as the sandbox's. */
static pid_t look_as_one_of_it(const struct kit *kit, const struct wire_entry *sandbox,
                               const char *path)
{
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    struct cgroup groups = kit_groups(kit, &sandbox->id, &host);
    pid_t pid;

    assert_int_equal(cgroup_entry_open(&groups, false, &entry, NULL), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (cgroup_enter(entry.agent, entry.agent_count) < 0)
            _exit(251);
        (void) syscall(SYS_close_range, 3u, ~0u, 0); /* as there */
        _exit(result_of(look_inside(sandbox, path)));
    }
    return pid;
}

static void what_does_not_freeze_is_told_and_goes_on(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct wire_message request = {.number = WIRE_MESSAGE_SNAPSHOT};
    struct kit_answer answer;
    uint32_t number;
    struct server server;
    pid_t looking;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    server = mount_it(kit, &sandbox.id, PLACE, &number);
    looking = look_as_one_of_it(kit, &sandbox, PLACE "/hang");
    wait_until_somebody_hangs(&server);
    request.snapshot = (struct wire_snapshot){sandbox.id, id_new(), true};
    kit_ask(kit, &request, &answer);
    kit_expect_failure(&answer, ERR_UNAVAILABLE);
    assert_false(kit_is_still(kit, &sandbox.id));
    request.snapshot.freeze = false;
    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SNAPSHOT_MADE);
    assert_int_equal(answer.message.snapshot_made.pause_us, 0);
    assert_int_equal(result_of(look_as_one_of_it(kit, &sandbox, "/")), 0); /* others move */
    ask_destroy(kit, &sandbox.id);
    (void) result_of(looking);
    end_server(&server);
}

static void detaching_frees_who_waits(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct kit_answer answer;
    uint32_t number;
    struct server server;
    pid_t looking;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    server = mount_it(kit, &sandbox.id, PLACE, &number);
    looking = look_inside(&sandbox, PLACE "/hang");
    wait_until_somebody_hangs(&server);
    ask_change(kit, WIRE_MESSAGE_DETACH_MOUNT, &sandbox.id, number, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_int_equal(result_of(looking), ECONNABORTED);
    assert_int_equal(count_mounts(&sandbox, PLACE), 0);
    assert_int_equal(result_of(look_inside(&sandbox, PLACE)), 0); /* a folder, as before */
    end_server(&server);
    server = mount_it(kit, &sandbox.id, PLACE, &number);
    assert_int_equal(count_mounts(&sandbox, PLACE), 1);
    end_server(&server);
}

static void a_server_that_dies_leaves_errors(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct kit_answer answer;
    uint32_t number;
    struct server server;
    pid_t looking;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    server = mount_it(kit, &sandbox.id, PLACE, &number);
    looking = look_inside(&sandbox, PLACE "/hang");
    wait_until_somebody_hangs(&server);
    end_server(&server); /* nobody else has its descriptor: the launcher least of all */
    assert_int_equal(result_of(looking), ECONNABORTED);
    assert_int_equal(result_of(look_inside(&sandbox, PLACE "/x")), ENOTCONN);
    ask_change(kit, WIRE_MESSAGE_DETACH_MOUNT, &sandbox.id, number, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
    assert_int_equal(result_of(look_inside(&sandbox, PLACE "/x")), ENOENT);
}

static void what_nobody_serves_is_not_attached(void **state)
{
    struct kit *kit = *state;
    struct wire_entry sandbox;
    struct kit_answer answer;
    struct wire_message stats = {.number = WIRE_MESSAGE_STATS};
    struct wire_message attach = {.number = WIRE_MESSAGE_ATTACH_MOUNT};
    struct kit_answer attached;
    int fuse;

    NEEDS(kit);
    sandbox = start_sandbox(kit);
    ask_open(kit, &sandbox.id, PLACE, &answer);
    kit_expect(&answer, WIRE_MESSAGE_MOUNT_OPENED);
    fuse = answer.fds[0];
    attach.attach_mount =
        (struct wire_mount){.id = sandbox.id, .mount = answer.message.mount_opened.mount};
    kit_send(kit, &attach, NULL, 0, &attached);
    /* The launcher goes on meanwhile. */
    stats.stats.id = sandbox.id;
    kit_ask(kit, &stats, &answer);
    kit_expect(&answer, WIRE_MESSAGE_STATS_READ);
    assert_false(attached.has_come);
    kit_wait(kit, &attached);
    kit_expect_failure(&attached, ERR_UPSTREAM_TIMEOUT);
    (void) close(fuse);
    assert_int_equal(count_mounts(&sandbox, NULL), 0);
}

/* --- the text of the kernel ------------------------------------------------------------------ */

static void mounts_are_found_in_the_kernels_list(void **state)
{
    static const char text[] =
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:41 / /persist rw,nosuid shared:3 master:4 - fuse burrow rw,user_id=0\n"
        "3 1 0:42 / /a\\040b\\134c rw - fuse burrow rw\n"
        "4 1 0:43 / /fuse rw - tmpfs fuse rw\n"
        "5 1 0:44 / /control rw - fusectl none rw\n"
        "6 1 0:x / /broken rw - fuse burrow rw\n"
        "7 1";
    unsigned int minors[4];

    (void) state;
    assert_int_equal(fuse_mount_find_in(text, NULL, minors, 4), 2);
    assert_int_equal(minors[0], 41);
    assert_int_equal(minors[1], 42);
    assert_int_equal(fuse_mount_find_in(text, NULL, minors, 1), 1);
    assert_int_equal(fuse_mount_find_in(text, "/a b\\c", minors, 4), 1);
    assert_int_equal(minors[0], 42);
    assert_int_equal(fuse_mount_find_in(text, "/persis", minors, 4), 0);
    assert_int_equal(fuse_mount_find_in(text, "/persist/x", minors, 4), 0);
    assert_int_equal(fuse_mount_find_in("", NULL, minors, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_are_found_in_the_kernels_list),
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_mount_is_seen_with_the_ids_of_the_sandbox),
        TEST(places_are_checked),
        TEST(links_and_other_mounts_are_not_covered),
        TEST(so_many_and_no_more),
        TEST(who_hangs_in_a_mount_can_be_destroyed),
        TEST(what_does_not_freeze_is_told_and_goes_on),
        TEST(detaching_frees_who_waits),
        TEST(a_server_that_dies_leaves_errors),
        TEST(what_nobody_serves_is_not_attached),
#undef TEST
    };

    orphans_adopt();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
