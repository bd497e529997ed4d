#include "net/address_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"

#define RANGE_SIZE 64 /* the longest range as text, and its NUL */

#define EMBEDDED_MAX 2

/* Where an IPv6 address of a range carries an IPv4 address. */
struct embedded {
    uint8_t offset; /* 0: none here */
    bool inverted;  /* Teredo stores it with all bits flipped */
};

struct special_range {
    struct cidr range;
    const char *reason; /* NULL: refused only for an IPv4 address inside it */
    struct embedded embedded[EMBEDDED_MAX];
};

#define V4(a, b, c, d, prefix)                                                                     \
    .range = {.family = AF_INET, .bits = (prefix), .bytes = {(a), (b), (c), (d)}}
#define V6(prefix, ...) .range = {.family = AF_INET6, .bits = (prefix), .bytes = {__VA_ARGS__}}

/* The first match counts, so exceptions and details stand before what contains them. Source: the
 * IANA IPv6 special-purpose address registry, and the clouds' own manuals. */
static const struct special_range special_ranges[] = {
#define SPECIAL(reach, a, b, c, d, bits, words) {V4(a, b, c, d, bits), words},
#include "base/special_networks.def"
#undef SPECIAL

    {V6(128, 0), "the unspecified address, which reaches this machine"},
    {V6(128, [15] = 1), "loopback"},
    {V6(96, 0), "an IPv4-compatible address (withdrawn)"},
    {V6(96, [10] = 0xff, [11] = 0xff), "an IPv4-mapped address"},
    {V6(96, [8] = 0xff, [9] = 0xff), "an IPv4-translated address"},
    {V6(96, 0x00, 0x64, 0xff, 0x9b), NULL, {{.offset = 12}}}, /* NAT64, RFC 6052 */
    {V6(48, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), "in the local NAT64 space"},
    {V6(64, 0x01, 0x00), "discarded by routers"},
    {V6(3, 0), "reserved"},
    {V6(32, 0x20, 0x01, 0x00, 0x00), NULL, {{.offset = 4}, {.offset = 12, .inverted = true}}},
    {V6(48, 0x20, 0x01, 0x00, 0x02), "for benchmarks"},
    {V6(28, 0x20, 0x01, 0x00, 0x10), "an overlay identifier (ORCHID)"},
    {V6(28, 0x20, 0x01, 0x00, 0x20), "an overlay identifier (ORCHID)"},
    {V6(23, 0x20, 0x01), "reserved for protocols"},
    {V6(32, 0x20, 0x01, 0x0d, 0xb8), "for documentation"},
    {V6(16, 0x20, 0x02), NULL, {{.offset = 2}}}, /* 6to4, RFC 3056 */
    {V6(20, 0x3f, 0xff), "for documentation"},
    {V6(16, 0x5f, 0x00), "a segment routing identifier"},
    {V6(2, 0x40), "reserved"},
    {V6(128, 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54), "unique local (cloud metadata)"},
    {V6(7, 0xfc), "unique local"},
    {V6(10, 0xfe, 0x80), "link-local"},
    {V6(10, 0xfe, 0xc0), "site-local (withdrawn)"},
    {V6(8, 0xff), "multicast"},
    {V6(1, 0x80), "reserved"},
};

bool cidr_contains(const struct cidr *cidr, sa_family_t family, const uint8_t *bytes)
{
    unsigned int whole = cidr->bits / 8, left = cidr->bits % 8;

    if (family != cidr->family || memcmp(cidr->bytes, bytes, whole) != 0)
        return false;
    return !left || (cidr->bytes[whole] ^ bytes[whole]) >> (8 - left) == 0;
}

static int parse_bits(const char *text, unsigned int most, uint8_t *ret_bits)
{
    uint64_t bits;

    if ((text[0] == '0' && text[1]) || number_parse_digits(text, strlen(text), most, &bits) < 0)
        return -EINVAL;
    *ret_bits = (uint8_t) bits;
    return 0;
}

static bool ends_with_zeros(const struct cidr *cidr)
{
    for (unsigned int bit = cidr->bits; bit < sizeof(cidr->bytes) * 8; bit++) {
        if (cidr->bytes[bit / 8] & (0x80 >> bit % 8))
            return false;
    }
    return true;
}

int cidr_parse(const char *text, struct cidr *ret_cidr)
{
    const char *slash = strchrnul(text, '/');
    size_t length = (size_t) (slash - text);
    struct cidr cidr = {.family = AF_INET, .bits = 32};
    char address[INET6_ADDRSTRLEN];

    if (length >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, length);
    address[length] = '\0';
    if (strchr(address, ':'))
        cidr = (struct cidr){.family = AF_INET6, .bits = 128};
    if (inet_pton(cidr.family, address, cidr.bytes) != 1)
        return -EINVAL;
    if (*slash && parse_bits(slash + 1, cidr.bits, &cidr.bits) < 0)
        return -EINVAL;
    if (!ends_with_zeros(&cidr))
        return -EINVAL;
    *ret_cidr = cidr;
    return 0;
}

int address_rules_allow(struct address_rules *rules, const char *text, struct error *err)
{
    if (rules->count >= ADDRESS_RULES_ALLOWED_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d allowed address ranges",
                         ADDRESS_RULES_ALLOWED_MAX);
    if (cidr_parse(text, &rules->allowed[rules->count]) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "'%.64s' is not an address range such as 10.0.0.0/8 or fd00::/8", text);
    rules->count++;
    return 0;
}

int address_rules_allow_list(struct address_rules *rules, const char *list, struct error *err)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        char range[RANGE_SIZE];

        if (length >= sizeof(range))
            return error_set(err, ERR_INVALID, 0, "'%s' is no range of addresses", list);
        (void) snprintf(range, sizeof(range), "%.*s", (int) length, list);
        if (address_rules_allow(rules, range, err) < 0)
            return -1;
        list += length + (list[length] == ',');
    }
    return 0;
}

static const struct special_range *find_range(sa_family_t family, const uint8_t *bytes)
{
    for (size_t i = 0; i < ARRAY_COUNT(special_ranges); i++) {
        if (cidr_contains(&special_ranges[i].range, family, bytes))
            return &special_ranges[i];
    }
    return NULL;
}

/* The IPv4 address inside `bytes` that is special itself, or NULL. `ret_inner` holds it. */
static const struct special_range *find_embedded(const struct special_range *range,
                                                 const uint8_t *bytes, uint8_t ret_inner[4])
{
    for (size_t i = 0; i < EMBEDDED_MAX && range->embedded[i].offset; i++) {
        const struct special_range *found;

        memcpy(ret_inner, bytes + range->embedded[i].offset, 4);
        for (size_t j = 0; range->embedded[i].inverted && j < 4; j++)
            ret_inner[j] = (uint8_t) ~ret_inner[j];
        found = find_range(AF_INET, ret_inner);
        if (found)
            return found;
    }
    return NULL;
}

static int check_bytes(sa_family_t family, const uint8_t *bytes, struct error *err)
{
    const struct special_range *range = find_range(family, bytes), *inner;
    char text[INET6_ADDRSTRLEN] = "?", inner_text[INET_ADDRSTRLEN] = "?";
    uint8_t inner_bytes[4];

    if (!range)
        return 0;
    (void) inet_ntop(family, bytes, text, sizeof(text));
    if (range->reason)
        return error_set(err, ERR_FORBIDDEN, 0, "%s is %s", text, range->reason);
    inner = find_embedded(range, bytes, inner_bytes);
    if (!inner)
        return 0;
    (void) inet_ntop(AF_INET, inner_bytes, inner_text, sizeof(inner_text));
    return error_set(err, ERR_FORBIDDEN, 0, "%s leads to %s, which is %s", text, inner_text,
                     inner->reason);
}

int address_rules_check(const struct address_rules *rules, const struct sockaddr *address,
                        socklen_t length, struct error *err)
{
    uint8_t bytes[16] = {0};

    if (length >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET)
        memcpy(bytes, (const char *) address + offsetof(struct sockaddr_in, sin_addr), 4);
    else if (length >= sizeof(struct sockaddr_in6) && address->sa_family == AF_INET6)
        memcpy(bytes, (const char *) address + offsetof(struct sockaddr_in6, sin6_addr), 16);
    else if (length >= sizeof(sa_family_t) && address->sa_family == AF_UNIX)
        return error_set(err, ERR_FORBIDDEN, 0, "unix sockets are not allowed here");
    else
        return error_set(err, ERR_FORBIDDEN, 0, "the address is of an unknown kind");
    for (size_t i = 0; i < rules->count; i++) {
        if (cidr_contains(&rules->allowed[i], address->sa_family, bytes))
            return 0;
    }
    return check_bytes(address->sa_family, bytes, err);
}
