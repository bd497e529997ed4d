/* Time zones: a TZif file as bytes (RFC 9636), and how far local time is from UTC at a moment. Pure:
 * whoever has files reads them. Files come from the system, and are checked like foreign bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TIME_ZONE_NAME_MAX 64
#define TIME_ZONE_FILE_MAX ((size_t) 64 * 1024)

struct time_zone;

/* NULL with ERR_INVALID. `bytes` NULL: UTC. */
struct time_zone *time_zone_read(const char *bytes, size_t length, struct error *err);
void time_zone_free(struct time_zone *zone);

/* Seconds east of UTC at a moment in seconds since 1970. */
int32_t time_zone_offset(const struct time_zone *zone, int64_t utc);

/* Whether it could be the name of one: "Europe/Berlin", "UTC"; no way out of a folder. */
bool time_zone_name_is_valid(const char *name);
