#include "base/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"

struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},
    {"K", UINT64_C(1) << 10},
    {"M", UINT64_C(1) << 20},
    {"G", UINT64_C(1) << 30},
    {"T", UINT64_C(1) << 40},
    {"k", UINT64_C(1) << 10},
    {"m", UINT64_C(1) << 20},
    {"g", UINT64_C(1) << 30},
    {"t", UINT64_C(1) << 40},
};

static const struct unit duration_units[] = {
    {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
};

/* From small to large, each a multiple of the one before. */
static const struct unit shown_durations[] = {
    {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000},
};

static const char *const shown_sizes[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

int number_parse_digits(const char *digits, size_t length, uint64_t maximum, uint64_t *ret_number)
{
    uint64_t number = 0;
    int result = 0;

    if (!length)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        unsigned int digit = (unsigned char) digits[i] - (unsigned int) '0';

        if (digit > 9)
            return -EINVAL;
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number))
            result = -ERANGE; /* go on: a letter further on makes it -EINVAL */
    }
    if (result < 0 || number > maximum)
        return -ERANGE;
    *ret_number = number;
    return 0;
}

int number_parse(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_number)
{
    int negative = text[0] == '-';
    uint64_t limit = negative ? (uint64_t) INT64_MAX + 1 : INT64_MAX;
    uint64_t magnitude;
    int64_t number;
    int result = number_parse_digits(text + negative, strlen(text + negative), limit, &magnitude);

    if (result < 0)
        return result;
    number = negative ? (int64_t) -magnitude : (int64_t) magnitude;
    if (number < minimum || number > maximum)
        return -ERANGE;
    *ret_number = number;
    return 0;
}

static int parse_with_unit(const char *text, const struct unit *units, size_t count,
                           uint64_t maximum, uint64_t *ret_number)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t number = 0;

    for (size_t i = 0; i < count; i++) {
        int result;

        if (strcmp(text + digits, units[i].suffix) != 0)
            continue;
        result = number_parse_digits(text, digits, maximum / units[i].factor, &number);
        if (result == 0)
            *ret_number = number * units[i].factor;
        return result;
    }
    return -EINVAL;
}

int number_parse_size(const char *text, uint64_t maximum, uint64_t *ret_bytes)
{
    return parse_with_unit(text, size_units, ARRAY_COUNT(size_units), maximum, ret_bytes);
}

int number_parse_duration(const char *text, uint64_t maximum_ms, uint64_t *ret_ms)
{
    return parse_with_unit(text, duration_units, ARRAY_COUNT(duration_units), maximum_ms, ret_ms);
}

int number_parse_thousandths(const char *text, uint64_t maximum, uint64_t *ret_thousandths)
{
    size_t whole = strcspn(text, "."), decimals = text[whole] ? strlen(text + whole + 1) : 0;
    uint64_t number = 0, part = 0;
    int result = number_parse_digits(text, whole, maximum / 1000, &number);

    if (result < 0)
        return result;
    if (decimals > 3)
        return -EINVAL;
    if (text[whole] && number_parse_digits(text + whole + 1, decimals, 999, &part) < 0)
        return -EINVAL;
    for (; decimals && decimals < 3; decimals++)
        part *= 10;
    if (number * 1000 + part > maximum)
        return -ERANGE;
    *ret_thousandths = number * 1000 + part;
    return 0;
}

size_t number_format_unsigned(uint64_t number, char ret_text[static NUMBER_TEXT_SIZE])
{
    char backwards[NUMBER_TEXT_SIZE];
    size_t length = 0;

    do {
        backwards[length++] = (char) ('0' + number % 10);
        number /= 10;
    } while (number);
    for (size_t i = 0; i < length; i++)
        ret_text[i] = backwards[length - 1 - i];
    ret_text[length] = '\0';
    return length;
}

size_t number_format(int64_t number, char ret_text[static NUMBER_TEXT_SIZE])
{
    char digits[NUMBER_TEXT_SIZE];
    size_t length;

    if (number >= 0)
        return number_format_unsigned((uint64_t) number, ret_text);
    /* Negated as unsigned: INT64_MIN has no positive twin. */
    length = number_format_unsigned(-(uint64_t) number, digits);
    ret_text[0] = '-';
    memcpy(ret_text + 1, digits, length + 1);
    return length + 1;
}

void number_format_size(uint64_t bytes, char ret_text[static NUMBER_TEXT_SIZE])
{
    unsigned int unit = 0;
    uint64_t tenths;

    while (unit + 1 < ARRAY_COUNT(shown_sizes) && bytes >> (10 * (unit + 1)))
        unit++;
    /* The fraction first: bytes * 10 could overflow. */
    tenths = unit ? (bytes >> (10 * (unit - 1)) & 1023) * 10 >> 10 : 0;
    if (tenths)
        (void) snprintf(ret_text, NUMBER_TEXT_SIZE, "%llu.%llu %s",
                        (unsigned long long) (bytes >> (10 * unit)), (unsigned long long) tenths,
                        shown_sizes[unit]);
    else
        (void) snprintf(ret_text, NUMBER_TEXT_SIZE, "%llu %s",
                        (unsigned long long) (bytes >> (10 * unit)), shown_sizes[unit]);
}

void number_format_duration(uint64_t milliseconds, char ret_text[static NUMBER_TEXT_SIZE])
{
    const struct unit *unit = shown_durations, *smaller;
    unsigned long long whole, rest;

    while (unit + 1 < shown_durations + ARRAY_COUNT(shown_durations) &&
           milliseconds >= unit[1].factor)
        unit++;
    smaller = unit > shown_durations ? unit - 1 : unit;
    whole = milliseconds / unit->factor;
    rest = milliseconds % unit->factor / smaller->factor;
    if (unit->factor == 1000 && rest / 100)
        (void) snprintf(ret_text, NUMBER_TEXT_SIZE, "%llu.%llu s", whole, rest / 100);
    else if (unit->factor > 1000 && rest)
        (void) snprintf(ret_text, NUMBER_TEXT_SIZE, "%llu %s %llu %s", whole, unit->suffix, rest,
                        smaller->suffix);
    else
        (void) snprintf(ret_text, NUMBER_TEXT_SIZE, "%llu %s", whole, unit->suffix);
}
