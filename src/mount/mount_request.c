/* A request's life: its answer, its waiting, its questions to the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/memory.h"
#include "mount/mount_internal.h"

#define FRESH_SECONDS 1
_Static_assert(FRESH_SECONDS * 1000 == MOUNT_FRESH_MS, "what the kernel is told is what we do");

/* --- answers --------------------------------------------------------------------------------- */

int mount_send(struct mount_session *session, uint64_t unique, int error, const void *bytes,
               size_t length)
{
    struct fuse_out_header head = {
        .len = (uint32_t) (sizeof(head) + length), .error = error, .unique = unique};
    struct iovec parts[] = {{&head, sizeof(head)}, {(void *) (uintptr_t) bytes, length}};

    if (session->fuse < 0)
        return -ENOTCONN;
    /* Whole or not at all, and never later: the kernel copies it into the waiting request. */
    return writev(session->fuse, parts, length ? 2 : 1) < 0 ? -errno : 0;
}

struct mount_request *mount_request_new(struct mount_session *session)
{
    struct mount_request *request = mem_alloc(sizeof(*request));

    request->session = session;
    request->is_answered = true; /* until somebody asks */
    list_init(&request->waiting);
    list_append(&session->requests, &request->link);
    session->request_count++;
    return request;
}

static void free_request(struct mount_request *request)
{
    struct mount_session *session = request->session;

    list_remove(&request->link);
    list_remove(&request->waiting);
    if (request->handle)
        mount_handle_release(session, request->handle);
    if (request->node)
        mount_node_release(&session->tree, request->node);
    if (request->other)
        mount_node_release(&session->tree, request->other);
    mount_rename_free(session, request->rename);
    mount_spool_free(request->spool);
    free(request->buffer);
    free(request->bytes);
    session->held -= request->size;
    session->request_count--;
    free(request);
    mount_session_look(session);
}

static int answer_once(struct mount_request *request, int error, const void *bytes, size_t length)
{
    struct mount_session *session = request->session;

    if (request->is_answered)
        return -EALREADY;
    request->is_answered = true;
    if (error < 0 && error != -ENOENT)
        session->counters.errors++;
    return mount_send(session, request->message.unique, error, bytes, length);
}

void mount_answer(struct mount_request *request, const void *bytes, size_t length)
{
    /* What the kernel does not want any more is nobody's loss. */
    (void) answer_once(request, 0, bytes, length);
    free_request(request);
}

void mount_answer_error(struct mount_request *request, int error)
{
    (void) answer_once(request, error, NULL, 0);
    free_request(request);
}

void mount_answer_early(struct mount_request *request, int error)
{
    (void) answer_once(request, error, NULL, 0);
}

static void fill_attributes(const struct mount_node *node, struct fuse_attr *ret_attributes)
{
    const struct mount_marks *marks = &node->marks;

    *ret_attributes = (struct fuse_attr){
        .ino = node->id,
        .size = mount_node_is_folder(node) ? 0 : node->size,
        .blocks = mount_node_is_folder(node) ? 0 : (node->size + 511) / 512,
        .atime = (uint64_t) marks->seconds,
        .mtime = (uint64_t) marks->seconds,
        .ctime = (uint64_t) marks->seconds,
        .atimensec = marks->nanoseconds,
        .mtimensec = marks->nanoseconds,
        .ctimensec = marks->nanoseconds,
        .mode = marks->mode,
        .nlink = !node->is_removed, /* of a folder, too: it says that nobody counted */
        .uid = marks->uid,
        .gid = marks->gid,
        .blksize = MOUNT_TRANSFER,
    };
}

void mount_answer_attributes(struct mount_request *request, const struct mount_node *node)
{
    struct fuse_attr_out out = {.attr_valid = FRESH_SECONDS};

    fill_attributes(node, &out.attr);
    mount_answer(request, &out, sizeof(out));
}

void mount_fill_entry(struct mount_session *session, struct mount_node *node,
                      struct fuse_entry_out *ret_out)
{
    (void) session;
    *ret_out = (struct fuse_entry_out){
        .nodeid = node->id, .entry_valid = FRESH_SECONDS, .attr_valid = FRESH_SECONDS};
    fill_attributes(node, &ret_out->attr);
}

void mount_answer_entry(struct mount_request *request, struct mount_node *node)
{
    struct fuse_entry_out out;

    mount_fill_entry(request->session, node, &out);
    if (answer_once(request, 0, &out, sizeof(out)) == 0)
        node->lookups++;
    free_request(request);
}

/* --- waiting --------------------------------------------------------------------------------- */

struct asked {
    struct mount_request *request;
    mount_step *step;
};

static void on_answered(void *context, int result, const struct mount_answer *answer)
{
    AUTO(free) struct asked *asked = context;

    asked->step(asked->request, result, answer);
}

void mount_ask(struct mount_request *request, const struct mount_ask *ask, mount_step *step)
{
    struct asked *asked = mem_alloc(sizeof(*asked));

    *asked = (struct asked){request, step};
    mount_call_start(&request->session->calls, ask, on_answered, asked);
}

void mount_when_idle(struct mount_request *request, struct mount_node *node, mount_step *step)
{
    if (!node->is_busy) {
        step(request, 0, NULL);
        return;
    }
    request->step = step;
    list_append(&node->waiters, &request->waiting);
}

void mount_settle(struct mount_session *session, struct mount_node *node)
{
    struct list *first;

    (void) session;
    node->is_busy = false;
    while (!node->is_busy && (first = list_first(&node->waiters))) {
        struct mount_request *request = CONTAINER_OF(first, struct mount_request, waiting);

        list_remove(first);
        request->step(request, 0, NULL);
    }
}

void mount_touch(struct mount_session *session, struct mount_marks *marks)
{
    int64_t now = clock_wall_ms(session->host->clock);

    marks->seconds = now / 1000;
    marks->nanoseconds = (uint32_t) (now % 1000) * 1000000;
}
