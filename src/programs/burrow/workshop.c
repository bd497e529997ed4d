#include "programs/burrow/workshop.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/run/run_session.h"
#include "json/json_read.h"
#include "net/http/http_client.h"
#include "net/url.h"
#include "provider/provider_local.h"
#include "sys/file/sys_file.h"

#define HOSTNAME      "build"
#define END_MS        60000
#define EXPLAIN_MS    1000
#define REPLY_MAX     ((size_t) 1 << 20)
#define REPORT_MAX    ((size_t) 64 * 1024)
#define TARGET_MAX    ((size_t) 64 * 1024)
#define ANSWER_MS     600000 /* for a large archive to be on the disk */
#define STATUS_FOUND  200
#define STATUS_FAILED 400
#define WATCH_MS      100

/* --- waiting -------------------------------------------------------------------------------- */

static void begin_wait(struct workshop *workshop)
{
    workshop->is_done = workshop->has_failed = false;
    error_clear(&workshop->failure);
}

/* What was under way still ends while all of it is closed, to the last. */
static void workshop_stop(struct workshop *workshop)
{
    if (!workshop->is_closing)
        loop_stop(&workshop->loop);
}

static void workshop_done(struct workshop *workshop, const struct error *failure)
{
    workshop->is_done = true;
    if (failure) {
        workshop->has_failed = true;
        workshop->failure = *failure;
    }
    workshop_stop(workshop);
}

static void answered(void *context, const struct error *failure)
{
    workshop_done(context, failure);
}

static int finish_wait(struct workshop *workshop, struct error *err)
{
    while (!workshop->is_done && !workshop->is_lost)
        loop_run(&workshop->loop);
    if (!workshop->has_failed && !workshop->is_lost)
        return 0;
    *err = workshop->failure;
    if (workshop->is_lost)
        launcher_process_explain(&workshop->launcher, EXPLAIN_MS, err);
    return -1;
}

static void lost(void *context, const struct error *reason)
{
    struct workshop *workshop = context;

    workshop->is_lost = true;
    workshop->failure = *reason;
    workshop_stop(workshop);
}

/* --- the disk that is packed to ------------------------------------------------------------- */

static int check_room(const struct workshop *workshop, struct error *err)
{
    return sys_file_has_room(workshop->packed, WORKSHOP_FREE_MIN)
               ? 0
               : error_set(err, ERR_NO_SPACE, ENOSPC,
                           "the disk of temporary files would become too full");
}

/* Often enough that nobody writes WORKSHOP_FREE_MIN in between. */
static void look_at_disk(struct deadline *watch)
{
    struct workshop *workshop = CONTAINER_OF(watch, struct workshop, watch);
    struct error err = ERROR_INIT;

    if (check_room(workshop, &err) < 0)
        workshop_done(workshop, &err);
    else
        deadline_set(watch, WATCH_MS);
}

static void watch_closed(struct deadline *watch)
{
    (void) watch;
}

/* --- life ----------------------------------------------------------------------------------- */

static int open_provider(struct workshop *workshop, struct error *err)
{
    const struct provider_local_options options = {
        .loop = &workshop->loop,
        .conversation = TAKE_FD(workshop->launcher.conversation),
        .agents = workshop->launcher.agents,
    };
    const struct provider_watcher watcher = {.lost = lost, .context = workshop};

    workshop->provider = provider_local_new(&options, err);
    if (!workshop->provider)
        return -1;
    begin_wait(workshop);
    provider_open(workshop->provider, &watcher, answered, workshop);
    if (finish_wait(workshop, err) == 0)
        return 0;
    launcher_process_explain(&workshop->launcher, EXPLAIN_MS, err);
    return -1;
}

static int choose_network(struct workshop *workshop, enum workshop_network wanted,
                          struct error *err)
{
    bool has_nat = provider_capabilities(workshop->provider) & PROVIDER_NAT;

    if (wanted == WORKSHOP_NAT && !has_nat)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "there is no network for sandboxes here, see burrow doctor");
    workshop->network = has_nat && wanted != WORKSHOP_NONE ? NETWORK_NAT : NETWORK_NONE;
    return 0;
}

int workshop_open(struct workshop *workshop, const struct workshop_options *options,
                  struct error *err)
{
    const struct launcher_process_options launcher = {.data = options->data,
                                                      .run = options->run,
                                                      .cgroup = options->cgroup,
                                                      .network = options->network_name};
    int r = loop_init(&workshop->loop, NULL);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make a loop");
    workshop->is_open = true;
    deadline_init(&workshop->loop, &workshop->watch, look_at_disk);
    workshop->limits = options->limits;
    workshop->launcher = (struct launcher_process) LAUNCHER_PROCESS_INIT;
    if (launcher_process_start(&launcher, &workshop->launcher, err) < 0 ||
        open_provider(workshop, err) < 0)
        return -1;
    return choose_network(workshop, options->network, err);
}

void workshop_close(struct workshop *workshop)
{
    if (!workshop->is_open)
        return;
    workshop->is_closing = true;
    deadline_close(&workshop->watch, watch_closed);
    if (workshop->provider)
        provider_close(TAKE_PTR(workshop->provider), NULL, NULL);
    loop_run(&workshop->loop);
    loop_done(&workshop->loop);
    (void) launcher_process_end(&workshop->launcher, END_MS, NULL); /* it cleans up without us */
    workshop->is_open = false;
}

/* --- a sandbox ------------------------------------------------------------------------------ */

static void created(void *context, const struct error *failure,
                    const struct provider_sandbox *sandbox)
{
    struct workshop *workshop = context;

    if (!failure)
        workshop->id = sandbox->id;
    workshop_done(workshop, failure);
}

int workshop_begin(struct workshop *workshop, const char *image, struct error *err)
{
    const struct provider_spec spec = {
        .id = id_new(),
        .hostname = HOSTNAME,
        .image = image,
        .limits = workshop->limits,
        .network = workshop->network,
    };

    begin_wait(workshop);
    provider_create(workshop->provider, &spec, created, workshop);
    return finish_wait(workshop, err);
}

static void session_ended(void *context, const struct run_outcome *outcome)
{
    struct workshop *workshop = context;

    workshop->outcome = *outcome;
    workshop_done(workshop, NULL);
}

static void session_closed(void *context)
{
    workshop_done(context, NULL);
}

int workshop_run(struct workshop *workshop, const struct run_message_request *request,
                 struct run_outcome *ret_outcome, struct error *err)
{
    AUTO(close) int nothing = sys_file_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);
    char address[PROVIDER_ADDRESS_MAX];
    const struct run_session_options options = {
        .loop = &workshop->loop,
        .address = address,
        .request = request,
        .input = nothing,
        .output = STDOUT_FILENO,
        .errors = STDERR_FILENO,
        .terminal = -EBADF,
        .events = {.on_end = session_ended, .on_closed = session_closed, .context = workshop},
    };
    struct run_session *session;
    int r;

    if (nothing < 0)
        return error_set(err, ERR_INTERNAL, nothing, "open /dev/null");
    if (provider_agent_address(workshop->provider, &workshop->id, address, err) < 0)
        return -1;
    begin_wait(workshop);
    session = run_session_new(&options, err);
    if (!session)
        return -1;
    r = finish_wait(workshop, err);
    *ret_outcome = workshop->outcome;
    workshop->is_done = false;
    run_session_close(session);
    while (!workshop->is_done)
        loop_run(&workshop->loop);
    return r;
}

/* --- its agent ------------------------------------------------------------------------------ */

struct workshop_asking {
    struct workshop *workshop;
    int file; /* borrowed: the body; -EBADF: none */
    uint64_t left;
    bool is_look; /* of what comes back nothing is wanted */
    int status;
    struct text *reply;
};

static void send_more(struct http_exchange *exchange)
{
    struct workshop_asking *asking = http_exchange_data(exchange);
    char *buffer = asking->workshop->loop.scratch;

    while (asking->left && !http_exchange_is_full(exchange)) {
        size_t size = asking->left < LOOP_SCRATCH_SIZE ? (size_t) asking->left : LOOP_SCRATCH_SIZE;
        ssize_t got = sys_file_read_full(asking->file, buffer, size);

        /* A file of our own that lost its end: nothing that it should be is sent. */
        if (got != (ssize_t) size)
            memset(buffer, 0, size);
        http_exchange_write(exchange, buffer, size);
        asking->left -= size;
        if (!asking->left)
            http_exchange_end(exchange);
    }
}

static void head_arrived(struct http_exchange *exchange)
{
    struct workshop_asking *asking = http_exchange_data(exchange);

    asking->status = http_exchange_head(exchange)->status;
}

static void workshop_body_arrived(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct workshop_asking *asking = http_exchange_data(exchange);

    text_append_bytes(asking->reply, bytes, length);
}

static void reply_ended(struct http_exchange *exchange)
{
    struct workshop_asking *asking = http_exchange_data(exchange);

    workshop_done(asking->workshop, NULL);
}

static void reply_failed(struct http_exchange *exchange, const struct error *error)
{
    struct workshop_asking *asking = http_exchange_data(exchange);

    workshop_done(asking->workshop, error);
}

static const struct http_exchange_events asking_events = {
    .on_head = head_arrived,
    .on_body = workshop_body_arrived,
    .on_end = reply_ended,
    .on_drain = send_more,
    .on_failure = reply_failed,
};

static void origin_closed(struct http_origin *origin, void *data)
{
    struct workshop *workshop = data;

    (void) origin;
    workshop->is_done = true;
    loop_stop(&workshop->loop);
}

static int exchange(struct workshop_asking *asking, struct http_origin *origin, const char *method,
                    const char *target, struct error *err)
{
    static const struct http_header headers[] = {
        {.name = "Host", .name_length = 4, .value = "agent", .value_length = 5},
        {.name = "Range", .name_length = 5, .value = "bytes=0-0", .value_length = 9}};
    const struct http_exchange_request request = {
        .method = method,
        .target = target,
        .headers = headers,
        .header_count = ARRAY_COUNT(headers) - !asking->is_look,
        .body_length = (int64_t) asking->left,
    };
    struct http_exchange *started;

    begin_wait(asking->workshop);
    started = http_exchange_start(origin, &request, &asking_events, asking);
    if (asking->left)
        send_more(started);
    else
        http_exchange_end(started);
    return finish_wait(asking->workshop, err);
}

/* Ask the agent; the status of its answer is in `asking`. */
static int workshop_ask(struct workshop_asking *asking, const char *method, const char *target,
                        struct error *err)
{
    struct workshop *workshop = asking->workshop;
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    char address[PROVIDER_ADDRESS_MAX];
    struct http_origin *origin;
    int r;

    options.head_timeout_ms = ANSWER_MS;
    if (provider_agent_address(workshop->provider, &workshop->id, address, err) < 0)
        return -1;
    origin = http_origin_new(&workshop->loop, address, &options, err);
    if (!origin)
        return -1;
    r = exchange(asking, origin, method, target, err);
    workshop->is_done = false;
    http_origin_close(origin, origin_closed, workshop);
    while (!workshop->is_done)
        loop_run(&workshop->loop);
    return r;
}

/* What the agent said is wrong. */
static int workshop_refuse(const struct workshop_asking *asking, struct error *err)
{
    AUTO(json)
    json_t *body = json_read(text_string(asking->reply), asking->reply->length, NULL, NULL);
    const char *code = json_string_value(json_object_get(body, "code"));
    const char *message = json_string_value(json_object_get(body, "message"));
    bool is_folder = code && strcmp(code, "IS_DIRECTORY") == 0;

    return error_set(err, is_folder ? ERR_CONFLICT : ERR_UPSTREAM, 0, "%.200s",
                     message ? message : "the sandbox refused it");
}

static void make_target(struct text *out, const char *before, const char *path, const char *behind)
{
    text_append(out, before);
    url_encode(out, path, strlen(path));
    text_append(out, behind);
}

int workshop_send(struct workshop *workshop, const char *folder, int file, struct error *err)
{
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX), reply = TEXT_INIT(REPLY_MAX);
    struct workshop_asking asking = {.workshop = workshop, .file = file, .reply = &reply};
    off_t size = lseek(file, 0, SEEK_END);

    if (size < 0 || lseek(file, 0, SEEK_SET) < 0)
        return error_set(err, ERR_INTERNAL, errno, "read the archive");
    asking.left = (uint64_t) size;
    make_target(&target, "/burrow/archive?path=", folder, "&links=any");
    if (workshop_ask(&asking, "PUT", text_string(&target), err) < 0)
        return -1;
    return asking.status == STATUS_FOUND ? 0 : workshop_refuse(&asking, err);
}

int workshop_read(struct workshop *workshop, const char *path, struct text *out, struct error *err)
{
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX), reply = TEXT_INIT(REPLY_MAX);
    struct workshop_asking asking = {.workshop = workshop, .file = -EBADF, .reply = &reply};

    make_target(&target, "/burrow/file?path=", path, "");
    if (workshop_ask(&asking, "GET", text_string(&target), err) < 0)
        return -1;
    if (asking.status == STATUS_FOUND && !reply.overflowed)
        text_append(out, text_string(&reply));
    return 0;
}

/* What is no folder is a file, or not there, or fails at what is done with it. */
int workshop_is_folder(struct workshop *workshop, const char *path, bool *ret_is_folder,
                       struct error *err)
{
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX), reply = TEXT_INIT(REPLY_MAX);
    struct workshop_asking asking = {
        .workshop = workshop, .file = -EBADF, .is_look = true, .reply = &reply};
    struct error refusal = ERROR_INIT;

    make_target(&target, "/burrow/file?path=", path, "");
    if (workshop_ask(&asking, "GET", text_string(&target), err) < 0)
        return -1;
    if (asking.status >= STATUS_FAILED)
        (void) workshop_refuse(&asking, &refusal);
    *ret_is_folder = refusal.code == ERR_CONFLICT;
    return 0;
}

/* --- its disk ------------------------------------------------------------------------------- */

static void job_ended(void *context, const struct error *failure, const struct ending *ending)
{
    struct workshop *workshop = context;
    struct error err = ERROR_INIT;

    if (!failure && (ending->kind != ENDED_STATUS || ending->value != 0)) {
        (void) error_set(&err, ERR_INTERNAL, 0, "the layer could not be packed");
        failure = &err;
    }
    workshop_done(workshop, failure);
}

/* The keeper's last line. */
static int read_report(int report, struct workshop_layer *ret_layer, struct error *err)
{
    AUTO(free) char *bytes = mem_alloc(REPORT_MAX);
    ssize_t length = pread(report, bytes, REPORT_MAX, 0);
    AUTO(json) json_t *line = length > 0 ? json_read(bytes, (size_t) length, NULL, NULL) : NULL;
    json_t *layer = json_object_get(line, "layer");

    if (!layer)
        return error_set(err, ERR_INTERNAL, 0, "the keeper said nothing of the layer");
    ret_layer->bytes = (uint64_t) json_integer_value(json_object_get(layer, "bytes"));
    ret_layer->entries = (uint64_t) json_integer_value(json_object_get(layer, "entries"));
    ret_layer->entries -= ret_layer->entries > 0;
    return 0;
}

int workshop_pack(struct workshop *workshop, int file, struct workshop_layer *ret_layer,
                  struct error *err)
{
    AUTO(close) int report = memfd_create("report", MFD_CLOEXEC);
    struct provider_disk_job job = {
        .kind = DISK_JOB_PACK,
        .on = {.set = DISK_OF_SANDBOX, .id = workshop->id},
        .input = -EBADF,
        .output = report,
        .data = file,
    };

    if (report < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a file in memory");
    begin_wait(workshop);
    provider_stop(workshop->provider, &workshop->id, answered, workshop);
    if (finish_wait(workshop, err) < 0)
        return -1;
    begin_wait(workshop);
    workshop->packed = file;
    if (check_room(workshop, err) < 0)
        return -1;
    deadline_set(&workshop->watch, WATCH_MS);
    provider_run_disk_job(workshop->provider, &job, job_ended, workshop);
    if (finish_wait(workshop, err) < 0)
        return -1; /* the job, if it goes on, ends with the launcher */
    deadline_clear(&workshop->watch);
    if (read_report(report, ret_layer, err) < 0)
        return -1;
    begin_wait(workshop);
    provider_destroy(workshop->provider, &workshop->id, answered, workshop);
    return finish_wait(workshop, err);
}
