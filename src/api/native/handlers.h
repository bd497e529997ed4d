/* The handlers of this dialect, for its one route table (routes.c). Their context is struct api. */
#pragma once

#include "net/http/http_request.h"

/* sandboxes.c */
void native_create_sandbox(struct http_request *request);
void native_list_sandboxes(struct http_request *request);
void native_get_sandbox(struct http_request *request);
void native_change_sandbox(struct http_request *request);
void native_destroy_sandbox(struct http_request *request);
void native_start_sandbox(struct http_request *request);
void native_stop_sandbox(struct http_request *request);
void native_sleep_sandbox(struct http_request *request);
void native_wake_sandbox(struct http_request *request);
void native_touch_sandbox(struct http_request *request);

/* stats.c */
void native_get_stats(struct http_request *request);

/* commands.c: what runs inside */
void native_execute(struct http_request *request);
void native_list_sessions(struct http_request *request);
void native_create_session(struct http_request *request);
void native_delete_session(struct http_request *request);
void native_list_processes(struct http_request *request);
void native_start_process(struct http_request *request);
void native_get_process(struct http_request *request);
void native_kill_process(struct http_request *request);
void native_kill_processes(struct http_request *request);
void native_get_logs(struct http_request *request);
void native_follow_logs(struct http_request *request);
void native_list_contexts(struct http_request *request);
void native_create_context(struct http_request *request);
void native_delete_context(struct http_request *request);
void native_run_code(struct http_request *request);
void native_clone(struct http_request *request);

/* files.c */
void native_get_file(struct http_request *request);
void native_put_file(struct http_request *request);
void native_delete_file(struct http_request *request);
void native_post_file(struct http_request *request);
void native_get_archive(struct http_request *request);
void native_put_archive(struct http_request *request);
void native_watch(struct http_request *request);

/* passages.c: the agent's own protocols */
void native_exec_socket(struct http_request *request);
void native_terminal(struct http_request *request);
void native_container(struct http_request *request);

/* events.c */
void native_get_events(struct http_request *request);
void native_get_sandbox_events(struct http_request *request);

/* debug.c */
void native_debug_trace(struct http_request *request);
void native_debug_state(struct http_request *request);

/* collect.c */
void native_collect(struct http_request *request);
void native_inspect(struct http_request *request);

/* backup.c */
void native_backup(struct http_request *request);

/* snapshots.c */
void native_make_snapshot(struct http_request *request);
void native_list_sandbox_snapshots(struct http_request *request);
void native_fork_sandbox(struct http_request *request);
void native_roll_back(struct http_request *request);
void native_diff_sandbox(struct http_request *request);
void native_list_snapshots(struct http_request *request);
void native_get_snapshot(struct http_request *request);
void native_delete_snapshot(struct http_request *request);
void native_fork_snapshot(struct http_request *request);
void native_diff_snapshot(struct http_request *request);

/* templates.c */
void native_list_templates(struct http_request *request);
void native_get_template(struct http_request *request);
void native_put_template(struct http_request *request);
void native_delete_template(struct http_request *request);

/* backups.c */
void native_make_backup(struct http_request *request);
void native_list_sandbox_backups(struct http_request *request);
void native_restore_backup(struct http_request *request);
void native_list_backups(struct http_request *request);
void native_get_backup(struct http_request *request);
void native_delete_backup(struct http_request *request);

/* workspaces.c */
void native_sync_workspace(struct http_request *request);
void native_get_workspace(struct http_request *request);
void native_restore_workspace(struct http_request *request);

/* mounts.c: buckets */
void native_list_mounts(struct http_request *request);
void native_mount_bucket(struct http_request *request);
void native_unmount_bucket(struct http_request *request);

/* ports.c */
void native_list_ports(struct http_request *request);
void native_expose_port(struct http_request *request);
void native_close_port(struct http_request *request);

/* webhooks.c */
void native_list_webhooks(struct http_request *request);
void native_create_webhook(struct http_request *request);
void native_get_webhook(struct http_request *request);
void native_change_webhook(struct http_request *request);
void native_delete_webhook(struct http_request *request);
void native_get_deliveries(struct http_request *request);

/* identity.c, identity_user.c, identity_user_change.c, identity_key.c: people and their keys. An
 * administrator sees everybody; others themselves. A key's secret is in the answer to its making and
 * nowhere else. */
void native_get_whoami(struct http_request *request);
void native_list_users(struct http_request *request);
void native_create_user(struct http_request *request);
void native_get_user(struct http_request *request);
void native_update_user(struct http_request *request);
void native_delete_user(struct http_request *request);
void native_list_keys(struct http_request *request);
void native_create_key(struct http_request *request);
void native_revoke_key(struct http_request *request);
void native_get_audit(struct http_request *request);

/* credentials.c */
void native_list_credentials(struct http_request *request);
void native_get_credential(struct http_request *request);
void native_put_credential(struct http_request *request);
void native_delete_credential(struct http_request *request);

/* egress.c: what leaves sandboxes, and what it cost */
void native_get_egress(struct http_request *request);
void native_change_egress(struct http_request *request);
void native_get_egress_defaults(struct http_request *request);
void native_change_egress_defaults(struct http_request *request);
void native_get_usage(struct http_request *request);

/* conversations.c: with agents in a sandbox, their turns, and what they ask */
void native_create_conversation(struct http_request *request);
void native_list_conversations(struct http_request *request);
void native_get_conversation(struct http_request *request);
void native_delete_conversation(struct http_request *request);
void native_follow_conversation(struct http_request *request);
void native_create_turn(struct http_request *request);
void native_list_turns(struct http_request *request);
void native_get_turn(struct http_request *request);
void native_cancel_turn(struct http_request *request);
void native_follow_turn(struct http_request *request);
void native_list_permissions(struct http_request *request);
void native_list_conversation_permissions(struct http_request *request);
void native_answer_permission(struct http_request *request);
void native_answer_question(struct http_request *request);

/* tasks.c: also teams and schedules */
void native_create_task(struct http_request *request);
void native_list_tasks(struct http_request *request);
void native_get_task(struct http_request *request);
void native_cancel_task(struct http_request *request);
void native_undo_task(struct http_request *request);
void native_diff_task(struct http_request *request);
void native_delete_task(struct http_request *request);
void native_follow_task(struct http_request *request);
void native_create_team(struct http_request *request);
void native_list_teams(struct http_request *request);
void native_get_team(struct http_request *request);
void native_cancel_team(struct http_request *request);
void native_create_schedule(struct http_request *request);
void native_list_schedules(struct http_request *request);
void native_get_schedule(struct http_request *request);
void native_change_schedule(struct http_request *request);
void native_delete_schedule(struct http_request *request);
void native_run_schedule(struct http_request *request);

/* documents.c */
void native_get_version(struct http_request *request);
void native_get_openapi(struct http_request *request);
void native_get_docs(struct http_request *request);
