/* What each module of the domain brings: defined in the module's own .c, listed in
 * domain_modules.c. */
#pragma once

struct domain_module;

extern const struct domain_module domain_sandboxes;
extern const struct domain_module domain_events;
extern const struct domain_module domain_owners;
extern const struct domain_module domain_api_keys;
extern const struct domain_module domain_logins;
extern const struct domain_module domain_audit;
extern const struct domain_module domain_ports;
extern const struct domain_module domain_webhooks;
extern const struct domain_module domain_backups;
extern const struct domain_module domain_bucket_mounts;
extern const struct domain_module domain_snapshots;
extern const struct domain_module domain_templates;
extern const struct domain_module domain_collector;
extern const struct domain_module domain_workspaces;
extern const struct domain_module domain_squash;
extern const struct domain_module domain_new_disks;
extern const struct domain_module domain_egress;
extern const struct domain_module domain_conversations;
extern const struct domain_module domain_tasks;
extern const struct domain_module domain_teams;
extern const struct domain_module domain_task_schedules;
extern const struct domain_module domain_workflows;
