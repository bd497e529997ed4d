/* Open files: open, create, flush, fsync, release. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "mount/mount_internal.h"

/* --- handles --------------------------------------------------------------------------------- */

static uint64_t mount_open_hash_of(const struct mount_session *session, uint64_t id)
{
    return table_hash(session->tree.seed, &id, sizeof(id));
}

struct mount_handle *mount_handle_find(const struct mount_session *session, uint64_t id)
{
    struct table_link *at = table_find(&session->handles, mount_open_hash_of(session, id));

    for (; at; at = table_next(at)) {
        struct mount_handle *handle = CONTAINER_OF(at, struct mount_handle, link);

        if (handle->id == id)
            return handle;
    }
    return NULL;
}

struct mount_handle *mount_handle_new(struct mount_session *session, struct mount_node *node)
{
    struct mount_handle *handle;

    if (session->handles.count >= MOUNT_HANDLES_MAX)
        return NULL;
    handle = mem_alloc(sizeof(*handle));
    handle->id = ++session->last_handle;
    handle->holders = 1;
    handle->node = node;
    mount_node_hold(node);
    node->handles++;
    handle->link.hash = mount_open_hash_of(session, handle->id);
    table_add(&session->handles, &handle->link);
    return handle;
}

void mount_handle_release(struct mount_session *session, struct mount_handle *handle)
{
    struct mount_node *node = handle->node;

    if (--handle->holders)
        return;
    table_remove(&session->handles, &handle->link);
    mount_listing_free(handle->listing);
    free(handle);
    node->handles--;
    mount_drop_spool(node);
    mount_node_release(&session->tree, node);
}

/* --- open ------------------------------------------------------------------------------------ */

static bool wants_to_write(uint32_t flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

static struct fuse_open_out open_out(struct mount_handle *handle, uint32_t flags)
{
    struct mount_node *node = handle->node;
    struct fuse_open_out out = {.fh = handle->id};

    handle->is_writing = wants_to_write(flags);
    node->writers += handle->is_writing;
    /* Never direct: a process that waits for a page can be killed. */
    if (node->kernel_version == node->version)
        out.open_flags |= FOPEN_KEEP_CACHE;
    node->kernel_version = node->version;
    return out;
}

static void finish_open(struct mount_request *request)
{
    struct mount_handle *handle = mount_handle_new(request->session, request->node);
    struct fuse_open_out out;

    if (!handle) {
        mount_answer_error(request, -ENFILE);
        return;
    }
    out = open_out(handle, request->message.in.open.flags);
    if (request->is_answered) { /* nobody will ever close it */
        request->node->writers -= handle->is_writing;
        mount_handle_release(request->session, handle);
    }
    mount_answer(request, &out, sizeof(out));
}

static void truncate_now(struct mount_request *request, int result,
                         const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;
    struct mount_spool *spool;

    (void) answer;
    spool = mount_spool_new(&session->room, &result);
    if (!spool) {
        mount_answer_error(request, result);
        return;
    }
    mount_spool_free(node->spool);
    node->spool = spool;
    node->size = 0;
    mount_node_change(&session->tree, node);
    mount_touch(session, &node->marks);
    mount_mark_dirty(session, node);
    finish_open(request);
}

static void on_known(struct mount_request *request, int result, const struct mount_answer *answer)
{
    uint32_t flags = request->message.in.open.flags;

    (void) answer;
    if (result < 0)
        mount_answer_error(request, result);
    else if (flags & O_TRUNC)
        mount_when_idle(request, request->node, truncate_now);
    else
        finish_open(request);
}

void mount_open(struct mount_request *request)
{
    uint32_t flags = request->message.in.open.flags;

    if (request->session->read_only && (wants_to_write(flags) || (flags & O_TRUNC)))
        mount_answer_error(request, -EROFS);
    else
        mount_refresh(request, on_known);
}

/* --- create ---------------------------------------------------------------------------------- */

struct mount_marks mount_new_marks(const struct mount_request *request, mode_t mode)
{
    struct mount_marks marks = {.mode = mode};

    marks.uid = request->message.uid <= MOUNT_ID_MAX ? request->message.uid : request->session->uid;
    marks.gid = request->message.gid <= MOUNT_ID_MAX ? request->message.gid : request->session->gid;
    mount_touch(request->session, &marks);
    return marks;
}

static void answer_created(struct mount_request *request, struct mount_handle *handle)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out;

    mount_fill_entry(request->session, handle->node, &out.entry);
    out.open = open_out(handle, request->message.in.create.flags);
    handle->node->lookups++;
    mount_answer(request, &out, sizeof(out));
}

void mount_create(struct mount_request *request)
{
    struct mount_session *session = request->session;
    const char *name = request->message.name;
    struct mount_spool *spool = NULL;
    struct mount_handle *handle;
    struct mount_node *node;
    char key[MOUNT_KEY_SIZE];
    int r = mount_name_check(name);

    if (r == 0)
        r = mount_tree_key(&session->tree, request->node, name, false, key);
    /* The kernel has looked before; somebody was quicker: it looks again after ESTALE. */
    if (r == 0 && mount_tree_child(&session->tree, request->node, name))
        r = request->message.in.create.flags & O_EXCL ? -EEXIST : -ESTALE;
    if (r == 0)
        spool = mount_spool_new(&session->room, &r);
    if (!spool) {
        mount_answer_error(request, r);
        return;
    }
    node = mount_tree_add(&session->tree, request->node, name);
    request->other = node; /* held until the request is gone */
    node->spool = spool;
    node->is_new = true;
    node->marks = mount_new_marks(request, S_IFREG | (request->message.in.create.mode & 07777));
    mount_mark_dirty(session, node);
    handle = mount_handle_new(session, node);
    if (handle) {
        answer_created(request, handle);
        return;
    }
    mount_drop_changes(session, node);
    mount_node_remove(&session->tree, node);
    mount_drop_spool(node);
    mount_answer_error(request, -ENFILE);
}

/* --- saving ---------------------------------------------------------------------------------- */

static void mount_open_on_saved(struct mount_request *request, int result,
                                const struct mount_answer *answer)
{
    (void) answer;
    mount_answer_error(request, result);
}

void mount_flush(struct mount_request *request)
{
    if (request->handle->is_writing)
        mount_save(request, mount_open_on_saved);
    else
        mount_answer_error(request, 0);
}

void mount_fsync(struct mount_request *request)
{
    mount_flush(request);
}

/* It was tried when the file was closed, and now: whoever wrote it was told. */
static void mount_open_give_up(struct mount_session *session, struct mount_node *node, int result)
{
    LOG_ERROR(session->log, "what was written to a mount is lost", log_text("mount", session->text),
              log_text("name", node->name), log_number("errno", -result));
    session->lost_files++;
    mount_drop_changes(session, node);
    if (node->is_new)
        mount_node_remove(&session->tree, node);
}

static void on_last_saved(struct mount_request *request, int result,
                          const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    (void) answer;
    if (result < 0 && result != -ESHUTDOWN && !node->writers)
        mount_open_give_up(session, node, result);
    mount_answer_error(request, 0);
    /* The spool goes with the handle or with the end of what makes the node busy. */
}

void mount_release(struct mount_request *request)
{
    struct mount_session *session = request->session;
    struct mount_handle *handle = request->handle;
    bool was_writing = handle->is_writing;

    request->node->writers -= was_writing;
    handle->is_writing = false;
    mount_handle_release(session, handle); /* the kernel's; the request still holds it */
    if (was_writing && request->node->is_dirty && !request->node->is_removed)
        mount_save(request, on_last_saved);
    else
        mount_answer_error(request, 0);
}
