#include "domain/sandbox/sandbox_hooks.h"

void sandbox_hook_running(struct domain *domain, struct sandbox *sandbox, bool is_new,
                          void (*done)(void *context), void *context)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->running) {
            domain_modules[i]->running(domain, sandbox, is_new, done, context);
            return;
        }
    if (done)
        done(context);
}

void sandbox_hook_ending(struct domain *domain, struct sandbox *sandbox,
                         void (*done)(void *context), void *context)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->ending) {
            domain_modules[i]->ending(domain, sandbox, done, context);
            return;
        }
    done(context);
}

void sandbox_hook_sleeping(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                           void *context)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->sleeping) {
            domain_modules[i]->sleeping(domain, sandbox, done, context);
            return;
        }
    done(context, NULL);
}

void sandbox_hook_fill(const struct domain *domain, const struct id *owner,
                       struct sandbox_spec *spec)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->fill)
            domain_modules[i]->fill(domain, owner, spec);
}

void sandbox_hook_open_way(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                           void *context)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->open_way) {
            domain_modules[i]->open_way(domain, sandbox, done, context);
            return;
        }
    done(context, NULL);
}

void sandbox_hook_variables(const struct domain *domain, const struct sandbox *sandbox,
                            void (*each)(void *context, const char *name, const char *value),
                            void *context)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->variables)
            domain_modules[i]->variables(domain, sandbox, each, context);
}

bool sandbox_hook_is_mirrored(const struct domain *domain, const struct sandbox *sandbox)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->is_mirrored && domain_modules[i]->is_mirrored(domain, &sandbox->id))
            return true;
    return false;
}

uint64_t sandbox_hook_due(const struct domain *domain, const struct sandbox *sandbox)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; domain_modules[i]; i++) {
        uint64_t due =
            domain_modules[i]->due ? domain_modules[i]->due(domain, sandbox) : UINT64_MAX;

        next = due < next ? due : next;
    }
    return next;
}

void sandbox_hook_act(struct domain *domain, struct sandbox *sandbox)
{
    uint64_t now = domain_now_ns(domain);

    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->due && domain_modules[i]->due(domain, sandbox) <= now) {
            domain_modules[i]->act(domain, sandbox);
            return;
        }
}

uint64_t sandbox_hook_disk_bytes(const struct domain *domain, const struct id *owner)
{
    uint64_t bytes = 0;

    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->disk_bytes)
            bytes += domain_modules[i]->disk_bytes(domain, owner);
    return bytes;
}
