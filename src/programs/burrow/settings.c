#include "programs/burrow/settings.h"

#include <ctype.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/spelling.h"
#include "programs/burrow/setting.h"
#include "share/share.h"
#include "sys/network/sys_address.h"

#define FIELD(name) offsetof(struct settings, name)

const struct setting settings_table[] = {
    {"listen", SETTING_TEXT, FIELD(listen), "127.0.0.1:8787", "ADDRESS",
     "Where to listen: ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH; several separated by commas.",
     NULL},
    {"data", SETTING_TEXT, FIELD(data), "/var/lib/burrow", "DIR",
     "The folder that holds everything burrow keeps.", NULL},
    {"no-auth", SETTING_BOOLEAN, FIELD(no_auth), "false", "",
     "Ask for no key. Only with loopback and unix listeners.", NULL},
    {"allowed-hosts", SETTING_TEXT, FIELD(allowed_hosts), "", "NAME,...",
     "Further Host names to answer with --no-auth, besides localhost and loopback.", NULL},
    {"tls-certificate", SETTING_TEXT, FIELD(tls_certificate), "", "FILE",
     "Certificate chain (PEM) for the TCP listeners; needs tls-key.", NULL},
    {"tls-key", SETTING_TEXT, FIELD(tls_key), "", "FILE", "Private key (PEM).", NULL},
    {"log-level", SETTING_TEXT, FIELD(log_level), "info", "LEVEL",
     "The least important lines to log.", "debug|info|warning|error"},
    {"log-format", SETTING_TEXT, FIELD(log_format), "auto", "FORMAT",
     "How lines look; auto is text on a terminal and JSON elsewhere.", "auto|json|text"},
    {"connections-max", SETTING_COUNT, FIELD(connections_max), "16384", "N",
     "Connections at once; more wait in the kernel's queue.", NULL},
    {"head-timeout", SETTING_DURATION, FIELD(head_timeout_ms), "10s", "TIME",
     "From the first byte of a request's head to its last.", NULL},
    {"body-timeout", SETTING_DURATION, FIELD(body_timeout_ms), "60s", "TIME",
     "Between two pieces of a request's body.", NULL},
    {"idle-timeout", SETTING_DURATION, FIELD(idle_timeout_ms), "75s", "TIME",
     "Between two requests on a connection.", NULL},
    {"drain-timeout", SETTING_DURATION, FIELD(drain_timeout_ms), "30s", "TIME",
     "For requests under way when the daemon is told to stop.", NULL},
    {"no-sandboxes", SETTING_BOOLEAN, FIELD(no_sandboxes), "false", "",
     "Serve without sandboxes, as happens anyway unless started by root.", NULL},
    {"user", SETTING_TEXT, FIELD(user), "burrow", "NAME",
     "Whom the daemon runs as when started by root; the launcher stays root.", NULL},
    {"core-dumps", SETTING_BOOLEAN, FIELD(core_dumps), "false", "",
     "Leave a core when the daemon crashes, and let its user look into it: it holds keys.", NULL},
    {"run-folder", SETTING_TEXT, FIELD(run_folder), "/run/burrow", "DIR",
     "The folder for what lasts until the next boot; best on a tmpfs. One for each Burrow.", NULL},
    {"cgroup", SETTING_TEXT, FIELD(cgroup), "burrow", "NAME",
     "The name of the group that holds those of all sandboxes. One for each Burrow.", NULL},
    {"cgroup-parent", SETTING_TEXT, FIELD(cgroup_parent), "", "GROUP",
     "Where that group goes, such as /system.slice/burrow-sandboxes.service, the unit that the "
     "package has for it; near the launcher's own group unless given.",
     NULL},
    {"network-name", SETTING_TEXT, FIELD(network_name), "burrow", "NAME",
     "The name of the network link and the nftables table of sandboxes with nat: at most 15 of "
     "a-z, 0-9 and -. One for each Burrow.",
     NULL},
    {"pool-size", SETTING_SIZE, FIELD(pool_size), "", "SIZE",
     "Space for all disks together, such as 100G; most of what is free unless given. It only "
     "grows.",
     NULL},
    {"default-network", SETTING_TEXT, FIELD(default_network), "none", "MODE",
     "The network of sandboxes for which nothing else is asked.", "none|nat"},
    {"stock", SETTING_STOCK, FIELD(stock), "8", "N",
     "The warm pool: sandboxes kept ready to be handed out at once; 0 for none.", NULL},
    {"agent-image", SETTING_TEXT, FIELD(agent_image), "agent", "NAME",
     "The image of sandboxes that are made for a coding agent.", NULL},
    {"prepare-images", SETTING_TEXT, FIELD(prepare_images), "", "NAME,...",
     "Images that come with Burrow as recipes and are made in the background when they are not "
     "there, such as agent. They need mmdebstrap, python3 and the way to Debian and npm.",
     NULL},
    {"node", SETTING_TEXT, FIELD(node), "", "NAME",
     "The name of this machine among others that share a store; its host name unless given.", NULL},
    {"default-memory", SETTING_SIZE, FIELD(default_memory), "2G", "SIZE",
     "Memory of sandboxes for which nothing else is asked; 0 for no limit.", NULL},
    {"default-pids", SETTING_NUMBER, FIELD(default_pids), "1024", "N",
     "Likewise processes and threads.", NULL},
    {"default-cpus", SETTING_CPUS, FIELD(default_cpus), "0", "NUMBER",
     "Likewise CPUs, such as 0.5.", NULL},
    {"default-disk", SETTING_SIZE, FIELD(default_disk), "4G", "SIZE",
     "Likewise what may be written to the disk.", NULL},
    {"reclaim-after", SETTING_PERIOD, FIELD(reclaim_after_ms), "10m", "TIME",
     "How long a sleeping sandbox keeps its memory in RAM; then it goes to swap, where there is "
     "some. 0 for ever.",
     NULL},
    {"hibernate-after", SETTING_PERIOD, FIELD(hibernate_after_ms), "0", "TIME",
     "How long a sleeping sandbox keeps its memory; then its processes are ended and only its disk "
     "is kept. 0 for ever.",
     NULL},
    {"offload-after", SETTING_PERIOD, FIELD(offload_after_ms), "0", "TIME",
     "How long a sandbox that sleeps without memory keeps its disk here; then it goes to the "
     "object "
     "store. 0 for ever.",
     NULL},
    {"snapshot-cache", SETTING_SIZE, FIELD(snapshot_cache), "10G", "SIZE",
     "What snapshots may hold on this machine that are in the object store as well; beyond that "
     "the "
     "least used are only there. 0 for no limit.",
     NULL},
    {"squash-above", SETTING_NUMBER, FIELD(squash_above), "16", "N",
     "Stored disks that are lists of more layers than that become one layer, in the background; 0 "
     "for never.",
     NULL},
    {"gc-every", SETTING_PERIOD, FIELD(gc_every_ms), "1d", "TIME",
     "How often stored layers that nobody names any more are taken away; 0 for never.", NULL},
    {"memory-pressure", SETTING_NUMBER, FIELD(memory_pressure), "10", "PERCENT",
     "When less of the machine's memory is available, sandboxes that sleep give up theirs: those "
     "of "
     "the user who holds most first, and the longest asleep of them; 0 for never.",
     NULL},
    {"event-retention", SETTING_PERIOD, FIELD(event_retention_ms), "30d", "TIME",
     "How long events and the audit log are kept; 0 for ever.", NULL},
    {"sync-excludes", SETTING_TEXT, FIELD(sync_excludes),
     "node_modules,__pycache__,.cache,dist,build,.next,.nuxt,target,.DS_Store", "NAME,...",
     "Files and folders of these names are left out when workspaces are synced.", NULL},
    {"quota-sandboxes", SETTING_NUMBER, FIELD(quota_sandboxes), "50", "N",
     "Sandboxes that a user who is no administrator may have, unless given another number; 0 for "
     "no "
     "limit. Administrators have no limits but those they were given by name.",
     NULL},
    {"quota-running", SETTING_NUMBER, FIELD(quota_running), "20", "N",
     "Likewise sandboxes that are awake at the same time.", NULL},
    {"quota-memory", SETTING_SIZE, FIELD(quota_memory), "40G", "SIZE",
     "Likewise the memory limits of those together.", NULL},
    {"quota-cpus", SETTING_CPUS, FIELD(quota_cpus), "0", "NUMBER",
     "Likewise their CPU limits together. With one, sandboxes need a CPU limit (default-cpus).",
     NULL},
    {"quota-disk", SETTING_SIZE, FIELD(quota_disk), "200G", "SIZE",
     "Likewise the disk limits of all sandboxes, and what snapshots hold, together.", NULL},
    {"quota-snapshots", SETTING_NUMBER, FIELD(quota_snapshots), "500", "N", "Likewise snapshots.",
     NULL},
    {"quota-storage", SETTING_SIZE, FIELD(quota_storage), "20G", "SIZE",
     "Likewise what buckets, backups and the mirrors of workspaces hold in the object store.",
     NULL},
    {"quota-requests", SETTING_NUMBER, FIELD(quota_requests), "6000", "N",
     "Likewise requests per minute.", NULL},
    {"disk-floor", SETTING_SIZE, FIELD(disk_floor), "1G", "SIZE",
     "So much of the data folder's disk stays free for the database, but never more than a "
     "twentieth "
     "of it: below that, creates, backups, syncs and writes to buckets are refused. 0 for no "
     "floor.",
     NULL},
    {"share-limits", SETTING_TEXT, FIELD(share_limits), "", "NAME=N,...",
     "How much of what all users share one of them may hold, where the preset is not right, such "
     "as "
     "event_streams=128,spool_bytes=2G; 0 for no limit but that of all. docs/operations.md has the "
     "names.",
     NULL},
    {"preview-host", SETTING_TEXT, FIELD(preview_host), "localhost", "NAME",
     "Exposed ports are seen at http://PORT-ID-TOKEN.NAME; behind a proxy https://NAME[:PORT], as "
     "browsers write it; \"\" for no such names.",
     NULL},
    {"preview-listen", SETTING_TEXT, FIELD(preview_listen), "", "ADDRESS",
     "A listener of its own for previews by path, http://ADDRESS/PORT-ID-TOKEN/, for those without "
     "wildcard DNS.",
     NULL},
    {"trusted-proxies", SETTING_TEXT, FIELD(trusted_proxies), "", "CIDR,...",
     "Proxies in front of the daemon whose X-Forwarded-For is believed.", NULL},
    {"cors-origins", SETTING_TEXT, FIELD(cors_origins), "", "ORIGIN,...",
     "Web pages of other origins that may use the API with a key.", NULL},
    {"sign-up", SETTING_TEXT, FIELD(sign_up), "closed", "WHO",
     "Who may make an account without an administrator: nobody, or anybody.", "closed|open|first"},
    {"service-token-file", SETTING_TEXT, FIELD(service_token_file), "", "FILE",
     "A file with the token that webhooks sent to us must show; none are taken without.", NULL},
    {"webhook-networks", SETTING_TEXT, FIELD(webhook_networks), "", "CIDR,...",
     "Addresses that are not public and that webhooks may be sent to all the same.", NULL},
    {"enable-cloudflare-sandboxes", SETTING_BOOLEAN, FIELD(enable_cloudflare), "true", "",
     "Whether AgentPod's clients may ask for the provider cloudflare, whose sandboxes sleep when "
     "their task is over, and for teams.",
     NULL},
    {"auto-select-provider", SETTING_BOOLEAN, FIELD(auto_select_provider), "false", "",
     "Whether the useCase of an AgentPod task chooses its provider.", NULL},
    {"default-sandbox-provider", SETTING_TEXT, FIELD(default_provider), "docker", "NAME",
     "The provider of AgentPod's tasks that name none: their sandboxes stay, sleep or are "
     "destroyed "
     "afterwards.",
     "docker|cloudflare|burrow"},
    {"message-latency-threshold", SETTING_PERIOD, FIELD(message_threshold_ms), "30s", "TIME",
     "Messages to agents that take longer are logged and counted as slow; 0 for none.", NULL},
    {"mount-networks", SETTING_TEXT, FIELD(mount_networks), "", "CIDR,...",
     "Addresses that are not public and where buckets of others may be mounted from all the same.",
     NULL},
    {"broker-networks", SETTING_TEXT, FIELD(broker_networks), "", "CIDR,...",
     "Addresses that are not public and that sandboxes may reach through the egress broker all the "
     "same, when their policy names them.",
     NULL},
    {"broker-local", SETTING_TEXT, FIELD(broker_local), "", "ADDRESS,...",
     "Loopback addresses of this machine, such as 127.0.0.1:9000, that rules with protocol tcp may "
     "name; inside they are the same.",
     NULL},
    {"model-upstreams", SETTING_TEXT, FIELD(model_upstreams), "", "ROUTE=URL,...",
     "Where routes to models lead when neither policy nor credential says it, such as "
     "openai=http://127.0.0.1:9000/v1; may be on this machine.",
     NULL},
    {"prices", SETTING_TEXT, FIELD(prices), "", "MODEL=PRICES,...",
     "What models cost, before the list that burrow has: my-model*=1.00/5.00/0.10/1.25 for a "
     "million "
     "tokens of input, output, cached input and writing to the cache.",
     NULL},
    {"objects", SETTING_TEXT, FIELD(objects), "folder", "STORE",
     "Where snapshots, backups and buckets are kept: in the data folder, or behind the S3 API.",
     "folder|s3"},
    {"s3-endpoint", SETTING_TEXT, FIELD(s3_endpoint), "", "URL",
     "The S3 store, such as https://s3.eu-central-1.amazonaws.com, without the bucket.", NULL},
    {"s3-region", SETTING_TEXT, FIELD(s3_region), "us-east-1", "NAME",
     "Its region; most stores other than AWS take any.", NULL},
    {"s3-bucket", SETTING_TEXT, FIELD(s3_bucket), "", "NAME",
     "The bucket for what burrow keeps. It must exist and be for nothing else.", NULL},
    {"s3-buckets-bucket", SETTING_TEXT, FIELD(s3_buckets_bucket), "", "NAME",
     "The bucket for what users mount; part of the other one (buckets/) unless given.", NULL},
    {"s3-access-key", SETTING_TEXT, FIELD(s3_access_key), "", "ID",
     "The id of the key to sign with.", NULL},
    {"s3-secret-key-file", SETTING_TEXT, FIELD(s3_secret_key_file), "", "FILE",
     "A file with its secret, readable by the daemon's user; or set BURROW_S3_SECRET_KEY.", NULL},
    {"s3-style", SETTING_TEXT, FIELD(s3_style), "path", "STYLE",
     "How buckets are named in URLs: https://host/bucket or https://bucket.host.", "path|virtual"},
};

const size_t settings_table_count = ARRAY_COUNT(settings_table);

/* --- names ---------------------------------------------------------------------------------- */

/* '-' and '_' are the same, so that flags, variables and file keys all find their row. */
static bool same_name(const char *name, const char *given, size_t length)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char a = name[i] == '-' ? '_' : name[i];
        char b = given[i] == '-' ? '_' : (char) tolower((unsigned char) given[i]);

        if (a != b)
            return false;
    }
    return true;
}

static const struct setting *find_setting(const char *name, size_t length)
{
    for (size_t i = 0; i < settings_table_count; i++) {
        if (same_name(settings_table[i].name, name, length))
            return &settings_table[i];
    }
    return NULL;
}

static int unknown_setting(const char *source, const char *name, struct error *err)
{
    const char *nearest = NULL;
    size_t best = 4; /* farther than that is no typing slip */

    for (size_t i = 0; i < settings_table_count; i++) {
        size_t d = spelling_distance(settings_table[i].name, name);

        if (d < best) {
            best = d;
            nearest = settings_table[i].name;
        }
    }
    if (nearest)
        return error_set(err, ERR_INVALID, 0, "%sunknown setting '%s'; did you mean '%s'?", source,
                         name, nearest);
    return error_set(err, ERR_INVALID, 0, "%sunknown setting '%s'", source, name);
}

/* --- sources -------------------------------------------------------------------------------- */

static void set_presets(struct settings *settings)
{
    for (size_t i = 0; i < settings_table_count; i++)
        (void) setting_set(&settings_table[i], settings, settings_table[i].preset, "default", NULL);
}

struct file_reading {
    struct settings *settings;
    struct error *err;
    bool failed;
};

/* Debian's inih does not say the line here; ini_parse returns that of the first 0 below. */
static int take_file_value(void *user, const char *section, const char *name, const char *value)
{
    struct file_reading *reading = user;
    const struct setting *setting = find_setting(name, strlen(name));

    if (reading->failed)
        return 0;
    if (section[0] && strcmp(section, "burrow") != 0) {
        (void) error_set(reading->err, ERR_INVALID, 0, "unknown section [%s]", section);
        reading->failed = true;
    } else if (!setting) {
        (void) unknown_setting("", name, reading->err);
        reading->failed = true;
    } else {
        reading->failed = setting_set(setting, reading->settings, value, name, reading->err) < 0;
    }
    return !reading->failed;
}

static int settings_read_file(struct settings *settings, const char *path, struct error *err)
{
    struct file_reading reading = {.settings = settings, .err = err};
    int line = ini_parse(path, take_file_value, &reading);

    if (reading.failed)
        return error_wrap(err, "%s line %d", path, line);
    if (line < 0)
        return error_set(err, ERR_INVALID, errno, "read settings from '%s'", path);
    if (line > 0)
        return error_set(err, ERR_INVALID, 0, "%s line %d: expected 'name = value'", path, line);
    return 0;
}

static int read_environment(struct settings *settings, char *const *environment, struct error *err)
{
    for (; environment && *environment; environment++) {
        const char *name = *environment + 7;
        size_t length = strcspn(*environment, "=");
        const struct setting *setting;
        char source[SETTING_NAME_SIZE];

        if (strncmp(*environment, "BURROW_", 7) != 0 || length <= 7)
            continue;
        setting = find_setting(name, length - 7);
        /* Unknown ones are not refused: other programs of ours read variables, too. */
        if (!setting || !(*environment)[length])
            continue;
        (void) snprintf(source, sizeof(source), "%.*s", (int) length, *environment);
        if (setting_set(setting, settings, *environment + length + 1, source, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* "--name value", "--name=value", "--flag". Returns words used, or -1. */
static int read_flag(struct settings *settings, int argc, char *const *argv, struct error *err)
{
    const char *word = argv[0];
    size_t length = strcspn(word, "=");
    const struct setting *setting;
    char source[SETTING_NAME_SIZE + 8];

    if (strncmp(word, "--", 2) != 0)
        return error_set(err, ERR_INVALID, 0, "unexpected word '%s'; see burrow serve --help",
                         word);
    (void) snprintf(source, sizeof(source), "%.*s", (int) length, word);
    setting = find_setting(word + 2, length - 2);
    if (!setting)
        return unknown_setting("command line: ", source + 2, err);
    if (word[length])
        return setting_set(setting, settings, word + length + 1, source, err) < 0 ? -1 : 1;
    if (setting->type == SETTING_BOOLEAN)
        return setting_set(setting, settings, "true", source, err) < 0 ? -1 : 1;
    if (argc < 2)
        return error_set(err, ERR_INVALID, 0, "%s needs a value: %s", source, setting->value);
    return setting_set(setting, settings, argv[1], source, err) < 0 ? -1 : 2;
}

/* --config stands apart: it says where a source is, and must be known before the others. */
static const char *find_config(int argc, char *const *argv, char *const *environment)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            return argv[i + 1];
        if (strncmp(argv[i], "--config=", 9) == 0)
            return argv[i] + 9;
    }
    for (; environment && *environment; environment++) {
        if (strncmp(*environment, "BURROW_CONFIG=", 14) == 0)
            return *environment + 14;
    }
    return NULL;
}

int settings_load(struct settings *settings, int argc, char *const *argv, char *const *environment,
                  struct error *err)
{
    const char *config = find_config(argc, argv, environment);

    *settings = (struct settings){.listen = NULL};
    set_presets(settings);
    for (int i = 0; i < argc; i++) {
        if (is_help(argv[i]))
            return 1;
    }
    if (config && settings_read_file(settings, config, err) < 0)
        return -1;
    if (read_environment(settings, environment, err) < 0)
        return -1;
    for (int i = 0; i < argc;) {
        int used;

        if (strncmp(argv[i], "--config", 8) == 0 && (!argv[i][8] || argv[i][8] == '=')) {
            if (!argv[i][8] && i + 1 == argc)
                return error_set(err, ERR_INVALID, 0, "--config needs a value: FILE");
            i += argv[i][8] ? 1 : 2;
            continue;
        }
        used = read_flag(settings, argc - i, argv + i, err);
        if (used < 0)
            return -1;
        i += used;
    }
    return 0;
}

/* --- combinations --------------------------------------------------------------------------- */

static int check_listener(const struct settings *settings, const char *text, struct error *err)
{
    struct sys_address address;

    if (sys_address_parse(text, &address) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "listen: '%s' is not ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH", text);
    if (settings->no_auth && !sys_address_is_local(&address))
        return error_set(err, ERR_INVALID, 0,
                         "no-auth: refused with the listener %s, which others can reach; use "
                         "127.0.0.1, [::1] or unix:PATH, or leave keys on",
                         text);
    return 0;
}

static int check_objects(const struct settings *settings, struct error *err)
{
    const struct {
        const char *name, *value;
    } needed[] = {
        {"s3-endpoint", settings->s3_endpoint},
        {"s3-region", settings->s3_region},
        {"s3-bucket", settings->s3_bucket},
        {"s3-access-key", settings->s3_access_key},
    };

    for (size_t i = 0; i < ARRAY_COUNT(needed) && strcmp(settings->objects, "s3") == 0; i++) {
        if (!*needed[i].value)
            return error_set(err, ERR_INVALID, 0, "objects: the S3 store needs %s", needed[i].name);
    }
    return 0;
}

/* Here, and not where they are used: a daemon that does not start is started again and again. */
static int check_share_limits(const struct settings *settings, struct error *err)
{
    struct shares *shares = shares_new(0);
    int r = shares_set_limits(shares, settings->share_limits, err);

    shares_free(shares);
    return r < 0 ? error_wrap(err, "share-limits") : 0;
}

int settings_check(const struct settings *settings, struct error *err)
{
    const char *at = settings->listen;

    if (!*at)
        return error_set(err, ERR_INVALID, 0, "listen: no address given");
    while (*at) {
        size_t length = strcspn(at, ",");
        AUTO(free) char *one = mem_copy_bytes(at, length);

        if (check_listener(settings, one, err) < 0)
            return -1;
        at += length + (at[length] == ',');
    }
    if (!*settings->data)
        return error_set(err, ERR_INVALID, 0, "data: no folder given");
    if (!*settings->user || !*settings->run_folder || !*settings->cgroup)
        return error_set(err, ERR_INVALID, 0, "user, run-folder and cgroup must not be empty");
    if (!*settings->tls_certificate != !*settings->tls_key)
        return error_set(err, ERR_INVALID, 0, "tls-certificate and tls-key belong together");
    return check_share_limits(settings, err) < 0 ? -1 : check_objects(settings, err);
}

void settings_done(struct settings *settings)
{
    for (size_t i = 0; i < settings_table_count; i++) {
        char **field = (char **) (void *) ((char *) settings + settings_table[i].offset);

        if (settings_table[i].type == SETTING_TEXT) {
            free(*field);
            *field = NULL;
        }
    }
}

/* --- for another process -------------------------------------------------------------------- */

const char *const *settings_words(const struct settings *settings, struct pool *pool)
{
    const char **words = pool_alloc(pool, (settings_table_count + 1) * sizeof(*words));

    for (size_t i = 0; i < settings_table_count; i++)
        words[i] = setting_word(&settings_table[i], settings, pool);
    return words;
}
