/* What is there: lookup, getattr, and the look behind both. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/mount_internal.h"

/* --- what is known of a node ----------------------------------------------------------------- */

struct mount_marks mount_default_marks(const struct mount_session *session, bool is_folder,
                                       int64_t modified_ms)
{
    int64_t modified = modified_ms > 0 ? modified_ms : 0;

    return (struct mount_marks){
        .mode = is_folder ? session->folder_mode : session->file_mode,
        .uid = session->uid,
        .gid = session->gid,
        .seconds = modified / 1000,
        .nanoseconds = (uint32_t) (modified % 1000) * 1000000,
    };
}

/* Those of an object. Whether something is a folder its key decides, and nothing else. */
static struct mount_marks marks_of(const struct mount_session *session,
                                   const struct object_info *info, bool is_folder)
{
    struct mount_marks marks = mount_default_marks(session, is_folder, info->modified_ms);

    mount_marks_read(&marks, info);
    if (is_folder)
        marks.mode = S_IFDIR | (marks.mode & 07777);
    else if (S_ISDIR(marks.mode))
        marks.mode = S_IFREG | (marks.mode & 07777);
    return marks;
}

void mount_note_object(struct mount_session *session, struct mount_node *node,
                       const struct object_info *info, const struct mount_marks *marks)
{
    if (strcmp(node->tag, info->tag) != 0 || node->size != info->size)
        mount_node_change(&session->tree, node);
    memcpy(node->tag, info->tag, sizeof(node->tag));
    node->size = node->stored = info->size;
    node->is_new = false;
    node->has_marks = true;
    node->seen = loop_now(session->loop);
    if (marks)
        node->marks = *marks;
}

/* The store has nothing to say about it: we know better, or it is nobody's any more. */
static bool mount_lookup_is_ours(const struct mount_node *node)
{
    return node->is_new || node->is_dirty || node->spool || node->is_busy || node->is_removed;
}

bool mount_is_fresh(const struct mount_session *session, const struct mount_node *node)
{
    if (node == session->tree.root || mount_lookup_is_ours(node))
        return true;
    return node->seen && loop_now(session->loop) - node->seen < MOUNT_FRESH_MS;
}

/* --- the look -------------------------------------------------------------------------------- */

static void on_marker(struct mount_request *request, int result, const struct mount_answer *answer)
{
    if (result == 0)
        request->found.marks = marks_of(request->session, answer->info, true);
    request->looked(request, result == -ENOENT ? 0 : result, NULL);
}

static void on_beneath(struct mount_request *request, int result, const struct mount_answer *answer)
{
    char key[MOUNT_KEY_SIZE];

    if (result < 0 || answer->list->count == 0) {
        request->looked(request, result < 0 ? result : -ENOENT, NULL);
        return;
    }
    request->found.is_folder = true;
    request->found.marks =
        mount_default_marks(request->session, true, answer->list->entries[0].modified_ms);
    /* It was short enough a moment ago, but the folder may have been moved meanwhile. */
    result = mount_tree_key(&request->session->tree, request->folder, request->name, true, key);
    if (result < 0 || strcmp(answer->list->entries[0].key, key) != 0) {
        request->looked(request, result, NULL);
        return;
    }
    request->found.has_marker = true;
    mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_HEAD, .key = key}, on_marker);
}

static void mount_lookup_on_head(struct mount_request *request, int result,
                                 const struct mount_answer *answer)
{
    char key[MOUNT_KEY_SIZE];

    if (result == 0) {
        request->found.has_info = true;
        request->found.info = *answer->info;
        request->found.info.metadata = NULL;
        request->found.info.metadata_count = 0;
        request->found.marks = marks_of(request->session, answer->info, false);
    }
    if (result == -ENOENT)
        result = mount_tree_key(&request->session->tree, request->folder, request->name, true, key);
    else {
        request->looked(request, result, NULL);
        return;
    }
    if (result < 0) {
        request->looked(request, result == -ENAMETOOLONG ? -ENOENT : result, NULL);
        return;
    }
    mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_LIST, .key = key, .limit = 1},
              on_beneath);
}

void mount_look(struct mount_request *request, struct mount_node *folder, const char *name,
                mount_step *step)
{
    char key[MOUNT_KEY_SIZE];
    int r = mount_tree_key(&request->session->tree, folder, name, false, key);

    request->looked = step;
    request->folder = folder;
    request->name = name;
    request->found = (struct mount_found){.is_folder = false};
    if (r < 0)
        step(request, r, NULL);
    else
        mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_HEAD, .key = key},
                  mount_lookup_on_head);
}

/* One that became something else is another file. */
static void drop_other_type(struct mount_session *session, struct mount_node *child, bool is_folder)
{
    if (!child || mount_lookup_is_ours(child) || mount_node_is_folder(child) == is_folder)
        return;
    mount_node_hold(child);
    mount_node_remove(&session->tree, child);
    mount_node_release(&session->tree, child);
}

struct mount_node *mount_take_found(struct mount_request *request, struct mount_node *folder,
                                    const char *name)
{
    struct mount_session *session = request->session;
    const struct mount_found *found = &request->found;
    struct mount_node *node;

    drop_other_type(session, mount_tree_child(&session->tree, folder, name), found->is_folder);
    node = mount_tree_add(&session->tree, folder, name);
    if (mount_lookup_is_ours(node))
        return node;
    if (!found->is_folder) {
        mount_note_object(session, node, &found->info, &found->marks);
        return node;
    }
    node->marks = found->marks;
    node->has_marker |= found->has_marker;
    node->seen = loop_now(session->loop);
    return node;
}

/* --- lookup ---------------------------------------------------------------------------------- */

/* The kernel remembers that there is nothing, for a moment. */
static void answer_nothing(struct mount_request *request)
{
    struct fuse_entry_out out = {.entry_valid = MOUNT_FRESH_MS / 1000};

    mount_answer(request, &out, sizeof(out));
}

static void on_looked(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *child =
        mount_tree_child(&session->tree, request->node, request->message.name);

    (void) answer;
    if (child && mount_lookup_is_ours(child))
        result = 0; /* made meanwhile */
    if (result == 0) {
        child = mount_take_found(request, request->node, request->message.name);
        request->other = child; /* held until the request is gone */
        mount_answer_entry(request, child);
        return;
    }
    if (result == -ENOENT && child) {
        mount_node_hold(child);
        mount_node_remove(&session->tree, child);
        mount_node_release(&session->tree, child);
    }
    if (result == -ENOENT)
        answer_nothing(request);
    else
        mount_answer_error(request, result);
}

void mount_lookup(struct mount_request *request)
{
    struct mount_session *session = request->session;
    const char *name = request->message.name;
    struct mount_node *child = mount_tree_child(&session->tree, request->node, name);
    int r = mount_name_check(name);

    if (r < 0)
        mount_answer_error(request, r);
    else if (child && mount_is_fresh(session, child))
        mount_answer_entry(request, child);
    else
        mount_look(request, request->node, name, on_looked);
}

/* --- getattr --------------------------------------------------------------------------------- */

static void on_refreshed(struct mount_request *request, int result,
                         const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    if (mount_lookup_is_ours(node))
        result = 0; /* changed meanwhile: we know better */
    else if (result == 0) {
        struct mount_marks marks = marks_of(session, answer->info, false);

        /* A link that became a file is another file: looking it up again finds it. */
        if ((marks.mode & S_IFMT) != (node->marks.mode & S_IFMT))
            result = -ESTALE;
        else
            mount_note_object(session, node, answer->info, &marks);
    }
    request->looked(request, result == -ENOENT ? -ESTALE : result, NULL);
}

void mount_refresh(struct mount_request *request, mount_step *step)
{
    struct mount_node *node = request->node;
    char key[MOUNT_KEY_SIZE];
    int r;

    /* Folders are looked up again and again, by every path through them. */
    if (mount_is_fresh(request->session, node) || mount_node_is_folder(node)) {
        step(request, 0, NULL);
        return;
    }
    r = mount_node_key(&request->session->tree, node, key);
    request->looked = step;
    if (r < 0)
        step(request, -ESTALE, NULL);
    else
        mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_HEAD, .key = key}, on_refreshed);
}

static void on_known(struct mount_request *request, int result, const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0)
        mount_answer_error(request, result);
    else
        mount_answer_attributes(request, request->node);
}

void mount_getattr(struct mount_request *request)
{
    mount_refresh(request, on_known);
}
