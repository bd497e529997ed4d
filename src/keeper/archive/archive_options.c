#include "keeper/archive/archive_options.h"

#include <string.h>

#include "base/format/ignore_pattern.h"
#include "base/memory.h"
#include "keeper/archive/archive_make.h"
#include "keeper/squash/squash_format.h"
#include "sys/file/sys_file.h"

static const struct json_limits limits = {
    .size = ARCHIVE_OPTIONS_MAX, .depth = 4, .values = ARCHIVE_EXCLUDES_MAX + 32};

static const char *const fields[] = {"folder",    "compression", "level",
                                     "gitignore", "excludes",    "threads"};

static int read_compression(const struct json_place *root, struct archive_options *options,
                            struct error *err)
{
    const char *name = "lz4";

    if (json_field_text(root, "compression", JSON_OPTIONAL, 16, &name, err) < 0)
        return -1;
    options->codec = squash_codec_find(name);
    if (!options->codec)
        return json_refuse_field(root, "compression", "one of lz4, zstd, gzip, xz", err);
    options->level = options->codec->level_default;
    return json_field_integer(root, "level", JSON_OPTIONAL, options->codec->level_min,
                              options->codec->level_max, &options->level, err);
}

static int read_fields(const struct json_place *root, struct archive_options *options,
                       struct error *err)
{
    if (json_known_fields(root, fields, ARRAY_COUNT(fields), err) < 0 ||
        json_field_text(root, "folder", JSON_REQUIRED, SQUASH_PATH_MAX, &options->folder, err) <
            0 ||
        read_compression(root, options, err) < 0 ||
        json_field_boolean(root, "gitignore", JSON_OPTIONAL, &options->gitignore, err) < 0 ||
        json_field_integer(root, "threads", JSON_OPTIONAL, 1, ARCHIVE_THREADS_MAX,
                           &options->threads, err) < 0)
        return -1;
    if (options->folder[0] != '/')
        return json_refuse_field(root, "folder", "an absolute path", err);
    return json_field_texts(root, "excludes", JSON_OPTIONAL, ARCHIVE_EXCLUDES_MAX,
                            IGNORE_PATTERN_MAX, &options->pool, &options->excludes, err);
}

int archive_options_read(int fd, struct archive_options *ret_options, struct error *err)
{
    AUTO(free) char *bytes = mem_alloc(ARCHIVE_OPTIONS_MAX + 1);
    ssize_t got = sys_file_read_full(fd, bytes, ARCHIVE_OPTIONS_MAX + 1);
    struct json_place root;

    *ret_options = (struct archive_options){.threads = ARCHIVE_THREADS_DEFAULT, .pool = POOL_INIT};
    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read the options");
    ret_options->json = json_read(bytes, (size_t) got, &limits, err);
    if (!ret_options->json || json_root_object(ret_options->json, &root, err) < 0 ||
        read_fields(&root, ret_options, err) < 0)
        return error_wrap(err, "options of the archive");
    return 0;
}

void archive_options_done(struct archive_options *options)
{
    json_decref(options->json);
    options->json = NULL;
    pool_done(&options->pool);
}
