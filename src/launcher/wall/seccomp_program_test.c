/* Real programs behind the filter and the small set of capabilities: what people run must work. A
 * program that is not installed is noted and passed over. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/wall/capability.h"
#include "launcher/wall/seccomp_test_kit.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

#define TIMEOUT_MS 60000

struct program {
    const char *needs;   /* a program */
    const char *command; /* for sh, in an empty folder; exit status 0 and ... */
    const char *output;  /* ... this somewhere in what it writes */
};

static const struct program programs[] = {
    {"bash", "bash -c 'set -o pipefail; x=$(seq 10 | wc -l); echo a-$x; sleep 0.01 & wait'",
     "a-10"},
    {"bash", "bash -c 'ulimit -n 512; ulimit -n'", "512"},
    {"bash", "bash -c 'ulimit -c 0; echo went on'", "went on"},
    {"nice", "nice -n 19 nice", "19"},
    {"sh", "mkdir a; echo x > a/b; cp -a a c; mv c d; ln -s d e; rm -r a; cat e/b; chown 1:1 d",
     "x"},
    {"cp", "echo hello > a; cp --reflink=auto a b; cat b", "hello"},
    {"mkfifo", "mkfifo p; (echo through > p &); cat p", "through"},
    {"tar", "mkdir a; echo x > a/b; tar cf a.tar a; rm -r a; tar xpf a.tar; cat a/b", "x"},
    {"timeout", "timeout 0.1 sleep 5; echo $?", "124"},
    {"python3",
     "python3 -c 'import socket, subprocess, threading, tempfile, mmap, select, asyncio\n"
     "t = threading.Thread(target=lambda: print(\"thread\")); t.start(); t.join()\n"
     "a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))\n"
     "s = socket.create_server((\"127.0.0.1\", 0)); s.close()\n"
     "print(subprocess.run([\"echo\", \"child\"], capture_output=True).stdout)\n"
     "asyncio.run(asyncio.sleep(0.01))\n"
     "import multiprocessing\n"
     "m = multiprocessing.get_context(\"fork\").Pool(2); print(sum(m.map(abs, [-1, -2]))); "
     "m.close()'",
     "child"},
    {"git",
     "export HOME=$PWD; git init -q r && cd r && echo x > f && git add f && "
     "git -c user.name=n -c user.email=e commit -qm first && git gc -q && git log --oneline",
     "first"},
    {"gcc",
     "printf 'int puts(const char *); int main(void) { puts(\"compiled\"); return 0; }' > a.c && "
     "gcc -O1 -pthread a.c -o a && ./a",
     "compiled"},
    {"strace", "strace -f -o log sh -c 'true; echo traced' && grep -c execve log", "traced"},
    {"gdb",
     "export HOME=$PWD; gdb -nx -batch -ex 'set startup-with-shell off' -ex run "
     "-ex 'printf \"left\\n\"' --args /bin/true",
     "exited normally"},
    {"node",
     "node -e 'const fs = require(\"fs\"); fs.watch(\".\").close(); "
     "fs.readFile(process.execPath, () => { "
     "const h = require(\"http\").createServer((q, r) => r.end(\"served\")); "
     "h.listen(0, \"127.0.0.1\", () => require(\"http\").get({port: h.address().port}, "
     "r => { r.on(\"data\", d => console.log(String(d))); r.on(\"end\", () => h.close()); })); })'",
     "served"},
    {"go", "export HOME=$PWD GOFLAGS=-mod=mod GOCACHE=$PWD/c; go env GOOS", "linux"},
    {"ip", "ip -o addr show dev lo; ip route; echo routes", "routes"},
    {"ss", "ss -ltn", "State"},
    {"setarch", "setarch -R sh -c 'echo fixed'", "fixed"},
    {"perl", "perl -e 'print fork ? do { wait; \"parent\" } : exit'", "parent"},
    {"apt-config", "apt-config dump | head -3", "APT"},
    {"dpkg-deb",
     "mkdir -p p/DEBIAN; printf 'Package: p\\nVersion: 1\\nArchitecture: all\\n"
     "Maintainer: m\\nDescription: d\\n' > p/DEBIAN/control; dpkg-deb -b p p.deb && "
     "dpkg-deb -x p.deb out",
     "building"},
    {"unshare", "unshare -U true 2>&1 || echo refused", "refused"},
    {"unshare", "unshare -m true 2>&1 || echo refused", "refused"},
    {"mount", "mount -t tmpfs x . 2>&1 || echo refused", "refused"},
    {"dmesg", "dmesg 2>&1 || echo refused", "refused"},
};

static bool is_installed(const char *name)
{
    char command[128];
    int status;
    pid_t pid;

    (void) snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void) execl("/bin/sh", "sh", "-c", command, (char *) NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* In the child: all walls, then the command. */
static void run_confined(const struct seccomp_filter *filter, const struct program *program)
{
    if (setpgid(0, 0) < 0 || sys_process_set_no_new_privileges() < 0)
        _exit(120);
    if (geteuid() == 0 && capability_confine(capability_kept()) < 0)
        _exit(121);
    if (seccomp_filter_load(filter) < 0)
        _exit(122);
    (void) execl("/bin/sh", "sh", "-c", program->command, (char *) NULL);
    _exit(127);
}

/* Read to the end, or until the time is over. */
static size_t read_output(int fd, char *output, size_t size)
{
    size_t length = 0;

    while (length < size - 1) {
        struct pollfd wait = {fd, POLLIN, 0};
        ssize_t got =
            poll(&wait, 1, TIMEOUT_MS) > 0 ? read(fd, output + length, size - 1 - length) : 0;

        if (got <= 0)
            break;
        length += (size_t) got;
    }
    output[length] = '\0';
    return length;
}

static bool works(const struct seccomp_filter *filter, const struct program *program)
{
    static char output[65536];
    char folder[SCRATCH_SIZE];
    int ends[2], status;
    pid_t pid;

    make_scratch(folder);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (chdir(folder) < 0 || dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0)
            _exit(123);
        run_confined(filter, program);
    }
    (void) close(ends[1]);
    (void) read_output(ends[0], output, sizeof(output));
    (void) close(ends[0]);
    /* What still runs is over time, or a stray child. */
    (void) kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    remove_scratch(folder);
    if (status == 0 && strstr(output, program->output))
        return true;
    print_message("status %#x of: %s\n%s\n", status, program->command, output);
    return false;
}

static void programs_work_behind_the_walls(void **state)
{
    static struct seccomp_filter filter;
    int broken = 0;

    (void) state;
    assert_int_equal(seccomp_filter_init(&filter, SECCOMP_WALLS_ALL), 0);
    for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
        if (!is_installed(programs[i].needs)) {
            (void) printf("# not installed: %s\n", programs[i].needs);
            continue;
        }
        broken += !works(&filter, &programs[i]);
    }
    assert_int_equal(broken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_work_behind_the_walls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
