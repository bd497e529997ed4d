/* Any resolv.conf: never more servers than there is room for, none of them on loopback, and a
 * reason exactly when there are none. */
#include <stdlib.h>

#include "base/memory.h"
#include "launcher/network/router_resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *text = mem_copy_bytes(data, size);
    struct router_resolvers resolvers = router_resolver_parse(text);

    if (resolvers.count > ROUTER_RESOLVERS_MAX ||
        (resolvers.reason == NULL) != (resolvers.count > 0))
        abort();
    for (size_t i = 0; i < resolvers.count; i++) {
        uint32_t address = ntohl(resolvers.addresses[i].s_addr);

        if (address == 0 || address >> 24 == 127)
            abort();
    }
    return 0;
}
