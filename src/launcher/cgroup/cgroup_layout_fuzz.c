#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

/* What comes out can be put together to a path that stays within the mount, and v1 hierarchies
 * have controllers we know. */
static void check_layout(const struct cgroup_layout *layout)
{
    unsigned int seen = 0;

    require(layout->count <= CGROUP_HIERARCHY_MAX);
    for (size_t i = 0; i < layout->count; i++) {
        const struct cgroup_layout_hierarchy *hierarchy = &layout->hierarchies[i];

        require(strlen(hierarchy->top) < CGROUP_PATH_SIZE && hierarchy->top[0]);
        require(strlen(hierarchy->own) < CGROUP_PATH_SIZE);
        require(hierarchy->own[0] == '\0' || hierarchy->own[0] == '/');
        require(!strstr(hierarchy->own, "/../"));
        require((hierarchy->version == CGROUP_V2) == (hierarchy->controllers == 0));
        seen |= hierarchy->controllers;
    }
    require((seen | layout->hidden) >> CGROUP_CONTROLLER_COUNT == 0);
}

/* The first NUL, or the end, parts the two files. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_copy_bytes(data, size);
    size_t first = strlen(text);
    struct cgroup_layout layout;
    uint64_t number;

    cgroup_layout_parse(text, first < size ? text + first + 1 : "", &layout);
    check_layout(&layout);
    require(cgroup_file_find_field(text, "frozen", &number) <= 0);
    (void) cgroup_file_sum(text, " rbytes=");
    free(text);
    return 0;
}
