/* The CPUs, divided among owners while their sandboxes run (owner_weight.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "launcher/cgroup/cgroup_weight.h"
#include "launcher/residents/owner_weight.h"
#include "launcher/residents/residents.h"

#define TURN_MS 1000

/* Looking at thousands takes time itself: a hundredth of it at most. */
#define TURN_PART 100

/* All together used less than this in a second: there is nothing to divide. */
#define LITTLE_US 100000

static bool has_part(const struct resident *resident)
{
    return resident->record.owner.text[0] && resident->state == RESIDENT_RUNNING;
}

static bool is_owners(const struct resident *resident, const struct id *owner)
{
    return has_part(resident) && memcmp(resident->record.owner.text, owner->text, ID_LENGTH) == 0;
}

static void resident_weigh(struct resident *resident, uint32_t weight)
{
    if (weight != resident->weight &&
        cgroup_set_weight(&resident->sandbox.cgroup, weight, NULL) == 0)
        resident->weight = weight;
}

/* Whether there is more than one owner. */
static bool has_owners(const struct residents *all)
{
    const struct resident *first = NULL;

    for (size_t i = 0; i < all->count; i++) {
        const struct resident *resident = all->sorted[i];

        if (!has_part(resident))
            continue;
        if (first && !is_owners(resident, &first->record.owner))
            return true;
        first = resident;
    }
    return false;
}

/* Whether somebody's was divided: then it has to be given back, too. */
static bool has_divided(const struct residents *all)
{
    for (size_t i = 0; i < all->count; i++) {
        if (has_part(all->sorted[i]) && all->sorted[i]->weight != CGROUP_WEIGHT_FULL)
            return true;
    }
    return false;
}

/* How much all together have used since the last turn. */
static bool is_little_used(struct residents *all)
{
    uint64_t used = cgroup_host_cpu_used(all->site->cgroups);
    bool is_little = used < all->cpu_seen_us + LITTLE_US;

    all->cpu_seen_us = used;
    return is_little;
}

static size_t collect_uses(struct residents *all, struct owner_use *uses)
{
    size_t count = 0;

    for (size_t i = 0; i < all->count; i++) {
        struct resident *resident = all->sorted[i];
        uint64_t used;

        if (!has_part(resident))
            continue;
        used = cgroup_cpu_used(&resident->sandbox.cgroup);
        uses[count++] = (struct owner_use){
            .owner = resident->record.owner,
            .used_us = used > resident->cpu_seen_us ? used - resident->cpu_seen_us : 0,
            .weight = resident->weight,
            .sandbox = resident};
        resident->cpu_seen_us = used;
    }
    return count;
}

static void divide_cpus(struct residents *all)
{
    AUTO(free) struct owner_use *uses = mem_alloc_array(all->count + 1, sizeof(*uses));
    size_t count = collect_uses(all, uses);

    owner_weight_divide(uses, count);
    for (size_t i = 0; i < count; i++)
        resident_weigh(uses[i].sandbox, uses[i].new_weight);
}

void residents_weigh(struct event_timer *timer)
{
    struct residents *all = CONTAINER_OF(timer, struct residents, weighing);
    uint64_t began = clock_monotonic_ns(all->loop->clock), took;

    if (has_divided(all) || (has_owners(all) && !is_little_used(all)))
        divide_cpus(all);
    took = (clock_monotonic_ns(all->loop->clock) - began) / 1000000;
    if (all->count)
        event_timer_set(all->loop, timer, took * TURN_PART > TURN_MS ? took * TURN_PART : TURN_MS);
}

void resident_weigh_first(struct resident *resident)
{
    struct residents *all = resident->all;
    uint32_t weight = CGROUP_WEIGHT_FULL;

    for (size_t i = 0; i < all->count && resident->record.owner.text[0]; i++) {
        const struct resident *other = all->sorted[i];

        if (other != resident && is_owners(other, &resident->record.owner) &&
            other->weight < weight && other->weight)
            weight = other->weight;
    }
    resident_weigh(resident, weight);
    if (!all->weighing.is_set)
        event_timer_set(all->loop, &all->weighing, TURN_MS);
}
