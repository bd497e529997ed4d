/* Whatever a client sends first: a name that is found is a host's, and no part of the hello says
 * anything else before. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/client_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_name(const struct client_hello *hello)
{
    struct url_host host;

    must(memchr(hello->host, '\0', sizeof(hello->host)) != NULL);
    if (!*hello->host)
        return;
    must(url_host_parse(hello->host, strlen(hello->host), &host, NULL) == 0);
    must(host.kind == URL_HOST_NAME && strcmp(host.name, hello->host) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client_hello hello = {.host = ""}, part;
    enum client_hello_progress progress = client_hello_read(data, size, &hello);

    check_name(&hello);
    for (size_t length = 0; length < size && size < 2048; length++) {
        enum client_hello_progress earlier = client_hello_read(data, length, &part);

        if (earlier == CLIENT_HELLO_NEEDS_MORE)
            continue;
        must(earlier == progress); /* what was said once stays */
        if (progress == CLIENT_HELLO_READY)
            must(strcmp(part.host, hello.host) == 0 && part.is_encrypted == hello.is_encrypted);
    }
    return 0;
}
