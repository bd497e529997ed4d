/* The plan of a sandbox: everything a daemon can say about the one it wants.
 *
 * It names: an id, an image and folders that root registered under names, limits, a network mode
 * with rules. It cannot name a host path, a mount option, a user, a capability or a wall: those are
 * the launcher's own.
 *
 * A plan travels as a sealed memfd, because it is longer than a message and because a sealed file
 * can be checked and then read without the sender changing it in between. Its bytes are a version
 * (u16) and the fields of struct wire_plan by the rules of wire_field.h. */
#pragma once

#include "base/text.h"
#include "model/network_rule.h"
#include "wire/wire_body.h"

#define WIRE_PLAN_VERSION 3
#define WIRE_PLAN_MAX     8192 /* bytes */
#define WIRE_RULES_MAX    64
#define WIRE_BINDS_MAX    16

#define WIRE_PLAN_FLAGS(W)                                                                         \
    W(WIRE_PLAN_POOLED, "pooled", "a stock sandbox that an `assign` makes somebody's")             \
    W(WIRE_PLAN_EXISTING_DISK, "existing_disk", "on the disk this id has, instead of a new one")   \
    W(WIRE_PLAN_HOLD_ORIGIN, "hold_origin", "a running `origin` stands still while it is copied")
WIRE_ENUM(plan_flag, WIRE_PLAN_FLAGS);

WIRE_VOCABULARY(network_mode, enum network_mode, NETWORK_MODES);

WIRE_VOCABULARY(protocol, enum network_protocol, NETWORK_PROTOCOLS);

#define WIRE_PREFIX_FIELDS(F, S)                                                                   \
    F(S, U32, address, UINT32_MAX, "IPv4, as a number: 10.0.0.0 is 0x0a000000")                    \
    F(S, U8, bits, 32, "of the address that count; the others are 0")
WIRE_DESCRIBE(prefix, struct network_prefix);

#define WIRE_PORTS_FIELDS(F, S)                                                                    \
    F(S, U16, first, UINT16_MAX, "lowest port")                                                    \
    F(S, U16, last, UINT16_MAX, "highest port, not below the first")
WIRE_DESCRIBE(ports, struct network_ports);

#define WIRE_RULE_FIELDS(F, S)                                                                     \
    F(S, BOOL, allow, , "1: what matches may pass, 0: it is dropped")                              \
    F(S, RECORD, to, prefix, "destinations that match")                                            \
    F(S, ENUM, protocol, protocol, "protocols that match")                                         \
    F(S, RECORD, ports, ports, "destination ports that match")
WIRE_DESCRIBE(rule, struct network_rule);
WIRE_LIST(rule, WIRE_RULES_MAX);

#define WIRE_BIND_FIELDS(F, S)                                                                     \
    F(S, NAME, source, , "a folder that root registered under this name")                          \
    F(S, PATH, place, , "where it is seen in the sandbox, read-only")
WIRE_STRUCT(bind, WIRE_BIND_FIELDS);
WIRE_LIST(bind, WIRE_BINDS_MAX);

#define WIRE_PLAN_FIELDS(F, S)                                                                     \
    F(S, ID, id, , "the sandbox")                                                                  \
    F(S, NAME, hostname, , "what it calls itself")                                                 \
    F(S, NAME, image, , "`host`, or what root registered under this name")                         \
    F(S, FLAGS, flags, plan_flag, "")                                                              \
    F(S, RECORD, origin, disk, "whose disk its own begins as a copy of; none: it is empty")        \
    F(S, RECORD, limits, limits, "")                                                               \
    F(S, ID_OR_NONE, owner, , "any name; those of one name share one part of CPUs that are short") \
    F(S, ENUM, network, network_mode, "")                                                          \
    F(S, LIST, rules, rule, "only with nat; the first that matches decides")                       \
    F(S, LIST, binds, bind, "no place twice or inside another; not in /dev, /proc or /sys")
WIRE_STRUCT(plan, WIRE_PLAN_FIELDS);

struct wire_plan_bytes {
    size_t length;
    uint8_t bytes[WIRE_PLAN_MAX];
};

/* -1 with ERR_INVALID: not a valid plan, with the name of the field. Pure. */
int wire_plan_encode(const struct wire_plan *plan, struct wire_plan_bytes *ret_bytes,
                     struct error *err);

/* Any bytes in, a valid plan or an error out: ERR_UPGRADE_REQUIRED for another version, else
 * ERR_INVALID. All of `ret_plan` is written; it is undefined after a failure. Pure. */
int wire_plan_decode(const void *bytes, size_t length, struct wire_plan *ret_plan,
                     struct error *err);

/* A sealed memfd of the plan, which the caller owns. Returns 0 or -1. */
int wire_plan_seal(const struct wire_plan *plan, int *ret_fd, struct error *err);

/* Read what a daemon sent. ERR_INVALID: not a memfd, not sealed against every change (EPERM), or
 * not a plan; ERR_TOO_LARGE: longer than WIRE_PLAN_MAX, and not one byte of it was read. The
 * descriptor stays the caller's. Does not block on anything the sender controls: memory of a sealed
 * file is neither a pipe nor a mapping of his. */
int wire_plan_read(int fd, struct wire_plan *ret_plan, struct error *err);

/* The plan for people, one fact per line (`burrow run --plan`):
 *
 *     sandbox   aaaaaaaaaaaaaaaaaaaaaaaaaa
 *     hostname  demo
 *     rule      deny tcp 10.0.0.0/8 ports 1-1024 */
void wire_plan_print(const struct wire_plan *plan, struct text *text);
