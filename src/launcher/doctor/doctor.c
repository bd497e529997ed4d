#include "launcher/doctor/doctor.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/doctor/doctor_internal.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"

/* The longest an area may take. */
#define ASIDE_TIMEOUT_MS 20000

/* Files of /proc and /etc that are longer are not ours to judge. */
#define FILE_MAX ((size_t) 8 << 20)

/* `aside`: changes its process, makes mounts or groups, or may hang in the kernel. */
static const struct {
    doctor_area *area;
    const char *name;
    bool aside;
} areas[] = {
    {doctor_rights, "rights", false},     {doctor_kernel, "kernel", false},
    {doctor_namespaces, "kernel", true},  {doctor_mounts, "kernel", true},
    {doctor_host_mounts, "mounts", true}, {doctor_cgroups, "cgroups", true},
    {doctor_disk, "disk", true},          {doctor_ids, "ids", false},
    {doctor_limits, "limits", true},      {doctor_network, "network", true},
    {doctor_programs, "programs", false}, {doctor_walls, "walls", true},
};

static const char *const state_texts[DOCTOR_STATE_COUNT] = {[DOCTOR_ON] = "on",
                                                            [DOCTOR_OFF] = "off",
                                                            [DOCTOR_WARNING] = "warning",
                                                            [DOCTOR_MISSING] = "missing"};

void doctor_add(struct doctor_report *report, const char *area, enum doctor_state state,
                const char *name, const char *remedy, const char *detail, ...)
{
    struct doctor_row *row = &report->rows[report->count];
    va_list arguments;

    if (report->count == DOCTOR_ROWS_MAX)
        return;
    report->count++;
    row->area = area;
    row->state = state;
    (void) snprintf(row->name, sizeof(row->name), "%s", name);
    (void) snprintf(row->remedy, sizeof(row->remedy), "%s", remedy ? remedy : "");
    va_start(arguments, detail);
    (void) vsnprintf(row->detail, sizeof(row->detail), detail, arguments);
    va_end(arguments);
}

char *doctor_read(const char *folder, const char *file)
{
    AUTO(free) char *path = mem_alloc(strlen(folder) + strlen(file) + 2);
    char *text;
    size_t length;

    (void) snprintf(path, strlen(folder) + strlen(file) + 2, "%s/%s", folder, file);
    if (sys_file_read_all(AT_FDCWD, path, FILE_MAX, &text, &length) < 0)
        return mem_copy_text("");
    return text;
}

/* Wait for the child; true when it came to its end. */
static bool finish_child(pid_t pid)
{
    AUTO(close) int pidfd = sys_process_open(pid);
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};

    if (pidfd < 0)
        return false;
    (void) sys_process_wait_or_kill(pidfd, ASIDE_TIMEOUT_MS, &ended);
    return ended.kind == SYS_EXIT_STATUS && ended.value == 0;
}

/* Rows hold no pointers but to constants, so a fork can fill them in shared memory. */
void doctor_aside(doctor_area *area, const char *name, const struct doctor_options *options,
                  struct doctor_report *report)
{
    struct doctor_report *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = shared == MAP_FAILED ? -1 : fork();

    if (pid == 0) {
        area(options, shared);
        _exit(0);
    }
    if (pid < 0 || !finish_child(pid))
        doctor_add(report, name, DOCTOR_WARNING, "examination",
                   "run it again; when it fails again, report it",
                   "this part of the examination could not be finished");
    if (shared == MAP_FAILED)
        return;
    for (size_t i = 0; i < shared->count && report->count < DOCTOR_ROWS_MAX; i++)
        report->rows[report->count++] = shared->rows[i];
    (void) munmap(shared, sizeof(*shared));
}

struct doctor_report *doctor_run(const struct doctor_options *options)
{
    struct doctor_report *report = mem_alloc(sizeof(*report));

    for (size_t i = 0; i < ARRAY_COUNT(areas); i++) {
        if (areas[i].aside)
            doctor_aside(areas[i].area, areas[i].name, options, report);
        else
            areas[i].area(options, report);
    }
    return report;
}

size_t doctor_count(const struct doctor_report *report, enum doctor_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < report->count; i++)
        count += report->rows[i].state == state;
    return count;
}

const char *doctor_state_text(enum doctor_state state)
{
    return state_texts[state];
}

void doctor_print(const struct doctor_report *report, struct text *out)
{
    const char *area = "";

    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_row *row = &report->rows[i];

        if (strcmp(area, row->area) != 0)
            text_format(out, "%s%s\n", i ? "\n" : "", row->area);
        area = row->area;
        text_format(out, "  %-8s %s%s%s\n", state_texts[row->state], row->name,
                    *row->detail ? ": " : "", row->detail);
        if (*row->remedy)
            text_format(out, "           -> %s\n", row->remedy);
    }
    text_format(out, "\n%zu on, %zu off, %zu warnings, %zu missing: sandboxes %s run here\n",
                doctor_count(report, DOCTOR_ON), doctor_count(report, DOCTOR_OFF),
                doctor_count(report, DOCTOR_WARNING), doctor_count(report, DOCTOR_MISSING),
                doctor_exit_status(report) == 0 ? "can" : "cannot");
}

int doctor_exit_status(const struct doctor_report *report)
{
    return doctor_count(report, DOCTOR_MISSING) > 0;
}
