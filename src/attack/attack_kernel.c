/* Calls into parts of the kernel that exploits like. Each does the smallest thing there is to do
 * there. Those that would change the machine (modules, another kernel, the clock, swap) are called
 * with arguments that can do nothing, and only behind all walls. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack/attack.h"
#include "base/auto.h"

#define X32_BIT          0x40000000
#define I386_GETPID      20
#define USER_MODE_ONLY   1 /* UFFD_USER_MODE_ONLY */
#define FAN_REPORT_FID_  0x200
#define KEY_SPEC_PROCESS (-2)
#define SYS_STATMOUNT    457
#define SYS_MEMFD_SECRET 447
#define SYS_CACHESTAT    451
#define SET_MEMORY_MERGE 67 /* PR_SET_MEMORY_MERGE */
#define LOG_BUFFER_SIZE  10
#define HANDLE_SPACE     128

/* A map of a type that always needs the right. */
static int bpf_map(void)
{
    union bpf_attr attributes = {.map_type = BPF_MAP_TYPE_QUEUE, .value_size = 4, .max_entries = 1};

    return attack_result(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
}

static int count_events(int of_kernel)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .disabled = 1,
        .exclude_kernel = !of_kernel,
        .exclude_hv = 1,
    };

    return attack_result(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

static int count_own_events(void)
{
    return count_events(0);
}

static int count_kernel_events(void)
{
    return count_events(1);
}

/* Gone with this process. */
static int attack_add_key(void)
{
    return attack_result(syscall(SYS_add_key, "user", "burrow-lab", "x", 1, KEY_SPEC_PROCESS));
}

static int find_session_keys(void)
{
    return attack_result(syscall(SYS_keyctl, 0 /* get */, -3 /* session */, 0, 0, 0));
}

static int use_io_uring(void)
{
    static char parameters[256];

    return attack_result(syscall(SYS_io_uring_setup, 1, parameters));
}

static int use_aio(void)
{
    unsigned long context = 0;

    return attack_result(syscall(SYS_io_setup, 1, &context));
}

static int use_userfault(void)
{
    return attack_result(syscall(SYS_userfaultfd, O_CLOEXEC | USER_MODE_ONLY));
}

static int watch_filesystem(void)
{
    return attack_result(syscall(SYS_fanotify_init, FAN_REPORT_FID_, O_RDONLY));
}

/* A file by its number instead of by a path. */
static int open_by_number(void)
{
    struct {
        struct file_handle head;
        char bytes[HANDLE_SPACE];
    } handle = {.head.handle_bytes = HANDLE_SPACE};
    const char *place = access("/usr/bin", F_OK) == 0 ? "/usr" : "/";
    AUTO(close) int top = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int mount;

    if (top < 0 || name_to_handle_at(top, "", &handle.head, &mount, AT_EMPTY_PATH) < 0)
        return -errno;
    return attack_result(open_by_handle_at(top, &handle.head, O_RDONLY | O_CLOEXEC));
}

static int call_x32(void)
{
    return attack_result(syscall(X32_BIT | SYS_getpid));
}

static int call_i386(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        long answer;

        __asm__ volatile("int $0x80"
                         : "=a"(answer)
                         : "a"((long) I386_GETPID)
                         : "memory", "r8", "r9", "r10", "r11");
        _exit(answer > 0 ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
        return attack_impossible("the kernel runs no i386 programs");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENOSYS;
}

/* --- terminals ------------------------------------------------------------------------------ */

/* A terminal of our own that we are the session of. */
static int open_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
    const char *path;

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -errno;
    (void) setsid();
    path = ptsname(master);
    slave = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    return slave < 0 ? -errno : slave;
}

static int type_into_terminal(void)
{
    int terminal = open_terminal();

    return terminal < 0 ? terminal : attack_result(ioctl(terminal, TIOCSTI, "x"));
}

static int change_discipline(void)
{
    int terminal = open_terminal(), usual = 0;

    return terminal < 0 ? terminal : attack_result(ioctl(terminal, TIOCSETD, &usual));
}

/* --- memory --------------------------------------------------------------------------------- */

static int weaken_memory(void)
{
    return attack_result(personality(READ_IMPLIES_EXEC));
}

static int read_segments(void)
{
    static char table[4096];

    return attack_result(syscall(SYS_modify_ldt, 0, table, sizeof(table)));
}

static int hide_memory(void)
{
    return attack_result(syscall(SYS_MEMFD_SECRET, 0));
}

static int merge_memory(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? -errno : attack_result(madvise(page, 4096, MADV_MERGEABLE));
}

/* PR_SET_MEMORY_MERGE: all pages of the process, without a call for each range. */
static int merge_memory_by_process(void)
{
    return attack_result(prctl(SET_MEMORY_MERGE, 1, 0, 0, 0));
}

/* --- what others run, by the pages of their programs that are in memory ---------------------- */

static int open_shared_program(void)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : fd;
}

static int count_cached_pages(void)
{
    struct {
        uint64_t offset, length;
    } range = {0, 4096};
    uint64_t counts[5];
    AUTO(close) int fd = open_shared_program();

    return attack_result(syscall(SYS_CACHESTAT, fd, &range, counts, 0));
}

static int map_cached_pages(void)
{
    AUTO(close) int fd = open_shared_program();
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    unsigned char in_memory;

    return page == MAP_FAILED ? -errno : attack_result(mincore(page, 4096, &in_memory));
}

static int read_cached_pages(void)
{
    char byte;
    struct iovec piece = {&byte, 1};
    AUTO(close) int fd = open_shared_program();

    return attack_result(preadv2(fd, &piece, 1, 0, RWF_NOWAIT));
}

/* --- the filter itself ---------------------------------------------------------------------- */

static int answer_calls(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &allow};

    return attack_result(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

/* One that the profile does not know. Its answer to nonsense shows that it was reached. */
static int call_unknown(void)
{
    (void) syscall(SYS_STATMOUNT, NULL, NULL, 0, 0);
    return errno == ENOSYS ? -ENOSYS : 0;
}

/* --- the machine ---------------------------------------------------------------------------- */

static int change_host_name(void)
{
    return attack_result(sethostname("other", 5));
}

static int ask_kernel_log(void)
{
    return attack_result(syscall(SYS_syslog, LOG_BUFFER_SIZE, NULL, 0));
}

/* EFAULT or EINVAL to nonsense would mean that the call was reached: that counts as success. */
static int reached(long r)
{
    return r < 0 && errno != EFAULT && errno != EINVAL && errno != ENOEXEC ? -errno : 0;
}

static int load_module(void)
{
    return reached(syscall(SYS_init_module, NULL, 0, ""));
}

static int load_module_file(void)
{
    return reached(syscall(SYS_finit_module, -1, "", 0));
}

static int load_kernel(void)
{
    return reached(syscall(SYS_kexec_load, 0, 1UL << 20, NULL, 0));
}

static int load_kernel_file(void)
{
    return reached(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0));
}

static int restart_machine(void)
{
    return reached(syscall(SYS_reboot, 0, 0, 0, NULL));
}

static int set_clock(void)
{
    return reached(syscall(SYS_clock_settime, 0, NULL));
}

static int add_swap(void)
{
    return reached(syscall(SYS_swapon, NULL, 0));
}

static int use_ports(void)
{
    return reached(syscall(SYS_iopl, 99));
}

const struct attack attack_kernel[] = {
    {"bpf_map", bpf_map},
    {"count_own_events", count_own_events},
    {"count_kernel_events", count_kernel_events},
    {"add_key", attack_add_key},
    {"find_session_keys", find_session_keys},
    {"use_io_uring", use_io_uring},
    {"use_aio", use_aio},
    {"use_userfault", use_userfault},
    {"watch_filesystem", watch_filesystem},
    {"open_by_number", open_by_number},
    {"call_x32", call_x32},
    {"call_i386", call_i386},
    {"type_into_terminal", type_into_terminal},
    {"change_discipline", change_discipline},
    {"weaken_memory", weaken_memory},
    {"read_segments", read_segments},
    {"hide_memory", hide_memory},
    {"merge_memory", merge_memory},
    {"merge_memory_by_process", merge_memory_by_process},
    {"count_cached_pages", count_cached_pages},
    {"map_cached_pages", map_cached_pages},
    {"read_cached_pages", read_cached_pages},
    {"answer_calls", answer_calls},
    {"call_unknown", call_unknown},
    {"change_host_name", change_host_name},
    {"ask_kernel_log", ask_kernel_log},
    {"load_module", load_module},
    {"load_module_file", load_module_file},
    {"load_kernel", load_kernel},
    {"load_kernel_file", load_kernel_file},
    {"restart_machine", restart_machine},
    {"set_clock", set_clock},
    {"add_swap", add_swap},
    {"use_ports", use_ports},
    {NULL, NULL},
};
