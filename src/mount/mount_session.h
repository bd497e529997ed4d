/* A mount: a part of a bucket as a folder, served to the kernel on a descriptor of /dev/fuse.
 *
 * The server is on the daemon's loop and outside of the sandbox: nothing of the store, its address
 * or its secrets can be seen from in there. One session is one mount of one sandbox.
 *
 *     host = mount_host_new(loop, &settings, &err);                       once per daemon
 *     provider_open_mount(...)                     -> a number, and the descriptor
 *     session = mount_session_new(host, objects, &options, fuse, &err);   answers the kernel
 *     provider_attach_mount(...)                   -> it is seen in the sandbox
 *     -> on_lost(context)                          the kernel let go: the sandbox ended, or detach
 *     mount_session_close(session, 10000, on_closed, mine);
 *
 * What a file is: an object whose key is the prefix and the path. What a folder is: an object
 * "path/" of no bytes, or anything beneath. Reads come in blocks, kept in a cache with limits.
 * Writes go to a file of the daemon's and are put as one object by close, fsync, or the end of the
 * session: close(2) returns when the store has it, or with the reason why not (EIO, EACCES, ENOSPC,
 * ETIMEDOUT). Modes, owners and times are kept as s3fs keeps them. Others see changes when a file
 * is closed; we see those of others within MOUNT_FRESH_MS, open files at their next open.
 *
 * Holes cost nothing: a file that was made long by truncate takes no room until it is written to,
 * neither here nor in a folder store. SEEK_HOLE does not show them.
 *
 * Who has as many files open for writing as an owner may gets EMFILE, whoever has written more than
 * may wait, or than his quota of storage, ENOSPC; the log says which.
 *
 * What does not work: hard links (EPERM), devices, sockets and FIFOs (EPERM), extended attributes,
 * locks between two mounts (within one they are the kernel's), names that are not UTF-8
 * (EILSEQ), rename of folders with more than MOUNT_RENAME_MAX objects (EXDEV, as between two file
 * systems: `mv` copies then). Keys that no file can have ("a//b", "..", names above 255 bytes, or a
 * folder beside a file of its name) are left out and counted.
 *
 * A store that does not answer fails a request after MOUNT_PATIENCE_MS; a process that is killed or
 * frozen meanwhile gets its answer (EINTR) after MOUNT_GRACE_MS. All of it on the loop's thread. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "mount/mount_call.h"
#include "share/share.h"

#define MOUNT_FRESH_MS      1000
#define MOUNT_GRACE_MS      500
#define MOUNT_BLOCK         ((size_t) 1024 * 1024) /* of the cache, and of one read of the store */
#define MOUNT_AHEAD_MAX     4 /* blocks that are fetched before they are asked for */
#define MOUNT_RENAME_MAX    10000
#define MOUNT_REQUESTS_MAX  1024 /* open ones of a session; more wait in the kernel */
#define MOUNT_HELD_MAX      ((size_t) 16 * 1024 * 1024) /* bytes of writes under way */
#define MOUNT_HANDLES_MAX   65536                       /* open files of a session */
#define MOUNT_CACHE_DEFAULT ((size_t) 32 * 1024 * 1024) /* of a session */
#define MOUNT_SPOOL_DEFAULT (UINT64_C(8) * 1024 * 1024 * 1024)

struct mount_host;
struct mount_session;

/* What all mounts of a daemon share. */
struct mount_host_options {
    const char *spool;         /* folder for files that are being written; made when missing */
    uint64_t spool_limit;      /* bytes of all of them */
    uint64_t floor;            /* of the disk, that stay free; 0: none */
    size_t cache_limit;        /* bytes of all blocks in memory */
    struct shares *shares;     /* borrowed; may be NULL: nothing is counted */
    struct log *log;           /* borrowed, may be NULL */
    const struct clock *clock; /* borrowed */
};

/* NULL with ERR_INTERNAL: the folder cannot be used. */
struct mount_host *mount_host_new(struct loop *loop, const struct mount_host_options *options,
                                  struct error *err);
/* All sessions must be closed. Accepts NULL. */
void mount_host_free(struct mount_host *host);

struct mount_options {
    const char *prefix; /* of the keys: "" or "projects/7/"; UTF-8 without empty segments */
    bool read_only;
    uint32_t uid, gid;        /* of files that say nothing of their owner, as the sandbox counts */
    uint32_t file_mode;       /* of those that say nothing of it; 0: 0644 */
    uint32_t folder_mode;     /* 0: 0755 */
    size_t cache_limit;       /* 0: MOUNT_CACHE_DEFAULT */
    uint64_t spool_limit;     /* 0: MOUNT_SPOOL_DEFAULT */
    uint64_t patience_ms;     /* with the store; 0: MOUNT_PATIENCE_MS */
    const char *text;         /* for the log: whose it is. May be NULL */
    struct share_asker asker; /* in whose name spools are claimed */
    struct bucket_book *book; /* borrowed: of a bucket of ours; NULL: nobody's quota is asked */
    /* The kernel has let go of it. Once, never from inside a call; mount_session_close is due. */
    void (*on_lost)(void *context);
    void *context;
};

/* Takes `fuse`, also when it fails. `objects` is borrowed and outlives the session. NULL with
 * ERR_INVALID (a prefix) or ERR_INTERNAL. */
struct mount_session *mount_session_new(struct mount_host *host, struct objects *objects,
                                        const struct mount_options *options, int fuse,
                                        struct error *err);

/* `lost`: files with changes that the store does not have. */
typedef void mount_session_closed(void *context, size_t lost);

/* Stop serving, put what was written and not yet put (for at most `patience_ms`), let go of the
 * descriptor (whoever still uses the mount gets ENOTCONN), then call `done` (may be NULL). The
 * session is gone. */
void mount_session_close(struct mount_session *session, uint64_t patience_ms,
                         mount_session_closed *done, void *context);

struct mount_counters {
    uint64_t requests, errors, interrupts;
    uint64_t calls, failures, timeouts; /* of the store */
    uint64_t read_bytes, written_bytes;
    uint64_t cache_hits, cache_misses;
    uint64_t hidden; /* keys that no file can have, each time they were listed */
    size_t open_requests, nodes, handles, dirty;
    size_t cache_bytes;
    uint64_t spool_bytes;
};

void mount_session_counters(const struct mount_session *session,
                            struct mount_counters *ret_counters);
