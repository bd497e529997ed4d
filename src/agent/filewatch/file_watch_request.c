#include "agent/filewatch/file_watch_request.h"

#include <limits.h>
#include <string.h>

#include "agent/file/file_error.h"
#include "agent/filewatch/file_watch_place.h"
#include "base/memory.h"
#include "base/path.h"
#include "json/json_read.h"

#define SINCE_MAX ((size_t) 128)

static const char *const change_names[] = {
    [WATCH_CREATE] = "create",       [WATCH_MODIFY] = "modify",   [WATCH_DELETE] = "delete",
    [WATCH_MOVE_FROM] = "move_from", [WATCH_MOVE_TO] = "move_to", [WATCH_ATTRIB] = "attrib",
};

#define CHANGES_DEFAULT ((1U << WATCH_CHANGE_COUNT) - 1 - (1U << WATCH_ATTRIB))

/* What nobody wants to hear of who does not say what to exclude. */
static const char *const excluded_by_default[] = {".DS_Store", ".git", "node_modules"};

const char *watch_change_text(enum watch_change change)
{
    return change_names[change];
}

/* --- reading --------------------------------------------------------------------------------- */

static int watch_request_fail(struct call *call, const char *field, const char *message)
{
    call_fail_field(call, field, message);
    return -1;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static int set_patterns(struct call *call, struct watch_request *request, const char *field,
                        const struct json_texts *texts)
{
    size_t size = 0;

    for (size_t i = 0; i < texts->count; i++) {
        AUTO(ignore_pattern) struct ignore_pattern pattern = {.tokens = NULL};
        size_t length = strlen(texts->items[i]);

        size += length;
        if (size > WATCH_PATTERNS_SIZE_MAX)
            return watch_request_fail(call, field,
                                      "is too long: all patterns together have at most 4096 bytes");
        if (ignore_pattern_read(texts->items[i], length, IGNORE_WATCH, &pattern) < 0)
            return watch_request_fail(
                call, field,
                "contains unsupported glob syntax. Supported tokens: *, **, ? and path "
                "separators");
    }
    qsort(texts->items, texts->count, sizeof(*texts->items), compare_texts);
    request->patterns = texts->items;
    request->pattern_count = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (i == 0 || strcmp(texts->items[i], texts->items[i - 1]) != 0)
            texts->items[request->pattern_count++] = texts->items[i];
    }
    return 0;
}

static int read_texts(struct call *call, const struct json_place *root, const char *field,
                      struct json_texts *ret_texts)
{
    struct error err = ERROR_INIT;

    *ret_texts = (struct json_texts){.count = 0};
    if (json_field_texts(root, field, JSON_OPTIONAL, WATCH_PATTERNS_MAX, IGNORE_WATCH_MAX,
                         call->pool, ret_texts, &err) < 0)
        return watch_request_fail(call, field, err.message);
    return 0;
}

static int read_patterns(struct call *call, const struct json_place *root,
                         struct watch_request *request)
{
    struct json_texts include, exclude;

    if (read_texts(call, root, "include", &include) < 0 ||
        read_texts(call, root, "exclude", &exclude) < 0)
        return -1;
    if (include.count && exclude.count)
        return watch_request_fail(
            call, "include",
            "include and exclude cannot be used together. Use include to whitelist "
            "patterns, or exclude to blacklist patterns.");
    if (!include.count && !exclude.count) {
        request->patterns = excluded_by_default;
        request->pattern_count = ARRAY_COUNT(excluded_by_default);
        return 0;
    }
    request->includes = include.count > 0;
    return set_patterns(call, request, include.count ? "include" : "exclude",
                        include.count ? &include : &exclude);
}

static int read_changes(struct call *call, const struct json_place *root,
                        struct watch_request *request)
{
    struct json_texts texts;

    if (read_texts(call, root, "events", &texts) < 0)
        return -1;
    for (size_t i = 0; i < texts.count; i++) {
        size_t change = 0;

        while (change < WATCH_CHANGE_COUNT && strcmp(texts.items[i], change_names[change]) != 0)
            change++;
        if (change == WATCH_CHANGE_COUNT)
            return watch_request_fail(
                call, "events", "knows create, modify, delete, move_from, move_to and attrib");
        request->changes |= 1U << change;
    }
    if (!texts.count)
        request->changes = CHANGES_DEFAULT;
    return 0;
}

static int read_path(struct call *call, const struct json_place *arguments, const char *root,
                     struct watch_request *request)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct error err = ERROR_INIT;
    const char *path;

    if (json_field_text(arguments, "path", JSON_REQUIRED, PATH_MAX - 1, &path, &err) < 0)
        return watch_request_fail(call, "path", err.message);
    if (!path[strspn(path, " \t\r\n")])
        return watch_request_fail(call, "path", "is required and must be a non-empty string");
    request->path = path_resolve(call->pool, root, path);
    if (path_is_inside(request->path, root))
        return 0;
    file_error_context(&error, call->operation->name, path);
    api_error_fill(&error, API_PERMISSION_DENIED, "path must be inside %s", root);
    call_fail(call, &error);
    return -1;
}

static const char *make_key(const struct watch_request *request, struct pool *pool)
{
    AUTO(text)
    struct text key = TEXT_INIT(WATCH_PATTERNS_MAX * (IGNORE_WATCH_MAX + 1) + 2 * PATH_MAX);

    text_format(&key, "%d %d %u %s", request->recursive, request->includes, request->changes,
                request->path);
    for (size_t i = 0; i < request->pattern_count; i++)
        text_format(&key, "\n%s", request->patterns[i]);
    return pool_copy_bytes(pool, text_string(&key), key.length);
}

int watch_request_read(struct call *call, const char *root, struct watch_request *ret_request)
{
    struct watch_request request = {.recursive = true};
    struct error err = ERROR_INIT;
    struct json_place arguments;

    if (json_root_object(call->arguments, &arguments, &err) < 0)
        return watch_request_fail(call, "body", err.message);
    if (json_field_boolean(&arguments, "recursive", JSON_OPTIONAL, &request.recursive, &err) < 0)
        return watch_request_fail(call, "recursive", err.message);
    if (json_field_text(&arguments, "since", JSON_OPTIONAL, SINCE_MAX, &request.since, &err) < 0)
        return watch_request_fail(call, "since", err.message);
    if (read_path(call, &arguments, root, &request) < 0 ||
        read_patterns(call, &arguments, &request) < 0 ||
        read_changes(call, &arguments, &request) < 0)
        return -1;
    request.key = make_key(&request, call->pool);
    *ret_request = request;
    return 0;
}

/* --- filters --------------------------------------------------------------------------------- */

void watch_filter_init(struct watch_filter *filter, const struct watch_request *request)
{
    *filter = (struct watch_filter){.includes = request->includes, .changes = request->changes};
    filter->patterns = mem_alloc_array(request->pattern_count + 1, sizeof(*filter->patterns));
    for (size_t i = 0; i < request->pattern_count; i++) {
        const char *pattern = request->patterns[i];

        /* They were read before, so that they can be read. */
        if (ignore_pattern_read(pattern, strlen(pattern), IGNORE_WATCH,
                                &filter->patterns[filter->count]) == 0)
            filter->count++;
    }
}

void watch_filter_done(struct watch_filter *filter)
{
    for (size_t i = 0; i < filter->count; i++)
        ignore_pattern_done(&filter->patterns[i]);
    free(filter->patterns);
}

bool watch_filter_passes(const struct watch_filter *filter, const char *relative,
                         const char *absolute)
{
    for (size_t i = 0; i < filter->count; i++) {
        if (ignore_pattern_finds(&filter->patterns[i], relative, absolute))
            return filter->includes;
    }
    return !filter->includes;
}
