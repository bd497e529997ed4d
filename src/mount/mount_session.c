#include "mount/mount_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "mount/mount_internal.h"
#include "sys/file/sys_file.h"

#define TICK_MS       100
#define TURN_MAX      64   /* requests of one mount before others get their turn */
#define SMALL_MESSAGE 4096 /* longer ones keep the buffer they were read into */
#define FILE_MODE     0644
#define FOLDER_MODE   0755

/* --- dispatch -------------------------------------------------------------------------------- */

enum wants {
    NODE = 1 << 0,
    FOLDER = 1 << 1 | NODE,
    HANDLE = 1 << 2 | NODE,
    CHANGES = 1 << 3, /* refused where nothing may be changed */
};

static const struct {
    mount_operation *operation;
    unsigned int wants;
} rows[] = {
    [FUSE_LOOKUP] = {mount_lookup, FOLDER},
    [FUSE_GETATTR] = {mount_getattr, NODE},
    [FUSE_SETATTR] = {mount_setattr, NODE | CHANGES},
    [FUSE_READLINK] = {mount_readlink, NODE},
    [FUSE_SYMLINK] = {mount_symlink, FOLDER | CHANGES},
    [FUSE_MKNOD] = {mount_mknod, FOLDER | CHANGES},
    [FUSE_MKDIR] = {mount_mkdir, FOLDER | CHANGES},
    [FUSE_UNLINK] = {mount_unlink, FOLDER | CHANGES},
    [FUSE_RMDIR] = {mount_rmdir, FOLDER | CHANGES},
    [FUSE_RENAME] = {mount_rename, FOLDER | CHANGES},
    [FUSE_OPEN] = {mount_open, NODE},
    [FUSE_READ] = {mount_read, HANDLE},
    [FUSE_WRITE] = {mount_write, HANDLE | CHANGES},
    [FUSE_STATFS] = {mount_statfs, 0},
    [FUSE_RELEASE] = {mount_release, HANDLE},
    [FUSE_FSYNC] = {mount_fsync, HANDLE},
    [FUSE_FLUSH] = {mount_flush, HANDLE},
    [FUSE_OPENDIR] = {mount_opendir, FOLDER},
    [FUSE_READDIR] = {mount_readdir, HANDLE},
    [FUSE_RELEASEDIR] = {mount_releasedir, HANDLE},
    [FUSE_CREATE] = {mount_create, FOLDER | CHANGES},
    [FUSE_RENAME2] = {mount_rename, FOLDER | CHANGES},
};

/* The field of each is at the same place of its message. */
static uint64_t handle_of(const struct mount_message *message)
{
    _Static_assert(
        offsetof(struct fuse_read_in, fh) == 0 && offsetof(struct fuse_write_in, fh) == 0 &&
            offsetof(struct fuse_release_in, fh) == 0 && offsetof(struct fuse_flush_in, fh) == 0 &&
            offsetof(struct fuse_fsync_in, fh) == 0,
        "handles come first");
    return message->in.read.fh;
}

/* What the operation needs, or why it cannot be done. */
static int mount_session_prepare(struct mount_request *request, unsigned int wants)
{
    struct mount_session *session = request->session;
    const struct mount_message *message = &request->message;

    if ((wants & CHANGES) && session->read_only)
        return -EROFS;
    if (!(wants & NODE))
        return 0;
    request->node = mount_tree_find(&session->tree, message->node);
    if (!request->node)
        return -ESTALE;
    mount_node_hold(request->node);
    if ((wants & FOLDER) == FOLDER && !mount_node_is_folder(request->node))
        return -ENOTDIR;
    if ((wants & FOLDER) == FOLDER && request->node->is_removed)
        return -ENOENT;
    if ((wants & HANDLE) != HANDLE)
        return 0;
    request->handle = mount_handle_find(session, handle_of(message));
    if (!request->handle)
        return -EBADF;
    request->handle->holders++;
    return request->handle->node == request->node ? 0 : -EBADF;
}

static void mount_session_serve(struct mount_request *request)
{
    uint32_t opcode = request->message.opcode;
    int r;

    if (opcode ==
        FUSE_FSYNCDIR) { /* every change of a folder is in the store when it is answered */
        mount_answer_error(request, 0);
        return;
    }
    if (opcode >= ARRAY_COUNT(rows) || !rows[opcode].operation) {
        mount_answer_error(request, -ENOSYS);
        return;
    }
    r = mount_session_prepare(request, rows[opcode].wants);
    if (r < 0)
        mount_answer_error(request, r);
    else
        rows[opcode].operation(request);
}

/* --- requests that need no answer, or at once ------------------------------------------------ */

static void mount_session_forget(struct mount_session *session, uint64_t id, uint64_t lookups)
{
    struct mount_node *node = mount_tree_find(&session->tree, id);

    if (node)
        mount_node_forget(&session->tree, node, lookups);
}

static void forget_some(struct mount_session *session, const struct mount_message *message)
{
    for (size_t i = 0; i < message->in.batch_forget.count; i++) {
        struct fuse_forget_one one = mount_message_forget(message, i);

        mount_session_forget(session, one.nodeid, one.nlookup);
    }
}

static void interrupt(struct mount_session *session, uint64_t unique)
{
    LIST_EACH (&session->requests, at) {
        struct mount_request *request = CONTAINER_OF(at, struct mount_request, link);

        if (!request->is_answered && request->message.unique == unique && !request->interrupted)
            request->interrupted = loop_now(session->loop);
    }
}

static void greet(struct mount_session *session, const struct mount_message *message)
{
    struct fuse_init_out out;

    if (mount_message_init(&message->in.init, &out)) {
        (void) mount_send(session, message->unique, 0, &out, sizeof(out));
        return;
    }
    LOG_ERROR(session->log, "this kernel's FUSE cannot be used for mounts",
              log_number("minor", message->in.init.minor));
    (void) mount_send(session, message->unique, -EPROTO, NULL, 0);
}

/* Whether that was all. */
static bool serve_at_once(struct mount_session *session, const struct mount_message *message)
{
    switch (message->opcode) {
    case FUSE_INIT:
        greet(session, message);
        return true;
    case FUSE_FORGET:
        mount_session_forget(session, message->node, message->in.forget.nlookup);
        return true;
    case FUSE_BATCH_FORGET:
        forget_some(session, message);
        return true;
    case FUSE_INTERRUPT:
        session->counters.interrupts++;
        interrupt(session, message->in.interrupt.unique);
        return true;
    case FUSE_DESTROY:
        (void) mount_send(session, message->unique, 0, NULL, 0);
        return true;
    default:
        return false;
    }
}

/* --- the descriptor -------------------------------------------------------------------------- */

static void start_ticking(struct mount_session *session);

/* The request keeps the bytes, for its names and data point into them. */
static void take_message(struct mount_session *session, size_t length)
{
    struct mount_request *request = mount_request_new(session);

    if (length > SMALL_MESSAGE) {
        request->bytes = TAKE_PTR(session->input);
        request->size = length;
        session->held += length;
    } else {
        request->bytes = mem_copy_bytes(session->input, length);
    }
    (void) mount_message_read(request->bytes, length, &request->message);
    request->is_answered = false;
    session->counters.requests++;
    start_ticking(session);
    mount_session_serve(request);
}

static void handle_message(struct mount_session *session, size_t length)
{
    struct mount_message message;
    int r = mount_message_read(session->input, length, &message);

    if (r == 0 && serve_at_once(session, &message))
        return;
    if (r == 0)
        take_message(session, length);
    else if (message.unique) /* a hard link is the one that programs try and go on without */
        (void) mount_send(session, message.unique, message.opcode == FUSE_LINK ? -EPERM : r, NULL,
                          0);
}

static bool has_room(const struct mount_session *session)
{
    return session->request_count < MOUNT_REQUESTS_MAX && session->held < MOUNT_HELD_MAX;
}

static void on_readable(uv_poll_t *poll, int status, int events);

static void look_at_poll(struct mount_session *session)
{
    bool wanted = !session->is_lost && !session->is_closing && has_room(session);

    if (wanted == session->is_polling)
        return;
    session->is_polling = wanted;
    if (wanted)
        (void) uv_poll_start(&session->poll, UV_READABLE, on_readable);
    else
        (void) uv_poll_stop(&session->poll);
}

static void mount_session_lose(struct mount_session *session)
{
    if (session->is_lost)
        return;
    session->is_lost = true;
    loop_defer(session->loop, &session->lost);
}

/* One message. False: there is none now. */
static bool mount_session_receive(struct mount_session *session)
{
    ssize_t got;

    if (!session->input)
        session->input = mem_alloc(MOUNT_MESSAGE_MAX);
    got = read(session->fuse, session->input, MOUNT_MESSAGE_MAX);
    if (got >= 0) {
        handle_message(session, (size_t) got);
        return true;
    }
    if (errno == EINTR || errno == ENOENT) /* ENOENT: taken back while it was read */
        return true;
    if (errno != EAGAIN)
        mount_session_lose(session);
    return false;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct mount_session *session = CONTAINER_OF(poll, struct mount_session, poll);

    (void) events;
    if (status < 0)
        mount_session_lose(session);
    for (int i = 0; i < TURN_MAX && !session->is_lost && has_room(session); i++) {
        if (!mount_session_receive(session))
            break;
    }
    look_at_poll(session);
}

static void tell_lost(struct loop_task *task)
{
    struct mount_session *session = CONTAINER_OF(task, struct mount_session, lost);

    if (!session->is_closing && session->on_lost)
        session->on_lost(session->context);
}

/* --- time ------------------------------------------------------------------------------------ */

static void mount_session_end(struct mount_session *session);

static void answer_interrupted(struct mount_session *session)
{
    uint64_t now = loop_now(session->loop);

    LIST_EACH (&session->requests, at) {
        struct mount_request *request = CONTAINER_OF(at, struct mount_request, link);

        if (request->interrupted && now - request->interrupted >= MOUNT_GRACE_MS)
            mount_answer_early(request, -EINTR);
    }
}

static void mount_session_tick(uv_timer_t *timer)
{
    struct mount_session *session = CONTAINER_OF(timer, struct mount_session, timer);

    answer_interrupted(session);
    mount_calls_look(&session->calls);
    if (session->is_closing && !session->is_over && loop_now(session->loop) >= session->close_due)
        mount_session_end(session);
    if (!session->request_count && mount_calls_are_idle(&session->calls) && !session->is_closing) {
        session->is_ticking = false;
        (void) uv_timer_stop(timer);
    }
}

static void start_ticking(struct mount_session *session)
{
    if (session->is_ticking || session->is_over)
        return;
    session->is_ticking = true;
    (void) uv_timer_start(&session->timer, mount_session_tick, TICK_MS, TICK_MS);
}

/* --- the end --------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct mount_session *session = handle->data;
    mount_session_closed *done = session->on_closed;
    void *context = session->closed_context;
    size_t lost = session->lost_files;

    if (--session->handles_open)
        return;
    free(session->input);
    free(session->text);
    free(session);
    if (done)
        done(context, lost);
}

static void release_all(struct mount_session *session)
{
    LIST_EACH (&session->dirty, at) {
        struct mount_node *node = CONTAINER_OF(at, struct mount_node, dirty);

        LOG_ERROR(session->log, "what was written to a mount is lost",
                  log_text("mount", session->text), log_text("name", node->name));
        session->lost_files++;
    }
    for (size_t i = 0; i < session->handles.bucket_count; i++) {
        struct table_link *at = session->handles.buckets[i];

        while (at) {
            struct mount_handle *handle = CONTAINER_OF(at, struct mount_handle, link);

            at = at->next;
            mount_listing_free(handle->listing);
            free(handle);
        }
    }
    table_done(&session->handles);
    mount_tree_done(&session->tree);
    mount_cache_user_done(&session->cache);
    mount_calls_done(&session->calls);
    loop_task_cancel(&session->lost);
}

/* When the last request is gone. */
static void mount_session_finish(struct loop_task *task)
{
    struct mount_session *session = CONTAINER_OF(task, struct mount_session, ended);

    if (session->request_count || !list_is_empty(&session->fetches))
        return; /* a read or write of a spool: its end comes back here */
    release_all(session);
    session->poll.data = session->timer.data = session;
    uv_close((uv_handle_t *) &session->poll, on_handle_closed);
    uv_close((uv_handle_t *) &session->timer, on_handle_closed);
}

/* No more patience, or nothing left to do. */
static void mount_session_end(struct mount_session *session)
{
    session->is_over = true;
    (void) uv_timer_stop(&session->timer);
    (void) uv_poll_stop(&session->poll);
    session->fuse = fd_close(session->fuse); /* the kernel ends what still waits */
    mount_calls_end(&session->calls);
    loop_defer(session->loop, &session->ended);
}

void mount_session_look(struct mount_session *session)
{
    if (session->is_over)
        loop_defer(session->loop, &session->ended);
    else
        look_at_poll(session);
}

static void on_file_saved(struct mount_request *request, int result,
                          const struct mount_answer *answer)
{
    struct mount_session *session = request->session;

    (void) answer, (void) result; /* what stays dirty is told at the very end */
    session->saving--;
    mount_answer_error(request, 0);
    if (!session->saving && !session->is_over)
        mount_session_end(session);
}

static void save_all(struct mount_session *session)
{
    session->saving = 1; /* ours, so that none of them is the last too early */
    LIST_EACH (&session->dirty, at) {
        struct mount_node *node = CONTAINER_OF(at, struct mount_node, dirty);
        struct mount_request *request = mount_request_new(session);

        request->node = node;
        mount_node_hold(node);
        session->saving++;
        mount_save(request, on_file_saved);
    }
    if (--session->saving == 0)
        mount_session_end(session);
}

void mount_session_close(struct mount_session *session, uint64_t patience_ms,
                         mount_session_closed *done, void *context)
{
    session->on_closed = done;
    session->closed_context = context;
    session->is_closing = true;
    session->close_due = loop_now(session->loop) + patience_ms;
    look_at_poll(session);
    start_ticking(session);
    save_all(session);
}

/* --- its beginning --------------------------------------------------------------------------- */

static int check_prefix(const char *prefix, struct error *err)
{
    size_t length = strlen(prefix);

    if (length >= OBJECTS_KEY_MAX || !utf8_is_valid(prefix, length) || *prefix == '/' ||
        strstr(prefix, "//"))
        return error_set(err, ERR_INVALID, 0, "not a prefix of keys that a mount can have");
    return 0;
}

static void init_tree(struct mount_session *session, const struct mount_options *options)
{
    struct mount_node *root;

    mount_tree_init(&session->tree, options->prefix);
    root = session->tree.root;
    root->marks = mount_default_marks(session, true, clock_wall_ms(session->host->clock));
    root->has_marks = true;
    root->seen = 1;
}

static void init_parts(struct mount_session *session, struct objects *objects,
                       const struct mount_options *options)
{
    list_init(&session->requests);
    list_init(&session->fetches);
    list_init(&session->dirty);
    loop_task_init(&session->lost, tell_lost);
    loop_task_init(&session->ended, mount_session_finish);
    mount_calls_init(&session->calls, session->loop, objects, session->log);
    session->calls.book = options->book;
    if (options->patience_ms)
        session->calls.patience_ms = options->patience_ms;
    mount_cache_user_init(&session->cache, &session->host->cache,
                          options->cache_limit ?: MOUNT_CACHE_DEFAULT);
    session->room = (struct mount_spool_room){
        .outer = &session->host->room,
        .folder = session->host->folder,
        .limit = options->spool_limit ?: MOUNT_SPOOL_DEFAULT,
        .floor = session->host->floor,
        .shares = session->host->shares,
        .asker = options->asker,
        .log = session->log,
        .text = session->text,
    };
    init_tree(session, options);
}

struct mount_session *mount_session_new(struct mount_host *host, struct objects *objects,
                                        const struct mount_options *options, int fuse,
                                        struct error *err)
{
    AUTO(close) int fd = fuse;
    struct mount_session *session;
    int r;

    if (check_prefix(options->prefix, err) < 0)
        return NULL;
    r = sys_file_set_nonblocking(fd, true);
    session = mem_alloc(sizeof(*session));
    *session = (struct mount_session){
        .host = host,
        .loop = host->loop,
        .log = host->log,
        .read_only = options->read_only,
        .uid = options->uid <= MOUNT_ID_MAX ? options->uid : 0,
        .gid = options->gid <= MOUNT_ID_MAX ? options->gid : 0,
        .file_mode = S_IFREG | ((options->file_mode ?: FILE_MODE) & 07777),
        .folder_mode = S_IFDIR | ((options->folder_mode ?: FOLDER_MODE) & 07777),
        .handles = TABLE_INIT,
        .on_lost = options->on_lost,
        .context = options->context,
        .handles_open = 2,
    };
    if (r == 0)
        r = uv_poll_init(&host->loop->uv, &session->poll, fd);
    if (r < 0) {
        free(session);
        (void) error_set(err, ERR_INTERNAL, r, "watch a descriptor of /dev/fuse");
        return NULL;
    }
    session->fuse = TAKE_FD(fd);
    session->text = options->text ? mem_copy_text(options->text) : NULL;
    (void) uv_timer_init(&host->loop->uv, &session->timer);
    init_parts(session, objects, options);
    look_at_poll(session);
    return session;
}

void mount_session_counters(const struct mount_session *session,
                            struct mount_counters *ret_counters)
{
    *ret_counters = session->counters;
    ret_counters->calls = session->calls.calls;
    ret_counters->failures = session->calls.failures;
    ret_counters->timeouts = session->calls.timeouts;
    ret_counters->cache_hits = session->cache.hits;
    ret_counters->cache_misses = session->cache.misses;
    ret_counters->cache_bytes = session->cache.bytes;
    ret_counters->spool_bytes = session->room.used;
    ret_counters->open_requests = session->request_count;
    ret_counters->nodes = session->tree.count;
    ret_counters->handles = session->handles.count;
}
