#include <openssl/evp.h>
#include <string.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "objects/s3/s3_operations.h"

#define MD5_SIZE    16
#define REQUEST_MAX ((size_t) 8 * 1024 * 1024) /* OBJECTS_DELETE_MAX keys, escaped */

static int remove_one(struct s3_client *client, struct objects_work *work, const char *whole,
                      struct error *err)
{
    struct s3_request request = {.method = "DELETE", .key = whole};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct error failure = ERROR_INIT;

    if (s3_call(client, work, &request, &answer, &failure) == 0 || failure.code == ERR_NOT_FOUND)
        return 0;
    *err = failure;
    return -1;
}

static int remove_singly(struct s3_client *client, struct objects_work *work, const char **keys,
                         size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (remove_one(client, work, keys[i], err) < 0)
            return -1;
    }
    return 0;
}

static void write_keys(struct text *out, const char **keys, size_t count)
{
    text_append(out, "<Delete><Quiet>true</Quiet>");
    for (size_t i = 0; i < count; i++) {
        text_append(out, "<Object><Key>");
        s3_document_escape(out, keys[i]);
        text_append(out, "</Key></Object>");
    }
    text_append(out, "</Delete>");
}

/* This one request needs an MD5 beside the signed sum; a system that forbids MD5 deletes singly. */
static bool digest_keys(const struct text *keys, char ret_md5[static BASE64_TEXT_SIZE(MD5_SIZE)],
                        char ret_sum[static HEX_TEXT_SIZE(SHA256_SIZE)])
{
    uint8_t md5[EVP_MAX_MD_SIZE], sum[SHA256_SIZE];
    size_t length = 0;

    if (EVP_Q_digest(NULL, "MD5", NULL, text_string(keys), keys->length, md5, &length) != 1 ||
        length != MD5_SIZE)
        return false;
    (void) base64_encode(BASE64_STANDARD, md5, MD5_SIZE, ret_md5);
    sha256_bytes(text_string(keys), keys->length, sum);
    (void) hex_encode(sum, sizeof(sum), ret_sum);
    return true;
}

/* Whether the store does not know deletes of many. */
static bool is_unknown(const struct s3_answer *answer)
{
    return answer->http.status == 501 || answer->http.status == 405 ||
           strcmp(answer->failure.code, "NotImplemented") == 0 ||
           strcmp(answer->failure.code, "MethodNotAllowed") == 0;
}

/* Keys that the answer names are tried once more, each alone: then the reason is clear. */
static int remove_together(struct s3_client *client, struct objects_work *work, const char **keys,
                           size_t count, struct error *err)
{
    struct s3_request request = {.method = "POST", .has_body = true};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    AUTO(text) struct text body = TEXT_INIT(REQUEST_MAX);
    char md5[BASE64_TEXT_SIZE(MD5_SIZE)], sum[HEX_TEXT_SIZE(SHA256_SIZE)];
    struct error failure = ERROR_INIT;
    struct s3_undeleted undeleted;

    write_keys(&body, keys, count);
    if (body.overflowed || !digest_keys(&body, md5, sum))
        return remove_singly(client, work, keys, count, err);
    request.body = (struct outbound_body){.bytes = text_string(&body), .length = body.length};
    request.body_sum = sum;
    s3_request_query(&request, "delete", "");
    s3_request_header(&request, "content-md5", md5);
    s3_request_header(&request, "content-type", "application/xml");
    if (s3_call(client, work, &request, &answer, &failure) < 0) {
        if (is_unknown(&answer)) {
            atomic_store(&client->deletes_singly, true);
            return remove_singly(client, work, keys, count, err);
        }
        *err = failure;
        return -1;
    }
    if (s3_document_undeleted(text_string(&answer.http.body), answer.http.body.length, work->pool,
                              &undeleted, err) < 0)
        return -1;
    return remove_singly(client, work, undeleted.keys, undeleted.count, err);
}

int s3_remove(struct s3_client *client, struct objects_work *work, const char *const *keys,
              size_t count, struct error *err)
{
    const char **together = pool_alloc(work->pool, (count + 1) * sizeof(*together));
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        const char *whole;

        if (s3_client_key(client, work->pool, keys[i], &whole, err) < 0)
            return -1;
        if (s3_document_can_hold(whole))
            together[kept++] = whole;
        else if (remove_one(client, work, whole, err) < 0)
            return -1;
    }
    if (kept <= 1 || atomic_load(&client->deletes_singly))
        return remove_singly(client, work, together, kept, err);
    return remove_together(client, work, together, kept, err);
}
