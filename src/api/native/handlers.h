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

/* collect.c */
void native_collect(struct http_request *request);
void native_inspect(struct http_request *request);

/* backup.c */
void native_backup(struct http_request *request);
