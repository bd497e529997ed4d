#include "launcher/cgroup/cgroup_layout.h"

#include <stdbool.h>
#include <string.h>

#include "base/auto.h"

/* What each version calls a controller. NULL: it has none of that name. */
static const struct {
    const char *v1;
    const char *v2;
} names_of[CGROUP_CONTROLLER_COUNT] = {
    [CGROUP_CPU] = {"cpu", "cpu"},        [CGROUP_MEMORY] = {"memory", "memory"},
    [CGROUP_PIDS] = {"pids", "pids"},     [CGROUP_IO] = {"blkio", "io"},
    [CGROUP_FREEZER] = {"freezer", NULL}, [CGROUP_CPU_TIME] = {"cpuacct", NULL},
};

/* A piece of the text that is parsed; never terminated. */
struct slice {
    const char *start;
    size_t length;
};

static bool slice_is(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.start, text, slice.length) == 0;
}

/* Cut off what stands before the first of `separators`, and the separator. */
static struct slice slice_cut(struct slice *rest, const char *separators)
{
    struct slice head = {rest->start, 0};
    size_t used;

    while (head.length < rest->length && !strchr(separators, rest->start[head.length]))
        head.length++;
    used = head.length < rest->length ? head.length + 1 : head.length;
    rest->start += used;
    rest->length -= used;
    return head;
}

static unsigned int controller_named(enum cgroup_version version, struct slice name)
{
    for (unsigned int i = 0; i < ARRAY_COUNT(names_of); i++) {
        const char *known = version == CGROUP_V2 ? names_of[i].v2 : names_of[i].v1;

        if (known && slice_is(name, known))
            return CGROUP_BIT(i);
    }
    return 0;
}

unsigned int cgroup_layout_controllers(enum cgroup_version version, const char *names,
                                       size_t length)
{
    struct slice rest = {names, length};
    unsigned int bits = 0;

    while (rest.length)
        bits |= controller_named(version, slice_cut(&rest, ", \n"));
    return bits;
}

static bool is_octal(const char *digits)
{
    for (int i = 0; i < 3; i++) {
        if (digits[i] < '0' || digits[i] > '7')
            return false;
    }
    return digits[0] <= '3';
}

/* A field of mountinfo, in which the kernel writes spaces and the like as \040. False when it does
 * not fit or holds a NUL. */
static bool unescape(struct slice field, char *ret_text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < field.length; i++) {
        char c = field.start[i];

        if (c == '\\' && field.length - i > 3 && is_octal(field.start + i + 1)) {
            c = (char) ((field.start[i + 1] - '0') << 6 | (field.start[i + 2] - '0') << 3 |
                        (field.start[i + 3] - '0'));
            i += 3;
        }
        if (!c || used + 1 >= size)
            return false;
        ret_text[used++] = c;
    }
    ret_text[used] = '\0';
    return true;
}

struct mount {
    struct slice root;
    struct slice place;
    enum cgroup_version version;
    unsigned int controllers;
    bool writable;
};

/* "36 35 98:0 /root /place rw,noatime master:1 - cgroup cgroup rw,memory": the list of optional
 * fields before "-" may be empty. */
static bool parse_mount(struct slice line, struct mount *ret_mount)
{
    struct slice type, options;

    for (int i = 0; i < 3; i++)
        (void) slice_cut(&line, " "); /* ids and device: of no use here */
    ret_mount->root = slice_cut(&line, " ");
    ret_mount->place = slice_cut(&line, " ");
    options = slice_cut(&line, " ");
    ret_mount->writable = slice_is(slice_cut(&options, ","), "rw");
    while (line.length && !slice_is(slice_cut(&line, " "), "-"))
        ;
    type = slice_cut(&line, " ");
    (void) slice_cut(&line, " "); /* the source: any word */
    ret_mount->version = slice_is(type, "cgroup2")  ? CGROUP_V2
                         : slice_is(type, "cgroup") ? CGROUP_V1
                                                    : CGROUP_NONE;
    ret_mount->controllers = cgroup_layout_controllers(CGROUP_V1, line.start, line.length);
    return ret_mount->version != CGROUP_NONE && ret_mount->place.length > 0;
}

/* ".." comes from a cgroup namespace that we are outside of: nothing can be said of such a place.
 */
static bool has_parent_component(struct slice path)
{
    while (path.length) {
        if (slice_is(slice_cut(&path, "/"), ".."))
            return true;
    }
    return false;
}

/* Our place in the hierarchy, as seen through a mount that shows it from `root` on. */
static bool resolve(const struct mount *mount, struct slice path, char *ret_top, char *ret_own)
{
    char root[CGROUP_PATH_SIZE];
    size_t length;

    if (!unescape(mount->root, root, sizeof(root)) ||
        !unescape(mount->place, ret_top, CGROUP_PATH_SIZE) || has_parent_component(path))
        return false;
    length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (path.length < length || memcmp(path.start, root, length) != 0)
        return false;
    path.start += length;
    path.length -= length;
    if (path.length >= CGROUP_PATH_SIZE || (path.length && path.start[0] != '/'))
        return false;
    if (path.length == 1)
        path.length = 0;
    memcpy(ret_own, path.start, path.length);
    ret_own[path.length] = '\0';
    return true;
}

/* Find the mount that shows `path` of the wanted hierarchy. */
static bool find_place(const char *mountinfo, struct slice path,
                       struct cgroup_layout_hierarchy *hierarchy)
{
    struct slice rest = {mountinfo, strlen(mountinfo)};
    struct cgroup_layout_hierarchy candidate = *hierarchy;
    bool found = false;

    while (rest.length) {
        struct mount mount;

        if (!parse_mount(slice_cut(&rest, "\n"), &mount) || mount.version != hierarchy->version)
            continue;
        if (mount.version == CGROUP_V1 && mount.controllers != hierarchy->controllers)
            continue;
        if ((found && !mount.writable) || !resolve(&mount, path, candidate.top, candidate.own))
            continue;
        *hierarchy = candidate;
        found = true;
        if (mount.writable)
            break;
    }
    return found;
}

static void add_hierarchy(struct cgroup_layout *layout, const char *mountinfo, struct slice line,
                          enum cgroup_version wanted)
{
    struct slice number = slice_cut(&line, ":");
    struct slice names = slice_cut(&line, ":");
    struct cgroup_layout_hierarchy hierarchy = {
        .version = names.length == 0 && slice_is(number, "0") ? CGROUP_V2 : CGROUP_V1,
    };

    if (hierarchy.version != wanted || !line.length || line.start[0] != '/')
        return;
    if (wanted == CGROUP_V1) {
        hierarchy.controllers = cgroup_layout_controllers(CGROUP_V1, names.start, names.length);
        if (!hierarchy.controllers)
            return;
    }
    if (layout->count < CGROUP_HIERARCHY_MAX && find_place(mountinfo, line, &hierarchy))
        layout->hierarchies[layout->count++] = hierarchy;
    else
        layout->hidden |= hierarchy.controllers;
}

void cgroup_layout_parse(const char *self_cgroup, const char *mountinfo,
                         struct cgroup_layout *ret_layout)
{
    static const enum cgroup_version order[] = {CGROUP_V2, CGROUP_V1};

    ret_layout->count = 0;
    ret_layout->hidden = 0;
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        struct slice rest = {self_cgroup, strlen(self_cgroup)};

        while (rest.length)
            add_hierarchy(ret_layout, mountinfo, slice_cut(&rest, "\n"), order[i]);
    }
}
