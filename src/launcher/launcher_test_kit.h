/* For tests of the launcher only: a daemon's end of the conversation, one question at a time, with
 * a real burrow-launcher at the other end. Everything lies in a temporary folder of its own. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_scratch_testing.h"
#include "sys/file/sys_tree.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_orphans_testing.h"
#include "wire/wire_conversation.h"
#include "wire/wire_done.h"
#include "wire/wire_plan.h"

#define KIT_PATIENCE_MS 20000
#define KIT_EXITS_MAX   64
#define KIT_MEGABYTE    (UINT64_C(1) << 20)

struct kit {
    char folder[64]; /* data and run are in it */
    char cgroup[64];
    char network[16]; /* nobody else has it, as the group */
    pid_t launcher;
    bool runs; /* the launcher, until kit_stop */
    int store; /* owned: the pool's store, held beyond the launcher's end; 0: it is not held */
    struct wire_conversation conversation;
    struct wire_exited exits[KIT_EXITS_MAX]; /* told so far */
    size_t exit_count;
};

/* Where the programs are: beside the tests, or a level down. */
static inline const char *kit_program(void)
{
    static char path[PATH_MAX];
    const char *given = getenv("BURROW_LAUNCHER");
    ssize_t length;

    if (given)
        return given;
    length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    assert_true(length > 0);
    path[length] = '\0';
    (void) snprintf(strrchr(path, '/'), 64, "/programs/burrow-launcher");
    return path;
}

static inline void kit_say_hello(struct kit *kit);

static inline void kit_start(struct kit *kit)
{
    char data[80], run[80];
    int pair[2];

    assert_int_equal(sys_socket_pair(SOCK_SEQPACKET, pair), 0);
    (void) snprintf(data, sizeof(data), "%s/data", kit->folder);
    (void) snprintf(run, sizeof(run), "%s/run", kit->folder);
    kit->launcher = fork();
    assert_true(kit->launcher >= 0);
    if (kit->launcher == 0) {
        (void) dup2(pair[1], 3);
        (void) execl(kit_program(), "burrow-launcher", "once", "--socket-fd", "3", "--data", data,
                     "--run", run, "--cgroup", kit->cgroup, "--network-name", kit->network,
                     "--pool-size", "2G", "--log-level", "warning", NULL);
        _exit(127);
    }
    (void) close(pair[1]);
    assert_int_equal(wire_conversation_init(&kit->conversation, WIRE_DAEMON, pair[0], NULL), 0);
    kit->runs = true;
    kit_say_hello(kit);
}

static inline void kit_make_in(const char *parent, struct kit *kit)
{
    *kit = (struct kit){.launcher = 0};
    (void) snprintf(kit->folder, sizeof(kit->folder), "%s/burrow-launcher-XXXXXX", parent);
    assert_non_null(mkdtemp(kit->folder));
    assert_int_equal(chmod(kit->folder, 0755), 0);
    (void) snprintf(kit->cgroup, sizeof(kit->cgroup), "burrow-test-%d", (int) getpid());
    (void) snprintf(kit->network, sizeof(kit->network), "bt-%d", (int) getpid());
}

static inline void kit_make(struct kit *kit)
{
    kit_make_in(scratch_parent(), kit);
}

/* Close the conversation and wait until the launcher has cleaned up. Returns its wait status. */
static inline int kit_stop(struct kit *kit)
{
    int status = 0;

    wire_conversation_end(&kit->conversation, NULL);
    assert_int_equal(waitpid(kit->launcher, &status, 0), kit->launcher);
    kit->runs = false;
    return status;
}

/* The pool's store as the launcher sees it: it is mounted in no other mount namespace. */
static inline const char *kit_store(const struct kit *kit)
{
    static char path[128];

    if (kit->store)
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", kit->store);
    else if (kit->runs)
        (void) snprintf(path, sizeof(path), "/proc/%d/root%s/data/pool/store", (int) kit->launcher,
                        kit->folder);
    else
        (void) snprintf(path, sizeof(path), "%s/data/pool/store", kit->folder);
    return path;
}

/* Keep the pool as it is when the launcher dies, for looking at it until kit_let_store_go. */
static inline void kit_hold_store(struct kit *kit)
{
    kit->store = open(kit_store(kit), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(kit->store > 0);
}

static inline void kit_let_store_go(struct kit *kit)
{
    (void) fd_close(kit->store);
    kit->store = 0;
}

/* As the kernel does to a filesystem that it finds broken, and back. */
static inline void kit_set_pool_read_only(const struct kit *kit, bool is_read_only)
{
    unsigned long flags = MS_REMOUNT | MS_NOSUID | MS_NODEV | (is_read_only ? MS_RDONLY : 0);
    pid_t helper = fork();
    char place[128];
    int status;

    assert_true(helper >= 0);
    (void) snprintf(place, sizeof(place), "%s/data/pool/store", kit->folder);
    if (helper == 0) {
        int mounts = sys_namespace_open(kit->launcher, "mnt");

        _exit(sys_namespace_enter(mounts, CLONE_NEWNS) < 0 ||
              sys_mount_path_plain(NULL, place, NULL, flags, NULL) < 0);
    }
    assert_int_equal(waitpid(helper, &status, 0), helper);
    assert_int_equal(status, 0);
}

static inline void kit_remove(struct kit *kit)
{
    char *name = strrchr(kit->folder, '/') + 1;
    AUTO(close) int parent = -EBADF;

    /* A test failed: what it made goes with its launcher. Whom it had asked is not told any more,
     * for their answers were on its stack. */
    if (kit->runs) {
        (void) shutdown(kit->conversation.channel.fd, SHUT_RDWR);
        (void) waitpid(kit->launcher, NULL, 0);
    }
    name[-1] = '\0'; /* what is before it is where it lies */
    parent = sys_file_open(AT_FDCWD, kit->folder, O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(sys_tree_delete(parent, name), 0);
}

/* --- questions ------------------------------------------------------------------------------- */

struct kit_answer {
    bool has_come;
    bool has_failed;
    struct error failure;
    struct wire_message message;
    int fds[WIRE_FDS_MAX];
    size_t fd_count;
};

static inline void kit_note(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct kit_answer *answer = context;

    answer->has_come = true;
    answer->has_failed = failure != NULL;
    if (failure) {
        answer->failure = *failure;
        return;
    }
    answer->message = reply->message;
    answer->fd_count = reply->fd_count;
    for (size_t i = 0; i < reply->fd_count; i++)
        answer->fds[i] = TAKE_FD(reply->fds[i]);
}

/* Let the conversation go on for up to `timeout_ms`, or until something came. */
static inline void kit_turn(struct kit *kit, int timeout_ms)
{
    struct pollfd wait = {.fd = kit->conversation.channel.fd,
                          .events = wire_conversation_events(&kit->conversation)};
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    enum wire_received got;

    if (poll(&wait, 1, timeout_ms) <= 0)
        return;
    assert_int_equal(wire_conversation_flush(&kit->conversation, &err), 0);
    while ((got = wire_conversation_receive(&kit->conversation, &incoming, &err)) != WIRE_NOTHING) {
        if (got == WIRE_FAILED)
            print_message("the conversation failed: %s\n", err.message);
        assert_int_not_equal(got, WIRE_FAILED);
        if (got == WIRE_MESSAGE && incoming.message.number == WIRE_MESSAGE_EXITED) {
            assert_true(kit->exit_count < KIT_EXITS_MAX);
            kit->exits[kit->exit_count++] = incoming.message.exited;
        }
        wire_incoming_done(&incoming);
    }
}

static inline void kit_send(struct kit *kit, struct wire_message *request, const int *fds,
                            size_t count, struct kit_answer *answer)
{
    struct wire_answer whom = {kit_note, answer};
    struct error err = ERROR_INIT;

    *answer = (struct kit_answer){.has_come = false};
    if (wire_conversation_ask(&kit->conversation, request, fds, count, whom, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void kit_wait(struct kit *kit, struct kit_answer *answer)
{
    for (int i = 0; i < KIT_PATIENCE_MS / 10 && !answer->has_come; i++)
        kit_turn(kit, 10);
    assert_true(answer->has_come);
}

/* Ask and wait. */
static inline void kit_ask(struct kit *kit, struct wire_message *request, struct kit_answer *answer)
{
    kit_send(kit, request, NULL, 0, answer);
    kit_wait(kit, answer);
}

static inline void kit_expect(const struct kit_answer *answer, enum wire_number number)
{
    if (answer->has_failed)
        fail_msg("it failed: %s", answer->failure.message);
    assert_int_equal(answer->message.number, number);
}

static inline void kit_expect_failure(const struct kit_answer *answer, enum err_code code)
{
    assert_true(answer->has_failed);
    if (answer->failure.code != code)
        print_message("%s\n", answer->failure.message);
    assert_string_equal(error_code_text(answer->failure.code), error_code_text(code));
}

static inline void kit_say_hello(struct kit *kit)
{
    struct wire_message request = {.number = WIRE_MESSAGE_SUBSCRIBE_EXIT};
    struct kit_answer answer = {.has_come = false};
    struct wire_answer whom = {kit_note, &answer};

    assert_int_equal(wire_conversation_hello(&kit->conversation, "test", whom, NULL), 0);
    kit_wait(kit, &answer);
    kit_expect(&answer, WIRE_MESSAGE_WELCOME);
    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SUBSCRIBED);
}

/* --- plans ----------------------------------------------------------------------------------- */

static inline struct wire_plan kit_plan(void)
{
    return (struct wire_plan){
        .id = id_new(),
        .hostname = "box",
        .image = "host",
        .limits = {.memory_bytes = 256 * KIT_MEGABYTE,
                   .pids = 64,
                   .cpu_millis = 1000,
                   .disk_bytes = 64 * KIT_MEGABYTE},
    };
}

static inline void kit_send_plan(struct kit *kit, enum wire_number number,
                                 const struct wire_plan *plan, struct kit_answer *answer)
{
    struct wire_message request = {.number = number};
    AUTO(close) int fd = -EBADF;
    struct error err = ERROR_INIT;

    if (wire_plan_seal(plan, &fd, &err) < 0)
        fail_msg("%s", err.message);
    kit_send(kit, &request, &fd, 1, answer);
}

static inline void kit_ask_plan(struct kit *kit, enum wire_number number,
                                const struct wire_plan *plan, struct kit_answer *answer)
{
    kit_send_plan(kit, number, plan, answer);
    kit_wait(kit, answer);
}

static inline void kit_create(struct kit *kit, const struct wire_plan *plan)
{
    struct kit_answer answer;

    kit_ask_plan(kit, WIRE_MESSAGE_CREATE, plan, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SANDBOX);
}

static inline void kit_kill(struct kit *kit, const struct id *id, enum wire_kill_scope scope,
                            struct kit_answer *answer)
{
    struct wire_message request = {.number = WIRE_MESSAGE_KILL, .kill = {*id, scope}};

    kit_ask(kit, &request, answer);
}

static inline bool kit_is_listed(struct kit *kit, const struct id *id, enum run_state *ret_state)
{
    struct wire_message request = {.number = WIRE_MESSAGE_LIST};
    struct kit_answer answer;

    do {
        kit_ask(kit, &request, &answer);
        kit_expect(&answer, WIRE_MESSAGE_LISTED);
        for (size_t i = 0; i < answer.message.listed.entries.count; i++) {
            const struct wire_entry *entry = &answer.message.listed.entries.items[i];

            request.list.after = entry->id;
            if (strcmp(entry->id.text, id->text) == 0) {
                *ret_state = entry->state;
                return true;
            }
        }
    } while (answer.message.listed.more);
    return false;
}

/* The name of the launcher's base group: one that serves once adds its own to what it is told. */
static inline void kit_base_name(const struct kit *kit, char ret_name[static 128])
{
    char path[96];
    DIR *folder;
    const struct dirent *entry;

    *ret_name = '\0';
    (void) snprintf(path, sizeof(path), "%s/run", kit->folder);
    folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        if (strncmp(entry->d_name, "once-", 5) == 0)
            (void) snprintf(ret_name, 128, "%s-%.60s", kit->cgroup, entry->d_name);
    (void) closedir(folder);
}

/* The groups of a sandbox, as the kernel has them; `*ret_host` is the caller's to close. */
static inline struct cgroup kit_groups(const struct kit *kit, const struct id *id,
                                       struct cgroup_host **ret_host)
{
    char name[128];
    const struct cgroup_host_options options = {.name = name};
    struct cgroup groups;

    kit_base_name(kit, name);
    assert_int_equal(cgroup_host_open(&options, ret_host, NULL), 0);
    assert_int_equal(cgroup_adopt(*ret_host, id, &groups, NULL, NULL), 0);
    return groups;
}

/* Whether the kernel holds it still, whatever the launcher says of it. */
static inline bool kit_is_still(const struct kit *kit, const struct id *id)
{
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup groups = kit_groups(kit, id, &host);
    struct cgroup_freeze_state state = {0};

    assert_int_equal(cgroup_freeze_state(&groups, CGROUP_WHOLE, &state, NULL), 0);
    return state.asked || state.frozen;
}

static inline void kit_wait_for_exit(struct kit *kit, size_t count)
{
    for (int i = 0; i < KIT_PATIENCE_MS / 10 && kit->exit_count < count; i++)
        kit_turn(kit, 10);
    assert_int_equal(kit->exit_count, count);
}

/* --- a launcher for each test ---------------------------------------------------------------- */

static inline bool kit_can_run(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void) printf("# skip: programs without sanitizers, which the walls do not let run\n");
    return false;
#endif
    if (geteuid() == 0)
        return true;
    (void) printf("# skip: root, to start a launcher\n");
    return false;
}

/* The state of the test is a kit, which has no launcher where none can run. */
static inline int kit_set_up(void **state)
{
    struct kit *kit = calloc(1, sizeof(*kit));

    *state = kit;
    if (!kit_can_run())
        return 0;
    kit_make(kit);
    kit_start(kit);
    return 0;
}

/* The test itself has stopped the launcher. */
static inline int kit_tear_down(void **state)
{
    struct kit *kit = *state;

    if (kit->launcher)
        kit_remove(kit);
    free(kit);
    return 0;
}

#define KIT_TEST(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)

#define NEEDS_LAUNCHER(kit)                                                                        \
    do {                                                                                           \
        if (!(kit)->launcher)                                                                      \
            skip();                                                                                \
    } while (0)
