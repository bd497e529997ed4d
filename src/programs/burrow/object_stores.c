#include "programs/burrow/object_stores.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "objects/folder/objects_folder.h"
#include "objects/s3/objects_s3.h"
#include "sys/file/sys_file.h"

#define OBJECTS_FOLDER "objects"
#define BUCKETS_FOLDER "buckets"
#define BUCKETS_PREFIX "buckets/" /* in the one bucket that is there for everything */
#define SECRET_MAX     4096
#define PATH_SIZE      4096
#define AGAIN_MS       10000

/* --- how they are ----------------------------------------------------------------------------- */

static void object_stores_check(struct object_stores *stores);

static void on_again(uv_timer_t *timer)
{
    object_stores_check(timer->data);
}

static void all_checked(struct object_stores *stores)
{
    if (stores->has_failed) {
        (void) uv_timer_start(&stores->again, on_again, AGAIN_MS, 0);
        uv_unref((uv_handle_t *) &stores->again);
        return;
    }
    stores->problem = NULL;
    if (stores->failure.code != ERR_NONE)
        LOG_INFO(stores->log, "the store of objects works again");
    error_clear(&stores->failure);
}

static void on_checked(void *context, const struct error *failure)
{
    struct object_stores *stores = context;

    if (stores->is_closing)
        return;
    if (failure && !stores->has_failed) {
        stores->has_failed = true;
        if (strcmp(stores->failure.message, failure->message) != 0)
            LOG_WARNING(stores->log, "the store of objects does not work",
                        log_text("reason", failure->message));
        stores->failure = *failure;
        stores->problem = stores->failure.message;
    }
    if (--stores->unchecked == 0)
        all_checked(stores);
}

static void object_stores_check(struct object_stores *stores)
{
    stores->has_failed = false;
    stores->unchecked = 2;
    (void) objects_check(stores->objects, on_checked, stores);
    (void) objects_check(stores->buckets, on_checked, stores);
}

/* --- opening ---------------------------------------------------------------------------------- */

static struct objects *object_stores_open_folder(struct loop *loop, const struct settings *settings,
                                                 const char *name, struct error *err)
{
    char path[PATH_SIZE];

    (void) snprintf(path, sizeof(path), "%s/%s", settings->data, name);
    return objects_folder_new(loop, path, settings->disk_floor, err);
}

static int open_folders(struct object_stores *stores, struct loop *loop,
                        const struct settings *settings, struct error *err)
{
    stores->objects = object_stores_open_folder(loop, settings, OBJECTS_FOLDER, err);
    if (stores->objects)
        stores->buckets = object_stores_open_folder(loop, settings, BUCKETS_FOLDER, err);
    return stores->buckets ? 0 : -1;
}

/* From its file, or from the environment: a command line can be read by everybody. */
static int read_secret(const struct settings *settings, char **ret_secret, struct error *err)
{
    const char *variable = getenv(OBJECT_STORES_SECRET);
    size_t length;
    int r;

    if (!*settings->s3_secret_key_file) {
        if (!variable || !*variable)
            return error_set(err, ERR_INVALID, 0,
                             "the S3 store needs a secret key: name its file with "
                             "s3-secret-key-file, or set " OBJECT_STORES_SECRET);
        *ret_secret = mem_copy_text(variable);
        return 0;
    }
    r = sys_file_read_all(AT_FDCWD, settings->s3_secret_key_file, SECRET_MAX, ret_secret, &length);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "read the S3 secret key from '%s'",
                         settings->s3_secret_key_file);
    (*ret_secret)[strcspn(*ret_secret, "\r\n")] = '\0';
    return 0;
}

static int open_s3(struct object_stores *stores, struct loop *loop, const struct settings *settings,
                   struct error *err)
{
    AUTO(free) char *secret = NULL;
    struct s3_settings s3 = {
        .endpoint = settings->s3_endpoint,
        .region = settings->s3_region,
        .bucket = settings->s3_bucket,
        .access_key = settings->s3_access_key,
        .style = strcmp(settings->s3_style, "virtual") == 0 ? S3_STYLE_VIRTUAL : S3_STYLE_PATH,
        .allow_private = true, /* the operator named it */
        .owns_uploads = true,
    };

    if (read_secret(settings, &secret, err) < 0)
        return -1;
    s3.secret_key = secret;
    stores->objects = objects_s3_new(loop, &s3, err);
    s3.owns_uploads = false; /* in a bucket of users others may write, too */
    if (*settings->s3_buckets_bucket)
        s3.bucket = settings->s3_buckets_bucket;
    else
        s3.prefix = BUCKETS_PREFIX;
    if (stores->objects)
        stores->buckets = objects_s3_new(loop, &s3, err);
    explicit_bzero(secret, strlen(secret));
    return stores->buckets ? 0 : -1;
}

int object_stores_open(struct object_stores *stores, struct loop *loop, struct log *log,
                       const struct settings *settings, struct error *err)
{
    int r;

    *stores = (struct object_stores){.log = log, .problem = "it has not answered yet"};
    (void) uv_timer_init(&loop->uv, &stores->again);
    stores->again.data = stores;
    stores->open_parts = 1;
    r = strcmp(settings->objects, "s3") == 0 ? open_s3(stores, loop, settings, err)
                                             : open_folders(stores, loop, settings, err);
    stores->open_parts += (stores->objects != NULL) + (stores->buckets != NULL);
    if (r < 0)
        return -1;
    LOG_INFO(log, "objects", log_text("store", objects_text(stores->objects)),
             log_text("buckets", objects_text(stores->buckets)));
    object_stores_check(stores);
    return 0;
}

/* --- closing ---------------------------------------------------------------------------------- */

static void part_closed(struct object_stores *stores)
{
    if (--stores->open_parts == 0 && stores->closed)
        stores->closed(stores->context);
}

static void on_store_closed(void *context, const struct error *failure)
{
    (void) failure;
    part_closed(context);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

void object_stores_close(struct object_stores *stores, void (*closed)(void *context), void *context)
{
    stores->is_closing = true;
    stores->closed = closed;
    stores->context = context;
    if (stores->open_parts == 0) {
        if (closed)
            closed(context);
        return;
    }
    if (stores->objects)
        objects_close(TAKE_PTR(stores->objects), on_store_closed, stores);
    if (stores->buckets)
        objects_close(TAKE_PTR(stores->buckets), on_store_closed, stores);
    uv_close((uv_handle_t *) &stores->again, on_timer_closed);
}
