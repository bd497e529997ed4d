/* The rows of the three system call profiles, for the compiler in seccomp.c and for documents.
 *
 * Several rows may name one call: the first whose tests all hold answers, a row without tests
 * always holds. A call whose rows all fail, or that has none, is ENOSYS. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "launcher/wall/seccomp.h"

/* How a test looks at an argument. */
enum seccomp_compare {
    SECCOMP_EQUAL,   /* (lower half & mask) == value */
    SECCOMP_ANY_BIT, /* (lower half & mask) != 0 */
    SECCOMP_NULL,    /* all 64 bits are 0 */
    SECCOMP_NOT_NULL,
};

struct seccomp_test {
    enum seccomp_compare compare;
    uint8_t argument; /* 0..5 */
    uint32_t mask;
    uint32_t value;
};

#define SECCOMP_TESTS_MAX 3

struct seccomp_rule {
    const char *name;
    uint32_t number;
    enum seccomp_wall wall; /* SECCOMP_WALL_COUNT: none, the row allows */
    uint16_t system;        /* errno of a closing row; 0 there means: answer success, do nothing */
    uint8_t test_count;
    struct seccomp_test tests[SECCOMP_TESTS_MAX];
    const char *reason;
};

/* All rows of a sandbox's profile, of a keeper's and of the daemon's, in the order of the table. Static. */
const struct seccomp_rule *seccomp_profile_rules(size_t *ret_count);
const struct seccomp_rule *seccomp_profile_keeper_rules(size_t *ret_count);
const struct seccomp_rule *seccomp_profile_daemon_rules(size_t *ret_count);

/* What `rule` answers when its tests hold, as the value of a seccomp return instruction: a row of a
 * wall that is off allows. */
uint32_t seccomp_rule_action(const struct seccomp_rule *rule, uint32_t walls);
