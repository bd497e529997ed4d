/* nftables, spoken to the kernel directly: one transaction is one message, taken whole or not at
 * all.
 *
 *     AUTO(nft_batch) struct nft_batch batch = nft_batch("burrow");
 *     nft_add_table(&batch);
 *     nft_add_chain(&batch, "forward", &(struct nft_hook){...});
 *     nft_rule_begin(&batch, "forward");          (nft_rule.h)
 *     ...
 *     int result = nft_commit(&nft, &batch);
 *
 * Why not libnftables: it is a parser for a language, with its own memory, and brings jansson, gmp,
 * xtables and nftnl into the one program of ours that is root. In a forked child that would be
 * bearable at start, but every sandbox needs a transaction when it comes and when it goes. Measured
 * here, adding and deleting one element takes 12 microseconds of processor time this way and 550
 * with libnftables; the fork of a child comes on top, and a wait of milliseconds in the kernel
 * whenever its socket is closed. What we build can be read with `nft list table inet burrow` like
 * any other ruleset.
 *
 * Everything is in the family `inet` and in one table per batch. Functions that add to a batch
 * cannot fail; nft_commit reports -EMSGSIZE when the batch was too long. Adding what is there with
 * the same properties is no error; deleting what is not there is -ENOENT. Names are trusted. */
#pragma once

#include <arpa/inet.h> /* before <linux/netfilter.h>, which else defines struct in_addr again */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>

#include "sys/network/sys_netlink_batch.h"

struct nft {
    int fd; /* owned; works in the network namespace where it was opened */
    uint32_t sequence;
};

#define NFT_INIT                                                                                   \
    {                                                                                              \
        .fd = -EBADF                                                                               \
    }

/* A socket for netfilter in the caller's network namespace. -errno. */
int nft_open(struct nft *ret_nft);
void nft_done(struct nft *nft);

AUTO_DEFINE(nft, struct nft, nft_done);

struct nft_batch {
    struct sys_netlink_batch messages;
    const char *table; /* borrowed */
    uint32_t sets;     /* made so far in this batch; they are numbered */
    size_t rule;       /* the open rule's list of expressions (nft_rule.h) */
};

struct nft_batch nft_batch(const char *table);
void nft_batch_done(struct nft_batch *batch);

AUTO_DEFINE(nft_batch, struct nft_batch, nft_batch_done);

/* Returns 0 or the -errno of the first message that was refused, and then nothing was changed. Does
 * not wait, except for other transactions. */
int nft_commit(struct nft *nft, struct nft_batch *batch);

void nft_add_table(struct nft_batch *batch);
void nft_delete_table(struct nft_batch *batch);

struct nft_hook {
    const char *type; /* "filter", "nat" */
    int number;       /* NF_INET_FORWARD ... */
    int priority;     /* NF_IP_PRI_FILTER ... */
    int policy;       /* NF_ACCEPT, NF_DROP */
};

/* A chain; `hook` is NULL for one that is only jumped to. */
void nft_add_chain(struct nft_batch *batch, const char *name, const struct nft_hook *hook);
void nft_flush_chain(struct nft_batch *batch, const char *name);
void nft_delete_chain(struct nft_batch *batch, const char *name);

/* Sets whose key is an IPv4 address, or a mark of connections. */
enum nft_set_kind {
    NFT_SET_OF_ADDRESSES,
    NFT_SET_OF_MARKS,
    NFT_SET_OF_RANGES,    /* nft_add_range only; they must not touch */
    NFT_SET_OF_METERS,    /* filled by the packets themselves, see nft_meter_connections */
    NFT_SET_TO_ADDRESSES, /* a map to other addresses */
    NFT_SET_TO_CHAINS,    /* a map to `goto chain` */
};

void nft_add_set(struct nft_batch *batch, const char *name, enum nft_set_kind kind);
void nft_flush_set(struct nft_batch *batch, const char *name);

void nft_add_address(struct nft_batch *batch, const char *set, struct in_addr address);
void nft_add_range(struct nft_batch *batch, const char *set, struct in_addr network,
                   unsigned int prefix);
void nft_add_mapped_address(struct nft_batch *batch, const char *map, struct in_addr from,
                            struct in_addr to);
void nft_add_mapped_chain(struct nft_batch *batch, const char *map, struct in_addr address,
                          const char *chain);
void nft_delete_address(struct nft_batch *batch, const char *set, struct in_addr address);
void nft_add_mark(struct nft_batch *batch, const char *set, uint32_t mark);
void nft_delete_mark(struct nft_batch *batch, const char *set, uint32_t mark);

/* Is the address in the set or map? 1, 0, or -errno. Ask before deleting what may not be there: a
 * transaction that fails costs the kernel, and us, a wait of several milliseconds. */
int nft_has_address(struct nft *nft, const char *table, const char *set, struct in_addr address);

/* A chain that is bound to a hook, in any table of any family. */
struct nft_base_chain {
    int family; /* NFPROTO_... */
    const char *table;
    const char *name;
    int hook;
    int policy;
};

typedef void nft_chain_function(void *context, const struct nft_base_chain *chain);

/* All base chains of the namespace, ours or not. */
int nft_each_base_chain(struct nft *nft, nft_chain_function *call, void *context);

/* How many elements the set has, or -errno; -ENOENT when there is no such set. */
int nft_count_elements(struct nft *nft, const char *table, const char *set);
