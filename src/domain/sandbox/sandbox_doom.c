/* Sandboxes of the provider that nobody may see any more: their row is gone, or never was. */
#include "domain/doom.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static const struct doom_kind kind = {
    .noun = "sandbox",
    .failure = "a sandbox cannot be taken down, and will be tried again",
    .take_down = provider_destroy,
};

void sandbox_doom(struct domain *domain, const struct id *id, void (*done)(void *context),
                  void *context)
{
    doom_add(domain, &domain->sandboxes->doomed, &kind, id, done, context);
}

void sandbox_doom_again(struct domain *domain)
{
    doom_again(&domain->sandboxes->doomed);
}

void sandbox_doom_end(struct domain *domain)
{
    doom_end(&domain->sandboxes->doomed);
}
