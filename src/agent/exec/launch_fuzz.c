/* Any bytes: what launch_decode takes, launch_encode writes again the same. */
#include <stdlib.h>
#include <string.h>

#include "agent/exec/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(launch) struct launch launch = {.arguments = NULL};
    AUTO(text) struct text again = TEXT_INIT(LAUNCH_SIZE_MAX);
    /* A copy of the exact size, so that reading past the end is seen. */
    AUTO(free) char *bytes = malloc(size ? size : 1);

    memcpy(bytes, data, size);
    if (launch_decode(bytes, size, &launch) < 0)
        return 0;
    if (launch_encode(&launch, &again) < 0)
        abort();
    launch_set_serial(again.data, launch_serial(bytes));
    if (again.length != size || memcmp(again.data, bytes, size) != 0)
        abort();
    return 0;
}
