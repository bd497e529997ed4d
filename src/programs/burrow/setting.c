#include "programs/burrow/setting.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/number.h"

#define ONE_DAY_MS ((uint64_t) 24 * 3600 * 1000)
#define STOCK_MAX  256
#define NUMBER_MAX 1000000
#define CPUS_MAX   ((uint64_t) 4096 * 1000)
#define PERIOD_MAX ((uint64_t) 3650 * ONE_DAY_MS)

static bool is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);

    while (choices) {
        size_t part = strcspn(choices, "|");

        if (part == length && memcmp(choices, value, length) == 0)
            return true;
        choices = choices[part] ? choices + part + 1 : NULL;
    }
    return false;
}

static int parse_boolean(const char *value, bool *ret_value)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};

    for (size_t i = 0; i < ARRAY_COUNT(yes); i++) {
        if (strcasecmp(value, yes[i]) == 0 || strcasecmp(value, no[i]) == 0) {
            *ret_value = strcasecmp(value, yes[i]) == 0;
            return 0;
        }
    }
    return -EINVAL;
}

static int set_text(const struct setting *setting, char **field, const char *value,
                    const char *source, struct error *err)
{
    if (setting->choices && !is_choice(setting->choices, value))
        return error_set(err, ERR_INVALID, 0, "%s: '%s' is not one of %s", source, value,
                         setting->choices);
    free(*field);
    *field = mem_copy_text(value);
    return 0;
}

/* Nothing is none. */
static int set_size(uint64_t *field, const char *value, const char *source, struct error *err)
{
    *field = 0;
    if (!*value || number_parse_size(value, UINT64_MAX >> 1, field) == 0)
        return 0;
    return error_set(err, ERR_INVALID, 0, "%s: '%s' is not a size such as 512M, 10G or 1T", source,
                     value);
}

static int set_number(uint64_t *field, const char *value, uint64_t maximum, const char *source,
                      struct error *err)
{
    if (number_parse_digits(value, strlen(value), maximum, field) == 0)
        return 0;
    return error_set(err, ERR_INVALID, 0, "%s: '%s' is not a number from 0 to %llu", source, value,
                     (unsigned long long) maximum);
}

int setting_set(const struct setting *setting, struct settings *settings, const char *value,
                const char *source, struct error *err)
{
    void *field = (char *) settings + setting->offset;

    switch (setting->type) {
    case SETTING_TEXT:
        return set_text(setting, field, value, source, err);
    case SETTING_BOOLEAN:
        if (parse_boolean(value, field) == 0)
            return 0;
        return error_set(err, ERR_INVALID, 0, "%s: '%s' is not true or false", source, value);
    case SETTING_COUNT:
        if (number_parse_digits(value, strlen(value), 1000000, field) == 0 &&
            *(uint64_t *) field > 0)
            return 0;
        return error_set(err, ERR_INVALID, 0, "%s: '%s' is not a number from 1 to 1000000", source,
                         value);
    case SETTING_DURATION:
        if (number_parse_duration(value, ONE_DAY_MS, field) == 0 && *(uint64_t *) field > 0)
            return 0;
        return error_set(err, ERR_INVALID, 0,
                         "%s: '%s' is not a time such as 500ms, 30s or 5m, up to a day", source,
                         value);
    case SETTING_SIZE:
        return set_size(field, value, source, err);
    case SETTING_CPUS:
        if (number_parse_thousandths(value, CPUS_MAX, field) == 0)
            return 0;
        return error_set(err, ERR_INVALID, 0, "%s: '%s' is not a number of CPUs such as 2 or 0.5",
                         source, value);
    case SETTING_PERIOD:
        if (number_parse_duration(value, PERIOD_MAX, field) == 0)
            return 0;
        return error_set(err, ERR_INVALID, 0,
                         "%s: '%s' is not a time such as 30s, 12h or 30d, or 0", source, value);
    case SETTING_NUMBER:
        return set_number(field, value, NUMBER_MAX, source, err);
    case SETTING_STOCK:
        break;
    }
    return set_number(field, value, STOCK_MAX, source, err);
}

const char *setting_word(const struct setting *setting, const struct settings *settings,
                         struct pool *pool)
{
    const void *field = (const char *) settings + setting->offset;

    switch (setting->type) {
    case SETTING_TEXT:
        return pool_format(pool, "--%s=%s", setting->name, *(char *const *) field);
    case SETTING_BOOLEAN:
        return pool_format(pool, "--%s=%s", setting->name,
                           *(const bool *) field ? "true" : "false");
    case SETTING_DURATION:
    case SETTING_PERIOD:
        return pool_format(pool, "--%s=%llums", setting->name,
                           (unsigned long long) *(const uint64_t *) field);
    case SETTING_CPUS:
        return pool_format(pool, "--%s=%llu.%03llu", setting->name,
                           (unsigned long long) *(const uint64_t *) field / 1000,
                           (unsigned long long) *(const uint64_t *) field % 1000);
    case SETTING_COUNT:
    case SETTING_SIZE:
    case SETTING_STOCK:
    case SETTING_NUMBER:
        break;
    }
    return pool_format(pool, "--%s=%llu", setting->name,
                       (unsigned long long) *(const uint64_t *) field);
}
