#include <string.h>

#include "base/id.h"
#include "objects/s3/s3_operations.h"

#define CHECK_KEY     ".burrow-check/"
#define UPLOAD_AGE_MS ((int64_t) 24 * 3600 * 1000) /* older ones belong to nobody alive */

void s3_sweep_uploads(struct s3_client *client, struct objects_work *work, int64_t now_ms)
{
    struct s3_request request = {.method = "GET"};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct s3_uploads uploads;

    s3_request_query(&request, "uploads", "");
    s3_request_query(&request, "prefix", client->prefix);
    if (s3_call(client, work, &request, &answer, &(struct error) ERROR_INIT) < 0 ||
        s3_document_uploads(text_string(&answer.http.body), answer.http.body.length, work->pool,
                            &uploads, NULL) < 0)
        return;
    for (size_t i = 0; i < uploads.count && !atomic_load(work->cancelled); i++) {
        const struct s3_upload *upload = &uploads.uploads[i];
        struct s3_upload_parts old = {
            .client = client, .work = work, .key = upload->key, .id = upload->id};

        if (upload->started_ms && now_ms - upload->started_ms > UPLOAD_AGE_MS &&
            strncmp(upload->key, client->prefix, strlen(client->prefix)) == 0)
            s3_upload_abort(&old);
    }
}

int s3_check(struct s3_client *client, struct objects_work *work, struct error *err)
{
    struct id id = id_new();
    const char *key = pool_format(work->pool, CHECK_KEY "%s", id.text);
    struct objects_source source = {.bytes = id.text, .length = strlen(id.text), .fd = -EBADF};
    struct objects_sink sink = {.fd = -EBADF};
    struct object_info info;

    if (s3_put(client, work, key, &source, NULL, &info, err) < 0)
        return error_wrap(err, "write to the store");
    if (s3_get(client, work, key, NULL, NULL, &sink, &info, err) < 0)
        return error_wrap(err, "read from the store");
    if (s3_remove(client, work, &key, 1, err) < 0)
        return error_wrap(err, "delete from the store");
    if (sink.length != source.length || memcmp(sink.bytes, source.bytes, source.length) != 0)
        return error_set(err, ERR_UPSTREAM, 0, "%s: it gave back other bytes than it got",
                         client->text);
    if (client->owns_uploads)
        s3_sweep_uploads(client, work, clock_wall_ms(client->clock));
    return 0;
}
