/* Mounts in memory and as rows. */
#include "domain/bucket/bucket_mount.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "domain/bucket/bucket_mount_internal.h"
#include "domain/domain_modules.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define OPTIONS_MAX    ((size_t) 16 * 1024)
#define EVENT_DATA_MAX STORE_EVENT_DATA_MAX

static const char *const state_texts[] = {
    [BUCKET_MOUNT_AWAY] = "away",
    [BUCKET_MOUNT_OPENING] = "opening",
    [BUCKET_MOUNT_THERE] = "there",
    [BUCKET_MOUNT_FAILED] = "failed",
};

const char *bucket_mount_state_text(enum bucket_mount_state state)
{
    return state_texts[state];
}

/* --- rules ----------------------------------------------------------------------------------- */

static int bucket_mount_check_place(const char *place, struct error *err)
{
    static const char *const taken[] = {"/proc", "/dev", "/sys",   "/usr", "/bin",
                                        "/sbin", "/lib", "/lib64", "/etc"};

    if (strlen(place) > BUCKET_PLACE_MAX || place[0] != '/' || !path_is_relative(place + 1))
        return error_set(err, ERR_INVALID, 0,
                         "the mount path must be absolute, not /, without '.', '..' and '//', and "
                         "at most %d bytes",
                         BUCKET_PLACE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(taken); i++)
        if (path_is_inside(place, taken[i]))
            return error_set(err, ERR_INVALID, 0, "nothing can be mounted in %s", taken[i]);
    return 0;
}

static int bucket_mount_check_text(const char *what, const char *text, size_t max,
                                   struct error *err)
{
    if (!text)
        return 0;
    if (strlen(text) > max || !utf8_is_valid(text, strlen(text)))
        return error_set(err, ERR_INVALID, 0, "%s must be at most %zu bytes of UTF-8", what, max);
    for (const char *at = text; *at; at++)
        if ((unsigned char) *at < 0x20 || *at == 0x7f)
            return error_set(err, ERR_INVALID, 0, "%s must have no control characters", what);
    return 0;
}

/* Keys are not paths, but who stands before a store may take them for some: a prefix that steps
 * back must not lead into what belongs to others. */
static int check_prefix(const char *prefix, struct error *err)
{
    if (bucket_mount_check_text("prefix", prefix, BUCKET_PREFIX_MAX, err) < 0)
        return -1;
    for (const char *at = prefix; at && *at; at += strcspn(at, "/"), at += strspn(at, "/")) {
        size_t length = strcspn(at, "/");

        if ((length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.'))
            return error_set(err, ERR_INVALID, 0, "prefix must have no '.' and '..' in it");
    }
    return 0;
}

/* [A-Za-z0-9][A-Za-z0-9._-]*: also safe as a part of our own keys. */
static bool is_bucket_name(const char *name)
{
    size_t length = strlen(name);

    return length && length <= BUCKET_NAME_MAX && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               length;
}

int bucket_mount_check(const struct bucket_mount_spec *spec, struct error *err)
{
    const struct mounter_bucket *bucket = &spec->bucket;

    if (bucket_mount_check_place(spec->place, err) < 0)
        return -1;
    if (!bucket->bucket || !is_bucket_name(bucket->bucket))
        return error_set(err, ERR_INVALID, 0,
                         "a bucket's name is 1 to %d letters, digits, '.', '_' and '-'",
                         BUCKET_NAME_MAX);
    if (check_prefix(bucket->prefix, err) < 0 ||
        bucket_mount_check_text("endpoint", bucket->endpoint, BUCKET_TEXT_MAX, err) < 0 ||
        bucket_mount_check_text("region", bucket->region, BUCKET_TEXT_MAX, err) < 0 ||
        bucket_mount_check_text("access key", bucket->access_key, BUCKET_TEXT_MAX, err) < 0 ||
        bucket_mount_check_text("secret key", bucket->secret_key, BUCKET_TEXT_MAX, err) < 0 ||
        bucket_mount_check_text("session token", bucket->session_token, 4 * BUCKET_TEXT_MAX, err) <
            0)
        return -1;
    if (bucket->is_foreign && !bucket->endpoint)
        return error_set(err, ERR_INVALID, 0, "a bucket of somebody else needs an endpoint");
    return 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

static char *bucket_mount_copy(const char *text)
{
    return text ? mem_copy_text(text) : NULL;
}

/* "/a/b" -> "a/b/"; "" and "/" -> "". */
static char *plain_prefix(const char *prefix)
{
    AUTO(text) struct text plain = TEXT_INIT(BUCKET_PREFIX_MAX + 2);

    while (prefix && *prefix == '/')
        prefix++;
    if (prefix && *prefix) {
        text_append(&plain, prefix);
        if (prefix[strlen(prefix) - 1] != '/')
            text_append_char(&plain, '/');
    }
    return mem_copy_text(text_string(&plain));
}

struct bucket_mount *bucket_mount_new(struct domain *domain, const struct sandbox *sandbox,
                                      const struct bucket_mount_spec *spec)
{
    struct bucket_mount *mount = mem_alloc(sizeof(*mount));
    const struct mounter_bucket *bucket = &spec->bucket;

    *mount = (struct bucket_mount){
        .sandbox = sandbox->id,
        .place = bucket_mount_copy(spec->place),
        .created_ms = domain_wall_ms(domain),
        .bucket = {.is_foreign = bucket->is_foreign,
                   .owner = sandbox->owner,
                   .bucket = bucket_mount_copy(bucket->bucket),
                   .prefix = plain_prefix(bucket->prefix),
                   .read_only = bucket->read_only,
                   .endpoint = bucket_mount_copy(bucket->endpoint),
                   .region = bucket_mount_copy(bucket->region),
                   .is_virtual_host = bucket->is_virtual_host,
                   .access_key = bucket_mount_copy(bucket->access_key),
                   .secret_key = bucket_mount_copy(bucket->secret_key),
                   .session_token = bucket_mount_copy(bucket->session_token)},
    };
    list_append(&domain->bucket_mounts->all, &mount->link);
    return mount;
}

static void free_secret(const char *secret)
{
    if (secret)
        explicit_bzero((char *) secret, strlen(secret));
    free((char *) secret);
}

void bucket_mount_free(struct bucket_mount *mount)
{
    list_remove(&mount->link);
    free(mount->place);
    free((char *) mount->bucket.bucket);
    free((char *) mount->bucket.prefix);
    free((char *) mount->bucket.endpoint);
    free((char *) mount->bucket.region);
    free((char *) mount->bucket.access_key);
    free_secret(mount->bucket.secret_key);
    free_secret(mount->bucket.session_token);
    free(mount);
}

struct bucket_mount *bucket_mount_find(const struct domain *domain, const struct id *sandbox,
                                       const char *place)
{
    LIST_EACH (&domain->bucket_mounts->all, at) {
        struct bucket_mount *mount = CONTAINER_OF(at, struct bucket_mount, link);

        if (!mount->is_removed && id_equal(&mount->sandbox, sandbox) &&
            strcmp(mount->place, place) == 0)
            return mount;
    }
    return NULL;
}

void bucket_mount_each(const struct domain *domain, const struct id *sandbox,
                       void (*each)(void *context, const struct bucket_mount *mount), void *context)
{
    LIST_EACH (&domain->bucket_mounts->all, at) {
        const struct bucket_mount *mount = CONTAINER_OF(at, struct bucket_mount, link);

        if (mount->is_kept && !mount->is_removed && id_equal(&mount->sandbox, sandbox))
            each(context, mount);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

static void bucket_mount_write_options(const struct mounter_bucket *bucket, struct text *options)
{
    struct json_writer json;

    json_document_begin(&json, options);
    json_add_text(&json, "endpoint", bucket->endpoint);
    json_add_text(&json, "region", bucket->region);
    json_add_boolean(&json, "virtualHost", bucket->is_virtual_host);
    json_add_text(&json, "accessKey", bucket->access_key);
    (void) json_document_end(&json); /* every part is bounded */
}

static void write_secret(const struct mounter_bucket *bucket, struct text *secret)
{
    struct json_writer json;

    json_document_begin(&json, secret);
    json_add_text(&json, "secretKey", bucket->secret_key);
    json_add_text(&json, "sessionToken", bucket->session_token);
    (void) json_document_end(&json);
}

void bucket_mount_add_row(struct store_transaction *change, const struct bucket_mount *mount)
{
    AUTO(text) struct text options = TEXT_INIT(OPTIONS_MAX), secret = TEXT_INIT(OPTIONS_MAX);
    const struct mounter_bucket *bucket = &mount->bucket;
    struct store_value values[STORE_MOUNT_COLUMN_COUNT];

    bucket_mount_write_options(bucket, &options);
    if (bucket->secret_key)
        write_secret(bucket, &secret);
    values[STORE_MOUNT_SANDBOX] = store_text(mount->sandbox.text);
    values[STORE_MOUNT_PLACE] = store_text(mount->place);
    values[STORE_MOUNT_OWNER] = store_text(bucket->owner.text);
    values[STORE_MOUNT_KIND] = store_text(bucket->is_foreign ? "s3" : "bucket");
    values[STORE_MOUNT_BUCKET] = store_text(bucket->bucket);
    values[STORE_MOUNT_PREFIX] = store_text(bucket->prefix);
    values[STORE_MOUNT_READ_ONLY] = store_integer(bucket->read_only);
    values[STORE_MOUNT_OPTIONS] = store_text(text_string(&options));
    values[STORE_MOUNT_SECRET] =
        bucket->secret_key ? store_bytes(text_string(&secret), secret.length) : store_null();
    values[STORE_MOUNT_CREATED] = store_integer(mount->created_ms);
    store_put(change, STORE_MOUNT, values);
    if (bucket->secret_key)
        explicit_bzero(secret.data, secret.length);
}

void bucket_mount_delete_row(struct store_transaction *change, const struct bucket_mount *mount)
{
    const struct store_condition conditions[] = {
        {.column = STORE_MOUNT_SANDBOX,
         .comparison = STORE_EQUAL,
         .value = store_text(mount->sandbox.text)},
        {.column = STORE_MOUNT_PLACE, .comparison = STORE_EQUAL, .value = store_text(mount->place)},
    };

    store_delete(change, STORE_MOUNT, conditions, ARRAY_COUNT(conditions));
}

void bucket_mount_add_event(struct domain *domain, struct store_transaction *change,
                            const struct caller *caller, const struct bucket_mount *mount,
                            const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    json_document_begin(&json, &data);
    json_add_text(&json, "sandboxId", mount->sandbox.text);
    json_add_text(&json, "path", mount->place);
    json_add_text(&json, "bucket", mount->bucket.bucket);
    json_add_text(&json, "prefix", mount->bucket.prefix);
    if (mount->state == BUCKET_MOUNT_FAILED)
        json_add_text(&json, "error", mount->failure.message);
    if (json_document_end(&json) == 0)
        event_add(domain, change, caller, &mount->bucket.owner, mount->sandbox.text, type,
                  text_string(&data));
}

static int read_secret(const struct store_value *value, struct mounter_bucket *bucket,
                       struct error *err)
{
    AUTO(json) json_t *secret = NULL;
    const char *key = NULL, *token = NULL;
    struct json_place root;

    if (value->is_null)
        return 0;
    secret = json_read(value->bytes, value->length, NULL, err);
    if (!secret || json_root_object(secret, &root, err) < 0 ||
        json_field_text(&root, "secretKey", JSON_OPTIONAL, OPTIONS_MAX, &key, err) < 0 ||
        json_field_text(&root, "sessionToken", JSON_OPTIONAL, OPTIONS_MAX, &token, err) < 0)
        return -1;
    bucket->secret_key = bucket_mount_copy(key);
    bucket->session_token = bucket_mount_copy(token);
    return 0;
}

static int bucket_mount_load_one(struct domain *domain, const struct store_value *row,
                                 struct error *err)
{
    struct sandbox sandbox = {.id = domain_row_id(&row[STORE_MOUNT_SANDBOX]),
                              .owner = domain_row_id(&row[STORE_MOUNT_OWNER])};
    struct bucket_mount_spec spec = {
        .place = row[STORE_MOUNT_PLACE].bytes,
        .bucket = {.is_foreign = strcmp(row[STORE_MOUNT_KIND].bytes, "s3") == 0,
                   .bucket = row[STORE_MOUNT_BUCKET].bytes,
                   .prefix = row[STORE_MOUNT_PREFIX].bytes,
                   .read_only = row[STORE_MOUNT_READ_ONLY].integer != 0},
    };
    AUTO(json)
    json_t *options =
        json_read(row[STORE_MOUNT_OPTIONS].bytes, row[STORE_MOUNT_OPTIONS].length, NULL, err);
    struct bucket_mount *mount;
    struct json_place root;

    if (!options || json_root_object(options, &root, err) < 0 ||
        json_field_text(&root, "endpoint", JSON_OPTIONAL, OPTIONS_MAX, &spec.bucket.endpoint, err) <
            0 ||
        json_field_text(&root, "region", JSON_OPTIONAL, OPTIONS_MAX, &spec.bucket.region, err) <
            0 ||
        json_field_boolean(&root, "virtualHost", JSON_OPTIONAL, &spec.bucket.is_virtual_host, err) <
            0 ||
        json_field_text(&root, "accessKey", JSON_OPTIONAL, OPTIONS_MAX, &spec.bucket.access_key,
                        err) < 0)
        return -1;
    mount = bucket_mount_new(domain, &sandbox, &spec);
    mount->created_ms = row[STORE_MOUNT_CREATED].integer;
    mount->is_kept = true;
    return read_secret(&row[STORE_MOUNT_SECRET], &mount->bucket, err);
}

/* --- the module ------------------------------------------------------------------------------ */

static void bucket_mount_begin(struct domain *domain)
{
    domain->bucket_mounts = mem_alloc(sizeof(*domain->bucket_mounts));
    list_init(&domain->bucket_mounts->all);
}

static void bucket_mount_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_MOUNT, STORE_MOUNT_SANDBOX, bucket_mount_load_one, done, context);
}

/* Sandboxes went on while there was no daemon, without what it served. */
static void bucket_mount_tick(struct domain *domain)
{
    if (domain->bucket_mounts->is_recovered)
        return;
    domain->bucket_mounts->is_recovered = true;
    LIST_EACH (&domain->sandboxes->all, at) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (sandbox->status == SANDBOX_RUNNING)
            bucket_mounts_restore(domain, sandbox, false, NULL, NULL);
    }
}

static void destroying(struct domain *domain, struct store_transaction *change,
                       const struct sandbox *sandbox)
{
    const struct store_condition condition = {.column = STORE_MOUNT_SANDBOX,
                                              .comparison = STORE_EQUAL,
                                              .value = store_text(sandbox->id.text)};

    (void) domain;
    store_delete(change, STORE_MOUNT, &condition, 1);
}

static void bucket_mount_destroyed(struct domain *domain, const struct id *sandbox)
{
    LIST_EACH (&domain->bucket_mounts->all, at) {
        struct bucket_mount *mount = CONTAINER_OF(at, struct bucket_mount, link);

        if (mount->is_removed || !id_equal(&mount->sandbox, sandbox))
            continue;
        if (mount->state == BUCKET_MOUNT_OPENING) {
            mount->is_removed = true; /* freed by who brings it */
            continue;
        }
        bucket_mount_take_down(domain, mount, true, NULL, NULL);
        bucket_mount_free(mount);
    }
}

static void bucket_mount_end(struct domain *domain)
{
    LIST_EACH (&domain->bucket_mounts->all, at)
        bucket_mount_free(CONTAINER_OF(at, struct bucket_mount, link));
    free(domain->bucket_mounts);
}

/* --- users who are deleted ------------------------------------------------------------------- */

struct bucket_leaving {
    struct domain *domain;
    struct id owner;
};

static void bucket_leaving_gone(void *context, const struct error *failure)
{
    AUTO(free) struct bucket_leaving *leaving = context;
    struct domain *domain = leaving->domain;

    if (failure)
        LOG_WARNING(domain->options.log,
                    "buckets of a deleted user are still there: `burrow gc` takes them away",
                    log_text("owner", leaving->owner.text), log_text("error", failure->message));
    domain->works--;
    domain_check_gone(domain);
}

static void bucket_mount_owner_deleted(struct domain *domain, const struct id *owner)
{
    const struct mounter *mounter = domain->options.mounter;
    struct bucket_leaving *leaving;

    if (!mounter || !mounter->remove_buckets)
        return;
    leaving = mem_alloc(sizeof(*leaving));
    *leaving = (struct bucket_leaving){.domain = domain, .owner = *owner};
    domain->works++;
    mounter->remove_buckets(mounter->self, owner, bucket_leaving_gone, leaving);
}

const struct domain_module domain_bucket_mounts = {
    .name = "mounts",
    .begin = bucket_mount_begin,
    .load = bucket_mount_load,
    .destroying = destroying,
    .tick = bucket_mount_tick,
    .destroyed = bucket_mount_destroyed,
    .running = bucket_mounts_restore,
    .ending = bucket_mounts_release,
    .owner_deleted = bucket_mount_owner_deleted,
    .end = bucket_mount_end,
};
