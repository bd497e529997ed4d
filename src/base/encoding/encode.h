/* Bytes as text: hexadecimal and base64.
 *
 * Encoding writes into storage of the caller, whose size the macros give. Decoding is strict, so
 * that one value has one text: no white space, no missing or needless padding, no bits set that
 * carry nothing. Decoding returns 0 and the number of bytes, -EINVAL when the text is not of the
 * form, -ENOSPC when the bytes do not fit in `capacity`; the storage is then undefined. */
#pragma once

#include <stddef.h>

/* Storage for the text of `count` bytes, NUL included. */
#define HEX_TEXT_SIZE(count)    ((size_t) (count) *2 + 1)
#define BASE64_TEXT_SIZE(count) (((size_t) (count) + 2) / 3 * 4 + 1)

/* Storage that is enough for the bytes of `length` characters of text. */
#define HEX_BYTES_MAX(length)    ((size_t) (length) / 2)
#define BASE64_BYTES_MAX(length) (((size_t) (length) + 3) / 4 * 3)

enum base64_kind {
    BASE64_STANDARD, /* RFC 4648 section 4: + and /, always padded with = */
    BASE64_URL,      /* section 5: - and _, never padded */
};

/* Lower-case digits and a NUL. Returns the length of the text. */
size_t hex_encode(const void *bytes, size_t count, char *ret_text);

/* Digits of either case; `text` needs no NUL. */
int hex_decode(const char *text, size_t length, void *ret_bytes, size_t capacity,
               size_t *ret_count);

/* The text and a NUL. Returns the length of the text. */
size_t base64_encode(enum base64_kind kind, const void *bytes, size_t count, char *ret_text);

/* `text` needs no NUL. */
int base64_decode(enum base64_kind kind, const char *text, size_t length, void *ret_bytes,
                  size_t capacity, size_t *ret_count);
