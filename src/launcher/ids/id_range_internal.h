/* Inside id_range only: the file of the table, shared by the two halves of the module.
 *
 *     0    header                      64 bytes
 *     64   record of range `first`     64 bytes
 *     128  record of the next range    ...
 *
 * Written and read by one machine only, so numbers are in its own order. A sandbox's record is at
 * its home (from a hash of the id) or behind it, with no record of STATE_NEVER in between: that is
 * where a search ends. */
#pragma once

#include <limits.h>
#include <time.h>

#include "launcher/ids/id_range.h"
#include "launcher/ids/id_range_reserved.h"

#define ID_RANGE_BOOT_SIZE 36

enum id_range_state {
    STATE_NEVER = 0, /* also what lies beyond the end of the file */
    STATE_TAKEN,
    STATE_FREE, /* a search goes on */
};

struct id_range_record {
    char sandbox[ID_SIZE];
    uint8_t state;
    uint32_t owner;
    uint64_t owner_start;
    uint64_t user; /* see id_range_entry */
    uint64_t pids; /* see id_range_entry */
    uint64_t checksum;
};

/* What tells that a file of /etc was changed. */
struct id_range_stamp {
    uint64_t inode;
    int64_t size;
    int64_t seconds;
    int64_t nanoseconds;
};

#define ID_RANGE_STAMPS 4

struct id_range_table {
    int file; /* owned */
    uint32_t first;
    uint32_t slots;
    struct id_range_reserved reserved;
    struct id_range_stamp stamps[ID_RANGE_STAMPS]; /* of what `reserved` was read from */
    uint64_t user; /* who takes ranges by this table; 0: nobody in particular */
    uint64_t pids; /* our pid namespace */
    pid_t self;    /* whose start time is known: reading it takes longer than all the rest */
    uint64_t self_start;
    char etc[PATH_MAX];
    char process[PATH_MAX];
    char boot[ID_RANGE_BOOT_SIZE + 1];
};

/* FNV-1a: catches files that are not ours and writes that stopped half way, not enemies, who
 * cannot write here. */
uint64_t id_range_checksum(const void *bytes, size_t count);

/* Read `count` records from `slot` on. One that does not add up reads as taken by nobody: it is
 * never found and never given out. Returns 0 or -errno, as do the next two. */
int id_range_read(struct id_range_table *table, uint32_t slot, struct id_range_record *ret_records,
                  uint32_t count);

int id_range_write(struct id_range_table *table, uint32_t slot, struct id_range_record record);

/* Lock the table and read its header anew; sys_lock_release(table->file) ends it. */
int id_range_lock(struct id_range_table *table, struct error *err);
