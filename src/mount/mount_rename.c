/* Renaming: a copy within the store, then the old one goes. A folder is as many of these as it has
 * objects: all are counted before the first is copied, and none goes before all are there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "mount/mount_internal.h"

#define NO_REPLACE (1u << 0) /* RENAME_NOREPLACE */

struct mount_rename {
    struct mount_request *request;
    struct mount_node *to; /* held: the folder it goes to */
    const char *name;      /* borrowed from the message */

    /* Of a folder: keys without what is common to all of them. */
    struct pool pool;
    char from[MOUNT_KEY_SIZE], into[MOUNT_KEY_SIZE];
    const char **rest;
    size_t count, capacity;
    char *after; /* owned: of the next page */
    size_t next, running, copied, deleted;
    int failure;
};

void mount_rename_free(struct mount_session *session, struct mount_rename *rename)
{
    if (!rename)
        return;
    mount_node_release(&session->tree, rename->to);
    pool_done(&rename->pool);
    free(rename->after);
    free(rename->rest);
    free(rename);
}

/* The node has its new name; one that had it before is gone, but for who has it open. */
static void move_node(struct mount_request *request)
{
    struct mount_session *session = request->session;
    struct mount_rename *rename = request->rename;
    struct mount_node *replaced = mount_tree_child(&session->tree, rename->to, rename->name);

    if (replaced && replaced != request->node) {
        mount_node_hold(replaced);
        mount_drop_changes(session, replaced);
        mount_node_remove(&session->tree, replaced);
        mount_drop_spool(replaced);
        mount_node_release(&session->tree, replaced);
    }
    if (!request->node->is_removed && !rename->to->is_removed)
        mount_node_move(&session->tree, request->node, rename->to, rename->name);
}

static void mount_rename_finish(struct mount_request *request, int result)
{
    struct mount_session *session = request->session;
    struct mount_node *node = request->node;

    mount_node_hold(node);
    if (result == 0)
        move_node(request);
    mount_answer_error(request, result);
    mount_settle(session, node);
    mount_drop_spool(node);
    mount_node_release(&session->tree, node);
}

/* --- files ----------------------------------------------------------------------------------- */

static void on_old_gone(struct mount_request *request, int result,
                        const struct mount_answer *answer)
{
    (void) answer;
    mount_rename_finish(request, result);
}

static void mount_rename_on_copied(struct mount_request *request, int result,
                                   const struct mount_answer *answer)
{
    struct mount_node *node = request->node;
    char key[MOUNT_KEY_SIZE];
    const char *keys[] = {key};

    if (result == 0)
        result = mount_node_key(&request->session->tree, node, key);
    if (result < 0) {
        mount_rename_finish(request, result);
        return;
    }
    /* The same bytes under another tag: pages and blocks stay good. */
    memcpy(node->tag, answer->info->tag, sizeof(node->tag));
    mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_DELETE, .keys = keys, .key_count = 1},
              on_old_gone);
}

static void copy_file(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_rename *rename = request->rename;
    char from[MOUNT_KEY_SIZE], into[MOUNT_KEY_SIZE];

    (void) answer;
    if (result == 0)
        result = mount_node_key(&session->tree, request->node, from);
    if (result == 0)
        result = mount_tree_key(&session->tree, rename->to, rename->name, false, into);
    if (result < 0)
        mount_rename_finish(request, result);
    else
        mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_COPY, .key = from, .to = into},
                  mount_rename_on_copied);
}

static void rename_now(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_node *node = request->node;

    (void) answer;
    if (result < 0 || node->is_removed) {
        mount_answer_error(request, result < 0 ? result : -ENOENT);
    } else if (node->is_new) { /* it will be put under its new name */
        move_node(request);
        mount_answer_error(request, 0);
    } else {
        node->is_busy = true;
        mount_keep_folder(request, request->other, copy_file);
    }
}

static void rename_file(struct mount_request *request, int result,
                        const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0)
        mount_answer_error(request, result);
    else
        mount_when_idle(request, request->node, rename_now);
}

static void on_preserved(struct mount_request *request, int result,
                         const struct mount_answer *answer)
{
    (void) result, (void) answer;
    if (request->node->is_dirty && !request->node->is_new)
        mount_save(request, rename_file);
    else
        rename_file(request, 0, NULL);
}

/* --- folders --------------------------------------------------------------------------------- */

static bool mount_rename_join(const char *folder, const char *rest,
                              char ret_key[static MOUNT_KEY_SIZE])
{
    size_t length = strlen(folder), more = strlen(rest);

    if (length + more > OBJECTS_KEY_MAX)
        return false;
    memcpy(ret_key, folder, length + 1);
    memcpy(ret_key + length, rest, more + 1);
    return true;
}

static void delete_some(struct mount_request *request);

/* When an old one cannot be deleted, everything is there twice or once, and nothing is lost. */
static void mount_rename_on_deleted(struct mount_request *request, int result,
                                    const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0)
        mount_rename_finish(request, request->rename->failure ?: result);
    else
        delete_some(request);
}

/* The old ones; or after a copy that failed the copies, as far as they came. */
static void delete_some(struct mount_request *request)
{
    struct mount_rename *rename = request->rename;
    const char *folder = rename->failure ? rename->into : rename->from;
    size_t left = (rename->failure ? rename->copied : rename->count) - rename->deleted;
    size_t count = left < OBJECTS_DELETE_MAX ? left : OBJECTS_DELETE_MAX;
    AUTO(pool) struct pool pool = POOL_INIT;
    const char **keys = pool_alloc(&pool, (count + 1) * sizeof(*keys));
    char key[MOUNT_KEY_SIZE];

    if (!count) {
        mount_rename_finish(request, rename->failure);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!mount_rename_join(folder, rename->rest[rename->deleted + i], key))
            key[0] = '\0';
        keys[i] = pool_copy_text(&pool, key);
    }
    rename->deleted += count;
    mount_ask(request,
              &(struct mount_ask){.kind = MOUNT_CALL_DELETE, .keys = keys, .key_count = count},
              mount_rename_on_deleted);
}

static void copy_some(struct mount_rename *rename);

static void on_one_copied(void *context, int result, const struct mount_answer *answer)
{
    struct mount_rename *rename = context;

    (void) answer;
    rename->running--;
    /* What vanished meanwhile was removed by somebody else. */
    if (result < 0 && result != -ENOENT && !rename->failure)
        rename->failure = result;
    copy_some(rename);
}

/* Who gave up on it (its process was killed) gets it stopped between two objects. */
static void copy_some(struct mount_rename *rename)
{
    struct mount_request *request = rename->request;
    char from[MOUNT_KEY_SIZE], into[MOUNT_KEY_SIZE];

    if (request->is_answered && !rename->failure)
        rename->failure = -EINTR;
    while (!rename->failure && rename->running < MOUNT_CALLS_MAX && rename->next < rename->count) {
        const char *rest = rename->rest[rename->next++];

        (void) mount_rename_join(rename->from, rest, from);
        (void) mount_rename_join(rename->into, rest, into);
        rename->running++;
        mount_call_start(&request->session->calls,
                         &(struct mount_ask){.kind = MOUNT_CALL_COPY, .key = from, .to = into},
                         on_one_copied, rename);
    }
    if (rename->running)
        return;
    rename->copied = rename->next;
    delete_some(request);
}

static void on_parent_kept(struct mount_request *request, int result,
                           const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0)
        mount_rename_finish(request, result);
    else
        copy_some(request->rename);
}

static void on_folder_kept(struct mount_request *request, int result,
                           const struct mount_answer *answer)
{
    (void) answer;
    if (result < 0)
        mount_rename_finish(request, result);
    else
        mount_keep_folder(request, request->other, on_parent_kept);
}

static void mount_rename_ask_page(struct mount_request *request);

/* 0, or why it cannot be renamed. */
static int add_key(struct mount_rename *rename, const char *key)
{
    size_t common = strlen(rename->from);
    char into[MOUNT_KEY_SIZE];

    if (strncmp(key, rename->from, common) != 0)
        return -EIO;
    if (!mount_rename_join(rename->into, key + common, into))
        return -ENAMETOOLONG;
    if (rename->count == MOUNT_RENAME_MAX)
        return -EXDEV;
    if (rename->count == rename->capacity) {
        rename->capacity = rename->capacity ? 2 * rename->capacity : 64;
        rename->rest = mem_resize(rename->rest, rename->capacity * sizeof(*rename->rest));
    }
    rename->request->node->has_marker |= !key[common];
    rename->rest[rename->count++] = pool_copy_text(&rename->pool, key + common);
    return 0;
}

static void mount_rename_on_page(struct mount_request *request, int result,
                                 const struct mount_answer *answer)
{
    struct mount_rename *rename = request->rename;

    for (size_t i = 0; result == 0 && i < answer->list->count; i++)
        result = add_key(rename, answer->list->entries[i].key);
    if (result < 0) {
        mount_rename_finish(request, result);
        return;
    }
    free(rename->after);
    rename->after = answer->list->next ? mem_copy_text(answer->list->next) : NULL;
    if (rename->after) {
        mount_rename_ask_page(request);
        return;
    }
    if (rename->count > 0) {
        on_folder_kept(request, 0, NULL);
        return;
    }
    /* It is there only because of what is in it, and that is not in the store yet. */
    (void) add_key(rename, rename->from);
    request->node->has_marker = false;
    mount_keep_folder(request, request->node, on_folder_kept);
}

static void mount_rename_ask_page(struct mount_request *request)
{
    struct mount_rename *rename = request->rename;

    mount_ask(request,
              &(struct mount_ask){.kind = MOUNT_CALL_LIST,
                                  .key = rename->from,
                                  .after = rename->after,
                                  .limit = OBJECTS_PAGE_MAX},
              mount_rename_on_page);
}

static void on_target(struct mount_request *request, int result, const struct mount_answer *answer)
{
    struct mount_rename *rename = request->rename;

    for (size_t i = 0; result == 0 && i < answer->list->count; i++) {
        if (strcmp(answer->list->entries[i].key, rename->into) != 0)
            result = -ENOTEMPTY;
    }
    if (result < 0)
        mount_rename_finish(request, result);
    else
        mount_rename_ask_page(request);
}

static bool is_busy_inside(const struct mount_node *folder)
{
    LIST_EACH (&folder->children, at) {
        const struct mount_node *child = CONTAINER_OF(at, struct mount_node, sibling);

        if (child->is_busy || is_busy_inside(child))
            return true;
    }
    return false;
}

static void rename_folder(struct mount_request *request, int result,
                          const struct mount_answer *answer)
{
    struct mount_session *session = request->session;
    struct mount_rename *rename = request->rename;
    int r = mount_node_key(&session->tree, request->node, rename->from);

    (void) result, (void) answer;
    if (r == 0)
        r = mount_tree_key(&session->tree, rename->to, rename->name, true, rename->into);
    if (r == 0 && is_busy_inside(request->node))
        r = -EBUSY;
    if (r < 0) {
        mount_answer_error(request, r);
        return;
    }
    request->node->is_busy = true;
    request->node->has_marker = false; /* until it is seen */
    mount_ask(request,
              &(struct mount_ask){.kind = MOUNT_CALL_LIST, .key = rename->into, .limit = 2},
              on_target);
}

/* --- both ------------------------------------------------------------------------------------ */

static void mount_rename_start(struct mount_request *request)
{
    struct mount_rename *rename = request->rename;

    if (mount_node_is_folder(request->node))
        mount_when_idle(request, request->node, rename_folder);
    else
        mount_preserve(request, mount_tree_child(&request->session->tree, rename->to, rename->name),
                       on_preserved);
}

static void on_looked(struct mount_request *request, int result, const struct mount_answer *answer)
{
    (void) answer;
    if (result == -ENOENT)
        mount_rename_start(request);
    else
        mount_answer_error(request, result == 0 ? -EEXIST : result);
}

static int mount_rename_check(struct mount_request *request, struct mount_node *to,
                              struct mount_node *child)
{
    int r = mount_name_check(request->message.second);

    if (r < 0)
        return r;
    if (request->message.in.rename.flags & ~NO_REPLACE)
        return -EINVAL;
    return to && child && mount_node_is_folder(to) ? 0 : -ESTALE;
}

void mount_rename(struct mount_request *request)
{
    struct mount_session *session = request->session;
    struct mount_node *to = mount_tree_find(&session->tree, request->message.in.rename.newdir);
    struct mount_node *child =
        mount_tree_child(&session->tree, request->node, request->message.name);
    int r = mount_rename_check(request, to, child);

    if (r < 0) {
        mount_answer_error(request, r);
        return;
    }
    request->rename = mem_alloc(sizeof(*request->rename));
    *request->rename = (struct mount_rename){
        .request = request, .to = to, .name = request->message.second, .pool = POOL_INIT};
    mount_node_hold(to);
    request->other = request->node;
    request->node = child;
    mount_node_hold(child);
    if (request->message.in.rename.flags & NO_REPLACE) {
        if (mount_tree_child(&session->tree, to, request->message.second))
            mount_answer_error(request, -EEXIST);
        else
            mount_look(request, to, request->message.second, on_looked);
    } else {
        mount_rename_start(request);
    }
}
