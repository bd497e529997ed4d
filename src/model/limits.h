/* How much a sandbox may use. */
#pragma once

#include <stdint.h>

#include "model/words.h"

#define LIMITS_SWAP_UNLIMITED UINT64_MAX

struct limits { /* 0: no limit, except for swap, where it means none */
    uint64_t memory_bytes;
    uint64_t swap_bytes; /* beside the memory; LIMITS_SWAP_UNLIMITED: no limit */
    uint32_t pids;
    uint32_t cpu_millis; /* thousandths of a CPU: 1500 is one and a half */
    uint64_t disk_bytes;
    uint32_t files; /* open files of one process; 0: the launcher's default */
};

/* Their names, for sets of them: which can be enforced, which are not. */
#define LIMIT_WORDS(W)                                                                             \
    W(LIMIT_MEMORY, "memory", "memory of all processes")                                           \
    W(LIMIT_SWAP, "swap", "swap beside the memory")                                                \
    W(LIMIT_PIDS, "pids", "processes and threads")                                                 \
    W(LIMIT_CPU, "cpu", "time of the CPUs")                                                        \
    W(LIMIT_DISK, "disk", "bytes on the sandbox's disk")                                           \
    W(LIMIT_FILES, "files", "open files of one process")
enum limit { LIMIT_WORDS(WORD_CONSTANT) };

/* One limit in a set: LIMIT_BIT(MEMORY). */
#define LIMIT_BIT(name) (1U << LIMIT_##name)
