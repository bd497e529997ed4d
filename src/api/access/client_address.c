#include "api/access/client_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/network/sys_address.h"

int trusted_proxies_read(struct trusted_proxies *proxies, const char *text, struct error *err)
{
    *proxies = (struct trusted_proxies){.count = 0};
    while (*text) {
        size_t length = strcspn(text, ",");
        AUTO(free) char *word = mem_copy_bytes(text, length);

        if (strcmp(word, "unix") == 0)
            proxies->is_unix = true;
        else if (proxies->count == TRUSTED_PROXIES_MAX)
            return error_set(err, ERR_INVALID, 0, "more than %d trusted proxies",
                             TRUSTED_PROXIES_MAX);
        else if (cidr_parse(word, &proxies->ranges[proxies->count++]) < 0)
            return error_set(
                err, ERR_INVALID, 0,
                "trusted proxy '%s' is not an address, a range such as 10.0.0.0/8, or unix", word);
        text += length + (text[length] == ',');
    }
    return 0;
}

/* --- one address ---------------------------------------------------------------------------- */

struct client_address_host {
    sa_family_t family; /* AF_UNSPEC: none */
    uint8_t bytes[16];
};

/* An IPv4 address that came over an IPv6 socket is the IPv4 address. */
static struct client_address_host host_from_ipv6(const uint8_t bytes[static 16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct client_address_host host = {.family = AF_INET6};

    if (memcmp(bytes, mapped, sizeof(mapped)) == 0) {
        host.family = AF_INET;
        memcpy(host.bytes, bytes + 12, 4);
        return host;
    }
    memcpy(host.bytes, bytes, 16);
    return host;
}

static struct client_address_host host_of_peer(const char *peer)
{
    struct sys_address address;
    struct client_address_host host = {.family = AF_UNSPEC};

    if (!peer || sys_address_parse(peer, &address) < 0)
        return host;
    if (address.any.sa_family == AF_INET) {
        host.family = AF_INET;
        memcpy(host.bytes, &address.ipv4.sin_addr, 4);
    } else if (address.any.sa_family == AF_INET6) {
        host = host_from_ipv6(address.ipv6.sin6_addr.s6_addr);
    }
    return host;
}

/* "1.2.3.4", "1.2.3.4:80", "::1", "[::1]", "[::1]:80": what proxies write. */
static struct client_address_host host_of_hop(const char *text, size_t length)
{
    char word[CLIENT_ADDRESS_SIZE];
    struct client_address_host host = {.family = AF_UNSPEC};
    uint8_t bytes[16];

    if (length >= sizeof(word))
        return host;
    memcpy(word, text, length);
    word[length] = '\0';
    if (inet_pton(AF_INET, word, host.bytes) == 1)
        host.family = AF_INET;
    else if (inet_pton(AF_INET6, word, bytes) == 1)
        host = host_from_ipv6(bytes);
    else if (word[0] == '[' && word[length - 1] == ']') {
        word[length - 1] = '\0';
        if (inet_pton(AF_INET6, word + 1, bytes) == 1)
            host = host_from_ipv6(bytes);
    } else
        host = host_of_peer(word);
    return host;
}

static bool is_proxy(const struct trusted_proxies *proxies, const struct client_address_host *host)
{
    for (size_t i = 0; i < proxies->count; i++) {
        if (cidr_contains(&proxies->ranges[i], host->family, host->bytes))
            return true;
    }
    return false;
}

/* --- the way here ---------------------------------------------------------------------------- */

/* The last entry of the list that is no proxy of ours. One that is not an address ends the search:
 * what stands before it was told by somebody unknown. */
static struct client_address_host find_forwarded(const struct trusted_proxies *proxies,
                                                 const char *list, struct client_address_host host)
{
    size_t end = strlen(list);

    for (size_t hops = 0; hops < FORWARDED_HOPS_MAX && is_proxy(proxies, &host) && end; hops++) {
        size_t begin = end;
        struct client_address_host next;

        while (begin && list[begin - 1] != ',')
            begin--;
        while (begin < end && list[begin] == ' ')
            begin++;
        while (end > begin && list[end - 1] == ' ')
            end--;
        next = host_of_hop(list + begin, end - begin);
        if (next.family == AF_UNSPEC)
            break;
        host = next;
        while (begin && list[begin - 1] != ',')
            begin--;
        end = begin ? begin - 1 : 0;
    }
    return host;
}

static void write_host(const struct client_address_host *host, struct client_address *ret_address)
{
    uint8_t network[16];

    if (host->family == AF_UNSPEC) {
        (void) snprintf(ret_address->text, CLIENT_ADDRESS_SIZE, "unix");
        (void) snprintf(ret_address->network, CLIENT_ADDRESS_SIZE, "unix");
        return;
    }
    (void) inet_ntop(host->family, host->bytes, ret_address->text, CLIENT_ADDRESS_SIZE);
    memcpy(network, host->bytes, sizeof(network));
    if (host->family == AF_INET6)
        memset(network + 8, 0, 8); /* one customer has a whole /64 */
    (void) inet_ntop(host->family, network, ret_address->network, CLIENT_ADDRESS_SIZE);
}

bool client_address_is_of(const char *text, const char *network)
{
    const struct client_address_host host = host_of_hop(text, strlen(text));
    struct client_address address;

    write_host(&host, &address);
    return strcmp(address.text, text) == 0 && strcmp(address.network, network) == 0;
}

/* What fits of a header's entries: the last ones, from a comma on. */
static const char *fitting_entries(const char *entries, size_t length, size_t size)
{
    const char *comma;

    if (length < size)
        return entries;
    comma = strchr(entries + (length - size), ',');
    return comma ? comma + 1 : "";
}

/* The entries of all headers of that name, as one list. What does not fit is the oldest and least
 * trusted: the last ones are what counts. */
static const char *forwarded_list(const struct http_request *request, char *ret_list, size_t size)
{
    const struct http_head *head = request->head;
    size_t length = 0;

    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];

        if (strcasecmp(header->name, "x-forwarded-for") != 0)
            continue;
        if (length + header->value_length + 2 > size)
            length = 0;
        length += (size_t) snprintf(ret_list + length, size - length, "%s%s", length ? "," : "",
                                    fitting_entries(header->value, header->value_length, size - 1));
    }
    return length ? ret_list : "";
}

void client_address_find(const struct trusted_proxies *proxies, const struct http_request *request,
                         struct client_address *ret_address)
{
    char list[2048];
    const char *forwarded = forwarded_list(request, list, sizeof(list));
    const char *scheme = http_request_header(request, "x-forwarded-proto");
    struct client_address_host peer = host_of_peer(request->peer), client = peer;
    bool is_trusted = request->is_local ? proxies->is_unix : is_proxy(proxies, &peer);

    *ret_address = (struct client_address){.is_secure = request->is_secure};
    if (is_trusted) {
        if (request->is_local && *forwarded) {
            /* A unix socket has no address of its own: begin with the last entry itself. */
            const char *last = strrchr(forwarded, ',');

            last = last ? last + 1 : forwarded;
            last += strspn(last, " ");
            client = host_of_hop(last, strcspn(last, " "));
        }
        if (client.family != AF_UNSPEC)
            client = find_forwarded(proxies, forwarded, client);
        ret_address->is_secure |= scheme && strcasecmp(scheme, "https") == 0;
    }
    write_host(&client, ret_address);
}
