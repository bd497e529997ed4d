#include "launcher/doctor/router_doctor.h"

#include <arpa/inet.h> /* before the headers of the kernel, which else define struct in_addr again */
#include <fcntl.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "launcher/network/nft.h"
#include "launcher/network/router_resolver.h"
#include "sys/file/sys_file.h"

/* Larger tables of the old iptables are not read. */
#define LEGACY_TABLE_MAX (16 << 20)

#define NAMES_FILE_MAX 4096

struct search {
    const char *name;
    struct text *report;
};

/* Tables made by iptables-nft have the names of the old ones. */
static bool is_iptables(const struct nft_base_chain *chain)
{
    return chain->family == NFPROTO_IPV4 && strcmp(chain->table, "filter") == 0 &&
           strcmp(chain->name, "FORWARD") == 0;
}

static void advise_iptables(const struct search *search, const char *program)
{
    text_format(search->report,
                "the policy of iptables' FORWARD chain is DROP, so sandboxes do not reach the "
                "internet; allow them: %s -I FORWARD -i %s -j ACCEPT && %s -I FORWARD -o %s -m "
                "conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n",
                program, search->name, program, search->name);
}

static void look_at_chain(void *context, const struct nft_base_chain *chain)
{
    const struct search *search = context;
    const char *family = chain->family == NFPROTO_INET ? "inet" : "ip";

    if (chain->hook != NF_INET_FORWARD || chain->policy != NF_DROP ||
        (chain->family != NFPROTO_INET && chain->family != NFPROTO_IPV4) ||
        strcmp(chain->table, search->name) == 0)
        return;
    if (is_iptables(chain)) {
        advise_iptables(search, "iptables");
        return;
    }
    text_format(search->report,
                "the policy of nftables chain %s %s %s is drop, so sandboxes do not reach the "
                "internet; allow them: nft insert rule %s %s %s iifname %s accept && nft insert "
                "rule %s %s %s oifname %s ct state established,related accept\n",
                family, chain->table, chain->name, family, chain->table, chain->name, search->name,
                family, chain->table, chain->name, search->name);
}

/* The verdict at the end of the old FORWARD chain: 0 for what cannot be read. */
static int read_policy(const struct ipt_get_entries *entries, uint32_t at)
{
    struct ipt_entry entry;
    struct xt_standard_target target;
    const char *bytes = (const char *) entries->entrytable;

    if (at > entries->size || entries->size - at < sizeof(entry))
        return 0;
    memcpy(&entry, bytes + at, sizeof(entry));
    if (entry.target_offset > entries->size - at ||
        entries->size - at - entry.target_offset < sizeof(target))
        return 0;
    memcpy(&target, bytes + at + entry.target_offset, sizeof(target));
    return target.verdict;
}

/* The old iptables, which nftables does not see. Only asked where its table is there already:
 * asking would create it. */
static void look_at_legacy(const struct search *search)
{
    AUTO(free) char *names = NULL;
    AUTO(free) struct ipt_get_entries *entries = NULL;
    AUTO(close) int fd = -EBADF;
    struct ipt_getinfo info = {.name = "filter"};
    socklen_t size = sizeof(info);
    size_t length;

    if (sys_file_read_all(AT_FDCWD, "/proc/net/ip_tables_names", NAMES_FILE_MAX, &names, &length) <
            0 ||
        !strstr(names, "filter"))
        return;
    fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    if (fd < 0 || getsockopt(fd, IPPROTO_IP, IPT_SO_GET_INFO, &info, &size) < 0 ||
        info.size > LEGACY_TABLE_MAX)
        return;
    size = (socklen_t) (sizeof(*entries) + info.size);
    entries = mem_alloc(size);
    memcpy(entries->name, info.name, sizeof(entries->name));
    entries->size = info.size;
    if (getsockopt(fd, IPPROTO_IP, IPT_SO_GET_ENTRIES, entries, &size) == 0 &&
        read_policy(entries, info.underflow[NF_INET_FORWARD]) == -NF_DROP - 1)
        advise_iptables(search, "iptables-legacy");
}

static void look_at_resolvers(const char *file, const char *fallback, struct text *report)
{
    struct router_resolvers resolvers = router_resolver_read(file, fallback);

    if (resolvers.reason)
        text_format(report, "sandboxes cannot resolve names: %s\n", resolvers.reason);
}

void router_doctor(const char *name, const char *resolver_file, const char *resolver_fallback,
                   struct text *report)
{
    AUTO(nft) struct nft nft = NFT_INIT;
    struct search search = {.name = name, .report = report};
    int result = nft_open(&nft);

    if (result == 0)
        result = nft_each_base_chain(&nft, look_at_chain, &search);
    if (result < 0)
        text_format(report,
                    "nftables does not answer (%s), so sandboxes can have no network but `none`; "
                    "use a kernel with CONFIG_NF_TABLES_INET\n",
                    strerror(-result));
    look_at_legacy(&search);
    look_at_resolvers(resolver_file, resolver_fallback, report);
}
