/* Any bytes as the beginning of a file, and as its name: there is always a type, and content with
 * NUL in it is never plain text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/file/mime.h"
#include "base/auto.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Copies of the exact size, so that reading past the end is seen. */
    AUTO(free) char *bytes = malloc(size ? size : 1);
    AUTO(free) char *name = mem_copy_bytes(data, size);
    size_t seen = size < MIME_SNIFF_SIZE ? size : MIME_SNIFF_SIZE;
    const char *type;

    memcpy(bytes, data, size);
    type = mime_of_bytes(bytes, size);
    if (!strchr(type, '/'))
        abort();
    if (seen && memchr(bytes, '\0', seen) && strcmp(type, MIME_TEXT) == 0)
        abort();
    type = mime_of_name(name);
    if (type && (!type[0] || (!strchr(name, '.') && strlen(name) > 16)))
        abort();
    return 0;
}
