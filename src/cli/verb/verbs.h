/* The verbs that are clients of the API: one or a few rows of the table each, one file per family.
 * The table itself is the program's. */
#pragma once

#include "cli/verb/verb.h"

extern const struct verb verb_attack;
extern const struct verb verb_copy;
extern const struct verb verb_create;
extern const struct verb verb_credential_list;
extern const struct verb verb_credential_remove;
extern const struct verb verb_credential_set;
extern const struct verb verb_db_backup;
extern const struct verb verb_debug_state;
extern const struct verb verb_debug_trace;
extern const struct verb verb_fsck;
extern const struct verb verb_gc;
extern const struct verb verb_diff;
extern const struct verb verb_egress_allow;
extern const struct verb verb_egress_log;
extern const struct verb verb_egress_set;
extern const struct verb verb_egress_show;
extern const struct verb verb_events;
extern const struct verb verb_exec;
extern const struct verb verb_fork;
extern const struct verb verb_key_create;
extern const struct verb verb_key_list;
extern const struct verb verb_key_revoke;
extern const struct verb verb_kill;
extern const struct verb verb_list;
extern const struct verb verb_login;
extern const struct verb verb_logs;
extern const struct verb verb_port_expose;
extern const struct verb verb_port_list;
extern const struct verb verb_port_remove;
extern const struct verb verb_processes;
extern const struct verb verb_remove;
extern const struct verb verb_rollback;
extern const struct verb verb_shell;
extern const struct verb verb_sleep;
extern const struct verb verb_snapshot_create;
extern const struct verb verb_snapshot_list;
extern const struct verb verb_snapshot_remove;
extern const struct verb verb_start;
extern const struct verb verb_stop;
extern const struct verb verb_sync;
extern const struct verb verb_template_list;
extern const struct verb verb_template_remove;
extern const struct verb verb_template_set;
extern const struct verb verb_top;
extern const struct verb verb_usage;
extern const struct verb verb_user_change;
extern const struct verb verb_user_create;
extern const struct verb verb_user_list;
extern const struct verb verb_user_remove;
extern const struct verb verb_wake;
