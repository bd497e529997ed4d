/* burrow: the daemon and the command line in one program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/auto.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "programs/burrow/command.h"
#include "programs/burrow/root_program.h"
#include "sys/process/sys_signal.h"
#include "sys/sys_feature.h"

#define PAGE_MAX ((size_t) 1024 * 1024)

/* --- verbs without a file of their own ------------------------------------------------------- */

static int command_version(struct verb_call *call)
{
    (void) call;
    (void) puts("burrow " BURROW_VERSION);
    return 0;
}

static int command_bind(int argc, char **argv)
{
    return root_program_exec_verb("bind", argc, argv);
}

static int command_doctor(int argc, char **argv)
{
    return root_program_exec_verb("doctor", argc, argv);
}

static int command_completion(struct verb_call *call);
static int command_man(struct verb_call *call);

static const struct verb verb_bind = {
    .name = "bind",
    .summary = "Register folders that sandboxes may be shown, read-only",
    .arguments = "ls|add|rm [...]",
    .is_local = true,
    .run_plain = command_bind,
};

static const struct verb verb_completion = {
    .name = "completion",
    .summary = "Print the completion of these verbs for a shell",
    .arguments = "bash|zsh",
    .examples = "  . <(burrow completion bash)",
    .words_min = 1,
    .words_max = 1,
    .is_local = true,
    .run = command_completion,
};

static const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "Print what this machine has of what sandboxes need",
    .arguments = "",
    .is_local = true,
    .run_plain = command_doctor,
};

static const struct verb verb_image = {
    .name = "image",
    .summary = "Images that sandboxes start from: folders, imported, pulled and built ones",
    .arguments = "ls|add|import|pull|build|inspect|rm|prune [...]",
    .details = "Needs root. `burrow image --help` and `burrow image build --help` tell more.",
    .is_local = true,
    .run_plain = command_image,
};

static const struct verb verb_man = {
    .name = "man",
    .summary = "Print the manual page",
    .arguments = "",
    .examples = "  burrow man | man -l -",
    .is_local = true,
    .run = command_man,
};

static const struct verb verb_run = {
    .name = "run",
    .summary = "Run one command in a fresh sandbox, without a daemon",
    .arguments = "[OPTION...] [--] COMMAND [ARGUMENT...]",
    .details = "Needs root. `burrow run --help` lists its options.",
    .examples = "  burrow run -- echo hello\n  burrow run --tty bash",
    .is_local = true,
    .run_plain = command_run,
};

static const struct verb verb_serve = {
    .name = "serve",
    .summary = "Run the daemon",
    .arguments = "[OPTION...]",
    .details = "`burrow serve --help` lists its options, which can also be set with BURROW_* "
               "variables and in an\nini file.",
    .is_local = true,
    .run_plain = command_serve,
};

static const struct verb verb_settings = {
    .name = "settings",
    .summary = "Print all settings of the daemon as a Markdown page",
    .arguments = "",
    .is_local = true,
    .run_plain = command_settings,
};

static const struct verb verb_version = {
    .name = "version",
    .summary = "Print the version",
    .arguments = "",
    .is_local = true,
    .run = command_version,
};

/* --- the table ------------------------------------------------------------------------------- */

static const struct verb *const verbs[] = {
    &verb_create,
    &verb_list,
    &verb_exec,
    &verb_shell,
    &verb_run,
    &verb_copy,
    &verb_processes,
    &verb_kill,
    &verb_logs,
    &verb_top,
    &verb_port_expose,
    &verb_port_list,
    &verb_port_remove,
    &verb_snapshot_create,
    &verb_snapshot_list,
    &verb_snapshot_remove,
    &verb_fork,
    &verb_rollback,
    &verb_diff,
    &verb_sync,
    &verb_agent,
    &verb_task_run,
    &verb_task_list,
    &verb_task_show,
    &verb_task_follow,
    &verb_task_cancel,
    &verb_task_diff,
    &verb_task_undo,
    &verb_task_remove,
    &verb_task_schedule,
    &verb_task_schedules,
    &verb_task_unschedule,
    &verb_team_run,
    &verb_team_show,
    &verb_team_cancel,
    &verb_template_set,
    &verb_template_list,
    &verb_template_remove,
    &verb_credential_set,
    &verb_credential_list,
    &verb_credential_remove,
    &verb_egress_show,
    &verb_egress_log,
    &verb_egress_set,
    &verb_egress_allow,
    &verb_usage,
    &verb_events,
    &verb_sleep,
    &verb_wake,
    &verb_start,
    &verb_stop,
    &verb_remove,
    &verb_login,
    &verb_user_create,
    &verb_user_list,
    &verb_user_change,
    &verb_user_remove,
    &verb_key_create,
    &verb_key_list,
    &verb_key_revoke,
    &verb_db_backup,
    &verb_db_check,
    &verb_db_rotate_keys,
    &verb_gc,
    &verb_fsck,
    &verb_debug_trace,
    &verb_debug_state,
    &verb_serve,
    &verb_settings,
    &verb_doctor,
    &verb_attack,
    &verb_image,
    &verb_bind,
    &verb_completion,
    &verb_man,
    &verb_version,
    NULL,
};

static const struct verb_table table = {
    .program = "burrow",
    .summary = "Sandboxes for AI agents on one Linux machine",
    .verbs = verbs,
};

static int print_page(void (*write)(const struct verb_table *table, struct text *out))
{
    AUTO(text) struct text page = TEXT_INIT(PAGE_MAX);

    write(&table, &page);
    (void) fputs(text_string(&page), stdout);
    return 0;
}

static int command_completion(struct verb_call *call)
{
    struct error err = ERROR_INIT;

    if (strcmp(call->words[0], "bash") == 0)
        return print_page(verb_write_bash);
    if (strcmp(call->words[0], "zsh") == 0)
        return print_page(verb_write_zsh);
    (void) error_set(&err, ERR_INVALID, 0, "there is completion for bash and zsh, not for '%s'",
                     call->words[0]);
    return verb_complain(VERB_STATUS_USAGE, &err);
}

static int command_man(struct verb_call *call)
{
    (void) call;
    return print_page(verb_write_man);
}

/* --- the process ----------------------------------------------------------------------------- */

/* What concerns the process as a whole, before anything starts a thread. */
static int prepare_process(void)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) prctl(PR_SET_NAME,
                 "burrow");            /* a launcher starts us by descriptor: ps would show that */
    (void) sys_signal_ignore(SIGPIPE); /* OpenSSL writes without MSG_NOSIGNAL */
    if (sys_feature_init(getenv(SYS_FEATURE_VARIABLE), unknown) == 0)
        return 0;
    (void) fprintf(stderr, "burrow: " SYS_FEATURE_VARIABLE ": there is no feature '%s'\n", unknown);
    return -1;
}

int main(int argc, char **argv)
{
    if (prepare_process() < 0)
        return 2;
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return command_version(NULL);
    return verb_main(&table, argc > 0 ? argc - 1 : 0, argv + 1);
}
