/* The calls of objects.h: arguments checked and copied, work handed to the backend, answers. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "objects/objects_arguments.h"
#include "objects/objects_internal.h"
#include "objects/objects_key.h"

/* --- arguments -------------------------------------------------------------------------------- */

static const char *copy_text(struct objects_call *call, const char *text)
{
    return text ? pool_copy_text(&call->pool, text) : NULL;
}

/* Every call has one; what is too long is not copied. */
static int take_key(struct objects_call *call, const char *key, const char **ret_key)
{
    if (objects_key_check(key, &call->failure) < 0)
        return -1;
    *ret_key = copy_text(call, key);
    return 0;
}

static int take_options(struct objects_call *call, const struct object_put_options *options)
{
    struct object_pair *pairs;

    if (!options)
        return 0;
    if (objects_options_check(options, &call->failure) < 0)
        return -1;
    call->options = *options;
    call->options.only_tag = copy_text(call, options->only_tag);
    call->options.media_type = copy_text(call, options->media_type);
    pairs = pool_alloc(&call->pool, options->metadata_count * sizeof(*pairs));
    for (size_t i = 0; i < options->metadata_count; i++) {
        pairs[i].name = copy_text(call, options->metadata[i].name);
        pairs[i].value = copy_text(call, options->metadata[i].value);
    }
    call->options.metadata = pairs;
    return 0;
}

/* A descriptor of our own: the caller may close its one. */
static int take_descriptor(struct objects_call *call, int fd, bool *ret_is_file)
{
    struct stat status = {0};

    call->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (call->fd < 0 || fstat(call->fd, &status) < 0)
        return error_set(&call->failure, errno == EBADF ? ERR_INVALID : ERR_UNAVAILABLE, errno,
                         "keep the descriptor of an object");
    *ret_is_file = S_ISREG(status.st_mode);
    call->source.length = *ret_is_file ? (size_t) status.st_size : 0;
    return 0;
}

/* --- putting ---------------------------------------------------------------------------------- */

static int run_put(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    return backend->put(backend->self, work, call->key, &call->source, &call->options, &call->info,
                        err);
}

static int run_copy(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    return backend->copy(backend->self, work, call->key, call->to, &call->info, err);
}

static int run_remove(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    if (call->count == 0)
        return 0;
    return backend->remove(backend->self, work, call->keys, call->count, err);
}

static void tell_plain(const struct objects_call *call, const struct error *failure)
{
    if (call->answer.plain)
        call->answer.plain(call->context, failure);
}

static void tell_info(const struct objects_call *call, const struct error *failure)
{
    if (call->answer.info)
        call->answer.info(call->context, failure, failure ? NULL : &call->info);
}

static const struct objects_kind put_kind = {.name = "put", .run = run_put, .tell = tell_info};
static const struct objects_kind copy_kind = {.name = "copy", .run = run_copy, .tell = tell_info};
static const struct objects_kind remove_kind = {
    .name = "remove", .run = run_remove, .tell = tell_plain};

struct objects_call *objects_put_bytes(struct objects *objects, const char *key, const void *bytes,
                                       size_t length, const struct object_put_options *options,
                                       objects_info_done *done, void *context)
{
    struct objects_call *call = objects_call_new(objects, &put_kind, OBJECTS_LANE_QUICK, context);
    int r = take_key(call, key, &call->key);

    call->answer.info = done;
    if (r == 0)
        r = take_options(call, options);
    if (r == 0 && length > OBJECTS_BYTES_MAX)
        r = error_set(&call->failure, ERR_TOO_LARGE, 0, "more than %zu bytes go as a file",
                      OBJECTS_BYTES_MAX);
    if (r == 0) {
        call->source.bytes = pool_copy_bytes(&call->pool, length ? bytes : "", length);
        call->source.length = length;
    }
    return objects_call_start(call, r);
}

static struct objects_call *put_descriptor(struct objects *objects, const char *key, int fd,
                                           bool is_stream, const struct object_put_options *options,
                                           objects_info_done *done, void *context)
{
    struct objects_call *call = objects_call_new(
        objects, &put_kind, is_stream ? OBJECTS_LANE_INLET : OBJECTS_LANE_FILE, context);
    bool is_file = false;
    int r = take_key(call, key, &call->key);

    call->answer.info = done;
    if (r == 0)
        r = take_options(call, options);
    if (r == 0)
        r = take_descriptor(call, fd, &is_file);
    if (r == 0 && !is_stream && !is_file)
        r = error_set(&call->failure, ERR_INVALID, 0, "what is put as a file must be one");
    call->source.fd = call->fd;
    call->source.is_stream = is_stream;
    return objects_call_start(call, r);
}

struct objects_call *objects_put_file(struct objects *objects, const char *key, int file,
                                      const struct object_put_options *options,
                                      objects_info_done *done, void *context)
{
    return put_descriptor(objects, key, file, false, options, done, context);
}

struct objects_call *objects_put_stream(struct objects *objects, const char *key, int stream,
                                        const struct object_put_options *options,
                                        objects_info_done *done, void *context)
{
    return put_descriptor(objects, key, stream, true, options, done, context);
}

struct objects_call *objects_copy(struct objects *objects, const char *from, const char *to,
                                  objects_info_done *done, void *context)
{
    struct objects_call *call = objects_call_new(objects, &copy_kind, OBJECTS_LANE_FILE, context);
    int r = take_key(call, from, &call->key);

    call->answer.info = done;
    if (r == 0)
        r = take_key(call, to, &call->to);
    return objects_call_start(call, r);
}

struct objects_call *objects_delete(struct objects *objects, const char *const *keys, size_t count,
                                    objects_done *done, void *context)
{
    struct objects_call *call =
        objects_call_new(objects, &remove_kind, OBJECTS_LANE_QUICK, context);
    int r = 0;

    call->answer.plain = done;
    if (count > OBJECTS_DELETE_MAX)
        r = error_set(&call->failure, ERR_INVALID, 0, "more than %d keys at once",
                      OBJECTS_DELETE_MAX);
    if (r == 0)
        call->keys = pool_alloc(&call->pool, count * sizeof(*call->keys));
    for (; r == 0 && call->count < count; call->count++)
        r = take_key(call, keys[call->count], &call->keys[call->count]);
    return objects_call_start(call, r);
}

/* --- getting ---------------------------------------------------------------------------------- */

static int run_head(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    return backend->head(backend->self, work, call->key, &call->info, err);
}

static int run_get_bytes(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    return backend->get(backend->self, work, call->key, call->has_range ? &call->range : NULL,
                        call->only_tag, &call->sink, &call->info, err);
}

/* A file that was longer before must not keep its old end. */
static int cut_file(struct objects_call *call, struct error *err)
{
    if (call->lane != OBJECTS_LANE_FILE || ftruncate(call->fd, (off_t) call->info.size) == 0)
        return 0;
    return error_set(err, error_code_from_errno(errno), errno, "cut the file to its size");
}

static int run_get_file(struct objects_call *call, struct objects_work *work, struct error *err)
{
    if (run_get_bytes(call, work, err) < 0)
        return -1;
    call->sink.length = (size_t) call->info.size;
    if (call->sink.sum && call->info.has_sum &&
        memcmp(call->sink.sum, call->info.sum, OBJECTS_SUM_SIZE) != 0)
        return error_set(err, ERR_UPSTREAM, 0, "'%.128s' is not what was expected there",
                         call->key);
    return cut_file(call, err);
}

static int run_list(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    return backend->list(backend->self, work, &call->query, &call->list, err);
}

static int run_check(struct objects_call *call, struct objects_work *work, struct error *err)
{
    struct objects_backend *backend = &call->objects->backend;

    return backend->check(backend->self, work, err);
}

static void tell_bytes(const struct objects_call *call, const struct error *failure)
{
    if (!call->answer.bytes)
        return;
    if (failure)
        call->answer.bytes(call->context, failure, NULL, 0, NULL);
    else
        call->answer.bytes(call->context, NULL, call->sink.length ? call->sink.bytes : "",
                           call->sink.length, &call->info);
}

static void tell_list(const struct objects_call *call, const struct error *failure)
{
    if (call->answer.list)
        call->answer.list(call->context, failure, failure ? NULL : &call->list);
}

static const struct objects_kind head_kind = {.name = "head", .run = run_head, .tell = tell_info};
static const struct objects_kind get_bytes_kind = {
    .name = "get bytes", .run = run_get_bytes, .tell = tell_bytes};
static const struct objects_kind get_file_kind = {
    .name = "get file", .run = run_get_file, .tell = tell_info};
static const struct objects_kind list_kind = {.name = "list", .run = run_list, .tell = tell_list};
static const struct objects_kind check_kind = {
    .name = "check", .run = run_check, .tell = tell_plain};

struct objects_call *objects_head(struct objects *objects, const char *key, objects_info_done *done,
                                  void *context)
{
    struct objects_call *call = objects_call_new(objects, &head_kind, OBJECTS_LANE_QUICK, context);

    call->answer.info = done;
    return objects_call_start(call, take_key(call, key, &call->key));
}

struct objects_call *objects_get_bytes(struct objects *objects, const char *key,
                                       const struct object_range *range, const char *only_tag,
                                       objects_bytes_done *done, void *context)
{
    struct objects_call *call =
        objects_call_new(objects, &get_bytes_kind, OBJECTS_LANE_QUICK, context);
    int r = take_key(call, key, &call->key);

    call->answer.bytes = done;
    if (r == 0)
        r = objects_range_check(range, &call->failure);
    if (r == 0)
        r = objects_tag_check(only_tag, &call->failure);
    if (r == 0)
        call->only_tag = copy_text(call, only_tag);
    if (range) {
        call->has_range = true;
        call->range = *range;
        if (range->length > INT64_MAX - range->offset)
            call->range.length = 0; /* to the end, in a way that cannot overflow */
    }
    return objects_call_start(call, r);
}

struct objects_call *objects_get_file(struct objects *objects, const char *key, int file,
                                      const uint8_t *sum, objects_info_done *done, void *context)
{
    struct objects_call *call =
        objects_call_new(objects, &get_file_kind, OBJECTS_LANE_OUTLET, context);
    bool is_file = false;
    int r = take_key(call, key, &call->key);

    call->answer.info = done;
    if (r == 0)
        r = take_descriptor(call, file, &is_file);
    if (is_file)
        call->lane = OBJECTS_LANE_FILE;
    call->sink.fd = call->fd;
    if (sum) {
        memcpy(call->sum, sum, OBJECTS_SUM_SIZE);
        call->sink.sum = call->sum;
    }
    return objects_call_start(call, r);
}

struct objects_call *objects_list(struct objects *objects, const struct object_query *query,
                                  objects_list_done *done, void *context)
{
    struct objects_call *call = objects_call_new(objects, &list_kind, OBJECTS_LANE_QUICK, context);
    int r = objects_query_check(query, &call->failure);

    call->answer.list = done;
    if (r == 0) {
        call->query = *query;
        call->query.prefix = copy_text(call, query->prefix);
        call->query.after = copy_text(call, query->after);
    }
    return objects_call_start(call, r);
}

struct objects_call *objects_check(struct objects *objects, objects_done *done, void *context)
{
    struct objects_call *call = objects_call_new(objects, &check_kind, OBJECTS_LANE_QUICK, context);

    call->answer.plain = done;
    return objects_call_start(call, 0);
}
