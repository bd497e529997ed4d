/* Writing: into the spool, and the spool's way from and to the store. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/mount_internal.h"

void mount_mark_dirty(struct mount_session *session, struct mount_node *node)
{
    if (node->is_dirty || node->is_removed)
        return;
    node->is_dirty = true;
    mount_node_hold(node); /* whatever the kernel forgets */
    list_append(&session->dirty, &node->dirty);
    session->counters.dirty++;
}

static void mark_clean(struct mount_session *session, struct mount_node *node)
{
    if (!node->is_dirty)
        return;
    node->is_dirty = false;
    list_remove(&node->dirty);
    session->counters.dirty--;
    mount_node_release(&session->tree, node);
}

void mount_drop_changes(struct mount_session *session, struct mount_node *node)
{
    node->seen = 0;
    mark_clean(session, node);
}

void mount_drop_spool(struct mount_node *node)
{
    if (node->handles || node->is_dirty || node->is_busy)
        return;
    mount_spool_free(node->spool);
    node->spool = NULL;
}

/* --- from the store -------------------------------------------------------------------------- */

static void take_spool(struct mount_request *request)
{
    struct mount_node *node = request->node;

    mount_spool_free(node->spool);
    node->spool = TAKE_PTR(request->spool);
    node->size = node->spool->size;
}

static void mount_write_on_fetched(struct mount_request *request, int result,
                                   const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;
    struct stat stat;

    if (result == 0 && fstat(request->spool->fd, &stat) < 0)
        result = -errno;
    /* A store that lies about lengths does not get its way into a file. */
    if (result == 0 && (uint64_t) stat.st_size != answer->info->size)
        result = -EIO;
    if (result == 0)
        result = mount_spool_truncate(request->spool, answer->info->size);
    if (result == 0) {
        mount_note_object(session, node, answer->info, NULL);
        take_spool(request);
    }
    mount_node_hold(node);
    request->filled(request, result == -ENOENT ? -ESTALE : result, NULL);
    mount_settle(session, node);
    mount_node_release(&session->tree, node);
}

static void fill_now(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;
    char key[MOUNT_KEY_SIZE];
    int r = 0;

    (void) result, (void) answer;
    if (node->spool) {
        request->filled(request, 0, NULL);
        return;
    }
    request->spool = mount_spool_new(&session->room, &r);
    if (request->spool && node->size && !node->is_new) {
        r = mount_node_key(&session->tree, node, key);
        if (r == 0)
            r = mount_spool_reserve(request->spool, node->size);
        if (r == 0) {
            node->is_busy = true;
            mount_ask(request,
                      &(struct mount_ask){
                          .kind = MOUNT_CALL_GET_FILE, .key = key, .file = request->spool->fd},
                      mount_write_on_fetched);
            return;
        }
    } else if (request->spool) {
        take_spool(request);
    }
    request->filled(request, r == -ENOENT ? -ESTALE : r, NULL);
}

void mount_fill(struct mount_request *request, mount_step *step)
{
    request->filled = step;
    mount_when_idle(request, request->node, fill_now);
}

static void on_preserved(struct mount_request *request, int result,
                         const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    (void) result, (void) answer; /* who has it open gets an error later, and that is all */
    request->node = TAKE_PTR(request->kept);
    request->preserved(request, 0, NULL);
    mount_node_release(&session->tree, node);
}

void mount_preserve(struct mount_request *request, struct mount_node *node, mount_step *step)
{
    if (!node || !node->handles || node->spool || mount_node_is_folder(node)) {
        step(request, 0, NULL);
        return;
    }
    mount_node_hold(node);
    request->preserved = step;
    request->kept = request->node;
    request->node = node;
    mount_fill(request, on_preserved);
}

/* --- to the store ---------------------------------------------------------------------------- */

static void on_put(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    mount_node_hold(node);
    if (result == 0) {
        bool has_pages = node->kernel_version == node->version;

        session->counters.written_bytes += node->spool->size;
        mount_note_object(session, node, answer->info, NULL);
        if (has_pages) /* the kernel's pages are what it wrote itself */
            node->kernel_version = node->version;
        mark_clean(session, node);
    }
    request->saved(request, result == -ESTALE ? -EIO : result, NULL);
    mount_settle(session, node);
    mount_drop_spool(node);
    mount_node_release(&session->tree, node);
}

static void save_now(struct mount_request *request, int result, const struct mount_answer *answer);

static void on_bytes_here(struct mount_request *request, int result,
                          const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0)
        request->saved(request, result, NULL);
    else
        mount_when_idle(request, request->node, save_now);
}

static void save_now(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_node *node = request->node;
    char key[MOUNT_KEY_SIZE];
    int r;

    (void) result, (void) answer;
    if (!node->is_dirty || node->is_removed) {
        request->saved(request, 0, NULL);
        return;
    }
    if (!node->spool) { /* only its marks have changed, and an object is put as a whole */
        mount_fill(request, on_bytes_here);
        return;
    }
    r = mount_node_key(&request->session->tree, node, key);
    if (r < 0) {
        request->saved(request, r, NULL);
        return;
    }
    node->is_busy = true;
    mount_ask(request,
              &(struct mount_ask){.kind = MOUNT_CALL_PUT_FILE,
                                  .key = key,
                                  .file = node->spool->fd,
                                  .marks = &node->marks,
                                  .replaces = node->is_new ? 0 : node->stored},
              on_put);
}

void mount_save(struct mount_request *request, mount_step *step)
{
    request->saved = step;
    mount_when_idle(request, request->node, save_now);
}

/* --- folders that stay ----------------------------------------------------------------------- */

static void mount_write_on_kept(struct mount_request *request, int result,
                                const struct mount_answer *answer)
{
    (void) answer;
    if (result == -ESTALE) /* somebody else made it */
        result = 0;
    if (result == 0)
        request->folder->has_marker = true;
    request->kept_folder(request, result, NULL);
}

void mount_keep_folder(struct mount_request *request, struct mount_node *folder, mount_step *step)
{
    char key[MOUNT_KEY_SIZE];
    int r = folder->has_marker ? 0 : mount_node_key(&request->session->tree, folder, key);

    request->kept_folder = step;
    request->folder = folder;
    if (r < 0 || folder->has_marker)
        step(request, r, NULL);
    else
        mount_ask(request,
                  &(struct mount_ask){.kind = MOUNT_CALL_PUT,
                                      .key = key,
                                      .only_new = true,
                                      .media_type = MOUNT_FOLDER_TYPE,
                                      .marks = &folder->marks},
                  mount_write_on_kept);
}

/* --- write ----------------------------------------------------------------------------------- */

static void on_written(uv_fs_t *fs)
{
    struct mount_request *request = CONTAINER_OF(fs, struct mount_request, fs);
    struct mount_node *node = request->node;
    const struct fuse_write_in *in = &request->message.in.write;
    struct fuse_write_out out = {.size = in->size};
    ssize_t result = fs->result;

    uv_fs_req_cleanup(fs);
    if (result != (ssize_t) in->size) {
        mount_answer_error(request, result < 0 ? (int) result : -EIO);
        return;
    }
    if (node->size < in->offset + in->size)
        node->size = in->offset + in->size;
    mount_touch(request->session, &node->marks);
    mount_mark_dirty(request->session, node);
    mount_answer(request, &out, sizeof(out));
}

static void on_spool(struct mount_request *request, int result, const struct mount_answer *answer)
{
    const struct fuse_write_in *in = &request->message.in.write;
    struct mount_node *node = request->node;
    uv_buf_t bytes =
        uv_buf_init((char *) (uintptr_t) request->message.data, (unsigned int) in->size);

    (void) answer;
    if (result == 0)
        result = in->offset > (uint64_t) INT64_MAX - in->size
                     ? -EFBIG
                     : mount_spool_reserve(node->spool, in->offset + in->size);
    if (result == 0)
        result = uv_fs_write(&request->session->loop->uv, &request->fs, node->spool->fd, &bytes, 1,
                             (int64_t) in->offset, on_written);
    if (result < 0)
        mount_answer_error(request, result);
}

void mount_write(struct mount_request *request)
{
    if (request->message.in.write.size == 0)
        mount_answer(request, &(struct fuse_write_out){.size = 0}, sizeof(struct fuse_write_out));
    else
        mount_fill(request, on_spool);
}
