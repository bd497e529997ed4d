/* Any text of the three kinds gives intervals that are sorted, apart, and answer as they should. */
#include <stdlib.h>

#include "base/memory.h"
#include "launcher/ids/id_range_reserved.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds)
{
    if (!holds)
        abort();
}

static void check(const struct id_range_reserved *reserved)
{
    for (size_t i = 0; i < reserved->count; i++) {
        const struct id_range_interval *at = &reserved->intervals[i];

        insist(at->first <= at->last);
        insist(id_range_reserved_has(reserved, at->first, 1));
        insist(id_range_reserved_has(reserved, at->last, 1));
        if (i == 0)
            continue;
        /* Apart by at least one id, which is free. */
        insist((uint64_t) at[-1].last + 1 < at->first);
        insist(!id_range_reserved_has(reserved, at[-1].last + 1, 1));
        insist(!id_range_reserved_has(reserved, at->first - 1, 1));
        insist(id_range_reserved_has(reserved, at->first - 1, 2));
    }
}

static void check_kind(void (*add)(struct id_range_reserved *, const char *), const char *text)
{
    AUTO(id_range_reserved) struct id_range_reserved reserved = ID_RANGE_RESERVED_INIT;

    add(&reserved, text);
    id_range_reserved_finish(&reserved);
    check(&reserved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *text = mem_copy_bytes(data, size);

    check_kind(id_range_reserved_add_accounts, text);
    check_kind(id_range_reserved_add_promised, text);
    check_kind(id_range_reserved_add_unmapped, text);
    return 0;
}
