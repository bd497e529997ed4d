/* The trace: what this process did last, and for which request and sandbox.
 *
 *     TRACE_FOR(&request->id, NULL);          the rest of this scope is done for that request
 *     TRACE("domain.create.made");            one entry in the ring
 *     TRACE_WITH("wire.ask", "create");       the same, and which of several
 *
 * A ring of the last entries, always on: an entry is a clock and a copy, about a tenth of a
 * microsecond. Every CRASH_POINT is one. A process that aborts prints its ring (trace_start),
 * `burrow debug trace` shows those of all processes, merged by time.
 *
 * For whom something is done is a variable of the thread, because it belongs to everything that is
 * done and not to one module: the third deliberate exception to "no hidden globals", beside fault.h
 * and crash_point.h. Between two callbacks of a loop it is empty. What goes on later keeps a copy
 * and sets it again before it calls back:
 *
 *     call->trace = trace_context;            when the call is made
 *     TRACE_AS(&call->trace);                 when it ends, before its caller is told
 *
 * That is done where calls of a kind meet (loop.c, domain_call.c, provider_call.c, http_exchange.c,
 * wire_conversation.c, event_loop.c ...), never at a single call. The log adds both ids to its
 * lines.
 *
 * Entries may be added by several threads at once, and by the processes that one forks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

/* Of a process that did not call trace_start: tests and short-lived programs. */
#define TRACE_ENTRIES_DEFAULT 256
#define TRACE_ENTRIES_MAX     16384
/* Of the others. One that is full of a daemon is the last thousand requests; an agent's memory is
 * its sandbox's, and it has one sandbox to tell of. */
#define TRACE_DAEMON   16384
#define TRACE_LAUNCHER 4096 /* with janitor, porter and what its children do before exec */
#define TRACE_AGENT    512

#define TRACE_PROCESS_SIZE 12
#define TRACE_POINT_SIZE   54

struct trace_context {
    struct id request; /* "": none */
    struct id sandbox; /* "": none, or several */
};

extern _Thread_local struct trace_context trace_context;

struct trace_entry {
    uint64_t number; /* from 1, within one ring */
    int64_t time_ns; /* CLOCK_MONOTONIC: the same for all processes of a machine */
    char process[TRACE_PROCESS_SIZE];
    struct trace_context context;
    char point[TRACE_POINT_SIZE];
};

/* `point` is "module.action.moment", as of CRASH_POINT. `what` may follow it: which of several, or
 * NULL. Both together are cut at TRACE_POINT_SIZE - 1 characters. No secret, no text of a stranger.
 */
void trace_add(const char *point, const char *what);
#define TRACE(point)            trace_add((point), NULL)
#define TRACE_WITH(point, what) trace_add((point), (what))

/* --- the ring -------------------------------------------------------------------------------- */

/* First in main, before there are threads: name this process in its entries and keep `count` of
 * them (a power of two, at most TRACE_ENTRIES_MAX), in memory that is shared with processes it
 * forks. From now on a signal that means a fault of ours (SIGABRT, SIGSEGV ...) prints the ring to
 * stderr before it ends the process. */
void trace_start(const char *process, size_t count);

/* The same with a ring in the file `fd`: for a process whose ring somebody else reads with
 * trace_collect. Returns 0 or -errno: -EINVAL when it is not TRACE_FILE_SIZE(count) long. */
int trace_start_in(const char *process, size_t count, int fd);
#define TRACE_PLACE_SIZE       (sizeof(struct trace_entry) + sizeof(uint64_t))
#define TRACE_FILE_SIZE(count) ((count) *TRACE_PLACE_SIZE)

/* Where a keeper finds the file of its ring, and how long that is. */
#define TRACE_FILE_FD        6
#define KEEPER_TRACE_ENTRIES 64

/* After a fork: how the child calls itself. */
void trace_name(const char *process);

/* The newest entries about that request and that sandbox ("": any), oldest first, at most `most`.
 * Those that are written meanwhile are left out. Returns how many. */
size_t trace_read(const struct trace_context *about, struct trace_entry *ret_entries, size_t most);

/* The entries behind number `*seen`, at most `most`; `*seen` becomes the number of the last one. */
size_t trace_read_new(uint64_t *seen, struct trace_entry *ret_entries, size_t most);

/* Take over what is in the file of a ring of `count` that a process we do not trust wrote
 * (trace_start_in). Its words are cut and cleaned; for whom it was done we know better than it. */
void trace_collect(int fd, size_t count, const char *process);

/* Make the texts of an entry that came from elsewhere safe: they end, and are printable. */
void trace_entry_clean(struct trace_entry *entry);

/* The last `most` entries as text, "SECONDS PROCESS REQUEST SANDBOX POINT" with "-" for none. Safe
 * in a signal handler. */
void trace_print(int fd, size_t most);

/* --- scopes ----------------------------------------------------------------------------------- */

/* NULL leaves that half as it is. Returns what was before. */
struct trace_context trace_enter(const struct id *request, const struct id *sandbox);

/* What is done for a request turned out to be about this sandbox: said once it is known, holds until
 * the scope ends. Without a request there may be no scope, and nothing is changed. */
static inline void trace_about(const struct id *sandbox)
{
    if (trace_context.request.text[0])
        trace_context.sandbox = *sandbox;
}

static inline void trace_leave(const struct trace_context *before)
{
    trace_context = *before;
}

#define TRACE_NAME_AT(line) trace_before_##line
#define TRACE_NAME(line)    TRACE_NAME_AT(line)
#define TRACE_SCOPE         __attribute__((cleanup(trace_leave), unused)) const struct trace_context

/* Until the end of the scope. */
#define TRACE_FOR(request, sandbox)                                                                \
    TRACE_SCOPE TRACE_NAME(__LINE__) = trace_enter((request), (sandbox))
#define TRACE_AS(context) TRACE_FOR(&(context)->request, &(context)->sandbox)
