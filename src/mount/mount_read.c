/* Reading: blocks from the cache or the store, ahead of a reader that reads in order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mount/mount_internal.h"

/* A block on its way. Requests that need the same one wait together. */
struct mount_read_fetch {
    struct list link; /* of session->fetches */
    struct mount_session *session;
    uint64_t node;
    uint64_t version, index;
    size_t length; /* what it must have */
    struct list waiters;
};

static void mount_read_go_on(struct mount_request *request);

/* --- fetching -------------------------------------------------------------------------------- */

static size_t block_length(const struct mount_node *node, uint64_t index)
{
    uint64_t left = node->size - index * MOUNT_BLOCK;

    return left < MOUNT_BLOCK ? (size_t) left : MOUNT_BLOCK;
}

static struct mount_read_fetch *find_fetch(const struct mount_session *session, uint64_t version,
                                           uint64_t index)
{
    LIST_EACH (&session->fetches, at) {
        struct mount_read_fetch *fetch = CONTAINER_OF(at, struct mount_read_fetch, link);

        if (fetch->version == version && fetch->index == index)
            return fetch;
    }
    return NULL;
}

/* The part of a block that the request wants, to the end of its buffer. */
static void mount_read_take_bytes(struct mount_request *request, const char *bytes, size_t length)
{
    size_t from = (size_t) (request->offset % MOUNT_BLOCK);
    size_t wanted = request->length - request->done;
    size_t here = length - from < wanted ? length - from : wanted;

    memcpy(request->buffer + request->done, bytes + from, here);
    request->done += here;
    request->offset += here;
}

/* The object is another one by now: who opens it again finds that out. */
static int settle_result(struct mount_session *session, const struct mount_read_fetch *fetch,
                         int result)
{
    struct mount_node *node = mount_tree_find(&session->tree, fetch->node);

    if (result != -ESTALE && result != -ENOENT && result != -ERANGE)
        return result;
    if (node)
        node->seen = 0;
    return -ESTALE;
}

static void mount_read_on_fetched(void *context, int result, const struct mount_answer *answer)
{
    AUTO(free) struct mount_read_fetch *fetch = context;
    struct mount_session *session = fetch->session;
    struct list *first;

    list_remove(&fetch->link);
    if (result == 0 && answer->length != fetch->length)
        result = -EIO; /* not what was asked for */
    if (result == 0) {
        session->counters.read_bytes += answer->length;
        mount_cache_add(&session->cache, fetch->version, fetch->index, answer->bytes,
                        answer->length);
    }
    result = settle_result(session, fetch, result);
    while ((first = list_first(&fetch->waiters))) {
        struct mount_request *request = CONTAINER_OF(first, struct mount_request, waiting);

        list_remove(first);
        if (result < 0) {
            mount_answer_error(request, result);
        } else {
            mount_read_take_bytes(request, answer->bytes, answer->length);
            mount_read_go_on(request);
        }
    }
    mount_session_look(session);
}

/* NULL: its key cannot be. */
static struct mount_read_fetch *start_fetch(struct mount_session *session,
                                            const struct mount_node *node, uint64_t index)
{
    char key[MOUNT_KEY_SIZE];
    struct mount_ask ask = {.kind = MOUNT_CALL_GET, .key = key, .tag = node->tag};
    struct mount_read_fetch *fetch;

    if (mount_node_key(&session->tree, node, key) < 0)
        return NULL;
    fetch = mem_alloc(sizeof(*fetch));
    *fetch = (struct mount_read_fetch){.session = session,
                                       .node = node->id,
                                       .version = node->version,
                                       .index = index,
                                       .length = block_length(node, index)};
    list_init(&fetch->waiters);
    list_append(&session->fetches, &fetch->link);
    ask.range = (struct object_range){.offset = index * MOUNT_BLOCK, .length = fetch->length};
    mount_call_start(&session->calls, &ask, mount_read_on_fetched, fetch);
    return fetch;
}

/* Two neighbouring reads make a reader that reads in order; the further it gets, the more. */
static void read_ahead(struct mount_request *request, uint64_t first, uint64_t last)
{
    struct mount_session *session = request->session;
    struct mount_handle *handle = request->handle;
    const struct mount_node *node = request->node;
    uint64_t next = last + 1;
    bool in_order = first == handle->next_block || first + 1 == handle->next_block;

    if (!in_order)
        handle->ahead = 0;
    else if (next > handle->next_block)
        handle->ahead = handle->ahead ? handle->ahead * 2 : 1;
    if (handle->ahead > MOUNT_AHEAD_MAX)
        handle->ahead = MOUNT_AHEAD_MAX;
    handle->next_block = next;
    for (uint64_t i = next; i < next + handle->ahead && i * MOUNT_BLOCK < node->size; i++) {
        if (!mount_cache_has(&session->cache, node->version, i) &&
            !find_fetch(session, node->version, i))
            (void) start_fetch(session, node, i);
    }
}

/* --- read ------------------------------------------------------------------------------------ */

/* Block by block, as they are here or come. */
static void mount_read_go_on(struct mount_request *request)
{
    struct mount_session *session = request->session;
    const struct mount_node *node = request->node;

    while (request->done < request->length) {
        uint64_t index = request->offset / MOUNT_BLOCK;
        size_t length;
        const char *bytes = mount_cache_find(&session->cache, node->version, index, &length);
        struct mount_read_fetch *fetch;

        if (bytes) {
            mount_read_take_bytes(request, bytes, length);
            continue;
        }
        fetch = find_fetch(session, node->version, index);
        if (!fetch)
            fetch = start_fetch(session, node, index);
        if (fetch)
            list_append(&fetch->waiters, &request->waiting);
        else
            mount_answer_error(request, -ESTALE);
        return;
    }
    mount_answer(request, request->buffer, request->done);
}

static void read_store(struct mount_request *request)
{
    const struct fuse_read_in *in = &request->message.in.read;
    uint64_t size = request->node->size;
    uint64_t length = in->size;

    if (in->offset >= size) {
        mount_answer(request, NULL, 0);
        return;
    }
    if (length > size - in->offset)
        length = size - in->offset;
    request->offset = in->offset;
    request->length = (size_t) length;
    request->buffer = mem_alloc(request->length);
    read_ahead(request, in->offset / MOUNT_BLOCK, (in->offset + length - 1) / MOUNT_BLOCK);
    mount_read_go_on(request);
}

static void on_read(uv_fs_t *fs)
{
    struct mount_request *request = CONTAINER_OF(fs, struct mount_request, fs);
    ssize_t result = fs->result;

    uv_fs_req_cleanup(fs);
    if (result < 0)
        mount_answer_error(request, (int) result);
    else
        mount_answer(request, request->buffer, (size_t) result);
}

static void read_spool(struct mount_request *request)
{
    const struct fuse_read_in *in = &request->message.in.read;
    uv_buf_t bytes;
    int r;

    request->buffer = mem_alloc(in->size);
    bytes = uv_buf_init(request->buffer, in->size);
    r = in->offset > INT64_MAX
            ? -EINVAL
            : uv_fs_read(&request->session->loop->uv, &request->fs, request->node->spool->fd,
                         &bytes, 1, (int64_t) in->offset, on_read);
    if (r < 0)
        mount_answer_error(request, r);
}

void mount_read(struct mount_request *request)
{
    if (request->message.in.read.size > MOUNT_TRANSFER)
        mount_answer_error(request, -EINVAL);
    else if (request->node->spool)
        read_spool(request);
    else
        read_store(request);
}

/* --- readlink -------------------------------------------------------------------------------- */

static void on_target(struct mount_request *request, int result, const struct mount_answer *answer)
{
    if (result < 0)
        mount_answer_error(request, result == -ERANGE ? -EIO : result);
    else
        mount_answer(request, answer->bytes, answer->length);
}

void mount_readlink(struct mount_request *request)
{
    char key[MOUNT_KEY_SIZE];
    int r = mount_node_key(&request->session->tree, request->node, key);

    if (r == 0 && (request->node->size == 0 || request->node->size > MOUNT_TARGET_MAX))
        r = -EIO;
    if (r < 0)
        mount_answer_error(request, r);
    else
        mount_ask(
            request,
            &(struct mount_ask){.kind = MOUNT_CALL_GET, .key = key, .range = {0, MOUNT_TARGET_MAX}},
            on_target);
}
