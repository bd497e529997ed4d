#include "wire/wire_plan.h"

#include <string.h>

#include "base/auto.h"
#include "base/path.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"

#define VERSION_WIDTH 2

WIRE_WORDS(plan_flag, WIRE_PLAN_FLAGS);
WIRE_WORDS(network_mode, NETWORK_MODES);
WIRE_WORDS(protocol, NETWORK_PROTOCOLS);

static int check_prefix(const void *object, struct error *err)
{
    const struct network_prefix *prefix = object;
    uint32_t rest = prefix->bits == 32 ? 0 : UINT32_MAX >> prefix->bits;

    if (prefix->address & rest)
        return error_set(err, ERR_INVALID, 0, "bits set beyond the first %u", prefix->bits);
    return 0;
}

static int check_ports(const void *object, struct error *err)
{
    const struct network_ports *ports = object;

    if (ports->first > ports->last)
        return error_set(err, ERR_INVALID, 0, "ports from %u to %u", ports->first, ports->last);
    return 0;
}

static int check_rule(const void *object, struct error *err)
{
    const struct network_rule *rule = object;

    if (rule->protocol == NETWORK_ANY && !network_ports_are_all(rule->ports))
        return error_set(err, ERR_INVALID, 0, "ports without a protocol that has them");
    return 0;
}

/* The sandbox's own /proc and /sys are masked and its /dev is made: nothing goes on top. */
static int check_bind(const void *object, struct error *err)
{
    static const char *const ours[] = {"/dev", "/proc", "/sys"};
    const struct wire_bind *bind = object;

    for (size_t i = 0; i < ARRAY_COUNT(ours); i++)
        if (path_is_inside(bind->place, ours[i]))
            return error_set(err, ERR_INVALID, 0, "nothing can be bound in %s", ours[i]);
    return 0;
}

static int check_origin(const struct wire_plan *plan, struct error *err)
{
    uint32_t others = plan->flags & ~WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN);

    if (!plan->origin.id.text[0])
        return plan->flags == others
                   ? 0
                   : error_set(err, ERR_INVALID, 0, "no origin that could be held");
    if (others)
        return error_set(err, ERR_INVALID, 0, "an origin for '%s'",
                         wire_plan_flag_words[plan->flags & WIRE_BIT(WIRE_PLAN_POOLED)
                                                  ? WIRE_PLAN_POOLED
                                                  : WIRE_PLAN_EXISTING_DISK]);
    if (plan->origin.set == DISK_OF_SANDBOX && strcmp(plan->origin.id.text, plan->id.text) == 0)
        return error_set(err, ERR_INVALID, 0, "a sandbox cannot be its own origin");
    return 0;
}

static int check_plan(const void *object, struct error *err)
{
    const struct wire_plan *plan = object;

    if (check_origin(plan, err) < 0)
        return -1;
    if (plan->rules.count && plan->network != NETWORK_NAT)
        return error_set(err, ERR_INVALID, 0, "network rules without nat");
    for (size_t i = 0; i < plan->binds.count; i++)
        for (size_t j = 0; j < plan->binds.count; j++)
            if (i != j && path_is_inside(plan->binds.items[i].place, plan->binds.items[j].place))
                return error_set(err, ERR_INVALID, 0, "'%s' is bound inside '%s'",
                                 plan->binds.items[i].place, plan->binds.items[j].place);
    return 0;
}

WIRE_RECORD(prefix, WIRE_PREFIX_FIELDS, check_prefix);
WIRE_RECORD(ports, WIRE_PORTS_FIELDS, check_ports);
WIRE_RECORD(rule, WIRE_RULE_FIELDS, check_rule);
WIRE_RECORD(bind, WIRE_BIND_FIELDS, check_bind);
WIRE_RECORD(plan, WIRE_PLAN_FIELDS, check_plan);

int wire_plan_encode(const struct wire_plan *plan, struct wire_plan_bytes *ret_bytes,
                     struct error *err)
{
    struct wire_writer writer = {.at = ret_bytes->bytes,
                                 .end = ret_bytes->bytes + sizeof(ret_bytes->bytes)};

    wire_put_number(&writer, WIRE_PLAN_VERSION, VERSION_WIDTH);
    if (wire_record_encode(&wire_plan_record, plan, &writer, err) < 0)
        return error_wrap(err, "plan");
    ret_bytes->length = (size_t) (writer.at - ret_bytes->bytes);
    return 0;
}

int wire_plan_decode(const void *bytes, size_t length, struct wire_plan *ret_plan,
                     struct error *err)
{
    struct wire_reader reader = {.at = bytes, .end = (const uint8_t *) bytes + length};
    unsigned int version;

    if (length < VERSION_WIDTH)
        return error_set(err, ERR_INVALID, 0, "plan: empty");
    version = (unsigned int) wire_get_number(&reader, VERSION_WIDTH);
    if (version != WIRE_PLAN_VERSION)
        return error_set(err, ERR_UPGRADE_REQUIRED, 0, "a plan of version %u instead of %d",
                         version, WIRE_PLAN_VERSION);
    if (wire_record_decode(&wire_plan_record, &reader, ret_plan, err) < 0)
        return error_wrap(err, "plan");
    if (reader.at != reader.end)
        return error_set(err, ERR_INVALID, 0, "plan: %td bytes too many", reader.end - reader.at);
    return 0;
}

int wire_plan_seal(const struct wire_plan *plan, int *ret_fd, struct error *err)
{
    struct wire_plan_bytes bytes;
    int fd;

    if (wire_plan_encode(plan, &bytes, err) < 0)
        return -1;
    fd = sys_memfd_from_bytes("burrow-plan", SYS_MEMFD_DATA, bytes.bytes, bytes.length);
    if (fd < 0)
        return error_set(err, error_code_from_errno(-fd), fd, "make a memfd for the plan");
    *ret_fd = fd;
    return 0;
}

int wire_plan_read(int fd, struct wire_plan *ret_plan, struct error *err)
{
    uint8_t bytes[WIRE_PLAN_MAX];
    size_t size;
    ssize_t got;
    int result = sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL, sizeof(bytes), &size);

    if (result == -EFBIG)
        return error_set(err, ERR_TOO_LARGE, result, "a plan has at most %d bytes", WIRE_PLAN_MAX);
    if (result < 0)
        return error_set(err, ERR_INVALID, result, "a plan comes in a memfd with all seals");
    /* read and not mmap: whatever happens to the pages, we get bytes or an error and no SIGBUS. */
    got = sys_file_pread_full(fd, bytes, size, 0);
    if (got < 0 || (size_t) got != size)
        return error_set(err, ERR_INVALID, got < 0 ? (int) got : 0, "read the plan");
    return wire_plan_decode(bytes, size, ret_plan, err);
}
