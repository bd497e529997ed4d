#include "launcher/residents/owner_weight.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/cgroup/cgroup_weight.h"

/* Who used less than this part of everything is not there, when owners are counted. */
#define ACTIVE_PART 100

/* What is not changed by more than this part is left alone. */
#define STEADY_PART 8

static int compare_owners(const void *one, const void *other)
{
    const struct owner_use *a = one, *b = other;

    return memcmp(a->owner.text, b->owner.text, ID_LENGTH);
}

static size_t count_of_owner(const struct owner_use *uses, size_t count)
{
    size_t same = 1;

    while (same < count && compare_owners(&uses[0], &uses[same]) == 0)
        same++;
    return same;
}

static double sum_of(const struct owner_use *uses, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double) uses[i].used_us;
    return sum;
}

/* How many of an owner's sandboxes use the CPUs, those that use little counted as a part of one. */
static double count_busy(const struct owner_use *uses, size_t count)
{
    double sum = sum_of(uses, count), squares = 0;

    for (size_t i = 0; i < count; i++)
        squares += (double) uses[i].used_us * (double) uses[i].used_us;
    return squares > 0 ? sum * sum / squares : 1;
}

static uint32_t least_weight(const struct owner_use *uses, size_t count)
{
    uint32_t least = CGROUP_WEIGHT_FULL;

    for (size_t i = 0; i < count; i++)
        least = uses[i].weight < least ? uses[i].weight : least;
    return least ? least : 1;
}

/* One weight for all sandboxes of an owner. `is_greedy`: he takes what an equal part would be. */
static uint32_t weigh_owner(const struct owner_use *uses, size_t count, bool is_greedy)
{
    uint32_t before = least_weight(uses, count), weight, change;
    double busy = is_greedy ? count_busy(uses, count) : 1;
    double busy_before = (double) CGROUP_WEIGHT_FULL / before;

    if (busy < busy_before / 2)
        busy = busy_before / 2;
    weight = busy <= 1 ? CGROUP_WEIGHT_FULL : (uint32_t) (CGROUP_WEIGHT_FULL / busy + 0.5);
    weight = weight ? weight : 1;
    change = weight > before ? weight - before : before - weight;
    return weight < CGROUP_WEIGHT_FULL && change * STEADY_PART <= before ? before : weight;
}

void owner_weight_divide(struct owner_use *uses, size_t count)
{
    double all = sum_of(uses, count);
    size_t active = 0;

    if (count)
        qsort(uses, count, sizeof(*uses), compare_owners);
    for (size_t i = 0, same; i < count; i += same) {
        same = count_of_owner(uses + i, count - i);
        active += sum_of(uses + i, same) * ACTIVE_PART >= all;
    }
    for (size_t i = 0, same; i < count; i += same) {
        uint32_t weight;

        same = count_of_owner(uses + i, count - i);
        weight = weigh_owner(uses + i, same, sum_of(uses + i, same) * 2 * (double) active >= all);
        for (size_t j = i; j < i + same; j++)
            uses[j].new_weight = weight;
    }
}
