#include "launcher/network/router_resolver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "sys/file/sys_file.h"

#define BLANKS " \t\r"

/* Longer words are no address. */
#define WORD_SIZE 64

static bool is_loopback(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == 127;
}

/* The next word of the line that ends at `end`, cut when too long. Returns where it ends. */
static const char *next_word(const char *at, const char *end, char ret_word[static WORD_SIZE])
{
    size_t length, kept;

    while (at < end && strchr(BLANKS, *at))
        at++;
    length = strcspn(at, BLANKS "\n");
    if (length > (size_t) (end - at))
        length = (size_t) (end - at);
    kept = length < WORD_SIZE ? length : WORD_SIZE - 1;
    memcpy(ret_word, at, kept);
    ret_word[kept] = '\0';
    return at + length;
}

static void add_server(struct router_resolvers *resolvers, const char *word)
{
    struct in_addr address;

    if (inet_pton(AF_INET, word, &address) != 1)
        resolvers->other++;
    else if (is_loopback(address) || address.s_addr == 0)
        resolvers->loopback++; /* 0.0.0.0 is this host too */
    else if (resolvers->count < ROUTER_RESOLVERS_MAX)
        resolvers->addresses[resolvers->count++] = address;
}

static void read_line(struct router_resolvers *resolvers, const char *line, const char *end)
{
    char word[WORD_SIZE];

    line = next_word(line, end, word);
    if (strcmp(word, "nameserver") != 0)
        return;
    (void) next_word(line, end, word);
    add_server(resolvers, word);
}

static const char *reason_for(const struct router_resolvers *resolvers)
{
    if (resolvers->count)
        return NULL;
    if (resolvers->loopback)
        return "the host's name server listens on its loopback only, where sandboxes cannot reach "
               "it; give the host's /etc/resolv.conf the address of a name server in the network";
    if (resolvers->other)
        return "the host's name servers have IPv6 addresses only; add one with an IPv4 address to "
               "/etc/resolv.conf";
    return "the host's /etc/resolv.conf names no name server";
}

struct router_resolvers router_resolver_parse(const char *text)
{
    struct router_resolvers resolvers = {0};

    while (*text) {
        const char *end = strchrnul(text, '\n');

        read_line(&resolvers, text, end);
        text = *end ? end + 1 : end;
    }
    resolvers.reason = reason_for(&resolvers);
    return resolvers;
}

static struct router_resolvers read_file(const char *file)
{
    AUTO(free) char *text = NULL;
    size_t length;

    if (sys_file_read_all(AT_FDCWD, file, ROUTER_RESOLVER_FILE_MAX, &text, &length) < 0)
        return router_resolver_parse("");
    return router_resolver_parse(text);
}

struct router_resolvers router_resolver_read(const char *file, const char *fallback)
{
    struct router_resolvers resolvers = read_file(file);

    if (resolvers.count == 0 && resolvers.loopback) {
        struct router_resolvers behind = read_file(fallback);

        if (behind.count)
            return behind;
    }
    return resolvers;
}
