/* Any bytes encode and come back; any text that decodes is the one text of its bytes. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char) (c + 'a' - 'A') : c;
}

static void check_base64(enum base64_kind kind, const char *data, size_t size)
{
    /* Exactly as large as promised, so that the sanitizer sees one byte too many. */
    AUTO(free) char *text = mem_alloc(BASE64_TEXT_SIZE(size));
    AUTO(free) char *bytes = mem_alloc(BASE64_BYTES_MAX(size));
    AUTO(free) char *back = mem_alloc(size);
    size_t length = base64_encode(kind, data, size, text), count = 0;
    int result;

    must(strlen(text) == length && length < BASE64_TEXT_SIZE(size));
    must(base64_decode(kind, text, length, back, size, &count) == 0);
    must(count == size && memcmp(back, data, size) == 0);
    if (size)
        must(base64_decode(kind, text, length, back, size - 1, &count) == -ENOSPC);

    result = base64_decode(kind, data, size, bytes, BASE64_BYTES_MAX(size), &count);
    must(result == 0 || result == -EINVAL);
    if (result == 0) {
        must(base64_encode(kind, bytes, count, text) == size);
        must(memcmp(text, data, size) == 0);
    }
}

static void check_hex(const char *data, size_t size)
{
    AUTO(free) char *text = mem_alloc(HEX_TEXT_SIZE(size));
    AUTO(free) char *bytes = mem_alloc(HEX_BYTES_MAX(size));
    AUTO(free) char *back = mem_alloc(size);
    size_t length = hex_encode(data, size, text), count = 0;

    must(strlen(text) == length && length == 2 * size);
    must(hex_decode(text, length, back, size, &count) == 0);
    must(count == size && memcmp(back, data, size) == 0);
    if (hex_decode(data, size, bytes, HEX_BYTES_MAX(size), &count) == 0) {
        must(hex_encode(bytes, count, text) == size);
        for (size_t i = 0; i < size; i++)
            must(text[i] == lower(data[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = size ? (const char *) data : "";

    check_base64(BASE64_STANDARD, bytes, size);
    check_base64(BASE64_URL, bytes, size);
    check_hex(bytes, size);
    return 0;
}
