/* For the fuzzer of the service only: a host in memory. In service_fuzz_host.c are processes and
 * what happens by itself, in service_fuzz_porter.c copies of disks, in service_fuzz_parts.c the
 * rest of the functions that are replaced. It stands for everything beneath the residents (groups,
 * disks, ids, networks, the janitor), does what it is told when it is told, and aborts when it is
 * asked what must never be asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "launcher/helper/janitor.h"
#include "launcher/helper/porter.h"
#include "launcher/residents/residents.h"
#include "sys/process/sys_process.h"

#define HOST_BOXES 6 /* as many ids as the fuzzer uses */

/* What there is of one sandbox. */
struct host_box {
    struct id id;
    bool has_snapshot; /* one with this id, whose ever */
    bool has_disk, has_range, has_groups, has_socket, has_network, has_record;
    bool is_promised; /* somebody was told that it is his: nobody may delete its disk */
    bool is_doomed;   /* somebody was told that it is destroyed: its disk has to go */
    bool is_alive;
    bool is_killed; /* dies as soon as the host gets to it */
    bool is_frozen;
    int process;    /* borrowed: what the launcher believes to be a pidfd */
    int status_end; /* owned: the child's end of the status pipe */
    struct sys_exit exit;
    unsigned int deaths, told;
};

/* A keeper at work. */
struct host_keeper {
    struct id disk, base, target;
    int process; /* borrowed */
    bool is_over;
    struct sys_exit exit;
};

#define HOST_KEEPERS 8

struct host {
    struct host_box boxes[HOST_BOXES];
    struct host_keeper keepers[HOST_KEEPERS];
    struct list jobs;       /* of janitor_job */
    struct list copies;     /* of porter_job */
    bool is_plain;          /* of plain folders: copies take their time */
    unsigned int fail_next; /* the call before so many others that can fail does; 0: none */
};

/* The one host: what stands in for functions of others has no other way to it. */
extern struct host the_host;

void host_init(void);

/* Abort unless it holds. */
static inline void must(bool holds)
{
    if (!holds)
        abort();
}

/* NULL for ids that are not ours, which is fine until something is made for it. */
struct host_box *host_find(const struct id *id);

/* Whether this call fails, because it is its turn or because it names none of our ids (NULL: it
 * names none at all): then there is nothing, and nothing is made. */
bool host_fails(const struct id *id, struct error *err);

/* -1 with ERR_NOT_FOUND. */
int host_not_there(struct error *err);

/* The start of a sandbox goes on: it is ready, or it fails in a step. */
void host_become_ready(struct host_box *box);
void host_fail_start(struct host_box *box);

/* Its first process ends; the kernel notices `is_killed` here, too. */
void host_die(struct host_box *box, const struct sys_exit *how);

/* All keepers end, with this status. */
void host_end_keepers(int status);

/* The porter does its oldest job. False: there is none. */
bool host_carry(void);

/* The janitor does its oldest job. False: there is none. */
bool host_work(void);
