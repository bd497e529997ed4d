/* What a sandbox has used since it began. Unknown is said, never guessed: `known` has a bit for
 * each part, and the numbers of the others are 0. */
#pragma once

#include <stdint.h>

#include "model/words.h"

struct stats {
    uint32_t known; /* STATS_BIT(...) */
    uint64_t cpu_us;
    uint64_t throttled_us; /* time that programs waited for their CPU limit */
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
    uint64_t pids;
    uint64_t pids_refused; /* forks that failed at the limit */
    uint64_t read_bytes;   /* from disks */
    uint64_t written_bytes;
    uint64_t oom_kills_agent; /* killed for lack of memory: processes of ours, */
    uint64_t oom_kills_work;  /* and the user's */
    uint64_t received_bytes;  /* from the network */
    uint64_t sent_bytes;
    uint64_t disk_bytes; /* on its disk now */
};

#define STATS_PARTS(W)                                                                             \
    W(STATS_CPU, "cpu", "cpu_us")                                                                  \
    W(STATS_THROTTLED, "throttled", "throttled_us")                                                \
    W(STATS_MEMORY, "memory", "memory_bytes")                                                      \
    W(STATS_MEMORY_PEAK, "memory_peak", "memory_peak_bytes")                                       \
    W(STATS_PIDS, "pids", "pids")                                                                  \
    W(STATS_PIDS_REFUSED, "pids_refused", "pids_refused")                                          \
    W(STATS_IO, "io", "read_bytes, written_bytes")                                                 \
    W(STATS_OOM, "oom", "oom_kills_agent, oom_kills_work")                                         \
    W(STATS_NETWORK, "network", "received_bytes, sent_bytes")                                      \
    W(STATS_DISK, "disk", "disk_bytes")
enum stats_part { STATS_PARTS(WORD_CONSTANT) };

/* One part in a set: STATS_BIT(CPU). */
#define STATS_BIT(name) (1U << STATS_##name)
