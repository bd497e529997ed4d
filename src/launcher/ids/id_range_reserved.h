/* User and group ids that are somebody's already: accounts of the host, ranges promised to others
 * in /etc/subuid and /etc/subgid, ids that do not exist in our own user namespace. No range of a
 * sandbox may touch them.
 *
 * Files are read as they are, without NSS: the launcher talks to no directory server. Lines that
 * are not of the form are skipped, as the tools that own these files do. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"

/* The longest of those files, and how many entries are kept before all ids count as reserved. */
#define ID_RANGE_FILE_MAX     (8 << 20)
#define ID_RANGE_RESERVED_MAX (1 << 17)

struct id_range_interval {
    uint32_t first;
    uint32_t last; /* included */
};

struct id_range_reserved {
    struct id_range_interval *intervals; /* owned; sorted and apart once finished */
    size_t count;
    size_t room;
    bool overflowed; /* too many: everything is reserved */
};

#define ID_RANGE_RESERVED_INIT                                                                     \
    {                                                                                              \
        .intervals = NULL                                                                          \
    }

/* One interval by hand. */
void id_range_reserved_add(struct id_range_reserved *reserved, uint32_t first, uint32_t last);

/* The text of /etc/subuid or /etc/subgid: "name:first:count" per line. */
void id_range_reserved_add_promised(struct id_range_reserved *reserved, const char *text);

/* The text of /etc/passwd or /etc/group: the third field of each line. */
void id_range_reserved_add_accounts(struct id_range_reserved *reserved, const char *text);

/* The text of /proc/self/uid_map or gid_map: all ids that it does not name. */
void id_range_reserved_add_unmapped(struct id_range_reserved *reserved, const char *text);

/* Sort and join what was added: before the first question. */
void id_range_reserved_finish(struct id_range_reserved *reserved);

/* Whether one of `count` ids from `first` on is reserved. */
bool id_range_reserved_has(const struct id_range_reserved *reserved, uint32_t first,
                           uint32_t count);

/* Read all of these files and finish: passwd, group, subuid and subgid in `etc`, and uid_map and
 * gid_map in `process` (/proc/self). Missing files in `etc` reserve nothing. Returns 0, or -1 when
 * one cannot be read. */
int id_range_reserved_read(struct id_range_reserved *reserved, const char *etc, const char *process,
                           struct error *err);

/* Empty and usable again. */
void id_range_reserved_done(struct id_range_reserved *reserved);

AUTO_DEFINE(id_range_reserved, struct id_range_reserved, id_range_reserved_done);
