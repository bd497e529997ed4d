/* The provider `fake`: sandboxes that are only remembered, for tests of whoever uses providers.
 *
 * Everything succeeds at the end of the turn, unless a test says otherwise: a call can be made to
 * fail or to wait, a sandbox to exit, the provider to be lost. It passes the same contract test as
 * the real ones. All functions belong to the loop's thread. */
#pragma once

#include "net/loop.h"
#include "provider/provider.h"
#include "provider/provider_table.h"

struct provider_fake_options {
    struct loop *loop;       /* borrowed */
    unsigned int missing;    /* enum provider_capability: what it shall not be able to do */
    unsigned int unenforced; /* LIMIT_BIT(...): those that shall not hold */
    const char *agents;      /* agents are at unix:AGENTS/ID.sock; NULL: there are none */
    bool chooses_ids;        /* as from a stock: unless keep_id, the id is another */
};

struct provider *provider_fake_new(const struct provider_fake_options *options);

/* Before open: a sandbox of earlier times. With `ending` it is stopped, and the exit is told after
 * open. */
void provider_fake_add(struct provider *provider, const struct id *id, enum run_state state,
                       const struct ending *ending);

/* The next call of this kind fails like this. ERR_NONE: never mind. */
void provider_fake_fail_next(struct provider *provider, enum provider_call_kind kind,
                             enum err_code code);

/* Calls of this kind are not answered while `hold` is on; switching it off answers them. */
void provider_fake_hold(struct provider *provider, enum provider_call_kind kind, bool hold);

/* The sandbox's PID 1 ends, at the end of the turn. */
void provider_fake_exit(struct provider *provider, const struct id *id,
                        const struct ending *ending);

/* The provider is lost, at the end of the turn; calls that are held fail first. */
void provider_fake_lose(struct provider *provider, const char *why);

/* What jobs of a kind do from now on. Without it they end at once, with an outcome as of an empty
 * disk. What they write must fit into a pipe, because the fake does not wait for readers. */
struct provider_fake_job {
    const char *report; /* whole lines for the output; NULL: the outcome of an empty disk */
    const void *data;   /* bytes for the data */
    size_t size;
    enum err_code failure; /* not ERR_NONE: it ends with status 1, and a last line that says so */
};

void provider_fake_set_job(struct provider *provider, enum disk_job_kind kind,
                           const struct provider_fake_job *job);

/* What provider_stats says from now on, for all. */
void provider_fake_set_stats(struct provider *provider, const struct stats *stats);

/* The limits that a sandbox has now; NULL: there is no such sandbox. Borrowed. */
const struct limits *provider_fake_limits(const struct provider *provider, const struct id *id);

/* A snapshot of earlier times; whether there is one. Usage is what provider_fake_set_stats says. */
void provider_fake_add_snapshot(struct provider *provider, const struct id *id);
bool provider_fake_has_snapshot(const struct provider *provider, const struct id *id);

/* Whether snapshots are copied file by file from now on. */
void provider_fake_set_copying(struct provider *provider, bool is_copying);

/* What the disk of a sandbox was last made a copy of, by a create or by going back; NULL: of
 * nothing. Borrowed. */
const struct disk_ref *provider_fake_origin(const struct provider *provider, const struct id *id);
