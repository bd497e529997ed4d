#include "programs/burrow/control_plane.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/agentpod/agentpod.h"
#include "api/bridge/bridge.h"
#include "api/http/idempotency.h"
#include "api/http/kept_documents.h"
#include "api/http/long_reads.h"
#include "api/native/native.h"
#include "api/stackmemory/stackmemory.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/identity/identity.h"
#include "domain/task/time_zone.h"
#include "programs/burrow/host_memory.h"
#include "programs/burrow/sandboxes.h"
#include "provider/provider_local.h"
#include "share/share.h"
#include "store/store_sqlite.h"
#include "sys/file/sys_disk_room.h"
#include "sys/file/sys_file.h"

#define DATABASE_FOLDER "db"
#define KEYRING_FOLDER  "keys"
#define BACKUP_FOLDER   "backups"
#define TICK_MS         1000
#define TOKEN_MAX       4096
#define POOL_REFRESH_MS 50
#define PATH_SIZE       4096
#define NODE_SIZE       64
#define ZONES           "/usr/share/zoneinfo/"
/* Enough that the rows of share.def are what limits one user, and not descriptors. */
#define DESCRIPTORS_WANTED 16384

/* --- ready ---------------------------------------------------------------------------------- */

static void lose(struct control_plane *plane, const struct error *reason)
{
    if (plane->is_lost || plane->is_closing)
        return;
    plane->is_lost = true;
    plane->waits_for = "the launcher is gone";
    LOG_ERROR(plane->log, "cannot go on", log_text("reason", reason->message));
    plane->lost(plane->context);
}

static void domain_lost(void *context, const struct error *reason)
{
    lose(context, reason);
}

static void control_plane_turn(struct loop_task *task)
{
    struct control_plane *plane = CONTAINER_OF(task, struct control_plane, turn);

    if (plane->domain)
        domain_turn(plane->domain);
}

static void domain_deferred(void *context)
{
    struct control_plane *plane = context;

    loop_defer(plane->loop, &plane->turn);
}

static void later_is_now(uv_timer_t *timer)
{
    struct control_plane *plane = timer->data;

    if (plane->domain)
        domain_later(plane->domain);
}

static void domain_wants_later(void *context, uint64_t ms)
{
    struct control_plane *plane = context;

    if (!plane->is_closing && !uv_is_active((uv_handle_t *) &plane->later))
        (void) uv_timer_start(&plane->later, later_is_now, ms, 0);
}

/* Small files of the system's, in memory most of the time: read when a schedule is made, and for all
 * of them at the start. */
static int read_zone(void *context, const char *name, char **ret_bytes, size_t *ret_length)
{
    char path[sizeof(ZONES) + TIME_ZONE_NAME_MAX];

    (void) context;
    (void) snprintf(path, sizeof(path), ZONES "%s", name);
    return sys_file_read_all(AT_FDCWD, path, TIME_ZONE_FILE_MAX, ret_bytes, ret_length);
}

static void domain_standing_changed(void *context)
{
    struct control_plane *plane = context;

    if (plane->lasting)
        lasting_changed(plane->lasting);
}

static void ticked(uv_timer_t *timer)
{
    struct control_plane *plane = timer->data;

    domain_tick(plane->domain);
}

static void control_plane_ready(struct control_plane *plane)
{
    plane->waits_for = NULL;
    /* The first at once: mounts of sandboxes that run are brought back by it. */
    (void) uv_timer_start(&plane->tick, ticked, 0, TICK_MS);
    LOG_INFO(plane->log, plane->provider ? "sandboxes are ready" : "ready, without sandboxes");
    plane->ready(plane->context);
}

static void forget_key(struct control_plane *plane)
{
    if (plane->key)
        explicit_bzero(plane->key, strlen(plane->key));
    free(TAKE_PTR(plane->key));
}

static void key_is_kept(void *context, const struct error *failure, struct owner *owner)
{
    struct control_plane *plane = context;

    if (plane->is_closing)
        return;
    forget_key(plane);
    if (failure) {
        lose(plane, failure);
        return;
    }
    admission_open(plane->admission, plane->domain, plane->lasting, &owner->id);
    control_plane_ready(plane);
}

static void domain_opened(void *context, const struct error *failure)
{
    struct control_plane *plane = context;

    if (plane->is_closing)
        return;
    if (failure) {
        lose(plane, failure);
        return;
    }
    plane->waits_for = "the administrator's key is not in the store yet";
    identity_first(plane->domain, plane->key, key_is_kept, plane);
}

/* --- parts, in the order they are needed ---------------------------------------------------- */

static int open_store(struct control_plane *plane, const struct settings *settings,
                      struct data_folder *data, struct error *err)
{
    struct store_sqlite_options options = {.loop = plane->loop, .log = plane->log};
    char path[PATH_SIZE];
    int r = sys_file_make_directories(data->fd, DATABASE_FOLDER, 0700);

    if (r == 0)
        r = sys_file_make_directories(data->fd, KEYRING_FOLDER, 0700);
    if (r == 0)
        r = sys_file_make_directories(data->fd, BACKUP_FOLDER, 0700);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make '%s/" DATABASE_FOLDER "'",
                         settings->data);
    plane->keyring = keyring_open(data->fd, DATA_FOLDER_KEYRING, err);
    if (!plane->keyring)
        return -1;
    (void) snprintf(path, sizeof(path), "%s/" DATA_FOLDER_DATABASE, settings->data);
    options.path = path;
    options.keyring = plane->keyring;
    plane->store = store_sqlite_new(&options, err);
    return plane->store ? 0 : -1;
}

/* Whoever is connected and asks nothing must leave descriptors to those who do. */
size_t control_plane_connections(const struct settings *settings)
{
    struct rlimit files;
    uint64_t half = getrlimit(RLIMIT_NOFILE, &files) < 0 ? UINT64_MAX : files.rlim_cur / 2;

    return settings->connections_max < half ? settings->connections_max : half;
}

/* The limit was raised as far as it goes; what it is now is what there is. */
static int open_shares(struct control_plane *plane, const struct settings *settings,
                       struct error *err)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return error_set(err, ERR_INTERNAL, errno, "ask how many files may be open");
    if (files.rlim_cur < DESCRIPTORS_WANTED)
        LOG_WARNING(plane->log,
                    "few files may be open, so that users get small parts of them; "
                    "raise LimitNOFILE= of the unit, or `ulimit -n`",
                    log_number("limit", (int64_t) files.rlim_cur),
                    log_number("wanted", DESCRIPTORS_WANTED));
    plane->shares = shares_new(files.rlim_cur - control_plane_connections(settings));
    if (shares_set_limits(plane->shares, settings->share_limits, err) < 0)
        return error_wrap(err, "share-limits");
    return 0;
}

static struct limits default_limits(const struct settings *settings)
{
    return (struct limits){
        .memory_bytes = settings->default_memory,
        .pids = (uint32_t) settings->default_pids,
        .cpu_millis = (uint32_t) settings->default_cpus,
        .disk_bytes = settings->default_disk,
    };
}

static struct quota default_quota(const struct settings *settings)
{
    return (struct quota){
        .sandboxes = (uint32_t) settings->quota_sandboxes,
        .running = (uint32_t) settings->quota_running,
        .memory_bytes = settings->quota_memory,
        .cpu_millis = (uint32_t) settings->quota_cpus,
        .disk_bytes = settings->quota_disk,
        .snapshots = (uint32_t) settings->quota_snapshots,
        .storage_bytes = settings->quota_storage,
        .requests_per_minute = (uint32_t) settings->quota_requests,
    };
}

static void open_drivers(struct control_plane *plane)
{
    const struct drivers_options options = {
        .loop = plane->loop,
        .clock = clock_system(),
        .log = plane->log,
        .reach = sandbox_reach_of(&plane->reach),
    };

    plane->reach.agents = plane->agents;
    plane->drivers = drivers_new(&options);
}

static int memory_available(void *context)
{
    (void) context;
    return host_memory_available();
}

static bool disk_has_room(void *context)
{
    const struct control_plane *plane = context;

    return sys_disk_room_check(plane->data, plane->disk_floor, 0) == 0;
}

/* The broker asks the domain, which has a place for it already. */
static int open_broker(struct control_plane *plane, const struct settings *settings,
                       struct error *err)
{
    struct broker_engine_options options = BROKER_ENGINE_OPTIONS_DEFAULT;

    plane->upstream_tls = tls_context_client(NULL, err);
    if (!plane->upstream_tls)
        return -1;
    options.loop = plane->loop;
    options.clock = clock_system();
    options.shares = plane->shares;
    options.tls = plane->upstream_tls;
    options.host = domain_broker_host(plane->domain);
    if (address_rules_allow_list(&options.rules, settings->broker_networks, err) < 0)
        return error_wrap(err, "broker-networks");
    plane->broker_engine = broker_engine_new(&options);
    plane->broker = broker_engine_interface(plane->broker_engine);
    return 0;
}

static int open_domain(struct control_plane *plane, const struct settings *settings,
                       struct data_folder *data, struct error *err)
{
    char node[NODE_SIZE] = "";
    struct domain_options options = {
        .store = plane->store,
        .shares = plane->shares,
        .inside = agents_inside(plane->agents),
        .harness = drivers_harness(plane->drivers),
        .agent_image = *settings->agent_image ? settings->agent_image : NULL,
        .clock = clock_system(),
        .log = plane->log,
        .node = *settings->node ? settings->node : node,
        .default_network =
            strcmp(settings->default_network, "nat") == 0 ? NETWORK_NAT : NETWORK_NONE,
        .default_limits = default_limits(settings),
        .default_quota = default_quota(settings),
        .event_retention_ms = settings->event_retention_ms,
        .sync_excludes = settings->sync_excludes,
        .model_upstreams = settings->model_upstreams,
        .broker_local = settings->broker_local,
        .prices = settings->prices,
        .reclaim_after_ms = settings->reclaim_after_ms,
        .hibernate_after_ms = settings->hibernate_after_ms,
        .offload_after_ms = settings->offload_after_ms,
        .snapshot_cache_bytes = settings->snapshot_cache,
        .squash_above = settings->squash_above,
        .gc_every_ms = settings->gc_every_ms,
        .memory_available = memory_available,
        .memory_pressure = (unsigned int) settings->memory_pressure,
        .disk_has_room = disk_has_room,
        .lost = domain_lost,
        .standing_changed = domain_standing_changed,
        .defer = domain_deferred,
        .later = domain_wants_later,
        .read_zone = read_zone,
        .context = plane,
    };

    plane->data = data->fd;
    plane->disk_floor = settings->disk_floor;
    if (gethostname(node, sizeof(node) - 1) < 0)
        return error_set(err, ERR_INTERNAL, errno, "ask for this machine's name");
    if (domain_check_egress(&options, err) < 0)
        return -1;
    if (sandboxes_provider(plane->loop, plane->log, settings, &options.provider, err) < 0)
        return -1;
    plane->provider = options.provider;
    if (stored_state_open(&plane->stored, plane->loop, plane->log, settings, data, &plane->objects,
                          plane->provider, options.inside, plane->shares, err) < 0) {
        if (options.provider)
            provider_close(TAKE_PTR(plane->provider), NULL, NULL);
        return -1;
    }
    plane->tokens = token_client_new(plane->loop, settings->broker_networks, err);
    if (!plane->tokens) {
        if (options.provider)
            provider_close(TAKE_PTR(plane->provider), NULL, NULL);
        return error_wrap(err, "broker-networks");
    }
    options.tokens = token_client_source(plane->tokens);
    options.broker = plane->provider ? &plane->broker : NULL;
    options.vault = stored_state_vault(&plane->stored);
    options.mounter = stored_state_mounter(&plane->stored);
    options.objects = options.vault ? plane->objects.objects : NULL;
    plane->domain = domain_new(&options);
    plane->reach.domain = plane->domain;
    if (plane->provider && open_broker(plane, settings, err) < 0)
        return -1;
    agents_set_domain(plane->agents, plane->domain);
    plane->lasting = lasting_new(plane->loop, plane->domain, clock_system(), plane->log);
    return 0;
}

/* The token is in a file because a command line can be read by everybody on the machine. */
static int open_incoming(struct control_plane *plane, const struct settings *settings,
                         struct error *err)
{
    AUTO(free) char *token = NULL;
    size_t length;
    int r;

    if (*settings->service_token_file) {
        r = sys_file_read_all(AT_FDCWD, settings->service_token_file, TOKEN_MAX, &token, &length);
        if (r < 0)
            return error_set(err, error_code_from_errno(r), r, "read the service token from '%s'",
                             settings->service_token_file);
        token[strcspn(token, "\r\n")] = '\0';
    }
    r = agentpod_webhook_init(&plane->incoming, plane->domain, token, err);
    if (token)
        explicit_bzero(token, length);
    return r;
}

/* --- the warm pool, for the bridge ----------------------------------------------------------- */

static void pool_figures(void *self, struct bridge_pool_figures *ret_figures)
{
    struct control_plane *plane = self;

    *ret_figures = (struct bridge_pool_figures){
        .warm = provider_local_ready(plane->provider),
        .target = plane->stock,
        .refresh_ms = POOL_REFRESH_MS,
        .batch = 1,
    };
}

static void pool_prime(void *self)
{
    provider_local_fill(((struct control_plane *) self)->provider);
}

static void pool_drain(void *self)
{
    provider_local_drain(((struct control_plane *) self)->provider);
}

/* --- all together ---------------------------------------------------------------------------- */

static int open_auth(struct control_plane *plane, const struct settings *settings,
                     struct error *err)
{
    struct auth_options options = {
        .api = &plane->api,
        .admission = plane->admission,
        .cost = PASSWORD_COST_DEFAULT,
    };

    if (auth_sign_up_from_text(settings->sign_up, &options.sign_up, err) < 0)
        return -1;
    plane->auth = auth_new(&options);
    return 0;
}

/* What AgentPod's clients may ask for. */
static int open_providers(struct control_plane *plane, const struct settings *settings,
                          struct error *err)
{
    struct agentpod_providers *providers = &plane->providers;

    providers->has_cloudflare = settings->enable_cloudflare;
    providers->selects = settings->auto_select_provider;
    providers->image = *settings->agent_image ? settings->agent_image : NULL;
    if (agentpod_provider_read(settings->default_provider, &providers->standard, err) < 0)
        return error_wrap(err, "default-sandbox-provider");
    if (providers->standard == AGENTPOD_CLOUDFLARE && !providers->has_cloudflare)
        return error_set(err, ERR_INVALID, 0,
                         "default-sandbox-provider is cloudflare, and enable-cloudflare-sandboxes "
                         "is off");
    return 0;
}

static int open_api(struct control_plane *plane, const struct settings *settings, struct error *err)
{
    const struct preview_options preview = {.loop = plane->loop,
                                            .domain = plane->domain,
                                            .lasting = plane->lasting,
                                            .log = plane->log,
                                            .proxies = &plane->admission->proxies,
                                            .host = settings->preview_host};

    plane->preview = preview_new(&preview, err);
    if (!plane->preview)
        return -1;
    plane->pool = (struct bridge_pool_ops){
        .self = plane, .figures = pool_figures, .prime = pool_prime, .drain = pool_drain};
    plane->stock = settings->stock;
    plane->messages.threshold_ms = settings->message_threshold_ms;
    if (open_providers(plane, settings, err) < 0)
        return -1;
    plane->api = (struct api){
        .loop = plane->loop,
        .domain = plane->domain,
        .agents = plane->agents,
        .preview = plane->preview,
        .shares = plane->shares,
        .clock = clock_system(),
        .log = plane->log,
        .idempotency = idempotency_new(plane->store, clock_system(), plane->shares),
        .long_reads = long_reads_new(plane->loop),
        .documents = kept_documents_new(),
        .backup_folder = plane->backups,
        .bridge_pool = plane->provider ? &plane->pool : NULL,
        .messages = &plane->messages,
        .providers = &plane->providers,
    };
    keyring_derive(plane->keyring, "event cursors", plane->api.cursor_secret);
    if (open_auth(plane, settings, err) < 0)
        return -1;
    plane->sender = webhook_sender_new(plane->loop, plane->domain, clock_system(),
                                       settings->webhook_networks, err);
    return plane->sender ? open_incoming(plane, settings, err) : -1;
}

int control_plane_open(struct control_plane *plane, struct loop *loop, struct log *log,
                       const struct settings *settings, struct data_folder *data,
                       struct admission *admission, const char *key, void (*ready)(void *context),
                       void (*lost)(void *context), void *context, struct error *err)
{
    char backups[PATH_SIZE];

    (void) snprintf(backups, sizeof(backups), "%s/" BACKUP_FOLDER, settings->data);
    *plane = (struct control_plane){
        .loop = loop,
        .log = log,
        .admission = admission,
        .ready = ready,
        .lost = lost,
        .context = context,
        .key = key ? mem_copy_text(key) : NULL,
        .backups = mem_copy_text(backups),
        .waits_for = "what was kept is being read",
    };
    (void) uv_timer_init(&loop->uv, &plane->tick);
    plane->tick.data = plane;
    (void) uv_timer_init(&loop->uv, &plane->later);
    plane->later.data = plane;
    loop_task_init(&plane->turn, control_plane_turn);
    if (open_shares(plane, settings, err) < 0 || open_store(plane, settings, data, err) < 0 ||
        object_stores_open(&plane->objects, loop, log, settings, err) < 0)
        return -1;
    plane->agents = agents_new(loop, log);
    open_drivers(plane);
    if (open_domain(plane, settings, data, err) < 0 || open_api(plane, settings, err) < 0)
        return -1;
    domain_open(plane->domain, domain_opened, plane);
    return 0;
}

size_t control_plane_mounts(struct control_plane *plane,
                            struct http_mount ret_mounts[static CONTROL_PLANE_MOUNTS_MAX])
{
    struct api *api = &plane->api;
    size_t count = 0;

    ret_mounts[count++] = native_mount(api);
    ret_mounts[count++] = auth_mount(api);
    ret_mounts[count++] = bridge_mount(api);
    ret_mounts[count++] = stackmemory_mount(api);
    ret_mounts[count++] = agentpod_mount(api);
    ret_mounts[count++] = agentpod_webhook_mount(&plane->incoming);
    return count;
}

/* --- the end -------------------------------------------------------------------------------- */

/* Each step waits for the one before: what is asked to close may still answer what it was asked. */

static void all_closed(struct control_plane *plane)
{
    keyring_free(TAKE_PTR(plane->keyring));
    shares_free(TAKE_PTR(plane->shares));
    forget_key(plane);
    free(TAKE_PTR(plane->backups));
    if (plane->closed)
        plane->closed(plane->context);
}

static void store_closed(void *context, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct control_plane *plane = context;

    (void) receipt;
    if (failure)
        LOG_ERROR(plane->log, "closing the store", log_text("reason", failure->message));
    all_closed(plane);
}

static void agents_closed(void *context)
{
    struct control_plane *plane = context;

    idempotency_free(TAKE_PTR(plane->api.idempotency));
    long_reads_free(TAKE_PTR(plane->api.long_reads));
    kept_documents_free(TAKE_PTR(plane->api.documents));
    if (plane->store)
        store_close(TAKE_PTR(plane->store), store_closed, plane);
    else
        all_closed(plane);
}

static void domain_is_gone(void *context);

static void drivers_closed(void *context)
{
    struct control_plane *plane = context;

    if (plane->agents)
        agents_close(TAKE_PTR(plane->agents), agents_closed, plane);
    else
        agents_closed(plane);
}

static void domain_closed(void *context, const struct error *failure)
{
    struct control_plane *plane = context;

    (void) failure;
    plane->domain = plane->reach.domain = NULL;
    tls_context_free(TAKE_PTR(plane->upstream_tls));
    token_client_close(TAKE_PTR(plane->tokens), domain_is_gone, plane);
}

static void domain_is_gone(void *context)
{
    struct control_plane *plane = context;

    stored_state_done(&plane->stored);
    loop_task_cancel(&plane->turn);
    if (plane->drivers)
        drivers_close(TAKE_PTR(plane->drivers), drivers_closed, plane);
    else
        drivers_closed(plane);
}

/* Sockets that were asked for before, and nobody needs any more. */
static struct broker_outlet *no_broker_open(void *self, const struct broker_place *place,
                                            const int *sockets, struct error *err)
{
    (void) self;
    for (size_t i = 0; i < BROKER_SOCKETS + place->forward_count; i++)
        (void) close(sockets[i]);
    (void) error_set(err, ERR_UNAVAILABLE, 0, "the daemon is ending");
    return NULL;
}

static void broker_closed(void *context)
{
    struct control_plane *plane = context;

    plane->broker_engine = NULL;
    plane->broker = (struct broker){.open = no_broker_open};
    if (plane->domain)
        domain_close(plane->domain, domain_closed, plane); /* needs its turns until it is gone */
    else
        domain_closed(plane, NULL);
}

/* It asks the domain until it is closed. */
static void objects_closed(void *context)
{
    struct control_plane *plane = context;

    if (plane->domain)
        domain_close_broker(plane->domain);
    if (plane->broker_engine)
        broker_engine_close(plane->broker_engine, broker_closed, plane);
    else
        broker_closed(plane);
}

static void stored_state_stopped(void *context)
{
    struct control_plane *plane = context;

    object_stores_close(&plane->objects, objects_closed, plane);
}

static void preview_closed(void *context)
{
    struct control_plane *plane = context;

    stored_state_stop(&plane->stored, stored_state_stopped, plane);
}

static void auth_closed(void *context)
{
    struct control_plane *plane = context;

    if (plane->preview)
        preview_close(TAKE_PTR(plane->preview), preview_closed, plane);
    else
        preview_closed(plane);
}

static void sender_closed(void *context)
{
    struct control_plane *plane = context;

    if (plane->auth)
        auth_close(TAKE_PTR(plane->auth), auth_closed, plane);
    else
        auth_closed(plane);
}

void control_plane_close(struct control_plane *plane, void (*closed)(void *context))
{
    if (plane->is_closing || !plane->loop)
        return;
    plane->is_closing = true;
    plane->closed = closed;
    admission_close(plane->admission);
    lasting_close(TAKE_PTR(plane->lasting));
    uv_close((uv_handle_t *) &plane->tick, NULL);
    uv_close((uv_handle_t *) &plane->later, NULL);
    if (plane->sender)
        webhook_sender_close(TAKE_PTR(plane->sender), sender_closed, plane);
    else
        sender_closed(plane);
}
