/* Folders: what is in them, and removing them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/pool.h"
#include "mount/mount_internal.h"

#define DOTS 2 /* "." and "..", before everything else */
/* A kernel that is not told the number of a file asks for it when it needs one. */
#define UNKNOWN_NUMBER UINT32_MAX

struct mount_folder_entry {
    const char *name;
    bool is_folder;
    uint64_t size;
};

/* What a reader of a folder has got so far: one page, and where the next one begins. First come
 * files that are not in the store yet, as they were when the reader began. */
struct mount_listing {
    struct pool local_pool, page_pool;
    const char **local;
    size_t local_count;
    struct mount_folder_entry *page;
    size_t count;
    uint64_t base; /* entries of the pages before */
    char *next;    /* owned; NULL: from the start */
    bool has_page, is_last;
    uint64_t turn; /* another one with each page */
};

void mount_listing_free(struct mount_listing *listing)
{
    if (!listing)
        return;
    pool_done(&listing->local_pool);
    pool_done(&listing->page_pool);
    free(listing->next);
    free(listing);
}

/* --- opendir --------------------------------------------------------------------------------- */

void mount_opendir(struct mount_request *request)
{
    struct mount_handle *handle = mount_handle_new(request->session, request->node);
    struct fuse_open_out out;

    if (!handle) {
        mount_answer_error(request, -ENFILE);
        return;
    }
    handle->listing = mem_alloc(sizeof(*handle->listing));
    out = (struct fuse_open_out){.fh = handle->id};
    mount_answer(request, &out, sizeof(out));
}

void mount_releasedir(struct mount_request *request)
{
    mount_handle_release(request->session, request->handle);
    mount_answer_error(request, 0);
}

/* --- pages ----------------------------------------------------------------------------------- */

static void rewind_listing(struct mount_listing *listing, const struct mount_node *folder)
{
    size_t count = 0;

    pool_reset(&listing->local_pool);
    pool_reset(&listing->page_pool);
    free(TAKE_PTR(listing->next));
    listing->count = listing->local_count = 0;
    listing->base = 0;
    listing->has_page = listing->is_last = false;
    listing->turn++;
    LIST_EACH (&folder->children, at)
        count += CONTAINER_OF(at, struct mount_node, sibling)->is_new;
    listing->local = pool_alloc(&listing->local_pool, (count + 1) * sizeof(*listing->local));
    LIST_EACH (&folder->children, at) {
        const struct mount_node *child = CONTAINER_OF(at, struct mount_node, sibling);

        if (child->is_new)
            listing->local[listing->local_count++] =
                pool_copy_text(&listing->local_pool, child->name);
    }
}

static bool is_local(const struct mount_listing *listing, const char *name)
{
    for (size_t i = 0; i < listing->local_count; i++) {
        if (strcmp(listing->local[i], name) == 0)
            return true;
    }
    return false;
}

/* A file of a folder's name comes before it, with only longer names of the same beginning between
 * them. Both at once are fine in a bucket and nowhere else: the file is shown. */
static bool is_beside_file(const struct mount_listing *listing, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = listing->count; i > 0; i--) {
        const struct mount_folder_entry *entry = &listing->page[i - 1];

        if (strncmp(entry->name, name, length) != 0)
            return false;
        if (!entry->is_folder && !entry->name[length])
            return true;
    }
    return false;
}

/* What we know of a file is still so, when its object is the same; or must be asked for. */
static void note_listed(struct mount_session *session, const struct mount_node *folder,
                        const char *name, const struct object_entry *listed)
{
    struct mount_node *child = mount_tree_child(&session->tree, folder, name);

    if (!child || listed->is_folder || !child->has_marks || child->is_new || child->is_dirty ||
        child->spool || child->is_busy || mount_node_is_folder(child))
        return;
    child->seen =
        *listed->tag && strcmp(child->tag, listed->tag) == 0 ? loop_now(session->loop) : 0;
}

/* The name that a key has in this folder, or NULL: none that a file can have. */
static const char *name_of(struct pool *pool, const struct object_entry *listed, size_t prefix)
{
    size_t length = strlen(listed->key);
    const char *name;

    if (length <= prefix)
        return NULL;
    length -= prefix + listed->is_folder;
    name = pool_copy_bytes(pool, listed->key + prefix, length);
    return mount_name_check(name) == 0 ? name : NULL;
}

static void take_page(struct mount_request *request, const char *key,
                      const struct object_list *list)
{
    struct mount_session *session = request->session;
    struct mount_listing *listing = request->handle->listing;
    size_t prefix = strlen(key);

    listing->base += listing->count;
    listing->count = 0;
    pool_reset(&listing->page_pool);
    listing->page = pool_alloc(&listing->page_pool, (list->count + 1) * sizeof(*listing->page));
    for (size_t i = 0; i < list->count; i++) {
        const struct object_entry *listed = &list->entries[i];
        const char *name = name_of(&listing->page_pool, listed, prefix);

        if (strcmp(listed->key, key) == 0) {
            request->node->has_marker = true;
            continue;
        }
        if (!name || (listed->is_folder && is_beside_file(listing, name))) {
            session->counters.hidden++;
            continue;
        }
        note_listed(session, request->node, name, listed);
        if (!is_local(listing, name))
            listing->page[listing->count++] =
                (struct mount_folder_entry){name, listed->is_folder, listed->size};
    }
    free(listing->next);
    listing->next = list->next ? mem_copy_text(list->next) : NULL;
    listing->is_last = !list->next;
    listing->has_page = true;
    listing->turn++;
}

/* --- readdir --------------------------------------------------------------------------------- */

static void mount_folder_go_on(struct mount_request *request);

static void mount_folder_on_page(struct mount_request *request, int result,
                                 const struct mount_answer *answer)
{
    char key[MOUNT_KEY_SIZE];

    if (result == 0)
        result = mount_node_key(&request->session->tree, request->node, key);
    /* One whose reader was interrupted may come after the page that the next reader asked for. */
    if (result == 0 && request->block == request->handle->listing->turn)
        take_page(request, key, answer->list);
    if (result < 0)
        mount_answer_error(request, result);
    else
        mount_folder_go_on(request);
}

static void mount_folder_ask_page(struct mount_request *request)
{
    struct mount_listing *listing = request->handle->listing;
    char key[MOUNT_KEY_SIZE];
    int r = mount_node_key(&request->session->tree, request->node, key);

    request->block = listing->turn;
    if (r < 0)
        mount_answer_error(request, r);
    else
        mount_ask(request,
                  &(struct mount_ask){.kind = MOUNT_CALL_LIST,
                                      .key = key,
                                      .after = listing->next,
                                      .folders = true,
                                      .limit = OBJECTS_PAGE_MAX},
                  mount_folder_on_page);
}

/* A small object may be a symbolic link; only its metadata knows. */
static unsigned int mount_folder_type_of(const struct mount_node *child,
                                         const struct mount_folder_entry *entry)
{
    if (child && child->has_marks)
        return S_ISLNK(child->marks.mode) ? DT_LNK : DT_REG;
    if (entry && entry->is_folder)
        return DT_DIR;
    return entry && entry->size > MOUNT_TARGET_MAX ? DT_REG : DT_UNKNOWN;
}

static bool add_named(struct mount_request *request, struct mount_entries *out, const char *name,
                      const struct mount_folder_entry *entry)
{
    const struct mount_node *child = mount_tree_child(&request->session->tree, request->node, name);

    return mount_entries_add(out, child ? child->id : UNKNOWN_NUMBER, request->offset + 1,
                             child && child->is_new ? DT_REG : mount_folder_type_of(child, entry),
                             name);
}

/* 1: added; 0: the page with it is not here; -1: it does not fit, or there are no more. */
static int mount_folder_add_entry(struct mount_request *request, struct mount_entries *out)
{
    struct mount_listing *listing = request->handle->listing;
    uint64_t at = request->offset;
    uint64_t index;

    if (at < DOTS)
        return mount_entries_add(out, request->node->id, at + 1, DT_DIR, at ? ".." : ".") ? 1 : -1;
    index = at - DOTS;
    if (index < listing->local_count)
        return add_named(request, out, listing->local[index], NULL) ? 1 : -1;
    index -= listing->local_count;
    if (!listing->has_page || index < listing->base || index - listing->base >= listing->count)
        return listing->is_last && index >= listing->base ? -1 : 0;
    index -= listing->base;
    return add_named(request, out, listing->page[index].name, &listing->page[index]) ? 1 : -1;
}

/* Back to before this page: only from the start again. */
static void seek(struct mount_request *request)
{
    struct mount_listing *listing = request->handle->listing;
    uint64_t before = DOTS + listing->local_count + listing->base;

    if (request->offset == 0 || (listing->base && request->offset < before))
        rewind_listing(listing, request->node);
}

static void mount_folder_go_on(struct mount_request *request)
{
    struct mount_entries out = {request->buffer, request->length, request->done};
    int added;

    while ((added = mount_folder_add_entry(request, &out)) > 0)
        request->offset++;
    request->done = out.length;
    if (added == 0 && out.length == 0)
        mount_folder_ask_page(request);
    else
        mount_answer(request, request->buffer, request->done);
}

void mount_readdir(struct mount_request *request)
{
    const struct fuse_read_in *in = &request->message.in.read;

    if (!request->handle->listing || in->size > MOUNT_TRANSFER) {
        mount_answer_error(request, -EINVAL);
        return;
    }
    request->offset = in->offset;
    request->length = in->size;
    request->buffer = mem_alloc(request->length);
    seek(request);
    mount_folder_go_on(request);
}

/* --- rmdir ----------------------------------------------------------------------------------- */

static void mount_folder_on_gone(struct mount_request *request, int result,
                                 const struct mount_answer *answer)
{
    (void) answer;
    if (result == 0 && !request->node->is_removed)
        mount_node_remove(&request->session->tree, request->node);
    mount_answer_error(request, result);
}

static void delete_marker(struct mount_request *request, int result,
                          const struct mount_answer *answer)
{
    char key[MOUNT_KEY_SIZE];
    const char *keys[] = {key};

    (void) answer;
    if (result == 0)
        result = mount_node_key(&request->session->tree, request->node, key);
    if (result < 0)
        mount_answer_error(request, result);
    else
        mount_ask(request,
                  &(struct mount_ask){.kind = MOUNT_CALL_DELETE, .keys = keys, .key_count = 1},
                  mount_folder_on_gone);
}

static void on_beneath(struct mount_request *request, int result, const struct mount_answer *answer)
{
    char key[MOUNT_KEY_SIZE];

    if (result == 0)
        result = mount_node_key(&request->session->tree, request->node, key);
    for (size_t i = 0; result == 0 && i < answer->list->count; i++) {
        if (strcmp(answer->list->entries[i].key, key) != 0)
            result = -ENOTEMPTY;
    }
    if (result < 0)
        mount_answer_error(request, result);
    else
        mount_keep_folder(request, request->other, delete_marker);
}

static bool has_new_children(const struct mount_node *folder)
{
    LIST_EACH (&folder->children, at) {
        if (CONTAINER_OF(at, struct mount_node, sibling)->is_new)
            return true;
    }
    return false;
}

void mount_rmdir(struct mount_request *request)
{
    struct mount_session *session = request->session;
    struct mount_node *child =
        mount_tree_child(&session->tree, request->node, request->message.name);
    char key[MOUNT_KEY_SIZE];
    int r = child ? mount_node_key(&session->tree, child, key) : -ESTALE;

    if (r == 0 && has_new_children(child))
        r = -ENOTEMPTY;
    if (r < 0) {
        mount_answer_error(request, r);
        return;
    }
    request->other = request->node;
    request->node = child;
    mount_node_hold(child);
    mount_ask(request, &(struct mount_ask){.kind = MOUNT_CALL_LIST, .key = key, .limit = 2},
              on_beneath);
}
