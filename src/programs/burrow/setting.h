/* One setting: a row of the table in settings.c, and its value as people write it.
 *
 * Everything about settings (settings.h) is made of that table. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/pool.h"
#include "programs/burrow/settings.h"

/* Flags and variables with the names of settings are shorter. */
#define SETTING_NAME_SIZE 64

/* A count is at least 1; all others may be 0, which is what "" means for a size. */
enum setting_type {
    SETTING_TEXT,
    SETTING_BOOLEAN,
    SETTING_COUNT,
    SETTING_DURATION,
    SETTING_SIZE,
    SETTING_STOCK,
    SETTING_NUMBER,
    SETTING_CPUS,
    SETTING_PERIOD
};

struct setting {
    const char *name;
    enum setting_type type;
    size_t offset;
    const char *preset; /* as a person would write it; "" for none */
    const char *value;  /* what to write in its place, for the help */
    const char *help;
    const char *choices; /* for SETTING_TEXT: words separated by '|', NULL for any */
};

extern const struct setting settings_table[];
extern const size_t settings_table_count;

/* Give it a value as a person writes it. 0, or -1 with ERR_INVALID, which begins with `source`:
 * where the value was written. */
int setting_set(const struct setting *setting, struct settings *settings, const char *value,
                const char *source, struct error *err);

/* The same backwards: "--name=value", which setting_set takes. In `pool`. */
const char *setting_word(const struct setting *setting, const struct settings *settings,
                         struct pool *pool);
