/* What sandboxes ask of the modules that are built on them (domain_internal.h: struct
 * domain_module): these include this room, not the other way round. */
#pragma once

#include "domain/domain_internal.h"

/* `done` may be NULL for the first; both may answer from inside the call. */
void sandbox_hook_running(struct domain *domain, struct sandbox *sandbox, bool is_new,
                          void (*done)(void *context), void *context);
void sandbox_hook_ending(struct domain *domain, struct sandbox *sandbox,
                         void (*done)(void *context), void *context);
void sandbox_hook_sleeping(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                           void *context);

/* Its way out: as the members of struct domain_module. */
void sandbox_hook_fill(const struct domain *domain, const struct id *owner,
                       struct sandbox_spec *spec);
void sandbox_hook_open_way(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                           void *context);
void sandbox_hook_variables(const struct domain *domain, const struct sandbox *sandbox,
                            void (*each)(void *context, const char *name, const char *value),
                            void *context);

bool sandbox_hook_is_mirrored(const struct domain *domain, const struct sandbox *sandbox);

/* The earliest of all; and what is due now, of one module. */
uint64_t sandbox_hook_due(const struct domain *domain, const struct sandbox *sandbox);
void sandbox_hook_act(struct domain *domain, struct sandbox *sandbox);

uint64_t sandbox_hook_disk_bytes(const struct domain *domain, const struct id *owner);
