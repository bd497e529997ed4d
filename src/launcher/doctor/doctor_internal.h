/* Inside the doctor only: the areas, and how they add their rows. */
#pragma once

#include "launcher/doctor/doctor.h"

typedef void doctor_area(const struct doctor_options *options, struct doctor_report *report);

doctor_area doctor_rights;      /* root, capabilities */
doctor_area doctor_kernel;      /* version, calls */
doctor_area doctor_namespaces;  /* one of each kind */
doctor_area doctor_mounts;      /* idmapped mounts, overlay in a user namespace */
doctor_area doctor_host_mounts; /* shared or not, and whether ours stay apart */
doctor_area doctor_cgroups;
doctor_area doctor_disk;
doctor_area doctor_ids;     /* id ranges, the daemon's user */
doctor_area doctor_limits;  /* of the host, the core pattern */
doctor_area doctor_network; /* nftables, forwarding, foreign firewalls */
doctor_area doctor_programs;
doctor_area doctor_walls;

/* Add a row. `remedy` may be NULL; the detail is formatted. A full report drops it. */
void doctor_add(struct doctor_report *report, const char *area, enum doctor_state state,
                const char *name, const char *remedy, const char *detail, ...)
    __attribute__((format(printf, 6, 7)));

/* Run `area` in a child and take over its rows. One that crashes or hangs becomes a warning. */
void doctor_aside(doctor_area *area, const char *name, const struct doctor_options *options,
                  struct doctor_report *report);

/* A whole file, "" when it cannot be read. The caller frees it. */
char *doctor_read(const char *folder, const char *file);
