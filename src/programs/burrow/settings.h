/* Settings of the daemon: one table gives the flags, the BURROW_* variables, the keys of the ini
 * file, the help and docs/settings.md.
 *
 * A flag wins over the environment, which wins over the file, which wins over the default. Every
 * error names the place the value came from and what would be right. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

struct settings {
    char *listen; /* owned, like every text here */
    char *data;
    bool no_auth;
    bool core_dumps;
    char *allowed_hosts;
    char *tls_certificate;
    char *tls_key;
    char *log_level;
    char *log_format;
    uint64_t connections_max;
    uint64_t head_timeout_ms;
    uint64_t body_timeout_ms;
    uint64_t idle_timeout_ms;
    uint64_t drain_timeout_ms;
    bool no_sandboxes;
    char *user;
    char *run_folder;
    char *cgroup;
    char *cgroup_parent;
    char *network_name;
    uint64_t pool_size; /* bytes; 0: not given */
    char *default_network;
    uint64_t stock;
    char *agent_image;
    char *prepare_images;
    char *node;
    uint64_t default_memory; /* bytes; 0: no limit, as for all limits and quotas */
    uint64_t default_pids;
    uint64_t default_cpus; /* thousandths */
    uint64_t default_disk;
    uint64_t reclaim_after_ms;
    uint64_t hibernate_after_ms;
    uint64_t offload_after_ms;
    uint64_t snapshot_cache;
    uint64_t squash_above;
    uint64_t gc_every_ms;
    uint64_t memory_pressure; /* percent of memory that is available; 0: never mind */
    uint64_t event_retention_ms;
    char *sync_excludes;
    uint64_t quota_sandboxes;
    uint64_t quota_running;
    uint64_t quota_memory;
    uint64_t quota_cpus;
    uint64_t quota_disk;
    uint64_t quota_snapshots;
    uint64_t quota_storage;
    uint64_t quota_requests;
    uint64_t disk_floor;
    char *share_limits;
    char *preview_host;
    char *preview_listen;
    char *trusted_proxies;
    char *cors_origins;
    char *sign_up;
    char *service_token_file;
    char *webhook_networks;
    bool enable_cloudflare;
    bool auto_select_provider;
    char *default_provider;
    uint64_t message_threshold_ms; /* 0: none is slow */
    char *mount_networks;
    char *broker_networks;
    char *broker_local;
    char *model_upstreams;
    char *prices;
    char *objects;
    char *s3_endpoint;
    char *s3_region;
    char *s3_bucket;
    char *s3_buckets_bucket;
    char *s3_access_key;
    char *s3_secret_key_file;
    char *s3_style;
};

/* All sources in order. `argv` are the words behind the verb; `environment` is NULL-terminated
 * "NAME=value" words. The file is --config or BURROW_CONFIG, else none. Returns 0; 1 when help was
 * asked for; -1 with ERR_INVALID. */
int settings_load(struct settings *settings, int argc, char *const *argv, char *const *environment,
                  struct error *err);

/* What every setting alone cannot tell: which combinations are refused. Returns 0 or -1. */
int settings_check(const struct settings *settings, struct error *err);

void settings_done(struct settings *settings);

AUTO_DEFINE(settings, struct settings, settings_done);

/* All settings as words that settings_load reads back ("--listen=127.0.0.1:8787"), NULL at the end,
 * for another process that shall have the same. In `pool`. */
const char *const *settings_words(const struct settings *settings, struct pool *pool);

/* The help of "burrow serve", and the page docs/settings.md. */
void settings_help(struct text *out);
void settings_document(struct text *out);
