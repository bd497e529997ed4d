/* Quotas: how much one owner may have. 0 is no limit. Typed errors: ERR_QUOTA, and the message
 * names the limit, what is there and what was asked for. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"

struct quota {
    uint32_t sandboxes;
    uint32_t running;      /* not asleep, not stopped */
    uint64_t memory_bytes; /* limits of running ones together */
    uint32_t cpu_millis;   /* likewise */
    uint64_t disk_bytes;   /* limits of all, and what snapshots hold, together */
    uint32_t snapshots;
    uint64_t storage_bytes; /* what the mirrors of workspaces hold together */
    uint32_t requests_per_minute;
};

/* JSON {"sandboxes":10,"running":5,"memory":"4G" or bytes,...}; unknown fields are refused. Fields
 * that are missing stay as they are in `quota`. */
int quota_read(const char *json, struct quota *quota, struct error *err);
void quota_write(const struct quota *quota, struct text *text);
