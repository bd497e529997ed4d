/* UUIDs, version 4: the form of ids that Cloudflare's clients expect of contexts and backups. Ours
 * are in id.h. */
#pragma once

#include <stdbool.h>

#define UUID_LENGTH 36
#define UUID_SIZE   (UUID_LENGTH + 1)

struct uuid {
    char text[UUID_SIZE]; /* lower case */
};

/* From the kernel's random numbers; aborts when there are none. */
struct uuid uuid_new(void);

/* Whether `text` is a version 4 UUID, in lower or upper case. */
bool uuid_is_valid(const char *text);
