#include "domain/sandbox/sandbox_quota.h"

#include "base/number.h"
#include "domain/identity/owner.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"

static struct quota quota_of(const struct domain *domain, const struct id *owner)
{
    const struct owner *found = owner_find(domain, owner);

    return found ? found->quota : domain->options.default_quota;
}

static struct usage usage_of(const struct domain *domain, const struct id *owner)
{
    const struct usage *usage = sandbox_set_usage(domain, owner);

    struct usage copy = usage ? *usage : (struct usage){.sandboxes = 0};

    copy.disk_bytes += sandbox_hook_disk_bytes(domain, owner);
    return copy;
}

static int check_count(const char *what, uint64_t used, uint64_t maximum, struct error *err)
{
    if (maximum == 0 || used < maximum)
        return 0;
    return error_set(err, ERR_QUOTA, 0, "%s: there are %llu of at most %llu", what,
                     (unsigned long long) used, (unsigned long long) maximum);
}

static int check_cpu(uint64_t used, uint64_t asked, uint64_t maximum, struct error *err)
{
    if (maximum == 0)
        return 0;
    if (asked == 0)
        return error_set(err, ERR_QUOTA, 0, "cpu: %.10g CPUs are all there is; ask for a limit",
                         (double) maximum / 1000);
    if (asked <= maximum && used <= maximum - asked)
        return 0;
    return error_set(err, ERR_QUOTA, 0,
                     "cpu: %.10g of at most %.10g CPUs are taken by sandboxes that run, and %.10g "
                     "more were asked for",
                     (double) used / 1000, (double) maximum / 1000, (double) asked / 1000);
}

static int check_bytes(const char *what, uint64_t used, uint64_t asked, uint64_t maximum,
                       struct error *err)
{
    char used_text[NUMBER_TEXT_SIZE], asked_text[NUMBER_TEXT_SIZE], maximum_text[NUMBER_TEXT_SIZE];

    if (maximum == 0 || (asked > 0 && asked <= maximum && used <= maximum - asked))
        return 0;
    number_format_size(used, used_text);
    number_format_size(asked, asked_text);
    number_format_size(maximum, maximum_text);
    if (asked == 0)
        return error_set(err, ERR_QUOTA, 0, "%s: %s are all there is; ask for a limit", what,
                         maximum_text);
    return error_set(err, ERR_QUOTA, 0,
                     "%s: %s of at most %s are taken, and %s more were asked for", what, used_text,
                     maximum_text, asked_text);
}

static int check_running(const struct quota *quota, const struct usage *usage,
                         const struct limits *limits, struct error *err)
{
    if (check_count("running sandboxes", usage->running, quota->running, err) < 0 ||
        check_bytes("memory", usage->memory_bytes, limits->memory_bytes, quota->memory_bytes, err) <
            0)
        return -1;
    return check_cpu(usage->cpu_millis, limits->cpu_millis, quota->cpu_millis, err);
}

/* Whatever quotas say: the database must have room. */
static int sandbox_quota_check_disk(const struct domain *domain, struct error *err)
{
    const struct domain_options *options = &domain->options;

    if (!options->disk_has_room || options->disk_has_room(options->context))
        return 0;
    return error_set(err, ERR_NO_SPACE, 0,
                     "the disk of this machine is full but for what is kept free (disk-floor); "
                     "delete something, or ask its operator for more");
}

int sandbox_quota_create(const struct domain *domain, const struct id *owner,
                         const struct limits *limits, struct error *err)
{
    struct quota quota = quota_of(domain, owner);
    struct usage usage = usage_of(domain, owner);

    if (sandbox_quota_check_disk(domain, err) < 0 ||
        check_count("sandboxes", usage.sandboxes, quota.sandboxes, err) < 0 ||
        check_bytes("disk", usage.disk_bytes, limits->disk_bytes, quota.disk_bytes, err) < 0)
        return -1;
    return check_running(&quota, &usage, limits, err);
}

int sandbox_quota_snapshot(const struct domain *domain, const struct id *owner, uint64_t count,
                           uint64_t bytes, struct error *err)
{
    struct quota quota = quota_of(domain, owner);
    struct usage usage = usage_of(domain, owner);

    if (sandbox_quota_check_disk(domain, err) < 0 ||
        check_count("snapshots", count, quota.snapshots, err) < 0)
        return -1;
    return check_bytes("disk", usage.disk_bytes, bytes ? bytes : 1, quota.disk_bytes, err);
}

int sandbox_quota_base(const struct domain *domain, const struct id *owner, uint64_t bytes,
                       struct error *err)
{
    return check_bytes("disk", usage_of(domain, owner).disk_bytes, bytes ? bytes : 1,
                       quota_of(domain, owner).disk_bytes, err);
}

bool sandbox_quota_limits_storage(const struct domain *domain, const struct id *owner)
{
    return quota_of(domain, owner).storage_bytes != 0;
}

int sandbox_quota_storage(const struct domain *domain, const struct id *owner, uint64_t others,
                          uint64_t *ret_maximum, struct error *err)
{
    uint64_t maximum = quota_of(domain, owner).storage_bytes;

    if (sandbox_quota_check_disk(domain, err) < 0)
        return -1;
    if (check_bytes("storage", others, 1, maximum, err) < 0)
        return -1;
    *ret_maximum = maximum ? maximum - others : 0;
    return 0;
}

/* What the owner has without this sandbox. */
static struct usage usage_without(const struct domain *domain, const struct sandbox *sandbox)
{
    struct usage usage = usage_of(domain, &sandbox->owner);

    usage.disk_bytes -= sandbox->spec.limits.disk_bytes;
    if (sandbox_status_counts_as_running(sandbox->status)) {
        usage.running--;
        usage.memory_bytes -= sandbox->spec.limits.memory_bytes;
        usage.cpu_millis -= sandbox->spec.limits.cpu_millis;
    }
    return usage;
}

int sandbox_quota_run(const struct domain *domain, const struct sandbox *sandbox, struct error *err)
{
    struct quota quota = quota_of(domain, &sandbox->owner);
    struct usage usage = usage_without(domain, sandbox);

    return check_running(&quota, &usage, &sandbox->spec.limits, err);
}

int sandbox_quota_resize(const struct domain *domain, const struct sandbox *sandbox,
                         const struct limits *limits, struct error *err)
{
    struct quota quota = quota_of(domain, &sandbox->owner);
    struct usage usage = usage_without(domain, sandbox);

    if (check_bytes("disk", usage.disk_bytes, limits->disk_bytes, quota.disk_bytes, err) < 0)
        return -1;
    quota.running = 0; /* it runs already, or not: that is not what changes */
    /* One that sleeps is checked when it wakes. */
    return sandbox_status_counts_as_running(sandbox->status)
               ? check_running(&quota, &usage, limits, err)
               : 0;
}
