/* Cron expressions and files of time zones from anywhere: read or refused, and when they are read
 * there is a next time that is later, or none. Up to the first NUL is the expression. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/task/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t length = nul ? (size_t) (nul - data) : size;
    char *text = mem_copy_bytes((const char *) data, length);
    struct time_zone *zone =
        nul ? time_zone_read((const char *) nul + 1, size - length - 1, NULL) : NULL;
    struct cron cron;

    if (!zone)
        zone = time_zone_read(NULL, 0, NULL);
    if (cron_parse(text, &cron, NULL) == 0) {
        int64_t at = 1800000000;

        for (int i = 0; i < 4 && at >= 0; i++) {
            int64_t next = cron_next(&cron, zone, at);

            if (next >= 0 && next <= at)
                __builtin_trap();
            at = next;
        }
    }
    time_zone_free(zone);
    free(text);
    return 0;
}
