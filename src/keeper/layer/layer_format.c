#include "keeper/layer/layer_format.h"

#include "base/encoding/encode.h"

void layer_put_number(uint8_t *bytes, size_t size, uint64_t number)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t) (number >> (8 * i));
}

uint64_t layer_get_number(const uint8_t *bytes, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++)
        number |= (uint64_t) bytes[i] << (8 * i);
    return number;
}

static void tell_digest(struct json_writer *json, const char *key, const uint8_t *digest)
{
    char text[HEX_TEXT_SIZE(SHA256_SIZE)];

    (void) hex_encode(digest, SHA256_SIZE, text);
    json_add_text(json, key, text);
}

void layer_sums_tell(const struct layer_sums *sums, struct json_writer *json)
{
    tell_digest(json, "id", sums->id);
    output_add_count(json, "size", sums->size);
    output_add_count(json, "bytes", sums->bytes);
    tell_digest(json, "sha256", sums->sha256);
}
