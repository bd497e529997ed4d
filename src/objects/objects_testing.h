/* For tests of objects: a loop, a store on it, and calls that write down what came back. Included
 * by test programs only. */
#pragma once

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "base/pool.h"
#include "net/net_testing.h"
#include "objects/objects.h"

struct contract;

/* What a store brings to the contract. What it cannot do is said here and nowhere else. */
struct contract_backend {
    /* Open the store, with nothing in it the first time; again after a close, to find what was
     * kept. */
    struct objects *(*open)(struct contract *contract);
    /* Remove all traces; may be NULL. */
    void (*end)(struct contract *contract);
    bool refuses_nested; /* "a" beside "a/b" */
    bool sums_streams;   /* has_sum of what came out of a pipe */
    bool tags_are_new;   /* also when the same bytes are put again */
    bool without_dots;   /* refuses "." and ".." as segments */
    size_t large_bytes;  /* 0: LARGE_BYTES */
    size_t many_keys;    /* 0: MANY_KEYS */
};

#define LARGE_BYTES ((size_t) 64 * 1024 * 1024)
#define MANY_KEYS   2500

struct contract {
    const struct contract_backend *backend;
    struct loop loop;
    struct testing_folder folder; /* for whatever the store needs */
    struct objects *objects;
    void *more; /* the backend's own */
};

/* Longer than TURN_UNTIL: a server that is under test with others on the machine is slow. */
#define OBJECTS_WAIT(contract, done)                                                               \
    do {                                                                                           \
        int turns_left = 20000;                                                                    \
                                                                                                   \
        while (!(done) && --turns_left)                                                            \
            testing_turn(&(contract)->loop);                                                       \
        if (!turns_left)                                                                           \
            fail_msg("waited in vain for: %s", #done);                                             \
    } while (0)

/* What came back from one call, copied into the pool. */
struct reply {
    int times;
    bool failed;
    struct error failure;
    struct object_info info;
    char *bytes;
    size_t length;
    struct object_entry *entries;
    size_t count;
    char *next;
    struct pool pool;
    int progress_times;
    uint64_t progress_bytes;
    void (*then)(struct reply *reply); /* called from inside the answer */
    void *more;
};

static inline struct reply *reply_new(void)
{
    return test_calloc(1, sizeof(struct reply));
}

static inline void reply_free(struct reply *reply)
{
    pool_done(&reply->pool);
    test_free(reply);
}

AUTO_DEFINE_PTR(reply, struct reply, reply_free);

static inline void note(struct reply *reply, const struct error *failure)
{
    reply->times++;
    assert_int_equal(reply->times, 1);
    reply->failed = failure != NULL;
    if (failure) {
        assert_int_not_equal(failure->code, ERR_NONE);
        assert_true(failure->message[0] != '\0');
        reply->failure = *failure;
    }
}

static inline void follow(struct reply *reply)
{
    if (reply->then)
        reply->then(reply);
}

static inline void note_info(struct reply *reply, const struct object_info *info)
{
    struct object_pair *pairs;

    if (!info)
        return;
    pairs = pool_alloc(&reply->pool, info->metadata_count * sizeof(*pairs));
    reply->info = *info;
    for (size_t i = 0; i < info->metadata_count; i++) {
        pairs[i].name = pool_copy_text(&reply->pool, info->metadata[i].name);
        pairs[i].value = pool_copy_text(&reply->pool, info->metadata[i].value);
    }
    reply->info.metadata = pairs;
}

static inline void on_done(void *context, const struct error *failure)
{
    note(context, failure);
    follow(context);
}

static inline void on_info(void *context, const struct error *failure,
                           const struct object_info *info)
{
    note(context, failure);
    assert_true((failure == NULL) == (info != NULL));
    note_info(context, info);
    follow(context);
}

static inline void on_bytes(void *context, const struct error *failure, const void *bytes,
                            size_t length, const struct object_info *info)
{
    struct reply *reply = context;

    note(reply, failure);
    assert_true((failure == NULL) == (info != NULL) && (failure == NULL) == (bytes != NULL));
    note_info(reply, info);
    if (bytes)
        reply->bytes = pool_copy_bytes(&reply->pool, bytes, length);
    reply->length = length;
    follow(reply);
}

static inline void on_list(void *context, const struct error *failure,
                           const struct object_list *list)
{
    struct reply *reply = context;

    note(reply, failure);
    assert_true((failure == NULL) == (list != NULL));
    if (list) {
        reply->count = list->count;
        reply->entries = pool_alloc(&reply->pool, list->count * sizeof(*reply->entries));
        reply->next = list->next ? pool_copy_text(&reply->pool, list->next) : NULL;
    }
    for (size_t i = 0; i < reply->count; i++) {
        reply->entries[i] = list->entries[i];
        reply->entries[i].key = pool_copy_text(&reply->pool, list->entries[i].key);
    }
    follow(reply);
}

static inline void on_progress(void *context, uint64_t done_bytes)
{
    struct reply *reply = context;

    assert_int_equal(reply->times, 0); /* never behind the answer */
    assert_true(done_bytes > reply->progress_bytes);
    reply->progress_times++;
    reply->progress_bytes = done_bytes;
}

static inline void expect_ok(const struct reply *reply)
{
    assert_int_equal(reply->times, 1);
    if (reply->failed)
        fail_msg("%s: %s", error_code_text(reply->failure.code), reply->failure.message);
}

static inline void expect_code(const struct reply *reply, enum err_code code)
{
    assert_int_equal(reply->times, 1);
    if (!reply->failed || reply->failure.code != code)
        fail_msg("%s instead of %s: %s", error_code_text(reply->failure.code),
                 error_code_text(code), reply->failure.message);
}

/* --- calls that wait -------------------------------------------------------------------------- */

static inline struct reply *await(struct contract *contract, struct reply *reply)
{
    assert_int_equal(reply->times, 0); /* never from inside the call */
    OBJECTS_WAIT(contract, reply->times);
    return reply;
}

static inline struct reply *put_bytes(struct contract *contract, const char *key, const void *bytes,
                                      size_t length, const struct object_put_options *options)
{
    struct reply *reply = reply_new();

    (void) objects_put_bytes(contract->objects, key, bytes, length, options, on_info, reply);
    return await(contract, reply);
}

static inline struct reply *put_text(struct contract *contract, const char *key, const char *text)
{
    return put_bytes(contract, key, text, strlen(text), NULL);
}

static inline void put_ok(struct contract *contract, const char *key, const char *text)
{
    AUTO(reply) struct reply *reply = put_text(contract, key, text);

    expect_ok(reply);
}

static inline struct reply *put_file(struct contract *contract, const char *key, int file,
                                     const struct object_put_options *options)
{
    struct reply *reply = reply_new();

    (void) objects_put_file(contract->objects, key, file, options, on_info, reply);
    return await(contract, reply);
}

static inline struct reply *get_part(struct contract *contract, const char *key, uint64_t offset,
                                     uint64_t length)
{
    struct object_range range = {offset, length};
    struct reply *reply = reply_new();

    (void) objects_get_bytes(contract->objects, key, &range, NULL, on_bytes, reply);
    return await(contract, reply);
}

static inline struct reply *get_tagged(struct contract *contract, const char *key, const char *tag)
{
    struct reply *reply = reply_new();

    (void) objects_get_bytes(contract->objects, key, NULL, tag, on_bytes, reply);
    return await(contract, reply);
}

static inline struct reply *get_bytes(struct contract *contract, const char *key)
{
    return get_tagged(contract, key, NULL);
}

static inline struct reply *get_file(struct contract *contract, const char *key, int file,
                                     const uint8_t *sum)
{
    struct reply *reply = reply_new();

    (void) objects_get_file(contract->objects, key, file, sum, on_info, reply);
    return await(contract, reply);
}

static inline struct reply *head(struct contract *contract, const char *key)
{
    struct reply *reply = reply_new();

    (void) objects_head(contract->objects, key, on_info, reply);
    return await(contract, reply);
}

static inline struct reply *copy(struct contract *contract, const char *from, const char *to)
{
    struct reply *reply = reply_new();

    (void) objects_copy(contract->objects, from, to, on_info, reply);
    return await(contract, reply);
}

static inline struct reply *delete_keys(struct contract *contract, const char *const *keys,
                                        size_t count)
{
    struct reply *reply = reply_new();

    (void) objects_delete(contract->objects, keys, count, on_done, reply);
    return await(contract, reply);
}

static inline void delete_ok(struct contract *contract, const char *key)
{
    AUTO(reply) struct reply *reply = delete_keys(contract, &key, 1);

    expect_ok(reply);
}

static inline struct reply *list(struct contract *contract, const char *prefix, bool folders,
                                 const char *after, size_t limit)
{
    struct object_query query = {prefix, folders, after, limit};
    struct reply *reply = reply_new();

    (void) objects_list(contract->objects, &query, on_list, reply);
    return await(contract, reply);
}

static inline void expect_content(struct contract *contract, const char *key, const char *text)
{
    AUTO(reply) struct reply *reply = get_bytes(contract, key);

    expect_ok(reply);
    assert_int_equal(reply->length, strlen(text));
    assert_memory_equal(reply->bytes, text, reply->length);
    assert_int_equal(reply->info.size, reply->length);
}

static inline void expect_missing(struct contract *contract, const char *key)
{
    AUTO(reply) struct reply *reply = head(contract, key);

    expect_code(reply, ERR_NOT_FOUND);
}

/* All keys and folders of a query, page by page, are these, in this order. */
static inline void expect_listed(struct contract *contract, const char *prefix, bool folders,
                                 size_t limit, const char *const *keys, size_t count)
{
    AUTO(free) char *after = NULL;
    size_t found = 0;

    do {
        AUTO(reply) struct reply *page = list(contract, prefix, folders, after, limit);

        expect_ok(page);
        assert_true(page->count <= limit);
        for (size_t i = 0; i < page->count; i++, found++) {
            assert_true(found < count);
            assert_string_equal(page->entries[i].key, keys[found]);
        }
        free(after);
        after = page->next ? mem_copy_text(page->next) : NULL;
    } while (after);
    assert_int_equal(found, count);
}

static inline void close_objects(struct contract *contract)
{
    AUTO(reply) struct reply *reply = reply_new();

    objects_close(contract->objects, on_done, reply);
    contract->objects = NULL;
    OBJECTS_WAIT(contract, reply->times);
    expect_ok(reply);
}

static inline void reopen(struct contract *contract)
{
    if (contract->objects)
        close_objects(contract);
    contract->objects = contract->backend->open(contract);
    assert_non_null(contract->objects);
}

/* --- files and pipes -------------------------------------------------------------------------- */

/* A file in memory with so many bytes of the series. */
static inline int file_of(size_t length)
{
    int fd = memfd_create("objects-test", MFD_CLOEXEC);
    AUTO(free) char *bytes = mem_alloc(1 << 20);

    assert_true(fd >= 0);
    for (size_t done = 0; done < length;) {
        size_t size = length - done < 1 << 20 ? length - done : 1 << 20;

        testing_fill(bytes, size, done);
        assert_int_equal(write(fd, bytes, size), size);
        done += size;
    }
    return fd;
}

static inline void expect_series(int file, size_t length)
{
    AUTO(free) char *bytes = mem_alloc(1 << 20);
    AUTO(free) char *expected = mem_alloc(1 << 20);

    assert_int_equal(lseek(file, 0, SEEK_END), length);
    for (size_t done = 0; done < length;) {
        ssize_t size = pread(file, bytes, 1 << 20, (off_t) done);

        assert_true(size > 0);
        testing_fill(expected, (size_t) size, done);
        assert_memory_equal(bytes, expected, (size_t) size);
        done += (size_t) size;
    }
}

/* Somebody at the other end of a pipe, on a thread of its own. */
struct peer {
    pthread_t thread;
    int fd; /* owned by the thread */
    size_t length;
    size_t pause_every; /* bytes; 0: never */
    bool is_right;      /* of a reader: it saw the series, to its end */
};

static inline void *peer_write(void *data)
{
    struct peer *peer = data;
    AUTO(free) char *bytes = mem_alloc(65536);

    for (size_t done = 0; done < peer->length;) {
        size_t size = peer->length - done < 65536 ? peer->length - done : 65536;
        ssize_t count;

        testing_fill(bytes, size, done);
        count = write(peer->fd, bytes, size);
        if (count < 0)
            break;
        if (peer->pause_every &&
            done / peer->pause_every != (done + (size_t) count) / peer->pause_every)
            (void) usleep(30000);
        done += (size_t) count;
    }
    (void) close(peer->fd);
    return NULL;
}

static inline void *peer_read(void *data)
{
    struct peer *peer = data;
    AUTO(free) char *bytes = mem_alloc(65536);
    AUTO(free) char *expected = mem_alloc(65536);
    size_t done = 0;
    ssize_t count;

    peer->is_right = true;
    while ((count = read(peer->fd, bytes, 65536)) > 0) {
        testing_fill(expected, (size_t) count, done);
        if (memcmp(bytes, expected, (size_t) count) != 0)
            peer->is_right = false;
        if (peer->pause_every &&
            done / peer->pause_every != (done + (size_t) count) / peer->pause_every)
            (void) usleep(30000);
        done += (size_t) count;
    }
    peer->is_right = peer->is_right && done == peer->length;
    (void) close(peer->fd);
    return NULL;
}

static inline void peer_start(struct peer *peer, void *(*run)(void *), int fd, size_t length,
                              size_t pause_every)
{
    *peer = (struct peer){.fd = fd, .length = length, .pause_every = pause_every};
    assert_int_equal(pthread_create(&peer->thread, NULL, run, peer), 0);
}

static inline void peer_join(struct peer *peer)
{
    assert_int_equal(pthread_join(peer->thread, NULL), 0);
}

/* --- set-up ----------------------------------------------------------------------------------- */

static inline struct contract *contract_new(const struct contract_backend *backend)
{
    struct contract *contract = test_calloc(1, sizeof(*contract));

    contract->backend = backend;
    testing_folder_make(&contract->folder);
    assert_int_equal(loop_init(&contract->loop, NULL), 0);
    reopen(contract);
    return contract;
}

static inline void contract_free(struct contract *contract)
{
    if (contract->objects)
        close_objects(contract);
    loop_run(&contract->loop);
    loop_done(&contract->loop);
    if (contract->backend->end)
        contract->backend->end(contract);
    testing_folder_remove(&contract->folder, NULL, 0);
    test_free(contract);
}
