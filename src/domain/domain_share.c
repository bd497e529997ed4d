#include "domain/domain_share.h"

#include "domain/domain_internal.h"
#include "domain/identity/owner.h"

struct share_asker domain_asker_of(const struct domain *domain, const struct id *owner)
{
    const struct owner *found = *owner->text ? owner_find(domain, owner) : NULL;
    const struct quota *quota = found ? &found->quota : &domain->options.default_quota;

    return (struct share_asker){.owner = *owner,
                                .may_use_reserve = !*owner->text || (found && found->is_admin),
                                .storage_max = *owner->text ? quota->storage_bytes : 0};
}

struct share_asker domain_asker(const struct domain *domain, const struct caller *caller)
{
    struct share_asker asker = domain_asker_of(domain, &caller->owner);

    /* Whoever has no name yet is nobody's administrator. */
    asker.may_use_reserve =
        caller->scope != CALLER_NOBODY && (asker.may_use_reserve || caller->scope >= CALLER_ADMIN);
    return asker;
}

int domain_claim(struct domain *domain, const struct id *owner, enum share share, uint64_t amount,
                 struct share_claim *ret_claim, struct error *err)
{
    const struct share_asker asker = domain_asker_of(domain, owner);

    return share_claim(domain->options.shares, &asker, share, amount, ret_claim, err);
}

void domain_claim_anyway(struct domain *domain, const struct id *owner, enum share share,
                         uint64_t amount, struct share_claim *ret_claim)
{
    const struct share_asker asker = domain_asker_of(domain, owner);

    share_claim_anyway(domain->options.shares, &asker, share, amount, ret_claim);
}

int domain_check_share(const struct domain *domain, const struct id *owner, enum share share,
                       uint64_t amount, struct error *err)
{
    const struct share_asker asker = domain_asker_of(domain, owner);
    struct share_claim probe = SHARE_CLAIM_NONE;
    int r = share_claim(domain->options.shares, &asker, share, amount, &probe, err);

    share_release(&probe);
    return r;
}

int domain_hold(struct domain *domain, const struct id *owner, enum share share, uint64_t amount,
                struct error *err)
{
    const struct share_asker asker = domain_asker_of(domain, owner);

    return share_hold(domain->options.shares, &asker, share, amount, err);
}

void domain_hold_anyway(struct domain *domain, const struct id *owner, enum share share,
                        uint64_t amount)
{
    const struct share_asker asker = domain_asker_of(domain, owner);

    share_hold_anyway(domain->options.shares, &asker, share, amount);
}

void domain_drop(struct domain *domain, const struct id *owner, enum share share, uint64_t amount)
{
    share_drop(domain->options.shares, owner, share, amount);
}

void domain_note(struct domain *domain, const struct id *owner)
{
    const struct share_asker asker = domain_asker_of(domain, owner);

    share_note(domain->options.shares, &asker);
}
