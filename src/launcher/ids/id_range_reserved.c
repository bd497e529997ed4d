#include "launcher/ids/id_range_reserved.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

void id_range_reserved_add(struct id_range_reserved *reserved, uint32_t first, uint32_t last)
{
    if (reserved->count == ID_RANGE_RESERVED_MAX) {
        reserved->overflowed = true;
        return;
    }
    if (reserved->count == reserved->room) {
        reserved->room = reserved->room ? reserved->room * 2 : 64;
        reserved->intervals =
            mem_resize(reserved->intervals, reserved->room * sizeof(*reserved->intervals));
    }
    reserved->intervals[reserved->count++] =
        (struct id_range_interval){.first = first, .last = last};
}

/* `count` ids from `first` on, cut at the end of all ids. */
static void add_span(struct id_range_reserved *reserved, uint64_t first, uint64_t count)
{
    uint64_t last = first + (count - 1);

    if (count == 0 || first > UINT32_MAX)
        return;
    if (last > UINT32_MAX || last < first)
        last = UINT32_MAX;
    id_range_reserved_add(reserved, (uint32_t) first, (uint32_t) last);
}

/* Where the given field (0 is the first) of a line starts, and its length. False: too few. */
static bool find_field(const char *line, size_t length, char separator, int field,
                       const char **ret_start, size_t *ret_length)
{
    const char *at = line, *end = line + length, *stop;

    for (; field > 0; field--) {
        at = memchr(at, separator, (size_t) (end - at));
        if (!at)
            return false;
        at++;
    }
    stop = memchr(at, separator, (size_t) (end - at));
    *ret_start = at;
    *ret_length = (size_t) ((stop ? stop : end) - at);
    return true;
}

static bool read_field(const char *line, size_t length, int field, uint64_t *ret_number)
{
    const char *start;
    size_t size;

    return find_field(line, length, ':', field, &start, &size) &&
           number_parse_digits(start, size, UINT64_MAX, ret_number) == 0;
}

void id_range_reserved_add_promised(struct id_range_reserved *reserved, const char *text)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        uint64_t first, count;

        if (read_field(line, length, 1, &first) && read_field(line, length, 2, &count))
            add_span(reserved, first, count);
        line += length;
        line += *line == '\n';
    }
}

void id_range_reserved_add_accounts(struct id_range_reserved *reserved, const char *text)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        uint64_t id;

        if (read_field(line, length, 2, &id))
            add_span(reserved, id, 1);
        line += length;
        line += *line == '\n';
    }
}

/* The kernel's format: three numbers apart by spaces. Moves `at` behind the number. */
static bool read_column(const char **at, uint64_t *ret_number)
{
    size_t length;

    *at += strspn(*at, " \t");
    length = strspn(*at, "0123456789");
    if (number_parse_digits(*at, length, UINT32_MAX, ret_number) < 0)
        return false;
    *at += length;
    return true;
}

/* All ids, then holes are cut: what remains are the gaps between the mapped ranges. */
void id_range_reserved_add_unmapped(struct id_range_reserved *reserved, const char *text)
{
    AUTO(id_range_reserved) struct id_range_reserved mapped = ID_RANGE_RESERVED_INIT;
    uint64_t next = 0;

    for (const char *line = text; *line;) {
        const char *at = line;
        uint64_t inside, outside, count;

        if (read_column(&at, &inside) && read_column(&at, &outside) && read_column(&at, &count))
            add_span(&mapped, inside, count);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    id_range_reserved_finish(&mapped);
    for (size_t i = 0; i < mapped.count; i++) {
        if (mapped.intervals[i].first > next)
            add_span(reserved, next, mapped.intervals[i].first - next);
        next = (uint64_t) mapped.intervals[i].last + 1;
    }
    if (next <= UINT32_MAX)
        add_span(reserved, next, UINT32_MAX - next + 1);
}

static int compare_intervals(const void *left, const void *right)
{
    uint32_t a = ((const struct id_range_interval *) left)->first;
    uint32_t b = ((const struct id_range_interval *) right)->first;

    return (a > b) - (a < b);
}

void id_range_reserved_finish(struct id_range_reserved *reserved)
{
    struct id_range_interval *all = reserved->intervals;
    size_t kept = 0;

    if (reserved->count == 0)
        return;
    qsort(all, reserved->count, sizeof(*all), compare_intervals);
    for (size_t i = 1; i < reserved->count; i++) {
        /* Neighbours are joined too; the sum would wrap behind the last id. */
        if (all[kept].last == UINT32_MAX || all[i].first <= all[kept].last + 1) {
            if (all[i].last > all[kept].last)
                all[kept].last = all[i].last;
        } else {
            all[++kept] = all[i];
        }
    }
    reserved->count = kept + 1;
}

bool id_range_reserved_has(const struct id_range_reserved *reserved, uint32_t first, uint32_t count)
{
    uint64_t last = (uint64_t) first + count - 1;
    size_t low = 0, high = reserved->count;

    if (reserved->overflowed || last > UINT32_MAX)
        return true;
    /* The first interval that ends at `first` or behind. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (reserved->intervals[middle].last < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reserved->count && reserved->intervals[low].first <= last;
}

typedef void (*add_function)(struct id_range_reserved *reserved, const char *text);

static int read_file(struct id_range_reserved *reserved, const char *folder, const char *name,
                     bool may_miss, add_function add, struct error *err)
{
    AUTO(free) char *text = NULL;
    char path[PATH_MAX];
    size_t length;
    int r;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    r = sys_file_read_all(AT_FDCWD, path, ID_RANGE_FILE_MAX, &text, &length);
    if (r == -ENOENT && may_miss)
        return 0;
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "read the ids in '%s'", path);
    add(reserved, text);
    return 0;
}

int id_range_reserved_read(struct id_range_reserved *reserved, const char *etc, const char *process,
                           struct error *err)
{
    static const struct {
        const char *name;
        bool is_etc;
        add_function add;
    } files[] = {
        {"passwd", true, id_range_reserved_add_accounts},
        {"group", true, id_range_reserved_add_accounts},
        {"subuid", true, id_range_reserved_add_promised},
        {"subgid", true, id_range_reserved_add_promised},
        {"uid_map", false, id_range_reserved_add_unmapped},
        {"gid_map", false, id_range_reserved_add_unmapped},
    };

    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        if (read_file(reserved, files[i].is_etc ? etc : process, files[i].name, files[i].is_etc,
                      files[i].add, err) < 0)
            return -1;
    }
    id_range_reserved_finish(reserved);
    return 0;
}

void id_range_reserved_done(struct id_range_reserved *reserved)
{
    free(reserved->intervals);
    *reserved = (struct id_range_reserved) ID_RANGE_RESERVED_INIT;
}
