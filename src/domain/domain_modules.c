/* The modules of the domain, in the order their rows are loaded. */
#include "domain/domain_modules.h"

#include "domain/domain_internal.h"

const struct domain_module *const domain_modules[] = {
    &domain_sandboxes,
    &domain_owners,
    &domain_api_keys,
    &domain_logins,
    &domain_audit,
    &domain_events,
    &domain_ports,
    &domain_webhooks,
    &domain_backups,
    &domain_bucket_mounts,
    &domain_snapshots,
    &domain_templates,
    &domain_collector,
    &domain_workspaces,
    &domain_squash,
    &domain_new_disks,
    &domain_egress,
    &domain_conversations,
    &domain_tasks,
    &domain_teams,
    &domain_task_schedules,
    &domain_workflows,
    NULL,
};
