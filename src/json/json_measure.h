/* Durations, sizes and shares in JSON, as people write them.
 *
 *     "sleepAfter": "30s", "5m", "1h", "250ms", or seconds: 30, 0.25      duration -> milliseconds
 *     "memory": "512M", "2G", or bytes: 536870912                        size -> bytes
 *     "cpu": 0.5, 2, "1.5"                                                share -> thousandths
 *
 * As in json_read.h: 0, or -1 with ERR_INVALID and the path of the field; an optional field that is
 * absent or null leaves `ret_` as it was. */
#pragma once

#include "json/json_read.h"
#include "json/json_write.h"

int json_field_duration(const struct json_place *object, const char *key, enum json_need need,
                        uint64_t maximum_ms, uint64_t *ret_ms, struct error *err);
int json_field_size(const struct json_place *object, const char *key, enum json_need need,
                    uint64_t maximum, uint64_t *ret_bytes, struct error *err);
int json_field_thousandths(const struct json_place *object, const char *key, enum json_need need,
                           uint64_t maximum, uint64_t *ret_thousandths, struct error *err);

/* Thousandths as a number: 600000 -> 600, 1500 -> 1.5. For durations these are seconds. What is
 * written is read back as the same. */
void json_put_thousandths(struct json_writer *writer, uint64_t thousandths);
void json_add_thousandths(struct json_writer *writer, const char *key, uint64_t thousandths);
