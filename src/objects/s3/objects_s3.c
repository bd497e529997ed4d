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

int objects_s3_presign(const struct s3_settings *settings, const char *method, const char *key,
                       unsigned int seconds, struct text *url, struct error *err)
{
    AUTO(s3_client) struct s3_client *client = s3_client_new(settings, err);
    AUTO(text) struct text path = TEXT_INIT(S3_URL_MAX);
    AUTO(pool) struct pool pool = POOL_INIT;
    char date[SIGV4_DATE_SIZE];
    struct sigv4_pair host = {"host", NULL};
    struct sigv4_request request = {
        .method = method, .headers = &host, .header_count = 1, .payload = SIGV4_UNSIGNED};
    const char *whole;

    if (!client)
        return -1;
    if (seconds == 0 || seconds > S3_PRESIGN_MAX || !*key)
        return error_set(err, ERR_INVALID, 0, "a presigned URL is for a key, and for at most %u s",
                         S3_PRESIGN_MAX);
    if (s3_client_key(client, &pool, key, &whole, err) < 0)
        return -1;
    s3_client_path(client, whole, &path);
    host.value = client->host;
    request.path = text_string(&path);
    sigv4_date(clock_wall_ms(client->clock), date);
    text_format(url, "%s%s?", client->origin, request.path);
    sigv4_presign(&client->key, &request, date, seconds, url);
    return path.overflowed || url->overflowed
               ? error_set(err, ERR_INVALID, 0, "the URL is too long")
               : 0;
}
