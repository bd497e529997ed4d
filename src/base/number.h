/* Numbers as people and protocols write them: strict reading, quick writing.
 *
 * Reading takes the whole text or nothing: no white space, no '+', no trailing characters,
 * fractions only where said. Errors: -EINVAL when the text is not of the form, -ERANGE when it is
 * but the value lies outside the stated range; `ret_` is then untouched. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Long enough for any text that this module writes, NUL included. */
#define NUMBER_TEXT_SIZE 48

/* "-12" -> -12, from `minimum` to `maximum`. */
int number_parse(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_number);

/* Exactly `length` decimal digits that need no NUL behind them, at most `maximum`: numbers inside
 * protocols. No sign at all. */
int number_parse_digits(const char *digits, size_t length, uint64_t maximum, uint64_t *ret_number);

/* "65536", "64K", "512M", "1G", "2T" -> bytes. Units are powers of 1024, in either case. */
int number_parse_size(const char *text, uint64_t maximum, uint64_t *ret_bytes);

/* "500ms", "30s", "5m", "1h", "2d", or plain seconds: "30" -> milliseconds. */
int number_parse_duration(const char *text, uint64_t maximum_ms, uint64_t *ret_ms);

/* "2", "0.5", "1.25" -> thousandths, exactly: up to three decimals, `maximum` of them. */
int number_parse_thousandths(const char *text, uint64_t maximum, uint64_t *ret_thousandths);

/* The decimal text of `number`, NUL-terminated. Returns its length. */
size_t number_format(int64_t number, char ret_text[static NUMBER_TEXT_SIZE]);
size_t number_format_unsigned(uint64_t number, char ret_text[static NUMBER_TEXT_SIZE]);

/* For people: "512 bytes", "1.5 KiB", "64 MiB". One decimal, cut and not rounded, so that nothing
 * looks bigger than it is. */
void number_format_size(uint64_t bytes, char ret_text[static NUMBER_TEXT_SIZE]);

/* For people: "500 ms", "1.5 s", "5 min 30 s", "3 h 20 min", "2 d 4 h". The two largest units. */
void number_format_duration(uint64_t milliseconds, char ret_text[static NUMBER_TEXT_SIZE]);
