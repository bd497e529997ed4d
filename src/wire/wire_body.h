/* What the messages say: one list of fields per struct (wire_field.h explains the kinds).
 *
 * Everything that names something names it by id or by a registered name. There is no host path in
 * here, no option of a mount, no flag that leaves a wall out, and nothing free-form that the
 * launcher would act on: texts towards the launcher are for people only. */
#pragma once

#include "model/disk.h"
#include "model/ending.h"
#include "model/limits.h"
#include "model/state.h"
#include "model/stats.h"
#include "wire/wire_field.h"

#define WIRE_PROGRAM_MAX 64 /* length of a program's version */
#define WIRE_REASON_MAX  (ERROR_MESSAGE_MAX - 1)
#define WIRE_LIST_PAGE   64 /* sandboxes in one answer to a list */
#define WIRE_SOCKETS_MAX 32 /* sockets in one answer */

#define WIRE_PID_MAX   (1 << 22) /* the kernel's own limit */
#define WIRE_BYTES_MAX (UINT64_C(1) << 50)
#define WIRE_CPU_MAX   10000000 /* thousandths: ten thousand CPUs */
#define WIRE_FILES_MAX (1 << 20)

WIRE_VOCABULARY(limit, enum limit, LIMIT_WORDS);

#define WIRE_FEATURES(W)                                                                           \
    W(WIRE_FEATURE_FREEZE, "freeze", "sandboxes can be frozen")                                    \
    W(WIRE_FEATURE_NAT, "nat", "the network mode nat")                                             \
    W(WIRE_FEATURE_MOUNTS, "mounts", "mounts can be attached")                                     \
    W(WIRE_FEATURE_OOM, "oom", "a kill for lack of memory is told from other kills")               \
    W(WIRE_FEATURE_SNAPSHOTS, "snapshots", "disks can be copied as they are at one moment")        \
    W(WIRE_FEATURE_RECLAIM, "reclaim", "there is swap that memory of frozen ones can go to")
WIRE_ENUM(feature, WIRE_FEATURES);

WIRE_VOCABULARY(sandbox_state, enum run_state, RUN_STATES);

WIRE_VOCABULARY(exit_kind, enum ending_kind, ENDING_KINDS);

#define WIRE_KILL_SCOPES(W)                                                                        \
    W(WIRE_KILL_PROCESSES, "processes", "the disk stays and can be started again")                 \
    W(WIRE_KILL_EVERYTHING, "everything", "the disk is deleted, too")
WIRE_ENUM(kill_scope, WIRE_KILL_SCOPES);

#define WIRE_INSPECTIONS(W)                                                                        \
    W(WIRE_INSPECT_TRACE, "trace", "entries of the trace, as struct trace_entry has them")         \
    W(WIRE_INSPECT_STATE, "state", "what the launcher has: lines of text, for people")
WIRE_ENUM(inspection, WIRE_INSPECTIONS);

#define WIRE_SOCKET_FAMILIES(W)                                                                    \
    W(WIRE_SOCKET_IPV4, "ipv4", "AF_INET")                                                         \
    W(WIRE_SOCKET_IPV6, "ipv6", "AF_INET6")
WIRE_ENUM(socket_family, WIRE_SOCKET_FAMILIES);

WIRE_VOCABULARY(disk_set, enum disk_set, DISK_SETS);

WIRE_VOCABULARY(keeper_job_kind, enum disk_job_kind, DISK_JOBS);

WIRE_VOCABULARY(stat, enum stats_part, STATS_PARTS);

/* Bodies that are parts of others. */

#define WIRE_LIMITS_FIELDS(F, S)                                                                   \
    F(S, U64, memory_bytes, WIRE_BYTES_MAX, "0: no limit")                                         \
    F(S, U64, swap_bytes, LIMITS_SWAP_UNLIMITED, "beside the memory; 0: none, all ones: no limit") \
    F(S, U32, pids, WIRE_PID_MAX, "0: no limit")                                                   \
    F(S, U32, cpu_millis, WIRE_CPU_MAX, "thousandths of a CPU; 0: no limit")                       \
    F(S, U64, disk_bytes, WIRE_BYTES_MAX, "0: no limit")                                           \
    F(S, U32, files, WIRE_FILES_MAX, "open files of one process; 0: the launcher's default")
WIRE_DESCRIBE(limits, struct limits);

#define WIRE_ENTRY_FIELDS(F, S)                                                                    \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, ENUM, state, sandbox_state, "what the launcher sees")                                     \
    F(S, U32, pid, WIRE_PID_MAX, "of its PID 1, as the host counts; 0: none")                      \
    F(S, U64, start_time, UINT64_MAX, "of that process (field 22 of /proc/PID/stat)")
WIRE_STRUCT(entry, WIRE_ENTRY_FIELDS);
WIRE_LIST(entry, WIRE_LIST_PAGE);

#define WIRE_DISK_FIELDS(F, S)                                                                     \
    F(S, ENUM, set, disk_set, "where it is")                                                       \
    F(S, ID_OR_NONE, id, , "of the sandbox or snapshot; none: no disk")
WIRE_DESCRIBE(disk, struct disk_ref);

#define WIRE_ENDING_FIELDS(F, S)                                                                   \
    F(S, ENUM, kind, exit_kind, "how it ended")                                                    \
    F(S, U8, value, UINT8_MAX, "exit status or signal; else 0")
WIRE_DESCRIBE(ending, struct ending);

/* To the launcher. */

#define WIRE_HELLO_FIELDS(F, S)                                                                    \
    F(S, U16, version_min, UINT16_MAX, "oldest version of the protocol the daemon speaks")         \
    F(S, U16, version_max, UINT16_MAX, "newest one")                                               \
    F(S, TEXT, program, WIRE_PROGRAM_MAX, "version of the daemon, for people")
WIRE_STRUCT(hello, WIRE_HELLO_FIELDS);

#define WIRE_NOTHING_FIELDS(F, S)
WIRE_STRUCT(nothing, WIRE_NOTHING_FIELDS);

#define WIRE_TARGET_FIELDS(F, S) F(S, ID, id, , "the sandbox")
WIRE_STRUCT(target, WIRE_TARGET_FIELDS);

#define WIRE_ADOPT_FIELDS(F, S)                                                                    \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, U32, pid, WIRE_PID_MAX, "of its PID 1 as it was answered; 0: not known any more")         \
    F(S, U64, start_time, UINT64_MAX, "of that process; 0 when the pid is")
WIRE_STRUCT(adopt, WIRE_ADOPT_FIELDS);

#define WIRE_LIST_FIELDS(F, S)                                                                     \
    F(S, ID_OR_NONE, after, , "the last id of the page before; none: from the start")
WIRE_STRUCT(list, WIRE_LIST_FIELDS);

#define WIRE_SOCKETS_FIELDS(F, S)                                                                  \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, ENUM, family, socket_family, "of the sockets, which are all SOCK_STREAM")                 \
    F(S, COUNT, count, WIRE_SOCKETS_MAX, "how many")
WIRE_STRUCT(sockets, WIRE_SOCKETS_FIELDS);

#define WIRE_KILL_FIELDS(F, S)                                                                     \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, ENUM, scope, kill_scope, "what goes")
WIRE_STRUCT(kill, WIRE_KILL_FIELDS);

#define WIRE_SET_LIMITS_FIELDS(F, S)                                                               \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, RECORD, limits, limits, "all of them, also those that stay")
WIRE_STRUCT(set_limits, WIRE_SET_LIMITS_FIELDS);

#define WIRE_OPEN_MOUNT_FIELDS(F, S)                                                               \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, PATH, place, , "where it will be seen, inside the sandbox")                               \
    F(S, BOOL, read_only, , "nothing can be written through it")
WIRE_STRUCT(open_mount, WIRE_OPEN_MOUNT_FIELDS);

#define WIRE_MOUNT_FIELDS(F, S)                                                                    \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, U32, mount, UINT32_MAX, "the number that mount_opened gave")
WIRE_STRUCT(mount, WIRE_MOUNT_FIELDS);

#define WIRE_KEEPER_JOB_FIELDS(F, S)                                                               \
    F(S, ENUM, job, keeper_job_kind, "what to do; each has just the disks that it speaks of")      \
    F(S, RECORD, on, disk, "what is read; a sandbox must not be running")                          \
    F(S, RECORD, base, disk, "what it is compared with; pack: may be none")                        \
    F(S, ID_OR_NONE, target, , "whose disk is written: a new one; unpack: or of a stopped one")    \
    F(S, U64, disk_bytes, WIRE_BYTES_MAX, "limit of a new disk; 0: no limit, or no target")        \
    F(S, NAME_OR_NONE, image, , "the image under a view; else none")
WIRE_STRUCT(keeper_job, WIRE_KEEPER_JOB_FIELDS);

#define WIRE_SNAPSHOT_FIELDS(F, S)                                                                 \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, ID, snapshot, , "the new snapshot")                                                       \
    F(S, BOOL, freeze, , "hold a running one still, so that its files agree with each other")
WIRE_STRUCT(snapshot, WIRE_SNAPSHOT_FIELDS);

#define WIRE_SNAPSHOT_NAME_FIELDS(F, S) F(S, ID, id, , "the snapshot")
WIRE_STRUCT(snapshot_name, WIRE_SNAPSHOT_NAME_FIELDS);
WIRE_LIST(snapshot_name, WIRE_LIST_PAGE);

#define WIRE_ROLL_BACK_FIELDS(F, S)                                                                \
    F(S, ID, id, , "the sandbox; it must not be running")                                          \
    F(S, ID, snapshot, , "what its disk becomes a copy of")                                        \
    F(S, U64, disk_bytes, WIRE_BYTES_MAX, "limit of the disk; 0: no limit")
WIRE_STRUCT(roll_back, WIRE_ROLL_BACK_FIELDS);

#define WIRE_DISK_USAGE_FIELDS(F, S) F(S, RECORD, disk, disk, "which")
WIRE_STRUCT(disk_usage, WIRE_DISK_USAGE_FIELDS);

#define WIRE_SYNC_FIELDS(F, S)                                                                     \
    F(S, BOOL, contents, , "with everything that was written into them, synced or not")
WIRE_STRUCT(sync, WIRE_SYNC_FIELDS);

#define WIRE_INSPECT_FIELDS(F, S)                                                                  \
    F(S, ENUM, what, inspection, "which")                                                          \
    F(S, ID_OR_NONE, request, , "of a trace: about this request alone")                            \
    F(S, ID_OR_NONE, sandbox, , "of a trace: about this sandbox alone")
WIRE_STRUCT(inspect, WIRE_INSPECT_FIELDS);

/* To the daemon. */

#define WIRE_WELCOME_FIELDS(F, S)                                                                  \
    F(S, U16, version, UINT16_MAX, "of every message from now on")                                 \
    F(S, TEXT, program, WIRE_PROGRAM_MAX, "version of the launcher, for people")                   \
    F(S, FLAGS, features, feature, "what this host can do")                                        \
    F(S, FLAGS, enforced, limit, "which limits this host can enforce")
WIRE_STRUCT(welcome, WIRE_WELCOME_FIELDS);

#define WIRE_REFUSED_FIELDS(F, S)                                                                  \
    F(S, U16, version_min, UINT16_MAX, "oldest version the launcher speaks")                       \
    F(S, U16, version_max, UINT16_MAX, "newest one")                                               \
    F(S, TEXT, message, WIRE_REASON_MAX, "why, for people")
WIRE_STRUCT(refused, WIRE_REFUSED_FIELDS);

#define WIRE_DONE_FIELDS(F, S)                                                                     \
    F(S, NAME, code, , "stable text of an error code, `ok` when there is none")                    \
    F(S, U16, system, UINT16_MAX, "errno behind it, or 0")                                         \
    F(S, TEXT, message, WIRE_REASON_MAX, "for people; empty with `ok`")
WIRE_STRUCT(done, WIRE_DONE_FIELDS);

#define WIRE_SANDBOX_FIELDS(F, S)                                                                  \
    F(S, RECORD, entry, entry, "as in a list")                                                     \
    F(S, U32, uid_first, UINT32_MAX, "the host's id of its root")                                  \
    F(S, U32, uid_count, UINT32_MAX, "ids from there on that are its own")                         \
    F(S, FLAGS, unenforced, limit, "limits that were asked for and do not hold on this host")      \
    F(S, U64, pause_us, UINT64_MAX,                                                                \
      "how long its origin stood still; 0: it has none, or it did not")
WIRE_STRUCT(sandbox, WIRE_SANDBOX_FIELDS);

#define WIRE_LISTED_FIELDS(F, S)                                                                   \
    F(S, BOOL, more, , "ask again after the last id of this page")                                 \
    F(S, LIST, entries, entry, "sorted by id")
WIRE_STRUCT(listed, WIRE_LISTED_FIELDS);

#define WIRE_SOCKETS_MADE_FIELDS(F, S)                                                             \
    F(S, FD_COUNT, count, WIRE_SOCKETS_MAX, "sockets that come along, as many as were asked for")
WIRE_STRUCT(sockets_made, WIRE_SOCKETS_MADE_FIELDS);

#define WIRE_STATS_READ_FIELDS(F, S)                                                               \
    F(S, FLAGS, known, stat, "which of these are known; the others are 0")                         \
    F(S, U64, cpu_us, UINT64_MAX, "time on CPUs")                                                  \
    F(S, U64, throttled_us, UINT64_MAX, "time spent waiting for the CPU limit")                    \
    F(S, U64, memory_bytes, UINT64_MAX, "now")                                                     \
    F(S, U64, memory_peak_bytes, UINT64_MAX, "the most it ever was")                               \
    F(S, U64, pids, UINT64_MAX, "now")                                                             \
    F(S, U64, pids_refused, UINT64_MAX, "forks that failed at the limit")                          \
    F(S, U64, read_bytes, UINT64_MAX, "from disks")                                                \
    F(S, U64, written_bytes, UINT64_MAX, "to disks")                                               \
    F(S, U64, oom_kills_agent, UINT64_MAX, "processes of ours killed for lack of memory")          \
    F(S, U64, oom_kills_work, UINT64_MAX, "the user's processes killed for lack of memory")        \
    F(S, U64, received_bytes, UINT64_MAX, "from the network")                                      \
    F(S, U64, sent_bytes, UINT64_MAX, "to the network")                                            \
    F(S, U64, disk_bytes, UINT64_MAX, "on its disk now")
WIRE_DESCRIBE(stats_read, struct stats);

#define WIRE_MOUNT_OPENED_FIELDS(F, S)                                                             \
    F(S, U32, mount, UINT32_MAX, "number of this mount, in this sandbox")
WIRE_STRUCT(mount_opened, WIRE_MOUNT_OPENED_FIELDS);

#define WIRE_JOB_ENDED_FIELDS(F, S) F(S, RECORD, ending, ending, "of the keeper process")
WIRE_STRUCT(job_ended, WIRE_JOB_ENDED_FIELDS);

#define WIRE_SNAPSHOT_MADE_FIELDS(F, S)                                                            \
    F(S, U64, pause_us, UINT64_MAX, "how long the sandbox stood still")                            \
    F(S, U64, took_us, UINT64_MAX, "from the request to here")                                     \
    F(S, BOOL, is_copied, , "byte by byte: this pool cannot do it in one step")
WIRE_DESCRIBE(snapshot_made, struct snapshot_made);

#define WIRE_SNAPSHOTS_LISTED_FIELDS(F, S)                                                         \
    F(S, BOOL, more, , "ask again after the last id of this page")                                 \
    F(S, LIST, names, snapshot_name, "sorted by id")
WIRE_STRUCT(snapshots_listed, WIRE_SNAPSHOTS_LISTED_FIELDS);

#define WIRE_BYTES_COUNTED_FIELDS(F, S) F(S, U64, bytes, UINT64_MAX, "as of the last few seconds")
WIRE_STRUCT(bytes_counted, WIRE_BYTES_COUNTED_FIELDS);

#define WIRE_EXITED_FIELDS(F, S)                                                                   \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, RECORD, ending, ending, "of its PID 1")
WIRE_STRUCT(exited, WIRE_EXITED_FIELDS);

#define WIRE_STOPPING_FIELDS(F, S) F(S, TEXT, reason, WIRE_REASON_MAX, "for people")
WIRE_STRUCT(stopping, WIRE_STOPPING_FIELDS);
