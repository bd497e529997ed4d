/* Which network a sandbox has, and what it may reach there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/words.h"

#define NETWORK_MODES(W)                                                                           \
    W(NETWORK_NONE, "none", "loopback only")                                                       \
    W(NETWORK_NAT, "nat", "out through the host, by the launcher's own rules and these")
enum network_mode { NETWORK_MODES(WORD_CONSTANT) };

#define NETWORK_PROTOCOLS(W)                                                                       \
    W(NETWORK_ANY, "any", "all of them; the ports are then 0 to 65535")                            \
    W(NETWORK_TCP, "tcp", "TCP")                                                                   \
    W(NETWORK_UDP, "udp", "UDP")
enum network_protocol { NETWORK_PROTOCOLS(WORD_CONSTANT) };

struct network_prefix {
    uint32_t address; /* IPv4 as a number: 10.0.0.0 is 0x0a000000 */
    uint8_t bits;     /* of the address that count; the others are 0 */
};

struct network_ports {
    uint16_t first, last; /* 0 and 65535: all */
};

/* The first rule that matches decides; then the launcher's defaults do. */
struct network_rule {
    bool allow; /* or refuse */
    struct network_prefix to;
    enum network_protocol protocol;
    struct network_ports ports;
};

/* The ports of a rule that speaks of none. */
#define NETWORK_PORTS_ALL ((struct network_ports){.first = 0, .last = UINT16_MAX})

static inline bool network_ports_are_all(struct network_ports ports)
{
    return ports.first == 0 && ports.last == UINT16_MAX;
}
