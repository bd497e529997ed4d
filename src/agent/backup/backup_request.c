#include "agent/backup/backup_request.h"

#include "agent/backup/backup_rules.h"
#include "json/json_write.h"

/* Longer than any path may be, so that the rules, not the reader, say what is too long. */
#define TEXT_MAX ((size_t) 64 * 1024)

#define COMPRESSION_DEFAULT "lz4"
#define THREADS_DEFAULT     8

int backup_request_refuse(struct api_error *error, const char *field, const char *reason)
{
    struct json_writer json;

    json_document_begin(&json, &error->context);
    json_add_text(&json, "field", field);
    json_add_text(&json, "reason", reason);
    (void) json_document_end(&json); /* the texts are short */
    error->suggestion = "Check the paths and options of the backup";
    return api_error_set(error, API_INVALID_BACKUP_CONFIG, "Invalid backup configuration: %s %s",
                         field, reason);
}

static int refuse_rule(struct api_error *error, const char *field, const char *reason)
{
    return reason ? backup_request_refuse(error, field, reason) : 0;
}

static int read_compression(const struct json_place *root, struct backup_request *request,
                            struct error *err)
{
    struct json_place object;

    if (json_field_object(root, "compression", JSON_OPTIONAL, &object, err) < 0)
        return -1;
    if (!object.value)
        return 0;
    if (json_field_text(&object, "format", JSON_OPTIONAL, TEXT_MAX, &request->compression, err) < 0)
        return -1;
    return json_field_integer(&object, "threads", JSON_OPTIONAL, 1, BACKUP_THREADS_MAX,
                              &request->threads, err);
}

static int read_fields(const struct json_place *root, struct pool *pool,
                       struct backup_request *request, const char **ret_field, struct error *err)
{
    *ret_field = "dir";
    if (json_field_text(root, *ret_field, JSON_REQUIRED, TEXT_MAX, &request->folder, err) < 0)
        return -1;
    *ret_field = "archivePath";
    if (json_field_text(root, *ret_field, JSON_REQUIRED, TEXT_MAX, &request->archive, err) < 0)
        return -1;
    *ret_field = "gitignore";
    if (json_field_boolean(root, *ret_field, JSON_OPTIONAL, &request->gitignore, err) < 0)
        return -1;
    *ret_field = "excludes";
    if (json_field_texts(root, *ret_field, JSON_OPTIONAL, BACKUP_EXCLUDES_MAX, TEXT_MAX, pool,
                         &request->excludes, err) < 0)
        return -1;
    *ret_field = "compression";
    return read_compression(root, request, err);
}

static int check_rules(const struct backup_request *request, struct api_error *error)
{
    if (refuse_rule(error, "dir", backup_rules_folder(request->folder)) < 0 ||
        refuse_rule(error, "archivePath", backup_rules_archive(request->archive)) < 0 ||
        refuse_rule(error, "compression.format", backup_rules_compression(request->compression)) <
            0)
        return -1;
    for (size_t i = 0; i < request->excludes.count; i++) {
        if (refuse_rule(error, "excludes", backup_rules_exclude(request->excludes.items[i])) < 0)
            return -1;
    }
    return 0;
}

/* The client may leave, and its arguments with it, while the job is still at work. */
static void keep_texts(struct backup_request *request, struct pool *pool)
{
    request->folder = pool_copy_text(pool, request->folder);
    request->archive = pool_copy_text(pool, request->archive);
    request->compression = pool_copy_text(pool, request->compression);
    for (size_t i = 0; i < request->excludes.count; i++)
        request->excludes.items[i] = pool_copy_text(pool, request->excludes.items[i]);
}

int backup_request_read(json_t *arguments, struct pool *pool, struct backup_request *ret_request,
                        struct api_error *error)
{
    struct backup_request request = {.compression = COMPRESSION_DEFAULT,
                                     .threads = THREADS_DEFAULT};
    struct error err = ERROR_INIT;
    const char *field = "dir";
    struct json_place root;

    if (json_root_object(arguments, &root, &err) < 0 ||
        read_fields(&root, pool, &request, &field, &err) < 0)
        return api_error_field(error, field, err.message);
    if (check_rules(&request, error) < 0)
        return -1;
    keep_texts(&request, pool);
    *ret_request = request;
    return 0;
}
