#include "objects/s3/objects_s3.h"

#include <string.h>

#include "objects/s3/s3_operations.h"

static int put(void *self, struct objects_work *work, const char *key,
               const struct objects_source *source, const struct object_put_options *options,
               struct object_info *ret_info, struct error *err)
{
    return s3_put(self, work, key, source, options, ret_info, err);
}

static int copy(void *self, struct objects_work *work, const char *from, const char *to,
                struct object_info *ret_info, struct error *err)
{
    return s3_copy(self, work, from, to, ret_info, err);
}

static int remove_keys(void *self, struct objects_work *work, const char *const *keys, size_t count,
                       struct error *err)
{
    return s3_remove(self, work, keys, count, err);
}

static int head(void *self, struct objects_work *work, const char *key,
                struct object_info *ret_info, struct error *err)
{
    return s3_head(self, work, key, ret_info, err);
}

static int get(void *self, struct objects_work *work, const char *key,
               const struct object_range *range, const char *only_tag, struct objects_sink *sink,
               struct object_info *ret_info, struct error *err)
{
    return s3_get(self, work, key, range, only_tag, sink, ret_info, err);
}

static int list(void *self, struct objects_work *work, const struct object_query *query,
                struct object_list *ret_list, struct error *err)
{
    return s3_list(self, work, query, ret_list, err);
}

static int check(void *self, struct objects_work *work, struct error *err)
{
    return s3_check(self, work, err);
}

static void end(void *self)
{
    s3_client_free(self);
}

int objects_s3_backend(const struct s3_settings *settings, struct objects_backend *ret_backend,
                       struct error *err)
{
    struct s3_client *client = s3_client_new(settings, err);

    if (!client)
        return -1;
    *ret_backend = (struct objects_backend){
        .self = client,
        .put = put,
        .copy = copy,
        .remove = remove_keys,
        .head = head,
        .get = get,
        .list = list,
        .check = check,
        .end = end,
        .text = client->text,
    };
    return 0;
}

struct objects *objects_s3_new(struct loop *loop, const struct s3_settings *settings,
                               struct error *err)
{
    struct objects_backend backend;

    return objects_s3_backend(settings, &backend, err) < 0 ? NULL : objects_new(loop, &backend, 0);
}
