/* Quotas: how much one owner may have. 0 is no limit. Typed errors: ERR_QUOTA, and the message
 * names the limit, what is there and what was asked for. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"

struct json_place;

struct quota {
    uint32_t sandboxes;
    uint32_t running;      /* not asleep, not stopped */
    uint64_t memory_bytes; /* limits of running ones together */
    uint32_t cpu_millis;   /* likewise */
    uint64_t disk_bytes;   /* limits of all, and what snapshots hold, together */
    uint32_t snapshots;
    uint64_t storage_bytes; /* what buckets, backups and mirrors of workspaces hold */
    uint32_t requests_per_minute;
};

#define QUOTA_CPUS_MAX 512 /* that can be asked for; 0 is no limit */

/* JSON {"sandboxes":10,"running":5,"memory":"4G" or bytes,...}, as rows have it: there "cpu" counts
 * thousandths. Unknown fields are refused. Fields that are missing stay as they are in `quota`. */
int quota_read(const char *json, struct quota *quota, struct error *err);

/* For people and programs "cpu" counts CPUs, 1.5 is one and a half. What they said becomes what rows
 * have (`ret_json`, the caller's) with nothing else looked at; 0, or -1 with ERR_INVALID. And a quota
 * as they see it. */
int quota_from_api(const struct json_place *quotas, char **ret_json, struct error *err);
void quota_write_api(const struct quota *quota, struct text *text);
