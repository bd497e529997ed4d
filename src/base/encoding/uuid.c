#include "base/encoding/uuid.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"

#define HEX_DIGITS "0123456789abcdefABCDEF"

struct uuid uuid_new(void)
{
    struct uuid uuid;
    uint8_t b[16];

    random_bytes(b, sizeof(b));
    b[6] = (uint8_t) ((b[6] & 0x0f) | 0x40); /* version 4 */
    b[8] = (uint8_t) ((b[8] & 0x3f) | 0x80); /* variant 1 */
    (void) snprintf(uuid.text, sizeof(uuid.text),
                    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                    b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                    b[13], b[14], b[15]);
    return uuid;
}

/* What may stand at each place: h any hex digit, v the variant, others themselves. */
bool uuid_is_valid(const char *text)
{
    static const char form[] = "hhhhhhhh-hhhh-4hhh-vhhh-hhhhhhhhhhhh";

    if (strnlen(text, UUID_SIZE) != UUID_LENGTH)
        return false;
    for (size_t i = 0; i < UUID_LENGTH; i++) {
        const char *allowed = form[i] == 'h' ? HEX_DIGITS : form[i] == 'v' ? "89abAB" : NULL;

        if (allowed ? !strchr(allowed, text[i]) : text[i] != form[i])
            return false;
    }
    return true;
}
