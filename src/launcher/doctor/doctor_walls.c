/* The doctor lists the walls of a sandbox, after it has tried whether they can be put up here. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "launcher/doctor/doctor_internal.h"
#include "launcher/sandbox/sandbox_walls.h"
#include "launcher/wall/capability.h"
#include "launcher/wall/seccomp.h"
#include "sys/process/sys_process.h"

#define WALLS "walls"

/* In this process, for good: it is a child of the doctor. Everything it needs afterwards (exit)
 * passes the filter. */
static int try_filter(struct seccomp_filter *filter)
{
    int r = seccomp_filter_init(filter, SECCOMP_WALLS_ALL);

    if (r == 0)
        r = sys_process_set_no_new_privileges();
    return r < 0 ? r : seccomp_filter_load(filter);
}

static void look_at_seccomp(struct doctor_report *report)
{
    struct seccomp_filter filter;
    int r = try_filter(&filter);

    if (r < 0) {
        doctor_add(report, WALLS, DOCTOR_MISSING, "seccomp",
                   "use a kernel with CONFIG_SECCOMP_FILTER, or a container that allows filters",
                   "the filter cannot be loaded: %s", strerrordesc_np(-r));
        return;
    }
    doctor_add(report, WALLS, DOCTOR_ON, "seccomp", NULL, "%u instructions, loaded in a trial",
               filter.count);
    for (int i = 0; i < SECCOMP_WALL_COUNT; i++) {
        char name[DOCTOR_NAME_SIZE];

        (void) snprintf(name, sizeof(name), "seccomp.%s", seccomp_wall_text((enum seccomp_wall) i));
        doctor_add(report, WALLS, DOCTOR_ON, name, NULL, "%s",
                   seccomp_wall_keeps_out((enum seccomp_wall) i));
    }
}

static void list_capabilities(struct doctor_report *report)
{
    size_t count, kept = 0;
    const struct capability_row *rows = capability_rows(&count);

    for (size_t i = 0; i < count; i++)
        kept += rows[i].kept;
    doctor_add(report, WALLS, DOCTOR_ON, "capabilities", NULL,
               "root of a sandbox has %zu of %zu, over its own namespace only", kept, count);
}

/* Those of production, which no plan can open. */
void doctor_walls(const struct doctor_options *options, struct doctor_report *report)
{
    (void) options;
    list_capabilities(report);
    for (int i = 0; i < SANDBOX_WALL_COUNT; i++)
        doctor_add(report, WALLS, DOCTOR_ON, sandbox_wall_text((enum sandbox_wall) i), NULL, "%s",
                   sandbox_wall_keeps_out((enum sandbox_wall) i));
    look_at_seccomp(report);
}
