/* For tests of mounts: a store in memory that hangs, refuses and lies on demand, and a real mount
 * of it in a namespace of the test's own. Included by test programs only. */
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "mount/mount_session.h"
#include "net/net_testing.h"
#include "objects/objects_backend.h"
#include "sys/mount/sys_mount.h"
#include "sys/mount/sys_mount_path.h"

/* --- the store ------------------------------------------------------------------------------- */

struct memory_object {
    char *key, *bytes;
    size_t length;
    unsigned int number; /* of its put: its tag */
    char *names[OBJECTS_METADATA_COUNT], *values[OBJECTS_METADATA_COUNT];
    size_t metadata_count;
};

struct memory_store {
    pthread_mutex_t lock;
    struct memory_object *objects; /* sorted by key */
    size_t count, capacity;
    unsigned int puts, gets, lists, heads, copies, removes;
    atomic_uint calls_caught, puts_caught; /* those that found it hanging; copies are puts too */
    /* Switches. */
    atomic_bool hangs; /* every call, until it is cancelled or this is over */
    atomic_bool hangs_on_get;
    atomic_bool ignores_cancel;
    atomic_int refuses;      /* enum err_code of every call */
    atomic_int refuses_puts; /* of puts and copies only */
    atomic_bool lies;        /* about lengths */
};

static inline size_t memory_place(const struct memory_store *store, const char *key)
{
    size_t low = 0, high = store->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(store->objects[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline struct memory_object *memory_find(const struct memory_store *store, const char *key)
{
    size_t place = memory_place(store, key);

    return place < store->count && strcmp(store->objects[place].key, key) == 0
               ? &store->objects[place]
               : NULL;
}

static inline void memory_empty(struct memory_object *object)
{
    free(object->key);
    free(object->bytes);
    for (size_t i = 0; i < object->metadata_count; i++) {
        free(object->names[i]);
        free(object->values[i]);
    }
}

static inline struct memory_object *memory_add(struct memory_store *store, const char *key,
                                               const void *bytes, size_t length)
{
    size_t place = memory_place(store, key);
    struct memory_object *object = memory_find(store, key);

    if (object) {
        memory_empty(object);
    } else {
        if (store->count == store->capacity) {
            store->capacity = store->capacity ? 2 * store->capacity : 64;
            store->objects = mem_resize(store->objects, store->capacity * sizeof(*object));
        }
        object = &store->objects[place];
        memmove(object + 1, object, (store->count - place) * sizeof(*object));
        store->count++;
    }
    *object = (struct memory_object){.key = mem_copy_text(key),
                                     .bytes = mem_copy_bytes(bytes, length),
                                     .length = length,
                                     .number = ++store->puts};
    return object;
}

static inline void memory_info(const struct memory_object *object, struct pool *pool,
                               struct object_info *ret_info)
{
    struct object_pair *pairs = pool_alloc(pool, sizeof(*pairs) * (object->metadata_count + 1));

    *ret_info = (struct object_info){.size = object->length,
                                     .modified_ms = 1700000000000,
                                     .metadata = pairs,
                                     .metadata_count = object->metadata_count};
    for (size_t i = 0; i < object->metadata_count; i++)
        pairs[i] = (struct object_pair){pool_copy_text(pool, object->names[i]),
                                        pool_copy_text(pool, object->values[i])};
    (void) snprintf(ret_info->tag, sizeof(ret_info->tag), "%u", object->number);
}

static inline bool memory_is_hanging(const struct memory_store *store, bool is_get)
{
    return atomic_load(&store->hangs) || (is_get && atomic_load(&store->hangs_on_get));
}

/* Until the switch is off again; fails when the call is cancelled before. */
static inline int memory_hang(struct memory_store *store, struct objects_work *work, bool is_put,
                              bool is_get, struct error *err)
{
    if (!memory_is_hanging(store, is_get))
        return 0;
    /* Counted only now: whoever waits for the count knows that the call does not slip through. */
    atomic_fetch_add(&store->calls_caught, 1);
    atomic_fetch_add(&store->puts_caught, is_put);
    while (memory_is_hanging(store, is_get)) {
        if (atomic_load(work->cancelled) && !atomic_load(&store->ignores_cancel))
            return error_set(err, ERR_CANCELLED, 0, "cancelled");
        (void) usleep(1000);
    }
    return 0;
}

/* As every call begins. */
static inline int memory_begin(struct memory_store *store, struct objects_work *work, bool is_put,
                               bool is_get, struct error *err)
{
    enum err_code code = (enum err_code) atomic_load(&store->refuses);

    if (is_put && code == ERR_NONE)
        code = (enum err_code) atomic_load(&store->refuses_puts);
    if (memory_hang(store, work, is_put, is_get, err) < 0)
        return -1;
    if (code != ERR_NONE)
        return error_set(err, code, 0, "the store refuses, as it was told to");
    (void) pthread_mutex_lock(&store->lock);
    return 0;
}

static inline int memory_end(struct memory_store *store, int result)
{
    (void) pthread_mutex_unlock(&store->lock);
    return result;
}

static int memory_put(void *self, struct objects_work *work, const char *key,
                      const struct objects_source *source, const struct object_put_options *options,
                      struct object_info *ret_info, struct error *err)
{
    struct memory_store *store = self;
    struct memory_object *object;
    AUTO(free) char *copy = NULL;
    const void *bytes = source->bytes;
    size_t length = source->length;

    if (memory_begin(store, work, true, false, err) < 0)
        return -1;
    if (!bytes) {
        struct stat stat;

        assert_int_equal(fstat(source->fd, &stat), 0);
        length = (size_t) stat.st_size;
        copy = mem_alloc(length + 1);
        assert_int_equal(pread(source->fd, copy, length, 0), length);
        bytes = copy;
    }
    if (options->only_new && memory_find(store, key))
        return memory_end(store, error_set(err, ERR_CONFLICT, 0, "there is one"));
    object = memory_add(store, key, bytes, length);
    for (size_t i = 0; i < options->metadata_count; i++) {
        object->names[i] = mem_copy_text(options->metadata[i].name);
        object->values[i] = mem_copy_text(options->metadata[i].value);
    }
    object->metadata_count = options->metadata_count;
    memory_info(object, work->pool, ret_info);
    return memory_end(store, 0);
}

static int memory_copy(void *self, struct objects_work *work, const char *from, const char *to,
                       struct object_info *ret_info, struct error *err)
{
    struct memory_store *store = self;
    struct memory_object old, *object;

    if (memory_begin(store, work, true, false, err) < 0)
        return -1;
    object = memory_find(store, from);
    if (!object)
        return memory_end(store, error_set(err, ERR_NOT_FOUND, 0, "no such object"));
    old = *object;
    store->copies++;
    object = memory_add(store, to, old.bytes, old.length);
    for (size_t i = 0; i < old.metadata_count; i++) {
        object->names[i] = mem_copy_text(old.names[i]);
        object->values[i] = mem_copy_text(old.values[i]);
    }
    object->metadata_count = old.metadata_count;
    memory_info(object, work->pool, ret_info);
    return memory_end(store, 0);
}

static int memory_remove(void *self, struct objects_work *work, const char *const *keys,
                         size_t count, struct error *err)
{
    struct memory_store *store = self;

    if (memory_begin(store, work, false, false, err) < 0)
        return -1;
    store->removes++;
    for (size_t i = 0; i < count; i++) {
        struct memory_object *object = memory_find(store, keys[i]);

        if (!object)
            continue;
        memory_empty(object);
        store->count--;
        memmove(object, object + 1,
                (store->count - (size_t) (object - store->objects)) * sizeof(*object));
    }
    return memory_end(store, 0);
}

static int memory_head(void *self, struct objects_work *work, const char *key,
                       struct object_info *ret_info, struct error *err)
{
    struct memory_store *store = self;
    struct memory_object *object;

    if (memory_begin(store, work, false, false, err) < 0)
        return -1;
    store->heads++;
    object = memory_find(store, key);
    if (!object)
        return memory_end(store, error_set(err, ERR_NOT_FOUND, 0, "no such object"));
    memory_info(object, work->pool, ret_info);
    return memory_end(store, 0);
}

static int memory_get(void *self, struct objects_work *work, const char *key,
                      const struct object_range *range, const char *only_tag,
                      struct objects_sink *sink, struct object_info *ret_info, struct error *err)
{
    struct memory_store *store = self;
    uint64_t offset = range ? range->offset : 0, length;
    struct memory_object *object;

    if (memory_begin(store, work, false, true, err) < 0)
        return -1;
    store->gets++;
    object = memory_find(store, key);
    if (!object)
        return memory_end(store, error_set(err, ERR_NOT_FOUND, 0, "no such object"));
    memory_info(object, work->pool, ret_info);
    if (only_tag && strcmp(only_tag, ret_info->tag) != 0)
        return memory_end(store, error_set(err, ERR_CONFLICT, 0, "another one"));
    if (range && offset >= object->length)
        return memory_end(store, error_set(err, ERR_RANGE, 0, "behind the end"));
    length = object->length - offset;
    if (range && range->length && range->length < length)
        length = range->length;
    if (atomic_load(&store->lies))
        length /= 2;
    if (sink->fd >= 0) {
        assert_int_equal(pwrite(sink->fd, object->bytes, length, 0), length);
    } else {
        sink->bytes = pool_copy_bytes(work->pool, object->bytes + offset, length);
        sink->length = length;
    }
    return memory_end(store, 0);
}

static int memory_list(void *self, struct objects_work *work, const struct object_query *query,
                       struct object_list *ret_list, struct error *err)
{
    struct memory_store *store = self;
    struct object_entry *entries;
    size_t count = 0, prefix = strlen(query->prefix), at;

    if (memory_begin(store, work, false, false, err) < 0)
        return -1;
    store->lists++;
    entries = pool_alloc(work->pool, query->limit * sizeof(*entries));
    *ret_list = (struct object_list){.entries = entries};
    at = memory_place(store, query->prefix);
    for (; at < store->count; at++) {
        const struct memory_object *object = &store->objects[at];
        const char *slash = NULL, *key = object->key;

        if (strncmp(key, query->prefix, prefix) != 0)
            break;
        if (query->folders)
            slash = strchr(key + prefix, '/');
        if (slash)
            key = pool_copy_bytes(work->pool, key, (size_t) (slash - key) + 1);
        if (query->after && strcmp(key, query->after) <= 0)
            continue;
        if (count && strcmp(entries[count - 1].key, key) == 0)
            continue;
        if (count == query->limit) {
            ret_list->next = entries[count - 1].key;
            break;
        }
        entries[count] = (struct object_entry){.key = pool_copy_text(work->pool, key),
                                               .is_folder = slash != NULL,
                                               .size = object->length,
                                               .modified_ms = 1700000000000};
        (void) snprintf(entries[count++].tag, OBJECTS_TAG_SIZE, "%u", object->number);
    }
    ret_list->count = count;
    return memory_end(store, 0);
}

static int memory_check(void *self, struct objects_work *work, struct error *err)
{
    (void) self, (void) work, (void) err;
    return 0;
}

static void memory_gone(void *self)
{
    (void) self;
}

static inline void memory_done(struct memory_store *store)
{
    for (size_t i = 0; i < store->count; i++)
        memory_empty(&store->objects[i]);
    free(store->objects);
}

static inline struct objects *memory_open(struct memory_store *store, struct loop *loop)
{
    struct objects_backend backend = {
        .self = store,
        .put = memory_put,
        .copy = memory_copy,
        .remove = memory_remove,
        .head = memory_head,
        .get = memory_get,
        .list = memory_list,
        .check = memory_check,
        .end = memory_gone,
        .text = "memory",
    };

    return objects_new(loop, &backend, 0);
}

/* --- the mount ------------------------------------------------------------------------------- */

struct fixture {
    struct loop loop;
    struct memory_store store;
    struct objects *objects;
    struct mount_host *host;
    struct mount_session *session; /* NULL: closed */
    struct mount_options options;
    char folder[64], place[80], spool[80];
    int lost;
    bool closed;
    size_t lost_files;
};

static inline void on_fixture_lost(void *context)
{
    ((struct fixture *) context)->lost++;
}

/* The descriptor of a new mount at the fixture's place. */
static inline int open_mount(struct fixture *fixture)
{
    AUTO(close) int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    AUTO(close) int filesystem = sys_mount_open_filesystem("fuse");
    AUTO(close) int mount = -EBADF;
    char text[16];

    assert_true(fuse >= 0 && filesystem >= 0);
    (void) snprintf(text, sizeof(text), "%d", fuse);
    assert_int_equal(sys_mount_set_string(filesystem, "source", "burrow"), 0);
    assert_int_equal(sys_mount_set_string(filesystem, "fd", text), 0);
    assert_int_equal(sys_mount_set_string(filesystem, "rootmode", "40000"), 0);
    assert_int_equal(sys_mount_set_string(filesystem, "user_id", "0"), 0);
    assert_int_equal(sys_mount_set_string(filesystem, "group_id", "0"), 0);
    assert_int_equal(sys_mount_set_flag(filesystem, "allow_other"), 0);
    assert_int_equal(sys_mount_set_flag(filesystem, "default_permissions"), 0);
    assert_int_equal(sys_mount_create(filesystem), 0);
    mount = sys_mount_detached(filesystem, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    assert_true(mount >= 0);
    assert_int_equal(sys_mount_attach(mount, AT_FDCWD, fixture->place), 0);
    return TAKE_FD(fuse);
}

static inline void begin_session(struct fixture *fixture)
{
    struct error err = ERROR_INIT;

    fixture->options.on_lost = on_fixture_lost;
    fixture->options.context = fixture;
    fixture->closed = false;
    fixture->session = mount_session_new(fixture->host, fixture->objects, &fixture->options,
                                         open_mount(fixture), &err);
    if (!fixture->session)
        fail_msg("%s", err.message);
}

static inline void on_session_closed(void *context, size_t lost)
{
    struct fixture *fixture = context;

    fixture->closed = true;
    fixture->lost_files = lost;
}

/* Close the session and take the mount away. */
static inline void end_session(struct fixture *fixture, uint64_t patience_ms)
{
    mount_session_close(TAKE_PTR(fixture->session), patience_ms, on_session_closed, fixture);
    TURN_UNTIL(&fixture->loop, fixture->closed);
    assert_int_equal(sys_mount_unmount(fixture->place, SYS_UNMOUNT_DETACH), 0);
}

/* Run a script in the mount, while the loop serves it. Returns its exit status; 128 and more: the
 * signal that ended it. */
static inline int run_script(struct fixture *fixture, const char *script)
{
    pid_t pid = fork();
    int status = 0, turns = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        (void) dup2(STDERR_FILENO, STDOUT_FILENO);
        if (chdir(fixture->place) < 0)
            _exit(99);
        (void) setenv("HOME", fixture->folder, 1);
        (void) execl("/bin/bash", "bash", "-c", script, NULL);
        _exit(98);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        testing_turn(&fixture->loop);
        if (++turns == 20000)
            (void) kill(pid, SIGKILL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define EXPECT(fixture, script) assert_int_equal(run_script((fixture), "set -e\n" script), 0)

static inline struct fixture *new_fixture(void)
{
    struct fixture *fixture = test_calloc(1, sizeof(*fixture));
    struct mount_host_options options = {.spool = fixture->spool,
                                         .spool_limit = 1 << 30,
                                         .cache_limit = 64 << 20,
                                         .clock = clock_system()};
    struct error err = ERROR_INIT;

    (void) pthread_mutex_init(&fixture->store.lock, NULL);
    assert_int_equal(loop_init(&fixture->loop, NULL), 0);
    (void) snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/burrow-mount-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void) snprintf(fixture->place, sizeof(fixture->place), "%s/place", fixture->folder);
    (void) snprintf(fixture->spool, sizeof(fixture->spool), "%s/spool", fixture->folder);
    assert_int_equal(mkdir(fixture->place, 0755), 0);
    fixture->objects = memory_open(&fixture->store, &fixture->loop);
    fixture->host = mount_host_new(&fixture->loop, &options, &err);
    assert_non_null(fixture->host);
    fixture->options = (struct mount_options){.prefix = "home/", .patience_ms = 2000};
    return fixture;
}

static inline void on_objects_closed(void *context, const struct error *failure)
{
    (void) failure;
    *(bool *) context = true;
}

static inline void free_fixture(struct fixture *fixture)
{
    bool closed = false;

    atomic_store(&fixture->store.hangs, false);
    atomic_store(&fixture->store.hangs_on_get, false);
    if (fixture->session)
        end_session(fixture, 2000);
    objects_close(fixture->objects, on_objects_closed, &closed);
    TURN_UNTIL(&fixture->loop, closed);
    mount_host_free(fixture->host);
    loop_done(&fixture->loop);
    memory_done(&fixture->store);
    assert_int_equal(rmdir(fixture->place), 0);
    assert_int_equal(rmdir(fixture->spool), 0);
    (void) rmdir(fixture->folder);
    test_free(fixture);
}

/* --- for the tests themselves ---------------------------------------------------------------- */

static inline int begin_test(void **state)
{
    struct fixture *fixture = new_fixture();

    begin_session(fixture);
    *state = fixture;
    return 0;
}

static inline int finish_test(void **state)
{
    free_fixture(*state);
    return 0;
}

static inline const char *text_of(struct fixture *fixture, const char *key)
{
    const struct memory_object *object = memory_find(&fixture->store, key);

    return object ? object->bytes : NULL;
}

static inline const char *mark_of(struct fixture *fixture, const char *key, const char *name)
{
    const struct memory_object *object = memory_find(&fixture->store, key);

    for (size_t i = 0; object && i < object->metadata_count; i++) {
        if (strcmp(object->names[i], name) == 0)
            return object->values[i];
    }
    return NULL;
}

static inline struct memory_object *put_text(struct fixture *fixture, const char *key,
                                             const char *text)
{
    return memory_add(&fixture->store, key, text, strlen(text));
}

/* A process of the sandbox has no copy of the mount's descriptor: with one, it would wait for
 * itself. */
static inline pid_t fork_user(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        (void) close_range(STDERR_FILENO + 1, ~0u, 0);
    return pid;
}

/* Nothing of it is seen outside. */
static inline int separate(void **state)
{
    (void) state;
    if (unshare(CLONE_NEWNS) < 0)
        return -1;
    return sys_mount_path_plain(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL);
}

/* Runs them, or says why not. */
#define MOUNT_RUN(tests)                                                                           \
    (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) < 0                                        \
         ? (printf("# skip: root and /dev/fuse\n1..0\n"), 0)                                       \
         : cmocka_run_group_tests((tests), separate, NULL))
