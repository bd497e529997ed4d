/* What the store refuses, in words that say what to change. */
#include <string.h>

#include "objects/s3/s3_exchange.h"

enum detail { DETAIL_NONE, DETAIL_REGION, DETAIL_CLOCK };

struct meaning {
    const char *name; /* S3's code */
    enum err_code code;
    bool is_transient;
    enum detail detail;
    const char *text;
};

static const struct meaning meanings[] = {
    {"NoSuchKey", ERR_NOT_FOUND, false, DETAIL_NONE, "there is no such object"},
    {"NoSuchUpload", ERR_NOT_FOUND, false, DETAIL_NONE, "there is no such upload"},
    {"NoSuchBucket", ERR_UNAVAILABLE, false, DETAIL_NONE,
     "the bucket does not exist: create it, or correct the bucket's name"},
    {"SignatureDoesNotMatch", ERR_FORBIDDEN, false, DETAIL_NONE,
     "the signature is wrong: the secret key does not belong to the access key"},
    {"InvalidAccessKeyId", ERR_FORBIDDEN, false, DETAIL_NONE,
     "the access key is unknown there: correct it, or the endpoint"},
    {"InvalidToken", ERR_FORBIDDEN, false, DETAIL_NONE, "the session token is not valid"},
    {"ExpiredToken", ERR_FORBIDDEN, false, DETAIL_NONE,
     "the session token has expired: renew the temporary keys"},
    {"AccessDenied", ERR_FORBIDDEN, false, DETAIL_NONE,
     "access denied: the key exists but lacks the right to do this here; give it read, write, "
     "list and delete on the bucket"},
    {"AllAccessDisabled", ERR_FORBIDDEN, false, DETAIL_NONE, "access to the bucket is disabled"},
    {"AccountProblem", ERR_FORBIDDEN, false, DETAIL_NONE, "the account has a problem"},
    {"RequestTimeTooSkewed", ERR_FORBIDDEN, false, DETAIL_CLOCK,
     "the clock of this machine is wrong"},
    {"AuthorizationHeaderMalformed", ERR_FORBIDDEN, false, DETAIL_REGION, "the region is wrong"},
    {"PermanentRedirect", ERR_FORBIDDEN, false, DETAIL_REGION,
     "the bucket is elsewhere: correct endpoint and region"},
    {"TemporaryRedirect", ERR_UNAVAILABLE, true, DETAIL_REGION, "the bucket is elsewhere for now"},
    {"IllegalLocationConstraintException", ERR_FORBIDDEN, false, DETAIL_REGION,
     "the region is wrong"},
    {"PreconditionFailed", ERR_CONFLICT, false, DETAIL_NONE, "the object is not as expected"},
    {"ConditionalRequestConflict", ERR_CONFLICT, false, DETAIL_NONE,
     "somebody else puts the object at this moment"},
    {"InvalidRange", ERR_RANGE, false, DETAIL_NONE, "the range lies behind the end of the object"},
    {"EntityTooLarge", ERR_TOO_LARGE, false, DETAIL_NONE, "the store takes no object that large"},
    {"KeyTooLongError", ERR_INVALID, false, DETAIL_NONE, "the key is too long for the store"},
    {"InvalidObjectName", ERR_INVALID, false, DETAIL_NONE, "the store takes no such key"},
    {"XAmzContentSHA256Mismatch", ERR_UPSTREAM, false, DETAIL_NONE,
     "the bytes that arrived are not those that were sent"},
    {"BadDigest", ERR_UPSTREAM, false, DETAIL_NONE,
     "the bytes that arrived are not those that were sent"},
    {"InvalidPart", ERR_UPSTREAM, false, DETAIL_NONE, "a part of the upload is lost"},
    {"QuotaExceeded", ERR_NO_SPACE, false, DETAIL_NONE, "the store's quota is used up"},
    {"XMinioStorageFull", ERR_NO_SPACE, false, DETAIL_NONE, "the store is full"},
    {"RequestTimeout", ERR_UPSTREAM_TIMEOUT, true, DETAIL_NONE,
     "it waited in vain for what was sent"},
    {"SlowDown", ERR_UNAVAILABLE, true, DETAIL_NONE, "it asks to be asked less often"},
    {"InternalError", ERR_UNAVAILABLE, true, DETAIL_NONE, "it has an error of its own"},
    {"ServiceUnavailable", ERR_UNAVAILABLE, true, DETAIL_NONE, "it is not available"},
    {"OperationAborted", ERR_UNAVAILABLE, true, DETAIL_NONE, "another change is under way there"},
    {"NotImplemented", ERR_NOT_IMPLEMENTED, false, DETAIL_NONE, "it does not know how to do this"},
};

/* For answers whose code is unknown or that have none (HEAD). */
static const struct {
    int status;
    struct meaning meaning;
} statuses[] = {
    {301,
     {"", ERR_FORBIDDEN, false, DETAIL_REGION,
      "the bucket is elsewhere: correct endpoint and region"}},
    {307, {"", ERR_UNAVAILABLE, true, DETAIL_REGION, "the bucket is elsewhere for now"}},
    {401, {"", ERR_FORBIDDEN, false, DETAIL_NONE, "access denied: check key and secret"}},
    {403,
     {"", ERR_FORBIDDEN, false, DETAIL_NONE,
      "access denied: check key, secret and the key's rights on the bucket"}},
    {404, {"", ERR_NOT_FOUND, false, DETAIL_NONE, "there is no such object"}},
    {408, {"", ERR_UPSTREAM_TIMEOUT, true, DETAIL_NONE, "it waited in vain for what was sent"}},
    {409, {"", ERR_CONFLICT, false, DETAIL_NONE, "it is in conflict with another change"}},
    {412, {"", ERR_CONFLICT, false, DETAIL_NONE, "the object is not as expected"}},
    {416, {"", ERR_RANGE, false, DETAIL_NONE, "the range lies behind the end of the object"}},
    {413, {"", ERR_TOO_LARGE, false, DETAIL_NONE, "the store takes no object that large"}},
    {429, {"", ERR_UNAVAILABLE, true, DETAIL_NONE, "it asks to be asked less often"}},
    {500, {"", ERR_UNAVAILABLE, true, DETAIL_NONE, "it has an error of its own"}},
    {501, {"", ERR_NOT_IMPLEMENTED, false, DETAIL_NONE, "it does not know how to do this"}},
    {502, {"", ERR_UNAVAILABLE, true, DETAIL_NONE, "what is before it cannot reach it"}},
    {503, {"", ERR_UNAVAILABLE, true, DETAIL_NONE, "it is not available"}},
    {504, {"", ERR_UPSTREAM_TIMEOUT, true, DETAIL_NONE, "what is before it waited in vain"}},
    {507, {"", ERR_NO_SPACE, false, DETAIL_NONE, "the store is full"}},
};

static const struct meaning unknown = {"", ERR_UPSTREAM, false, DETAIL_NONE, "unexpected answer"};

static const struct meaning *find_meaning(const struct s3_answer *answer)
{
    for (size_t i = 0; i < ARRAY_COUNT(meanings); i++) {
        if (strcmp(meanings[i].name, answer->failure.code) == 0)
            return &meanings[i];
    }
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        if (statuses[i].status == answer->http.status)
            return &statuses[i].meaning;
    }
    return &unknown;
}

/* The store's words are a stranger's: printable, and not long. */
static const char *clean(struct s3_answer *answer, const char *text)
{
    char *copy = pool_copy_text(&answer->http.pool, text);

    for (char *at = copy; *at; at++) {
        if (*at < ' ' || *at > '~')
            *at = '?';
    }
    return copy;
}

static const char *detail_of(const struct s3_client *client, struct s3_answer *answer,
                             enum detail detail)
{
    const char *region = answer->failure.region, *header;
    char now[CLOCK_TEXT_SIZE];

    if (detail == DETAIL_REGION) {
        header = outbound_answer_header(&answer->http, "x-amz-bucket-region");
        if (!*region && header)
            region = header;
        return *region ? pool_format(&answer->http.pool, ": it wants region '%.64s', ours is '%s'",
                                     clean(answer, region), client->key.region)
                       : "";
    }
    if (detail == DETAIL_CLOCK) {
        header = outbound_answer_header(&answer->http, "date");
        clock_format(clock_wall_ms(client->clock), now);
        if (*answer->failure.server_time)
            header = answer->failure.server_time;
        return pool_format(&answer->http.pool, ": here it is %s, there %.40s; set the clock", now,
                           header ? clean(answer, header) : "not");
    }
    return "";
}

int s3_error_of(const struct s3_client *client, struct s3_answer *answer, struct error *err)
{
    const struct meaning *meaning;

    if (answer->http.body.length)
        (void) s3_document_failure(answer->http.body.data, answer->http.body.length,
                                   &answer->http.pool, &answer->failure,
                                   NULL); /* or it has no code */
    meaning = find_meaning(answer);
    answer->is_transient = meaning->is_transient;
    /* The store's own words where ours say too little. */
    if (meaning == &unknown || (*answer->failure.code && !*meaning->name))
        return error_set(err, meaning->code, 0, "%s: %s (%d %.40s%s%.120s)", client->text,
                         meaning->text, answer->http.status, clean(answer, answer->failure.code),
                         *answer->failure.message ? ": " : "",
                         clean(answer, answer->failure.message));
    return error_set(err, meaning->code, 0, "%s: %s%s", client->text, meaning->text,
                     detail_of(client, answer, meaning->detail));
}
