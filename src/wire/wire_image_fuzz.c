/* Any bytes are refused with a reason, or are an image that is written as something that reads as
 * the same image. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT, again = WIRE_IMAGE_INIT;
    AUTO(text) struct text first = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    AUTO(text) struct text second = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    struct error err = ERROR_INIT;

    if (wire_image_read((const char *) data, size, &image, &err) < 0) {
        must(err.code == ERR_INVALID || err.code == ERR_TOO_LARGE);
        return 0;
    }
    for (size_t i = 0; i < image.by_key[WIRE_IMAGE_LAYER].count; i++)
        must(wire_image_is_digest(image.by_key[WIRE_IMAGE_LAYER].words[i]));
    must(wire_image_write(&image, &first, &err) == 0 && first.length == size);
    must(wire_image_read(first.data, first.length, &again, &err) == 0);
    must(wire_image_write(&again, &second, &err) == 0 && second.length == first.length &&
         memcmp(second.data, first.data, first.length) == 0);
    return 0;
}
