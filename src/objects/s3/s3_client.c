#include "objects/s3/s3_client.h"

#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/table.h"
#include "net/url.h"

#define LOCK_SEED 0x5333

static bool all_in(const char *text, const char *allowed)
{
    return text[strspn(text, allowed)] == '\0';
}

static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

static bool has_length(const char *text, size_t most)
{
    return text && *text && strnlen(text, most + 1) <= most;
}

/* "" is how a setting that was not made looks. */
static bool is_given(const char *text)
{
    return text && *text;
}

static int check_bucket(const struct s3_settings *settings, struct error *err)
{
    const char *name = settings->bucket;
    bool is_virtual = settings->style == S3_STYLE_VIRTUAL;

    if (!has_length(name, S3_BUCKET_MAX) ||
        !all_in(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_ABCDEFGHIJKLMNOPQRSTUVWXYZ") ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return error_set(err, ERR_INVALID, 0,
                         "s3: the bucket's name is empty or has characters no bucket has");
    if (is_virtual && (!all_in(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") ||
                       strlen(name) > 63 || name[0] == '.' || strstr(name, "..")))
        return error_set(err, ERR_INVALID, 0,
                         "s3: bucket '%s' cannot be part of a host name: use style 'path'", name);
    return 0;
}

/* Never quotes what was given: it may be a secret in the wrong place. */
static int check_credentials(const struct s3_settings *settings, struct error *err)
{
    if (!has_length(settings->access_key, S3_KEY_ID_MAX) || !is_printable(settings->access_key) ||
        strpbrk(settings->access_key, "/,"))
        return error_set(err, ERR_INVALID, 0, "s3: the access key is missing or malformed");
    if (!has_length(settings->secret_key, S3_SECRET_MAX) || !is_printable(settings->secret_key))
        return error_set(err, ERR_INVALID, 0,
                         "s3: the secret key is missing or malformed (white space around it?)");
    if (is_given(settings->session_token) && (!has_length(settings->session_token, S3_TOKEN_MAX) ||
                                              !is_printable(settings->session_token)))
        return error_set(err, ERR_INVALID, 0, "s3: the session token is malformed");
    if (is_given(settings->region) &&
        (!has_length(settings->region, S3_REGION_MAX) ||
         !all_in(settings->region, "abcdefghijklmnopqrstuvwxyz0123456789-_"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")))
        return error_set(err, ERR_INVALID, 0, "s3: the region is malformed");
    return 0;
}

static int check_settings(const struct s3_settings *settings, struct error *err)
{
    const char *prefix = settings->prefix ? settings->prefix : "";
    uint64_t part = settings->limits.part_size;

    if (strnlen(prefix, S3_PREFIX_MAX + 1) > S3_PREFIX_MAX ||
        !utf8_is_valid(prefix, strlen(prefix)))
        return error_set(err, ERR_INVALID, 0, "s3: the prefix is too long or not UTF-8");
    /* One part is held in memory per call. */
    if (part && (part < S3_PART_MIN || part > ((uint64_t) 1 << 30)))
        return error_set(err, ERR_INVALID, 0, "s3: a part has 5 MiB to 1 GiB");
    return check_bucket(settings, err) < 0 || check_credentials(settings, err) < 0 ? -1 : 0;
}

static int read_endpoint(struct s3_client *client, const struct s3_settings *settings,
                         struct error *err)
{
    AUTO(text) struct text base = TEXT_INIT(S3_URL_MAX);
    struct url_host host;
    struct url url;
    size_t length = settings->endpoint ? strnlen(settings->endpoint, S3_ENDPOINT_MAX + 1) : 0;
    bool is_default, is_virtual = settings->style == S3_STYLE_VIRTUAL;

    if (length == 0 || length > S3_ENDPOINT_MAX)
        return error_set(err, ERR_INVALID, 0, "s3: the endpoint is missing or too long");
    if (url_parse(settings->endpoint, length, &url, err) < 0)
        return error_wrap(err, "s3: the endpoint");
    if ((url.scheme != URL_HTTP && url.scheme != URL_HTTPS) || url.query.text)
        return error_set(err, ERR_INVALID, 0, "s3: the endpoint is http(s)://host[:port][/path]");
    url_host_of(&url, &host);
    if (is_virtual && host.kind != URL_HOST_NAME)
        return error_set(err, ERR_INVALID, 0,
                         "s3: an address takes no bucket before it: use style 'path'");
    is_default = host.port == (url.scheme == URL_HTTPS ? 443 : 80);
    client->host =
        pool_format(&client->pool, host.kind == URL_HOST_IPV6 ? "%s%s[%s]" : "%s%s%s",
                    is_virtual ? settings->bucket : "", is_virtual ? "." : "", host.name);
    if (!is_default)
        client->host = pool_format(&client->pool, "%s:%u", client->host, host.port);
    client->origin =
        pool_format(&client->pool, "%s://%s", url_scheme_text(url.scheme), client->host);
    while (url.path.length && url.path.text[url.path.length - 1] == '/')
        url.path.length--;
    text_append_bytes(&base, url.path.text, url.path.length);
    if (!is_virtual)
        text_format(&base, "/%s", settings->bucket);
    client->base = pool_copy_text(&client->pool, text_string(&base));
    client->text = pool_format(&client->pool, "s3 %s%s", client->origin, client->base);
    return 0;
}

static void copy_settings(struct s3_client *client, const struct s3_settings *settings)
{
    const struct s3_limits *asked = &settings->limits;
    struct pool *pool = &client->pool;

#define COPY(text)            (is_given(text) ? pool_copy_text(pool, (text)) : NULL)
#define OR(number, otherwise) ((number) ? (number) : (otherwise))
    client->key = (struct sigv4_key){
        .id = COPY(settings->access_key),
        .secret = COPY(settings->secret_key),
        .session_token = COPY(settings->session_token),
        .region = pool_copy_text(pool, is_given(settings->region) ? settings->region : "us-east-1"),
        .service = "s3",
    };
    client->bucket = COPY(settings->bucket);
    client->prefix = pool_copy_text(pool, settings->prefix ? settings->prefix : "");
    client->ca_file = COPY(settings->ca_file);
    client->limits = (struct s3_limits){
        .part_size = OR(asked->part_size, S3_PART_SIZE),
        .copy_max = OR(asked->copy_max, S3_COPY_MAX),
        .connect_ms = OR(asked->connect_ms, S3_CONNECT_MS),
        .stall_ms = OR(asked->stall_ms, S3_STALL_MS),
        .patience_ms = OR(asked->patience_ms, S3_PATIENCE_MS),
        .attempts_max = OR(asked->attempts_max, S3_ATTEMPTS_MAX),
        .backoff_ms = OR(asked->backoff_ms, S3_BACKOFF_MS),
    };
#undef COPY
#undef OR
    client->checks_addresses = !settings->allow_private;
    client->owns_uploads = settings->owns_uploads;
    if (settings->rules)
        client->rules = *settings->rules;
    client->clock = settings->clock ? settings->clock : clock_system();
}

struct s3_client *s3_client_new(const struct s3_settings *settings, struct error *err)
{
    AUTO(s3_client) struct s3_client *client = NULL;

    if (check_settings(settings, err) < 0)
        return NULL;
    client = mem_alloc(sizeof(*client));
    (void) pthread_mutex_init(&client->lock, NULL);
    for (size_t i = 0; i < S3_LOCKS; i++)
        (void) pthread_mutex_init(&client->locks[i], NULL);
    copy_settings(client, settings);
    if (read_endpoint(client, settings, err) < 0)
        return NULL;
    return TAKE_PTR(client);
}

static void wipe(const char *secret)
{
    if (secret)
        explicit_bzero((char *) (uintptr_t) secret, strlen(secret));
}

void s3_client_free(struct s3_client *client)
{
    if (!client)
        return;
    for (size_t i = 0; i < client->idle_count; i++)
        curl_easy_cleanup(client->idle[i]);
    for (size_t i = 0; i < S3_LOCKS; i++)
        (void) pthread_mutex_destroy(&client->locks[i]);
    (void) pthread_mutex_destroy(&client->lock);
    wipe(client->key.secret);
    wipe(client->key.session_token);
    pool_done(&client->pool);
    free(client);
}

CURL *s3_client_take(struct s3_client *client)
{
    CURL *handle = NULL;

    (void) pthread_mutex_lock(&client->lock);
    if (client->idle_count)
        handle = client->idle[--client->idle_count];
    (void) pthread_mutex_unlock(&client->lock);
    if (!handle)
        handle = curl_easy_init();
    if (!handle)
        abort(); /* out of memory */
    return handle;
}

void s3_client_give(struct s3_client *client, CURL *handle)
{
    (void) pthread_mutex_lock(&client->lock);
    if (client->idle_count < S3_IDLE_MAX) {
        client->idle[client->idle_count++] = handle;
        handle = NULL;
    }
    (void) pthread_mutex_unlock(&client->lock);
    if (handle)
        curl_easy_cleanup(handle);
}

int s3_client_key(const struct s3_client *client, struct pool *pool, const char *key,
                  const char **ret_key, struct error *err)
{
    if (strlen(client->prefix) + strlen(key) > OBJECTS_KEY_MAX)
        return error_set(err, ERR_INVALID, 0,
                         "the key is too long: with the prefix of the store at most %d bytes",
                         OBJECTS_KEY_MAX);
    *ret_key = pool_format(pool, "%s%s", client->prefix, key);
    return 0;
}

void s3_client_path(const struct s3_client *client, const char *key, struct text *out)
{
    text_append(out, client->base);
    if (key || !*client->base)
        text_append_char(out, '/');
    if (key)
        url_encode_path(out, key, strlen(key));
}

pthread_mutex_t *s3_client_lock(struct s3_client *client, const char *key)
{
    return &client->locks[table_hash(LOCK_SEED, key, strlen(key)) % S3_LOCKS];
}
