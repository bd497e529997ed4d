#include <elf.h>
#include <string.h>

#include "base/memory.h"
#include "launcher/doctor/doctor_internal.h"
#include "sys/sys_feature.h"
#include "sys/sys_test.h"

#define TEST_PATH_SIZE (SCRATCH_SIZE + 64)

/* A host of files: folders proc, etc, dev, programs and data in a scratch folder. */
struct host {
    char folder[SCRATCH_SIZE];
    char proc[TEST_PATH_SIZE], etc[TEST_PATH_SIZE], dev[TEST_PATH_SIZE];
    char programs[TEST_PATH_SIZE], data[TEST_PATH_SIZE];
    struct doctor_options options;
    struct doctor_report *report; /* owned */
};

static void make_host(struct host *host)
{
    const struct {
        const char *name;
        char *path;
    } folders[] = {
        {"proc", host->proc}, {"etc", host->etc}, {"dev", host->dev}, {"programs", host->programs}};

    make_scratch(host->folder);
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        (void) snprintf(folders[i].path, TEST_PATH_SIZE, "%s/%s", host->folder, folders[i].name);
        assert_int_equal(mkdir(folders[i].path, 0755), 0);
    }
    (void) snprintf(host->data, sizeof(host->data), "%s/data", host->folder);
    host->options = (struct doctor_options) DOCTOR_OPTIONS_DEFAULT;
    host->options.proc = host->proc;
    host->options.etc = host->etc;
    host->options.dev = host->dev;
    host->options.programs = host->programs;
    host->options.data = host->data;
    host->options.run = host->folder;
    host->options.cgroup = "burrow-test";
    host->report = mem_alloc(sizeof(*host->report));
}

static void end_host(struct host *host)
{
    free(host->report);
    remove_scratch(host->folder);
}

/* Parents are made. */
static void write_bytes(const char *folder, const char *name, const void *bytes, size_t length)
{
    char path[TEST_PATH_SIZE + 64];
    FILE *file;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    write_bytes(folder, name, text, strlen(text));
}

static const struct doctor_row *find(const struct doctor_report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++) {
        if (strcmp(report->rows[i].name, name) == 0)
            return &report->rows[i];
    }
    fail_msg("there is no row '%s'", name);
    return NULL;
}

static void expect(const struct doctor_report *report, const char *name, enum doctor_state state,
                   const char *said)
{
    const struct doctor_row *row = find(report, name);

    if (row->state != state)
        fail_msg("%s is %s: %s", name, doctor_state_text(row->state), row->detail);
    if (!strstr(row->detail, said) && !strstr(row->remedy, said))
        fail_msg("'%s', '%s' do not say '%s'", row->detail, row->remedy, said);
}

static void capabilities_are_read_and_named(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    /* All but net_admin (12), sys_admin (21) and sys_resource (24). */
    write_text(host.proc, "self/status", "Name:\tx\nCapEff:\t000001fffedfefff\nCapBnd:\t0\n");
    doctor_rights(&host.options, host.report);
    expect(host.report, "setuid", DOCTOR_ON, "");
    expect(host.report, "sys_admin", DOCTOR_MISSING, "namespaces");
    expect(host.report, "net_admin", DOCTOR_WARNING, "none");
    expect(host.report, "sys_resource", DOCTOR_WARNING, "limits");
    end_host(&host);
}

static void a_host_without_proc_is_not_called_healthy(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    doctor_rights(&host.options, host.report);
    expect(host.report, "capabilities", DOCTOR_WARNING, "mount /proc");
    doctor_ids(&host.options, host.report);
    expect(host.report, "ranges", DOCTOR_MISSING, "uid_map");
    end_host(&host);
}

static void an_old_kernel_is_missing_something(void **state)
{
    static const struct {
        const char *release;
        enum doctor_state state;
    } cases[] = {
        {"5.15.0-91-generic\n", DOCTOR_MISSING},
        {"6.0.19\n", DOCTOR_MISSING},
        {"6.1.0-18-amd64\n", DOCTOR_ON},
        {"10.0\n", DOCTOR_ON},
        {"new\n", DOCTOR_WARNING},
        {"", DOCTOR_WARNING},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct host host;

        make_host(&host);
        write_text(host.proc, "sys/kernel/osrelease", cases[i].release);
        doctor_kernel(&host.options, host.report);
        expect(host.report, "version", cases[i].state, "");
        end_host(&host);
    }
}

/* Three lines of a table of mounts, as systemd and the fault of 0.1.0 left it. */
#define ROOT_SHARED "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
#define ROOT_ALONE  "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
#define LEFT_OVER                                                                                  \
    "123 22 0:47 /var/usrlocal /usr/local rw,nosuid,nodev,relatime shared:22 - overlay overlay "   \
    "rw,lowerdir=/tmp/l/0\n"

static void what_an_earlier_burrow_mounted_on_the_host_is_told(void **state)
{
    struct host host;
    const struct doctor_row *row;

    (void) state;
    make_host(&host);
    write_text(host.proc, "self/mountinfo", ROOT_SHARED LEFT_OVER LEFT_OVER);
    doctor_aside(doctor_host_mounts, "mounts", &host.options, host.report);
    row = find(host.report, "mounts of sandboxes on the host");
    assert_int_equal(row->state, DOCTOR_WARNING);
    assert_non_null(strstr(row->detail, "2 at '/usr/local'"));
    assert_int_equal(find(host.report, "shared mounts")->state, DOCTOR_ON);
    host.report->count = 0;
    write_text(host.proc, "self/mountinfo", ROOT_ALONE);
    doctor_aside(doctor_host_mounts, "mounts", &host.options, host.report);
    assert_int_equal(find(host.report, "shared mounts")->state, DOCTOR_OFF);
    assert_int_equal(find(host.report, "no mounts of sandboxes on the host")->state, DOCTOR_ON);
    if (geteuid() == 0)
        assert_int_equal(find(host.report, "private copies of mounts")->state, DOCTOR_ON);
    end_host(&host);
}

static void a_call_that_is_missing_is_said_with_its_consequence(void **state)
{
    unsigned int before = sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_OPENAT2) |
                                              SYS_FEATURE_BIT(SYS_FEATURE_MOUNT_SETATTR));
    struct host host;

    (void) state;
    make_host(&host);
    doctor_kernel(&host.options, host.report);
    (void) sys_feature_pretend(before);
    expect(host.report, "openat2", DOCTOR_OFF, "link by link");
    expect(host.report, "mount_setattr", DOCTOR_MISSING, "newer kernel");
    end_host(&host);
}

static void write_id_maps(const struct host *host, const char *map)
{
    write_text(host->proc, "self/uid_map", map);
    write_text(host->proc, "self/gid_map", map);
}

static void ids_of_others_are_left_alone_and_counted(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    write_id_maps(&host, "0 0 4294967295\n");
    write_text(host.etc, "passwd", "root:x:0:0::/root:/bin/sh\n");
    doctor_ids(&host.options, host.report);
    expect(host.report, "ranges", DOCTOR_ON, "room for 28670 sandboxes");
    /* Half of ours, promised to somebody. */
    write_text(host.etc, "subuid", "somebody:268435456:805306368\n");
    host.report->count = 0;
    doctor_ids(&host.options, host.report);
    expect(host.report, "ranges", DOCTOR_ON, "/etc/subuid");
    write_text(host.etc, "subuid", "somebody:268435456:1879048192\n");
    host.report->count = 0;
    doctor_ids(&host.options, host.report);
    expect(host.report, "ranges", DOCTOR_MISSING, "/etc/subuid");
    /* In a container with 65,536 ids there is no room at all. */
    write_text(host.etc, "subuid", "");
    write_id_maps(&host, "0 100000 65536\n");
    host.report->count = 0;
    doctor_ids(&host.options, host.report);
    expect(host.report, "ranges", DOCTOR_MISSING, "outside of the container");
    end_host(&host);
}

static void the_daemons_user_is_found_by_its_whole_name(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    write_id_maps(&host, "0 0 4294967295\n");
    write_text(host.etc, "passwd", "root:x:0:0::/:/bin/sh\nburrower:x:7:7::/:/bin/sh\n");
    doctor_ids(&host.options, host.report);
    expect(host.report, "user of the daemon", DOCTOR_WARNING, "useradd --system");
    write_text(host.etc, "passwd", "root:x:0:0::/:/bin/sh\nburrow:x:7:7::/:/bin/sh\n");
    host.report->count = 0;
    doctor_ids(&host.options, host.report);
    expect(host.report, "user of the daemon", DOCTOR_ON, "");
    end_host(&host);
}

static void a_pool_is_foreseen_and_not_made(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    write_text(host.proc, "filesystems", "nodev\tproc\n\text4\n");
    doctor_disk(&host.options, host.report);
    /* No loop devices in that /dev. */
    expect(host.report, "pool", DOCTOR_ON, "plain folders, made when a launcher starts");
    expect(host.report, "limits", DOCTOR_WARNING, "no loop devices");
    expect(host.report, "loop devices", DOCTOR_WARNING, "modprobe loop");
    expect(host.report, "btrfs", DOCTOR_WARNING, "modprobe btrfs");
    assert_int_equal(access(host.data, F_OK), -1);
    end_host(&host);
}

static void limits_of_the_host_are_judged_without_raising_them(void **state)
{
    AUTO(free) char *value = NULL;
    struct host host;

    (void) state;
    make_host(&host);
    write_text(host.proc, "meminfo", "MemTotal:       16000000 kB\n");
    write_text(host.proc, "sys/fs/inotify/max_user_instances", "128\n");
    write_text(host.proc, "sys/user/max_user_namespaces", "3\n");
    write_text(host.proc, "sys/kernel/core_pattern", "@/run/crashes\n");
    doctor_aside(doctor_limits, "limits", &host.options, host.report);
    /* One is the launcher's to raise, the other the administrator's. */
    expect(host.report, "fs.inotify.max_user_instances", DOCTOR_OFF, "raises it");
    expect(host.report, "user.max_user_namespaces", DOCTOR_WARNING, "sysctl -w");
    expect(host.report, "kernel.core_pattern", DOCTOR_WARNING, "a socket");
    expect(host.report, "kernel.pid_max", DOCTOR_OFF, "does not have it");
    value = doctor_read(host.proc, "sys/fs/inotify/max_user_instances");
    assert_string_equal(value, "128\n");
    end_host(&host);
}

/* The head of a program with one part of this type. */
static void write_program(const struct host *host, const char *name, uint32_t type)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr part;
    } file = {
        .head = {.e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 1, .e_phentsize = sizeof(Elf64_Phdr)},
        .part = {.p_type = type}};

    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    write_bytes(host->programs, name, &file, sizeof(file));
}

static void programs_must_be_there_and_static(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    write_program(&host, "burrow-agent", PT_LOAD);
    doctor_programs(&host.options, host.report);
    expect(host.report, "burrow-agent", DOCTOR_ON, "");
    expect(host.report, "burrow-keeper", DOCTOR_MISSING, "install");
    assert_int_equal(doctor_exit_status(host.report), 1);
    write_program(&host, "burrow-agent", PT_INTERP);
    write_text(host.programs, "burrow-keeper", "#!/bin/sh\n");
    host.report->count = 0;
    doctor_programs(&host.options, host.report);
    expect(host.report, "burrow-agent", DOCTOR_WARNING, "not static");
    expect(host.report, "burrow-keeper", DOCTOR_MISSING, "Exec format error");
    end_host(&host);
}

static void every_wall_is_listed(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    doctor_aside(doctor_walls, "walls", &host.options, host.report);
    expect(host.report, "seccomp", DOCTOR_ON, "instructions");
    expect(host.report, "seccomp.io_uring", DOCTOR_ON, "no filter sees");
    expect(host.report, "hidden_proc", DOCTOR_ON, "");
    expect(host.report, "capabilities", DOCTOR_ON, "");
    end_host(&host);
}

static void crash(const struct doctor_options *options, struct doctor_report *report)
{
    (void) options;
    doctor_add(report, "x", DOCTOR_ON, "before", NULL, "%s", "");
    _exit(7);
}

static void an_area_that_dies_is_said_and_keeps_its_rows(void **state)
{
    struct host host;

    (void) state;
    make_host(&host);
    doctor_aside(crash, "x", &host.options, host.report);
    assert_int_equal(host.report->count, 2);
    expect(host.report, "examination", DOCTOR_WARNING, "could not be finished");
    expect(host.report, "before", DOCTOR_ON, "");
    end_host(&host);
}

static void a_report_is_printed_and_summed_up(void **state)
{
    AUTO(free) struct doctor_report *report = mem_alloc(sizeof(*report));
    AUTO(text) struct text out = TEXT_INIT(1 << 16);

    (void) state;
    doctor_add(report, "one", DOCTOR_ON, "a", NULL, "%s", "");
    doctor_add(report, "one", DOCTOR_WARNING, "b", "do this", "less of %d", 7);
    doctor_add(report, "two", DOCTOR_OFF, "c", NULL, "not used");
    doctor_print(report, &out);
    assert_string_equal(text_string(&out),
                        "one\n  on       a\n  warning  b: less of 7\n           -> do this\n"
                        "\ntwo\n  off      c: not used\n"
                        "\n1 on, 1 off, 1 warnings, 0 missing: sandboxes can run here\n");
    assert_int_equal(doctor_exit_status(report), 0);
    doctor_add(report, "two", DOCTOR_MISSING, "d", NULL, "gone");
    assert_int_equal(doctor_exit_status(report), 1);
    for (size_t i = 0; i < DOCTOR_ROWS_MAX + 10; i++)
        doctor_add(report, "many", DOCTOR_ON, "e", NULL, "%s", "");
    assert_int_equal(report->count, DOCTOR_ROWS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_are_read_and_named),
        cmocka_unit_test(a_host_without_proc_is_not_called_healthy),
        cmocka_unit_test(an_old_kernel_is_missing_something),
        cmocka_unit_test(what_an_earlier_burrow_mounted_on_the_host_is_told),
        cmocka_unit_test(a_call_that_is_missing_is_said_with_its_consequence),
        cmocka_unit_test(ids_of_others_are_left_alone_and_counted),
        cmocka_unit_test(the_daemons_user_is_found_by_its_whole_name),
        cmocka_unit_test(a_pool_is_foreseen_and_not_made),
        cmocka_unit_test(limits_of_the_host_are_judged_without_raising_them),
        cmocka_unit_test(programs_must_be_there_and_static),
        cmocka_unit_test(every_wall_is_listed),
        cmocka_unit_test(an_area_that_dies_is_said_and_keeps_its_rows),
        cmocka_unit_test(a_report_is_printed_and_summed_up),
    };

    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
