/* Changing what a file is said to be: size, mode, owner, time. And what the whole mount is. */
#include <errno.h>
#include <sys/stat.h>

#include "mount/mount_internal.h"

#define KEPT (FATTR_MODE | FATTR_UID | FATTR_GID | FATTR_SIZE | FATTR_MTIME | FATTR_MTIME_NOW)

static void apply_marks(struct mount_request *request)
{
    const struct fuse_setattr_in *in = &request->message.in.setattr;
    struct mount_marks *marks = &request->node->marks;

    if (in->valid & FATTR_MODE)
        marks->mode = (marks->mode & S_IFMT) | (in->mode & 07777);
    if (in->valid & FATTR_UID)
        marks->uid = in->uid;
    if (in->valid & FATTR_GID)
        marks->gid = in->gid;
    if (in->valid & FATTR_MTIME) {
        marks->seconds = (int64_t) in->mtime;
        marks->nanoseconds = in->mtimensec;
    }
    if (in->valid & (FATTR_MTIME_NOW | FATTR_SIZE) && !(in->valid & FATTR_MTIME))
        mount_touch(request->session, marks);
}

/* --- folders --------------------------------------------------------------------------------- */

static void on_marked(struct mount_request *request, int result, const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0) {
        request->node->seen = 0;
        mount_answer_error(request, result);
        return;
    }
    request->node->has_marker = true;
    mount_answer_attributes(request, request->node);
}

static void mark_folder(struct mount_request *request)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;
    char key[MOUNT_KEY_SIZE];
    int r = 0;

    apply_marks(request);
    /* The root is the prefix, which need not be an object; a mount remembers it while it lasts. */
    if (node == session->tree.root || node->is_removed) {
        mount_answer_attributes(request, node);
        return;
    }
    r = mount_node_key(&session->tree, node, key);
    if (r < 0)
        mount_answer_error(request, r);
    else
        mount_ask(request,
                  &(struct mount_ask){.kind = MOUNT_CALL_PUT,
                                      .key = key,
                                      .media_type = MOUNT_FOLDER_TYPE,
                                      .marks = &node->marks},
                  on_marked);
}

/* --- files ----------------------------------------------------------------------------------- */

static void mount_attributes_on_saved(struct mount_request *request, int result,
                                      const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0) {
        if (!request->node->handles)
            mount_drop_changes(request->session, request->node);
        mount_answer_error(request, result);
        return;
    }
    mount_answer_attributes(request, request->node);
}

/* Whoever has it open for writing puts it by closing; otherwise it is put now. The kernel does not
 * say whether a change came by a descriptor. */
static void keep_changes(struct mount_request *request)
{
    mount_mark_dirty(request->session, request->node);
    if (request->node->writers)
        mount_answer_attributes(request, request->node);
    else
        mount_save(request, mount_attributes_on_saved);
}

static void on_spool(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_node *node = request->node;
    uint64_t size = request->message.in.setattr.size;

    (void) answer;
    if (result == 0)
        result = mount_spool_truncate(node->spool, size);
    if (result < 0) {
        mount_answer_error(request, result);
        return;
    }
    node->size = size;
    apply_marks(request);
    keep_changes(request);
}

/* To nothing: what the store has need not come here first. */
static void empty(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_node *node = request->node;

    (void) answer;
    if (!node->spool) {
        node->spool = mount_spool_new(&request->session->room, &result);
        mount_node_change(&request->session->tree, node);
    }
    on_spool(request, node->spool ? 0 : result, NULL);
}

static void change_file(struct mount_request *request, int result,
                        const struct mount_answer *answer)
{
    const struct fuse_setattr_in *in = &request->message.in.setattr;

    (void) answer;
    if (result < 0) {
        mount_answer_error(request, result);
    } else if (in->valid & FATTR_SIZE) {
        if (in->size == 0)
            mount_when_idle(request, request->node, empty);
        else
            mount_fill(request, on_spool);
    } else if (!(in->valid & KEPT) || request->node->is_removed) {
        apply_marks(request);
        mount_answer_attributes(request, request->node);
    } else {
        apply_marks(request);
        keep_changes(request);
    }
}

void mount_setattr(struct mount_request *request)
{
    const struct fuse_setattr_in *in = &request->message.in.setattr;

    if (!mount_node_is_folder(request->node))
        mount_refresh(request, change_file);
    else if (in->valid & KEPT)
        mark_folder(request);
    else
        mount_answer_attributes(request, request->node);
}

/* A bucket has no end that we know of: a quarter of a petabyte is always free. */
void mount_statfs(struct mount_request *request)
{
    struct fuse_statfs_out out = {.st = {.blocks = UINT64_C(1) << 36,
                                         .bfree = UINT64_C(1) << 36,
                                         .bavail = UINT64_C(1) << 36,
                                         .files = UINT64_C(1) << 32,
                                         .ffree = UINT64_C(1) << 32,
                                         .bsize = 4096,
                                         .frsize = 4096,
                                         .namelen = MOUNT_NAME_MAX}};

    mount_answer(request, &out, sizeof(out));
}
