#include "keeper/tree/tree_measure.h"

#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "keeper/tree/tree_walk.h"

/* Allocation is told in these, whatever the filesystem's block is. */
#define STAT_BLOCK 512

/* Sizes up to 2^63, times the number of names. */
typedef unsigned __int128 wide;

enum { FILES, FOLDERS, LINKS, OTHERS, BYTES, ALLOCATED, SUM_COUNT };

static const char *const sum_names[SUM_COUNT] = {"files",  "folders", "links",
                                                 "others", "bytes",   "allocated"};

/* Sums over all names of files that have this many. */
struct share {
    nlink_t names;
    wide sums[SUM_COUNT];
};

/* Ordered by `names`. There are few: n different numbers take n^2 / 2 names. */
struct measure {
    struct share *shares; /* owned */
    size_t count, capacity;
    uint64_t names;
};

static struct share *insert_share(struct measure *measure, size_t at, nlink_t names)
{
    if (measure->count == measure->capacity) {
        measure->capacity = measure->capacity ? measure->capacity * 2 : 16;
        measure->shares = mem_resize(measure->shares, measure->capacity * sizeof(*measure->shares));
    }
    memmove(&measure->shares[at + 1], &measure->shares[at],
            (measure->count - at) * sizeof(*measure->shares));
    measure->count++;
    measure->shares[at] = (struct share){.names = names};
    return &measure->shares[at];
}

static struct share *find_share(struct measure *measure, nlink_t names)
{
    size_t low = 0, high = measure->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (measure->shares[middle].names < names)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < measure->count && measure->shares[low].names == names)
        return &measure->shares[low];
    return insert_share(measure, low, names);
}

static int kind_of(mode_t mode)
{
    return S_ISREG(mode) ? FILES : S_ISDIR(mode) ? FOLDERS : S_ISLNK(mode) ? LINKS : OTHERS;
}

static void add(struct measure *measure, const struct stat *status)
{
    /* A folder's link count tells of its subfolders. */
    nlink_t names = S_ISDIR(status->st_mode) || status->st_nlink == 0 ? 1 : status->st_nlink;
    struct share *share = find_share(measure, names);
    int kind = kind_of(status->st_mode);

    measure->names++;
    share->sums[kind]++;
    share->sums[ALLOCATED] += (wide) status->st_blocks * STAT_BLOCK;
    if (kind == FILES || kind == LINKS)
        share->sums[BYTES] += (wide) status->st_size;
}

/* Rounded up: names outside of the tree make it inexact, never 0. */
static uint64_t total(const struct measure *measure, int sum)
{
    wide all = 0;

    for (size_t i = 0; i < measure->count; i++) {
        const struct share *share = &measure->shares[i];

        all += (share->sums[sum] + share->names - 1) / share->names;
    }
    return all > UINT64_MAX ? UINT64_MAX : (uint64_t) all;
}

static int walk_all(struct measure *measure, int folder, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(folder);
    struct tree_step step;

    for (;;) {
        if (tree_walk_next(walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            return 0;
        if (step.event != TREE_LEAVE)
            add(measure, &step.status);
    }
}

int tree_measure(int folder, struct output *output, struct error *err)
{
    struct measure measure = {.count = 0};
    struct json_writer json;
    int result = walk_all(&measure, folder, err);

    if (result == 0) {
        output_begin(output, &json);
        for (int sum = 0; sum < SUM_COUNT; sum++)
            output_add_count(&json, sum_names[sum], total(&measure, sum));
        output_add_count(&json, "names", measure.names);
        output_end(output, &json);
    }
    free(measure.shares);
    return result;
}
