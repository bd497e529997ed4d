/* Names that go, and what is made in one step: symbolic links, empty files, folders. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/mount_internal.h"

/* --- unlink ---------------------------------------------------------------------------------- */

/* The name is gone; what was written and never put was for nobody else. */
static void remove_node(struct mount_request *request)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    mount_drop_changes(session, node);
    mount_node_remove(&session->tree, node);
}

static void mount_remove_on_deleted(struct mount_request *request, int result,
                                    const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    (void) answer;
    mount_node_hold(node);
    if (result == 0)
        remove_node(request);
    mount_answer_error(request, result);
    mount_settle(session, node);
    mount_drop_spool(node);
    mount_node_release(&session->tree, node);
}

static void delete_object(struct mount_request *request, int result,
                          const struct mount_answer *answer)
{
    char key[MOUNT_KEY_SIZE];
    const char *keys[] = {key};

    if (result == 0)
        result = mount_node_key(&request->session->tree, request->node, key);
    if (result < 0)
        mount_remove_on_deleted(request, result, answer);
    else
        mount_ask(request,
                  &(struct mount_ask){.kind = MOUNT_CALL_DELETE,
                                      .keys = keys,
                                      .key_count = 1,
                                      .replaces = request->node->stored},
                  mount_remove_on_deleted);
}

static void on_preserved(struct mount_request *request, int result,
                         const struct mount_answer *answer);

static void unlink_now(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_node *node = request->node;

    (void) result, (void) answer;
    if (node->is_removed) {
        mount_answer_error(request, -ENOENT);
    } else if (node->is_new) {
        remove_node(request);
        mount_answer_error(request, 0);
    } else {
        node->is_busy = true; /* nobody puts it again meanwhile */
        mount_keep_folder(request, request->other, delete_object);
    }
}

static void on_preserved(struct mount_request *request, int result,
                         const struct mount_answer *answer)
{
    (void) result, (void) answer;
    mount_when_idle(request, request->node, unlink_now);
}

void mount_unlink(struct mount_request *request)
{
    struct mount_node *child =
        mount_tree_child(&request->session->tree, request->node, request->message.name);

    if (!child) { /* the kernel looked it up before: somebody else was quicker */
        mount_answer_error(request, -ENOENT);
        return;
    }
    request->other = request->node;
    request->node = child;
    mount_node_hold(child);
    mount_preserve(request, child, on_preserved);
}

/* --- symlink, mknod, mkdir ------------------------------------------------------------------- */

static mode_t mount_new_mode(const struct mount_request *request)
{
    const struct mount_message *message = &request->message;

    if (message->opcode == FUSE_SYMLINK)
        return S_IFLNK | 0777;
    if (message->opcode == FUSE_MKDIR)
        return S_IFDIR | (message->in.mkdir.mode & 07777);
    return S_IFREG | (message->in.mknod.mode & 07777);
}

static void mount_new_on_put(struct mount_request *request, int result,
                             const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    mode_t mode = mount_new_mode(request);
    struct mount_node *node;
    struct mount_marks marks;

    if (result < 0) {
        mount_answer_error(request, result == -ESTALE ? -EEXIST : result);
        return;
    }
    node = mount_tree_add(&session->tree, request->node, request->message.name);
    request->other = node;
    marks = mount_new_marks(request, mode);
    if (S_ISDIR(mode)) {
        node->marks = marks;
        node->has_marker = true;
        node->seen = loop_now(session->loop);
    } else {
        mount_note_object(session, node, answer->info, &marks);
    }
    mount_answer_entry(request, node);
}

static void mount_put_new(struct mount_request *request, const char *media_type, const char *bytes)
{
    mode_t mode = mount_new_mode(request);
    struct mount_marks marks = mount_new_marks(request, mode);
    char key[MOUNT_KEY_SIZE];
    int r = mount_tree_new_key(&request->session->tree, request->node, request->message.name,
                               S_ISDIR(mode), key);

    if (r < 0)
        mount_answer_error(request, r);
    else
        mount_ask(request,
                  &(struct mount_ask){.kind = MOUNT_CALL_PUT,
                                      .key = key,
                                      .only_new = true,
                                      .bytes = bytes,
                                      .length = bytes ? strlen(bytes) : 0,
                                      .media_type = media_type,
                                      .marks = &marks},
                  mount_new_on_put);
}

void mount_symlink(struct mount_request *request)
{
    mount_put_new(request, NULL, request->message.second);
}

void mount_mknod(struct mount_request *request)
{
    if (!S_ISREG(request->message.in.mknod.mode))
        mount_answer_error(request, -EPERM);
    else
        mount_put_new(request, NULL, "");
}

void mount_mkdir(struct mount_request *request)
{
    mount_put_new(request, MOUNT_FOLDER_TYPE, NULL);
}
