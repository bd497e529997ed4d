/* Ids: 26 characters of lower-case base32 (a-z2-7), 128 random bits, global.
 *
 * The only id on disk, in cgroup names, host names and logs. Cloudflare's bridge makes ids of the
 * same shape, so one rule serves all dialects. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_LENGTH      26
#define ID_SIZE        (ID_LENGTH + 1)
#define ID_RANDOM_SIZE 16

struct id {
    char text[ID_SIZE];
};

/* A new id from the kernel's random numbers. Aborts when there are none: an id that is not random
 * would be worse than a restart. */
struct id id_new(void);

/* The id made of these 16 bytes: the pure half of id_new, for tests. */
struct id id_from_bytes(const uint8_t bytes[static ID_RANDOM_SIZE]);

/* Whether `text` is exactly an id (the two unused bits of the last character must be 0). */
bool id_is_valid(const char *text);

/* Fill `bytes` with `count` random bytes from the kernel; aborts when there are none. */
void random_bytes(void *bytes, size_t count);
