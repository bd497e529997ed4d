#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sys/network/sys_address.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted can be written as text, and that text means the same address. */
static void check_round_trip(const struct sys_address *address)
{
    char text[SYS_ADDRESS_TEXT_SIZE], again[SYS_ADDRESS_TEXT_SIZE];
    struct sys_address second;

    require(address->length <= sizeof(struct sockaddr_un));
    sys_address_format(address, text);
    require(strlen(text) < sizeof(text));
    require(sys_address_parse(text, &second) == 0);
    require(second.length == address->length);
    require(memcmp(&second.any, &address->any, address->length) == 0);
    require(sys_address_is_local(&second) == sys_address_is_local(address));
    sys_address_format(&second, again);
    require(strcmp(text, again) == 0);
}

/* Whatever a peer's name holds, its text stays inside the buffer and is printable enough. */
static void check_foreign_name(const uint8_t *data, size_t size)
{
    struct sys_address address = {.local = {.sun_family = AF_UNIX}};
    char text[SYS_ADDRESS_TEXT_SIZE];
    size_t length = size < sizeof(address.local.sun_path) ? size : sizeof(address.local.sun_path);

    if (length)
        memcpy(address.local.sun_path, data, length);
    address.length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length);
    sys_address_format(&address, text);
    require(strlen(text) < sizeof(text));
    require(strncmp(text, "unix:", strlen("unix:")) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_copy_bytes(data, size);
    struct sys_address address;

    if (sys_address_parse(text, &address) == 0)
        check_round_trip(&address);
    check_foreign_name(data, size);
    free(text);
    return 0;
}
