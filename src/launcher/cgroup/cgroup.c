#include "launcher/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "launcher/cgroup/cgroup_weight.h"
#include "sys/file/sys_file.h"

static const enum cgroup_part parts[] = {CGROUP_WHOLE, CGROUP_AGENT, CGROUP_WORK};

/* Whether the part has a directory of its own here. */
static bool has_group(const struct cgroup_hierarchy *hierarchy, enum cgroup_part part)
{
    return part == CGROUP_WHOLE || hierarchy->leaves & CGROUP_BIT(part);
}

/* Leaves first. Goes on after an error, so that as much as possible goes away. */
static int remove_in(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup)
{
    int result = 0;

    for (size_t i = ARRAY_COUNT(parts); i > 0; i--) {
        char path[CGROUP_FILE_PATH_SIZE];

        if (!has_group(hierarchy, parts[i - 1]))
            continue;
        cgroup_path(hierarchy, cgroup, parts[i - 1], "", path);
        if (unlinkat(hierarchy->base, path, AT_REMOVEDIR) < 0 && errno != ENOENT && result == 0)
            result = -errno;
    }
    return result;
}

/* Controllers reach `agent` and `work` only when their parent passes them on (v2). */
static int pass_on(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup)
{
    static const struct {
        enum cgroup_controller controller;
        const char *word;
    } words[] = {
        {CGROUP_CPU, "+cpu"},
        {CGROUP_MEMORY, " +memory"},
        {CGROUP_PIDS, " +pids"},
        {CGROUP_IO, " +io"},
    };
    char text[48] = "";
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (!(hierarchy->controllers & CGROUP_BIT(words[i].controller)))
            continue;
        used += (size_t) snprintf(text + used, sizeof(text) - used, "%s", words[i].word);
    }
    if (hierarchy->version != CGROUP_V2 || !used)
        return 0;
    return cgroup_write(hierarchy, cgroup, CGROUP_WHOLE, "cgroup.subtree_control", text);
}

static int make_groups(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup)
{
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        char path[CGROUP_FILE_PATH_SIZE];
        int result = 0;

        if (!has_group(hierarchy, parts[i]))
            continue;
        cgroup_path(hierarchy, cgroup, parts[i], "", path);
        if (mkdirat(hierarchy->base, path, 0755) < 0)
            return -errno;
        if (parts[i] == CGROUP_WHOLE)
            result = pass_on(hierarchy, cgroup);
        if (result < 0)
            return result;
    }
    return 0;
}

/* The hierarchies from `first` on. `*ret_made`: those up to this one are ours to remove. */
static int make_from(const struct cgroup *cgroup, size_t first, size_t end, size_t *ret_made,
                     struct error *err)
{
    const struct cgroup_host *host = cgroup->host;

    for (*ret_made = first; *ret_made < end; ++*ret_made) {
        const struct cgroup_hierarchy *hierarchy = &host->hierarchies[*ret_made];
        int result = make_groups(hierarchy, cgroup);

        if (result == 0)
            continue;
        /* Of a sandbox that exists nothing must be taken away: then this one is not ours. */
        if (result != -EEXIST)
            ++*ret_made;
        return error_set(err, cgroup_error_code(result), result, "make groups for %s in %s",
                         cgroup->id.text, hierarchy->path);
    }
    return 0;
}

static void remove_made(const struct cgroup *cgroup, size_t made)
{
    /* What made this necessary is the error to tell. */
    for (size_t i = 0; i < made; i++)
        (void) remove_in(&cgroup->host->hierarchies[i], cgroup);
}

/* v2, when used, comes first. */
static size_t count_v2(const struct cgroup_host *host)
{
    return host->count && host->hierarchies[0].version == CGROUP_V2 ? 1 : 0;
}

int cgroup_create_first(const struct cgroup_host *host, const struct id *id,
                        struct cgroup *ret_cgroup, int *ret_directory, struct error *err)
{
    struct cgroup cgroup = {.host = host, .id = *id};
    char path[CGROUP_FILE_PATH_SIZE];
    size_t made;

    *ret_directory = -EBADF;
    if (!id_is_valid(id->text))
        return error_set(err, ERR_INVALID, 0, "no sandbox id");
    if (make_from(&cgroup, 0, count_v2(host), &made, err) < 0) {
        remove_made(&cgroup, made);
        return -1;
    }
    if (made) {
        cgroup_path(&host->hierarchies[0], &cgroup, CGROUP_AGENT, "", path);
        *ret_directory = sys_file_open(host->hierarchies[0].base, path, O_RDONLY | O_DIRECTORY, 0);
    }
    if (made && *ret_directory < 0) {
        remove_made(&cgroup, made);
        return error_set(err, cgroup_error_code(*ret_directory), *ret_directory,
                         "open the group of %s", id->text);
    }
    *ret_cgroup = cgroup;
    return 0;
}

int cgroup_create_rest(const struct cgroup *cgroup, const struct limits *limits, struct error *err)
{
    const struct cgroup_host *host = cgroup->host;
    size_t made = count_v2(host);

    if (cgroup_limits_check(limits, err) == 0 &&
        make_from(cgroup, count_v2(host), host->count, &made, err) == 0 &&
        cgroup_set_weight(cgroup, CGROUP_WEIGHT_FULL, err) == 0 &&
        cgroup_set_limits(cgroup, NULL, limits, err) == 0)
        return 0;
    remove_made(cgroup, made);
    return -1;
}

int cgroup_create(const struct cgroup_host *host, const struct id *id, const struct limits *limits,
                  struct cgroup *ret_cgroup, struct error *err)
{
    struct cgroup cgroup;
    int directory;

    if (cgroup_limits_check(limits, err) < 0 ||
        cgroup_create_first(host, id, &cgroup, &directory, err) < 0)
        return -1;
    (void) fd_close(directory);
    if (cgroup_create_rest(&cgroup, limits, err) < 0)
        return -1;
    *ret_cgroup = cgroup;
    return 0;
}

/* Whether all groups are there in this hierarchy. Sets `*found_any` when one is. */
static bool is_complete_in(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                           bool *found_any)
{
    bool all = true;

    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        char path[CGROUP_FILE_PATH_SIZE];
        bool found;

        if (!has_group(hierarchy, parts[i]))
            continue;
        cgroup_path(hierarchy, cgroup, parts[i], "", path);
        found = faccessat(hierarchy->base, path, F_OK, 0) == 0;
        all = all && found;
        *found_any = *found_any || found;
    }
    return all;
}

int cgroup_adopt(const struct cgroup_host *host, const struct id *id, struct cgroup *ret_cgroup,
                 bool *ret_complete, struct error *err)
{
    struct cgroup cgroup = {.host = host, .id = *id};
    bool complete = true, found = false;

    if (!id_is_valid(id->text))
        return error_set(err, ERR_INVALID, 0, "no sandbox id");
    for (size_t i = 0; i < host->count; i++)
        complete = is_complete_in(&host->hierarchies[i], &cgroup, &found) && complete;
    if (!found && host->count)
        return error_set(err, ERR_NOT_FOUND, ENOENT, "adopt the groups of %s", id->text);
    *ret_cgroup = cgroup;
    if (ret_complete)
        *ret_complete = complete;
    return 0;
}

struct id_list {
    struct id *ids; /* owned */
    size_t count;
    size_t capacity;
};

static void id_list_add(struct id_list *list, const char *name)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->ids = mem_resize(list->ids, list->capacity * sizeof(*list->ids));
    }
    memcpy(list->ids[list->count++].text, name, ID_SIZE);
}

static int collect(const struct cgroup_hierarchy *hierarchy, struct id_list *list)
{
    /* A new description: the position in the base's own one must not move. */
    int fd = sys_file_open(hierarchy->base, ".", O_RDONLY | O_DIRECTORY, 0);
    const struct dirent *entry;
    DIR *directory;

    if (fd < 0)
        return fd;
    directory = fdopendir(fd);
    if (!directory) {
        (void) fd_close(fd);
        return -errno;
    }
    while ((entry = readdir(directory))) {
        if (list->count >= CGROUP_LIST_MAX * (size_t) CGROUP_HIERARCHY_MAX)
            break;
        if (id_is_valid(entry->d_name))
            id_list_add(list, entry->d_name);
    }
    (void) closedir(directory);
    return 0;
}

static int compare_ids(const void *left, const void *right)
{
    return strcmp(((const struct id *) left)->text, ((const struct id *) right)->text);
}

/* Every sandbox is found once per hierarchy. */
static void sort_and_merge(struct id_list *list)
{
    size_t kept = 0;

    qsort(list->ids, list->count, sizeof(*list->ids), compare_ids);
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || compare_ids(&list->ids[kept - 1], &list->ids[i]) != 0)
            list->ids[kept++] = list->ids[i];
    }
    list->count = kept < CGROUP_LIST_MAX ? kept : CGROUP_LIST_MAX;
}

int cgroup_list(const struct cgroup_host *host, struct id **ret_ids, size_t *ret_count,
                struct error *err)
{
    struct id_list list = {.ids = mem_alloc(sizeof(struct id)), .capacity = 1};

    for (size_t i = 0; i < host->count; i++) {
        int result = collect(&host->hierarchies[i], &list);

        if (result == 0)
            continue;
        free(list.ids);
        return error_set(err, cgroup_error_code(result), result, "list %s",
                         host->hierarchies[i].path);
    }
    sort_and_merge(&list);
    *ret_ids = list.ids;
    *ret_count = list.count;
    return 0;
}

/* 1 or 0, -errno. A file of processes that is empty reads as nothing. */
static int has_processes(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                         enum cgroup_part part)
{
    char path[CGROUP_FILE_PATH_SIZE], byte;
    AUTO(close) int fd = -EBADF;
    ssize_t length;

    cgroup_path(hierarchy, cgroup, part, "cgroup.procs", path);
    fd = sys_file_open(hierarchy->base, path, O_RDONLY, 0);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    length = sys_file_read_full(fd, &byte, 1);
    /* The group went away while we looked. */
    return length == -ENODEV ? 0 : (int) length;
}

static int populated_by_event(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup)
{
    uint64_t populated = 0;
    int result = cgroup_read_field(hierarchy, cgroup, CGROUP_WHOLE, "cgroup.events", "populated",
                                   &populated);

    if (result == -ENOENT || result == -ENODEV)
        return 0;
    return result < 0 ? result : populated != 0;
}

static int populated_in(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup)
{
    if (hierarchy->version == CGROUP_V2)
        return populated_by_event(hierarchy, cgroup);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        int result =
            has_group(hierarchy, parts[i]) ? has_processes(hierarchy, cgroup, parts[i]) : 0;

        if (result != 0)
            return result;
    }
    return 0;
}

/* A process in the middle of entering is in some hierarchies only, so all are asked. */
int cgroup_populated(const struct cgroup *cgroup, struct error *err)
{
    const struct cgroup_host *host = cgroup->host;

    if (!host->count)
        return error_set(err, ERR_NOT_IMPLEMENTED, EOPNOTSUPP, "no cgroups on this host");
    for (size_t i = 0; i < host->count; i++) {
        int result = populated_in(&host->hierarchies[i], cgroup);

        if (result < 0)
            return error_set(err, cgroup_error_code(result), result, "look for processes of %s",
                             cgroup->id.text);
        if (result > 0)
            return 1;
    }
    return 0;
}

static int remove_once(const struct cgroup *cgroup)
{
    const struct cgroup_host *host = cgroup->host;
    int first = 0;

    if (host->count && cgroup_populated(cgroup, NULL) == 1)
        return -EBUSY;
    for (size_t i = 0; i < host->count; i++) {
        int result = remove_in(&host->hierarchies[i], cgroup);

        if (first == 0)
            first = result;
    }
    return first;
}

int cgroup_remove_dead(const struct cgroup_host *host, const struct id *id, struct error *err)
{
    struct cgroup cgroup = {.host = host, .id = *id};

    if (!id_is_valid(id->text))
        return error_set(err, ERR_INVALID, 0, "no sandbox id");
    for (size_t i = 0; i < host->count; i++) {
        int result = remove_in(&host->hierarchies[i], &cgroup);

        if (result < 0)
            return error_set(err, cgroup_error_code(result), result, "remove the groups of %s",
                             id->text);
    }
    return 0;
}

int cgroup_remove(const struct cgroup *cgroup, int timeout_ms, struct error *err)
{
    uint64_t deadline = cgroup_deadline(cgroup->host, timeout_ms);
    int result;

    while ((result = remove_once(cgroup)) == -EBUSY &&
           cgroup_time_left_ms(cgroup->host, deadline) > 0)
        cgroup_pause();
    if (result < 0)
        return error_set(err, cgroup_error_code(result), result, "remove the groups of %s",
                         cgroup->id.text);
    return 0;
}
