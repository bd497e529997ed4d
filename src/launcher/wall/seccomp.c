#include "launcher/wall/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/wall/seccomp_profile.h"

/* The program:
 *
 *     arch is not x86-64?  ->  kill
 *     number >= x32 bit?   ->  ENOSYS
 *     number >= middle of the ranges? ... a binary tree, its leaves one of
 *         return one answer for the whole range
 *         the rows of one call in turn: test, test, return; else the next row
 *
 * It is made from its end to its start, because jumps only go forward: whatever an instruction
 * jumps to exists already, and leaves share their return instructions. What loading costs is
 * proportional to the length, so sharing pays. A label counts from the end of the program. */

#define X32_BIT     0x40000000u
#define JUMP_MAX    255
#define RANGES_MAX  512
#define ACTIONS_MAX 16
#define ACTION_MIXED                                                                               \
    0xffffffffu /* the answer depends on arguments; no real action has that value */

/* A return farther away than that is made anew rather than shared: jumps reach 255, and the ones
 * that will lead to it are still to come. */
#define SHARE_MAX 160

struct range {
    uint32_t first; /* up to the next range's first - 1 */
    uint32_t action;
};

struct compiler {
    struct sock_filter *code; /* backwards; SECCOMP_FILTER_MAX */
    size_t count;
    uint32_t walls;
    const struct seccomp_rule *rules;
    size_t rule_count;
    struct range ranges[RANGES_MAX];
    size_t range_count;
    struct {
        uint32_t action;
        size_t label;
    } returns[ACTIONS_MAX];
    size_t return_count;
    bool overflowed;
};

static size_t emit(struct compiler *compiler, uint16_t code, uint32_t k, size_t jt, size_t jf)
{
    if (compiler->count >= SECCOMP_FILTER_MAX || jt > JUMP_MAX || jf > JUMP_MAX) {
        compiler->overflowed = true;
        return 0;
    }
    compiler->code[compiler->count] = (struct sock_filter){code, (uint8_t) jt, (uint8_t) jf, k};
    return compiler->count++;
}

static size_t emit_load(struct compiler *compiler, size_t offset)
{
    return emit(compiler, BPF_LD | BPF_W | BPF_ABS, (uint32_t) offset, 0, 0);
}

/* How far `label` will be from the instruction `ahead` places before the last one made. */
static size_t distance(const struct compiler *compiler, size_t label, size_t ahead)
{
    return compiler->count + ahead - label - 1;
}

/* `label`, or one that is near and leads there. Two jumps may be made before it is used. */
static size_t within_reach(struct compiler *compiler, size_t label)
{
    if (distance(compiler, label, 2) <= JUMP_MAX)
        return label;
    return emit(compiler, BPF_JMP | BPF_JA, (uint32_t) distance(compiler, label, 0), 0, 0);
}

/* Jump by a comparison of the accumulator with `k`. */
static size_t emit_branch(struct compiler *compiler, uint16_t comparison, uint32_t k, size_t yes,
                          size_t no)
{
    yes = within_reach(compiler, yes);
    no = within_reach(compiler, no);
    return emit(compiler, (uint16_t) (BPF_JMP | comparison | BPF_K), k, distance(compiler, yes, 0),
                distance(compiler, no, 0));
}

/* A return instruction with that action, shared when one is near. */
static size_t emit_return(struct compiler *compiler, uint32_t action)
{
    size_t i = 0;

    while (i < compiler->return_count && compiler->returns[i].action != action)
        i++;
    if (i < compiler->return_count && distance(compiler, compiler->returns[i].label, 0) < SHARE_MAX)
        return compiler->returns[i].label;
    if (i == ACTIONS_MAX) {
        compiler->overflowed = true;
        return 0;
    }
    compiler->returns[i].action = action;
    compiler->returns[i].label = emit(compiler, BPF_RET | BPF_K, action, 0, 0);
    if (i == compiler->return_count)
        compiler->return_count++;
    return compiler->returns[i].label;
}

/* What a call that matches no row gets. */
static uint32_t unknown_action(const struct compiler *compiler)
{
    return compiler->walls & SECCOMP_WALL_BIT(UNKNOWN) ? SECCOMP_RET_ERRNO | ENOSYS
                                                       : SECCOMP_RET_ALLOW;
}

/* Both halves of an argument against 0; backwards, so the second look comes first. */
static size_t emit_null_test(struct compiler *compiler, size_t low, size_t null, size_t not_null)
{
    size_t upper;

    (void) emit_branch(compiler, BPF_JEQ, 0, null, not_null);
    upper = emit_load(compiler, low + 4);
    (void) emit_branch(compiler, BPF_JEQ, 0, upper, not_null);
    return emit_load(compiler, low);
}

static size_t emit_test(struct compiler *compiler, const struct seccomp_test *test, size_t holds,
                        size_t fails)
{
    /* Little endian: the lower half comes first. */
    size_t low = offsetof(struct seccomp_data, args) + 8u * test->argument;

    switch (test->compare) {
    case SECCOMP_EQUAL:
        (void) emit_branch(compiler, BPF_JEQ, test->value, holds, fails);
        if (test->mask != UINT32_MAX)
            (void) emit(compiler, BPF_ALU | BPF_AND | BPF_K, test->mask, 0, 0);
        break;
    case SECCOMP_ANY_BIT:
        (void) emit_branch(compiler, BPF_JSET, test->mask, holds, fails);
        break;
    case SECCOMP_NULL:
        return emit_null_test(compiler, low, holds, fails);
    case SECCOMP_NOT_NULL:
        return emit_null_test(compiler, low, fails, holds);
    }
    return emit_load(compiler, low);
}

/* The rows of one call, the last one first. */
static size_t emit_rules(struct compiler *compiler, uint32_t number)
{
    size_t label = emit_return(compiler, unknown_action(compiler));

    for (size_t i = compiler->rule_count; i-- > 0;) {
        const struct seccomp_rule *rule = &compiler->rules[i];
        size_t fails = label;

        if (rule->number != number)
            continue;
        label = emit_return(compiler, seccomp_rule_action(rule, compiler->walls));
        for (size_t k = rule->test_count; k-- > 0;)
            label = emit_test(compiler, &rule->tests[k], label, fails);
    }
    return label;
}

/* The one answer for a number, or ACTION_MIXED. */
static uint32_t plain_action(const struct compiler *compiler, uint32_t number)
{
    for (size_t i = 0; i < compiler->rule_count; i++) {
        const struct seccomp_rule *rule = &compiler->rules[i];

        if (rule->number == number)
            return rule->test_count > 0 ? ACTION_MIXED : seccomp_rule_action(rule, compiler->walls);
    }
    return unknown_action(compiler);
}

static void find_ranges(struct compiler *compiler)
{
    uint32_t end = 0;

    for (size_t i = 0; i < compiler->rule_count; i++)
        if (compiler->rules[i].number >= end)
            end = compiler->rules[i].number + 1;
    /* `end` itself has no row: its range holds all higher numbers. */
    for (uint32_t number = 0; number <= end; number++) {
        uint32_t action = plain_action(compiler, number);
        size_t count = compiler->range_count;

        if (count > 0 && action != ACTION_MIXED && compiler->ranges[count - 1].action == action)
            continue;
        if (count == RANGES_MAX) {
            compiler->overflowed = true;
            return;
        }
        compiler->ranges[compiler->range_count++] = (struct range){number, action};
    }
}

static size_t emit_tree(struct compiler *compiler, size_t first, size_t count)
{
    const struct range *range = &compiler->ranges[first];
    size_t left_count = count / 2, left, right;

    if (count == 1)
        return range->action == ACTION_MIXED ? emit_rules(compiler, range->first)
                                             : emit_return(compiler, range->action);
    right = emit_tree(compiler, first + left_count, count - left_count);
    left = emit_tree(compiler, first, left_count);
    return emit_branch(compiler, BPF_JGE, range[left_count].first, right, left);
}

static void emit_interface_checks(struct compiler *compiler, size_t tree)
{
    bool closed = compiler->walls & SECCOMP_WALL_BIT(ABI);
    size_t x32 = emit_return(compiler, closed ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_ALLOW);
    size_t native, other;

    (void) emit_branch(compiler, BPF_JGE, X32_BIT, x32, tree);
    native = emit_load(compiler, offsetof(struct seccomp_data, nr));
    other = emit_return(compiler, closed ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
    (void) emit_branch(compiler, BPF_JEQ, AUDIT_ARCH_X86_64, native, other);
    (void) emit_load(compiler, offsetof(struct seccomp_data, arch));
}

static int compile(struct compiler *compiler, struct seccomp_filter *filter)
{
    struct sock_filter code[SECCOMP_FILTER_MAX];

    compiler->code = code;
    find_ranges(compiler);
    emit_interface_checks(compiler, emit_tree(compiler, 0, compiler->range_count));
    if (compiler->overflowed)
        return -E2BIG;
    filter->count = (uint16_t) compiler->count;
    for (size_t i = 0; i < compiler->count; i++)
        filter->instructions[i] = code[compiler->count - 1 - i];
    return 0;
}

int seccomp_filter_init(struct seccomp_filter *filter, uint32_t walls)
{
    struct compiler compiler = {.walls = walls};

    compiler.rules = seccomp_profile_rules(&compiler.rule_count);
    return compile(&compiler, filter);
}

int seccomp_filter_init_keeper(struct seccomp_filter *filter)
{
    struct compiler compiler = {.walls = SECCOMP_WALLS_ALL};

    compiler.rules = seccomp_profile_keeper_rules(&compiler.rule_count);
    return compile(&compiler, filter);
}

int seccomp_filter_init_daemon(struct seccomp_filter *filter)
{
    struct compiler compiler = {.walls = SECCOMP_WALLS_ALL & ~SECCOMP_WALL_BIT(UNKNOWN)};

    compiler.rules = seccomp_profile_daemon_rules(&compiler.rule_count);
    return compile(&compiler, filter);
}

int seccomp_filter_load(const struct seccomp_filter *filter)
{
    struct sock_fprog program = {
        .len = filter->count,
        .filter = (struct sock_filter *) filter->instructions, /* the kernel only reads it */
    };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
