/* Rules of nftables, built from the kernel's expressions. Each function adds what the comment says
 * in the language of nft(8); matches come first, one verdict comes last.
 *
 *     nft_rule_begin(&batch, "forward");
 *     nft_match_out(&batch, "uplink", false);
 *     nft_drop(&batch);
 *     nft_rule_end(&batch);                       oifname != "uplink" drop
 *
 * Addresses are read from the IPv4 header: a chain that sees IPv6 too must say nft_match_ipv4
 * first. */
#pragma once

#include "launcher/network/nft.h"

void nft_rule_begin(struct nft_batch *batch, const char *chain);
void nft_rule_end(struct nft_batch *batch);

/* Matches. `equal` false turns them round. */
void nft_match_ipv4(struct nft_batch *batch, bool equal);                  /* meta nfproto ipv4 */
void nft_match_in(struct nft_batch *batch, const char *link, bool equal);  /* iifname */
void nft_match_out(struct nft_batch *batch, const char *link, bool equal); /* oifname */
void nft_match_protocol(struct nft_batch *batch, uint8_t protocol);        /* meta l4proto */
void nft_match_source(struct nft_batch *batch, struct in_addr address, bool equal); /* ip saddr */

/* ip daddr 10.0.0.0/8; everything for prefix 0 */
void nft_match_destination(struct nft_batch *batch, struct in_addr network, unsigned int prefix);

/* th dport first-last; after nft_match_protocol for TCP or UDP */
void nft_match_port(struct nft_batch *batch, uint16_t first, uint16_t last);

#define NFT_STATE_INVALID     (1u << 0)
#define NFT_STATE_ESTABLISHED (1u << 1)
#define NFT_STATE_RELATED     (1u << 2)

/* ct state a,b */
void nft_match_state(struct nft_batch *batch, uint32_t states);

/* ct status dnat: a packet of a connection we redirected */
void nft_match_redirected(struct nft_batch *batch);

/* ip daddr @set */
void nft_match_destination_in(struct nft_batch *batch, const char *set);

/* fib saddr . iif oif missing: no answer to the sender would leave where the packet came in */
void nft_match_wrong_source(struct nft_batch *batch);

/* ct count over N, counted per rule */
void nft_match_connections_over(struct nft_batch *batch, uint32_t limit);

/* add @set { ip saddr ct count over N }, counted per source address */
void nft_meter_connections(struct nft_batch *batch, const char *set, uint32_t limit);

/* ct mark @set */
void nft_match_mark_in(struct nft_batch *batch, const char *set);

/* Statements. */
void nft_mark_by_link(struct nft_batch *batch); /* ct mark set iif */

/* Verdicts. */
void nft_accept(struct nft_batch *batch);
void nft_drop(struct nft_batch *batch);
void nft_reject(struct nft_batch *batch); /* reject with icmpx type admin-prohibited */
void nft_jump(struct nft_batch *batch, const char *chain);
void nft_goto(struct nft_batch *batch, const char *chain);
void nft_masquerade(struct nft_batch *batch);
void nft_verdict_of_source(struct nft_batch *batch, const char *map); /* ip saddr vmap @map */
void nft_redirect_by_map(struct nft_batch *batch, const char *map); /* dnat to ip daddr map @map */
