#include "keeper/archive/ignore_rules.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/format/ignore_pattern.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/name_escape.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

#define SHOWN_MAX 100 /* of a path in a message */

/* A line of a .gitignore file. */
struct rule {
    struct ignore_pattern pattern;
    bool negated;
    bool folders_only;
    bool is_path; /* for the path from its file's folder; else for a name */
};

/* A folder that we are in. */
struct level {
    size_t first_rule;
    size_t base_length; /* of its path, with a slash at the end */
    bool is_work_tree;
};

struct exclude {
    struct ignore_pattern *names; /* owned */
    size_t count;
};

struct ignore_rules {
    bool gitignore;
    struct exclude *excludes;
    size_t exclude_count, exclude_capacity;
    struct rule *rules; /* of all levels */
    size_t rule_count, rule_capacity;
    struct level *levels;
    size_t level_count, level_capacity;
    size_t memory;
    size_t top_length; /* of the archive's path, with a slash at the end */
};

struct ignore_rules *ignore_rules_new(bool gitignore)
{
    struct ignore_rules *rules = mem_alloc(sizeof(*rules));

    rules->gitignore = gitignore;
    return rules;
}

static void exclude_done(struct exclude *exclude)
{
    for (size_t i = 0; i < exclude->count; i++)
        ignore_pattern_done(&exclude->names[i]);
    free(exclude->names);
}

void ignore_rules_free(struct ignore_rules *rules)
{
    if (!rules)
        return;
    while (rules->level_count)
        ignore_rules_leave(rules);
    for (size_t i = 0; i < rules->exclude_count; i++)
        exclude_done(&rules->excludes[i]);
    free(rules->excludes);
    free(rules->rules);
    free(rules->levels);
    free(rules);
}

/* --- excludes ------------------------------------------------------------------------------- */

static bool is_any_depth(const char *step, size_t length)
{
    return length == 2 && step[0] == '*' && step[1] == '*';
}

static bool is_extended(const char *pattern)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (strchr("?*+@!", *at) && at[1] == '(')
            return true;
    }
    return false;
}

/* NULL, or the reason why it is none. Steps that mean nothing are left out. */
static const char *read_exclude(const char *pattern, struct exclude *exclude)
{
    bool names_all = false;

    if (strlen(pattern) > IGNORE_PATTERN_MAX)
        return "is too long";
    for (const char *at = pattern; *at; at++)
        if (iscntrl((unsigned char) *at))
            return "must not contain control characters";
    if (is_extended(pattern))
        return "must not be an extended pattern like @(a|b)";
    for (const char *step = pattern; *step;) {
        size_t length = strcspn(step, "/");
        bool is_last = !step[length + strspn(step + length, "/")];
        bool is_stars = is_any_depth(step, length);
        struct ignore_pattern name;

        if (length == 0 || (is_stars && !is_last) ||
            (length == 1 && step[0] == '.' && exclude->count == 0 && !is_last)) {
            step += length + (step[length] == '/');
            continue;
        }
        if (ignore_pattern_read(step, is_stars ? 1 : length, IGNORE_SHELL, &name) < 0)
            return "is no pattern";
        names_all = exclude->count == 0 && is_last && step[0] == '*' && (is_stars || length == 1) &&
                    strchr(pattern, '/');
        exclude->names = mem_resize(exclude->names, (exclude->count + 1) * sizeof(*exclude->names));
        exclude->names[exclude->count++] = name;
        step += length + (step[length] == '/');
    }
    if (names_all)
        return "excludes everything";
    return exclude->count ? NULL : "names nothing";
}

int ignore_rules_exclude(struct ignore_rules *rules, const char *pattern, struct error *err)
{
    struct exclude exclude = {.names = NULL};
    const char *reason = read_exclude(pattern, &exclude);

    if (reason) {
        AUTO(text) struct text shown = TEXT_INIT(SHOWN_MAX * NAME_ESCAPE_FACTOR);

        exclude_done(&exclude);
        name_escape(&shown, pattern, strnlen(pattern, SHOWN_MAX));
        return error_set(err, ERR_INVALID, 0, "the exclude '%s' %s", text_string(&shown), reason);
    }
    if (rules->exclude_count == rules->exclude_capacity) {
        rules->exclude_capacity = rules->exclude_capacity ? rules->exclude_capacity * 2 : 16;
        rules->excludes =
            mem_resize(rules->excludes, rules->exclude_capacity * sizeof(*rules->excludes));
    }
    rules->excludes[rules->exclude_count++] = exclude;
    return 0;
}

/* From the last name back. */
static bool exclude_matches(const struct exclude *exclude, const char *path, size_t length)
{
    for (size_t i = exclude->count; i > 0; i--) {
        const char *slash = memrchr(path, '/', length);
        size_t start = slash ? (size_t) (slash - path) + 1 : 0;

        if (!ignore_pattern_matches(&exclude->names[i - 1], path + start, length - start))
            return false;
        if (!slash)
            return i == 1;
        length = start - 1;
    }
    return true;
}

/* --- reading rules of git ------------------------------------------------------------------- */

/* Without spaces at the end, unless a backslash stands before them. */
static size_t trimmed(const char *line, size_t length)
{
    size_t end = 0;

    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\\' && i + 1 < length)
            i++;
        else if (line[i] == ' ')
            continue;
        end = i + 1;
    }
    return end;
}

static void add_line(struct ignore_rules *rules, const char *line, size_t length)
{
    struct rule rule = {.negated = false};
    bool has_slash;

    length = trimmed(line, length);
    if (length && line[0] == '!') {
        rule.negated = true;
        line++;
        length--;
    }
    if (length && line[length - 1] == '/') {
        rule.folders_only = true;
        length--;
    }
    has_slash = length && memchr(line, '/', length);
    rule.is_path = has_slash;
    if (has_slash && line[0] == '/') {
        line++;
        length--;
    }
    if (ignore_pattern_read(line, length, rule.is_path ? IGNORE_GIT_PATH : IGNORE_GIT_NAME,
                            &rule.pattern) < 0)
        return; /* it matches nothing, as in git */
    if (rules->rule_count == rules->rule_capacity) {
        rules->rule_capacity = rules->rule_capacity ? rules->rule_capacity * 2 : 32;
        rules->rules = mem_resize(rules->rules, rules->rule_capacity * sizeof(*rules->rules));
    }
    rules->memory += ignore_pattern_size(&rule.pattern);
    rules->rules[rules->rule_count++] = rule;
}

static void add_lines(struct ignore_rules *rules, const char *bytes, size_t length)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as some editors write it */
    size_t at = length >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;

    while (at < length && rules->memory <= IGNORE_MEMORY_MAX) {
        const char *line = bytes + at;
        const char *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t) (end - line) : length - at;

        at += size + 1;
        size = strnlen(line, size); /* git stops at a NUL */
        if (end && size && line[size - 1] == '\r')
            size--;
        if (size && line[0] != '#')
            add_line(rules, line, size);
    }
}

/* What may be missing, or be something else: then it is no file of rules. */
static int open_rules(int folder, const char *name)
{
    int fd = sys_open_beneath(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

    return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -ENXIO || fd == -EXDEV ? -ENOENT
                                                                                           : fd;
}

static int read_rules(struct ignore_rules *rules, int folder, const char *name)
{
    AUTO(close) int fd = open_rules(folder, name);
    AUTO(free) char *bytes = NULL;
    struct stat status;
    ssize_t got;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return 0;
    if ((uint64_t) status.st_size > IGNORE_FILE_MAX)
        return -EFBIG;
    bytes = mem_alloc((size_t) status.st_size + 1);
    got = sys_file_read_full(fd, bytes, (size_t) status.st_size);
    if (got < 0)
        return (int) got;
    add_lines(rules, bytes, (size_t) got);
    return rules->memory > IGNORE_MEMORY_MAX ? -EFBIG : 0;
}

bool ignore_rules_is_work_tree(int folder)
{
    struct stat status;

    return fstatat(folder, ".git", &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int rules_error(const char *path, const char *name, int system, struct error *err)
{
    AUTO(text) struct text shown = TEXT_INIT(SHOWN_MAX * NAME_ESCAPE_FACTOR);
    size_t length = strlen(path), hidden = length > SHOWN_MAX ? length - SHOWN_MAX : 0;

    name_escape(&shown, path + hidden, length - hidden);
    return error_set(err, error_code_from_errno(system), system, "read '%s%s%s%s'",
                     hidden ? "..." : "", text_string(&shown), length ? "/" : "", name);
}

int ignore_rules_enter(struct ignore_rules *rules, int folder, const char *path, struct error *err)
{
    static const char *const files[] = {".git/info/exclude", ".gitignore"}; /* the last counts */
    size_t length = strlen(path);
    bool is_work_tree = rules->gitignore && ignore_rules_is_work_tree(folder);

    if (rules->level_count == rules->level_capacity) {
        rules->level_capacity = rules->level_capacity ? rules->level_capacity * 2 : 64;
        rules->levels = mem_resize(rules->levels, rules->level_capacity * sizeof(*rules->levels));
    }
    rules->levels[rules->level_count++] =
        (struct level){rules->rule_count, length ? length + 1 : 0, is_work_tree};
    for (size_t i = is_work_tree ? 0 : 1; rules->gitignore && i < ARRAY_COUNT(files); i++) {
        int result = read_rules(rules, folder, files[i]);

        if (result < 0)
            return rules_error(path, files[i], result, err);
    }
    return 0;
}

void ignore_rules_leave(struct ignore_rules *rules)
{
    const struct level *level = &rules->levels[--rules->level_count];

    while (rules->rule_count > level->first_rule) {
        struct rule *rule = &rules->rules[--rules->rule_count];

        rules->memory -= ignore_pattern_size(&rule->pattern);
        ignore_pattern_done(&rule->pattern);
    }
}

void ignore_rules_begin(struct ignore_rules *rules)
{
    rules->top_length = rules->levels[rules->level_count - 1].base_length;
}

/* --- asking --------------------------------------------------------------------------------- */

static bool is_inside_git(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, ".git", 4) == 0 && (!at[4] || at[4] == '/'))
            return true;
    }
    return false;
}

static bool rule_matches(const struct rule *rule, const char *path, size_t length, bool is_folder)
{
    const char *slash = memrchr(path, '/', length);
    size_t start = rule->is_path || !slash ? 0 : (size_t) (slash - path) + 1;

    if (rule->folders_only && !is_folder)
        return false;
    return ignore_pattern_matches(&rule->pattern, path + start, length - start);
}

static bool git_ignores(const struct ignore_rules *rules, const char *path, size_t length,
                        bool is_folder)
{
    size_t end = rules->rule_count;

    for (size_t i = rules->level_count; i > 0; i--) {
        const struct level *level = &rules->levels[i - 1];

        for (; end > level->first_rule; end--) {
            const struct rule *rule = &rules->rules[end - 1];

            if (rule_matches(rule, path + level->base_length, length - level->base_length,
                             is_folder))
                return !rule->negated;
        }
        if (level->is_work_tree)
            return false;
    }
    return false;
}

bool ignore_rules_match(const struct ignore_rules *rules, const char *path, bool is_folder)
{
    size_t length = strlen(path);

    for (size_t i = 0; i < rules->exclude_count; i++)
        if (exclude_matches(&rules->excludes[i], path + rules->top_length,
                            length - rules->top_length))
            return true;
    if (rules->rule_count == 0 || is_inside_git(path))
        return false;
    return git_ignores(rules, path, length, is_folder);
}
