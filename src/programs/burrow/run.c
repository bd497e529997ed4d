/* burrow run: one command in a fresh sandbox. Wires a launcher of its own, the local provider and a
 * run session together; what each does is in provider/ and cli/. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "cli/run/run_options.h"
#include "cli/run/run_session.h"
#include "cli/run/run_signals.h"
#include "cli/run/run_terminal.h"
#include "programs/burrow/command.h"
#include "programs/burrow/image_registry.h"
#include "provider/launcher_process.h"
#include "provider/provider_local.h"

#define STATUS_USAGE    2
#define STATUS_FAILURE  125
#define STATUS_KILLED   137
#define STATUS_SIGNAL   128
#define HOSTNAME        "burrow"
#define TEXT_MAX        ((size_t) 64 * 1024)
#define BIND_NAME_SIZE  32
#define LAUNCHER_END_MS 60000
#define EXPLAIN_MS      1000

struct run {
    struct run_options options;
    struct provider_spec spec;
    struct launcher_process_bind launcher_binds[RUN_BINDS_MAX];
    struct provider_bind binds[RUN_BINDS_MAX];
    char bind_names[RUN_BINDS_MAX][BIND_NAME_SIZE];

    struct loop loop;
    struct launcher_process launcher;
    struct provider *provider; /* NULL: not yet, or closed */
    struct run_signals signals;
    struct run_session *session;
    struct run_terminal terminal;
    struct id id;
    struct run_outcome outcome;
    struct ending ending; /* of the sandbox, when it ended by itself */
    bool sandbox_ended;
    bool finishing;
    int status;
};

static int run_complain(int status, const char *text)
{
    (void) fprintf(stderr, "burrow: %s\n", text);
    return status;
}

/* --- the end -------------------------------------------------------------------------------- */

static void provider_closed(void *context, const struct error *failure)
{
    (void) context; /* nothing holds the loop any more */
    (void) failure;
}

/* Let go of everything; loop_run returns when that is done. */
static void run_finish(struct run *run, int status)
{
    if (run->finishing)
        return;
    run->finishing = true;
    run->status = status;
    run_terminal_leave(&run->terminal);
    if (run->session)
        run_session_close(TAKE_PTR(run->session));
    if (run->provider)
        provider_close(TAKE_PTR(run->provider), provider_closed, NULL);
    run_signals_close(&run->signals);
}

static void run_fail(struct run *run, int status, const struct error *failure)
{
    struct error err = *failure;

    if (run->finishing)
        return;
    launcher_process_explain(&run->launcher, EXPLAIN_MS, &err);
    run_terminal_leave(&run->terminal);
    run_finish(run, run_complain(status, err.message));
}

static bool was_killed(const struct run_outcome *outcome)
{
    return (outcome->ending == RUN_ENDED_SIGNAL && outcome->value == SIGKILL) ||
           (outcome->ending == RUN_ENDED_STATUS && outcome->value == STATUS_KILLED) ||
           outcome->ending == RUN_ENDED_FAILURE;
}

/* Returns the exit status. */
static int tell_out_of_memory(const struct run *run)
{
    if (was_killed(&run->outcome)) {
        (void) fprintf(stderr, "burrow: killed: out of memory (limit %s)\n",
                       run->options.memory_text);
        return STATUS_KILLED;
    }
    (void) fprintf(stderr, "burrow: processes were killed: out of memory (limit %s)\n",
                   run->options.memory_text);
    return run_outcome_status(&run->outcome);
}

static int tell_outcome(const struct run *run)
{
    char time[NUMBER_TEXT_SIZE];

    if (run->outcome.ending == RUN_ENDED_TIME) {
        number_format_duration(run->options.timeout_ms, time);
        (void) fprintf(stderr, "burrow: killed: not done after %s\n", time);
    } else if (run->outcome.ending != RUN_ENDED_STATUS && run->outcome.ending != RUN_ENDED_SIGNAL) {
        (void) fprintf(stderr, "burrow: %s: %s\n", run->options.command[0], run->outcome.text);
    }
    return run_outcome_status(&run->outcome);
}

/* After anything but success: was it for lack of memory? */
static void stats_known(void *context, const struct error *failure, const struct stats *stats)
{
    struct run *run = context;
    bool out_of_memory = run->sandbox_ended && run->ending.kind == ENDED_OOM;

    if (run->finishing)
        return;
    if (!failure && stats->known & STATS_BIT(OOM) && stats->oom_kills_work)
        out_of_memory = true;
    run_terminal_leave(&run->terminal);
    run_finish(run, out_of_memory && run->outcome.ending != RUN_ENDED_TIME ? tell_out_of_memory(run)
                                                                           : tell_outcome(run));
}

static void session_ended(void *context, const struct run_outcome *outcome)
{
    struct run *run = context;

    run->outcome = *outcome;
    if (outcome->ending == RUN_ENDED_STATUS && outcome->value == 0)
        run_finish(run, 0);
    else
        provider_stats(run->provider, &run->id, stats_known, run);
}

static void session_closed(void *context)
{
    (void) context; /* the run goes on without it, to its own end */
}

/* --- the command ---------------------------------------------------------------------------- */

/* Which of ours says how large the terminal is; negative: none is one. */
static int find_terminal(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (isatty(fd))
            return fd;
    }
    return -EBADF;
}

static int start_session(struct run *run, struct error *err)
{
    char address[PROVIDER_ADDRESS_MAX];
    struct run_message_request request = {
        .command = run->options.command,
        .directory = run->options.directory,
        .variables = run->options.variables,
        .variable_count = run->options.variable_count,
        .timeout_ms = run->options.timeout_ms,
    };
    struct run_session_options options = {
        .loop = &run->loop,
        .address = address,
        .request = &request,
        .input = STDIN_FILENO,
        .output = STDOUT_FILENO,
        .errors = STDERR_FILENO,
        .terminal = -EBADF,
        .events = {.on_end = session_ended, .on_closed = session_closed, .context = run},
    };

    if (provider_agent_address(run->provider, &run->id, address, err) < 0)
        return -1;
    if (run->options.terminal) {
        options.terminal = find_terminal();
        run_terminal_size(options.terminal, &request.columns, &request.rows);
        request.terminal_name = getenv("TERM");
        (void) run_terminal_enter(&run->terminal, STDIN_FILENO); /* a pipe will do, too */
    }
    run->session = run_session_new(&options, err);
    return run->session ? 0 : -1;
}

static void warn_of_limits(const struct run *run, unsigned int unenforced)
{
    static const struct {
        unsigned int limit; /* LIMIT_BIT(...) */
        const char *option;
    } limits[] = {
        {LIMIT_BIT(MEMORY), "--memory"},
        {LIMIT_BIT(PIDS), "--pids"},
        {LIMIT_BIT(CPU), "--cpus"},
        {LIMIT_BIT(DISK), "--disk"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        if (unenforced & run->options.chosen & limits[i].limit)
            (void) fprintf(stderr,
                           "burrow: warning: this machine cannot enforce %s, see burrow doctor\n",
                           limits[i].option);
    }
}

static void sandbox_created(void *context, const struct error *failure,
                            const struct provider_sandbox *sandbox)
{
    struct error err = ERROR_INIT;
    struct run *run = context;

    if (run->finishing)
        return;
    if (failure) {
        run_fail(run, STATUS_FAILURE, failure);
        return;
    }
    run->id = sandbox->id;
    warn_of_limits(run, sandbox->unenforced);
    if (start_session(run, &err) < 0)
        run_fail(run, STATUS_FAILURE, &err);
}

static void provider_ready(void *context, const struct error *failure)
{
    struct run *run = context;

    if (run->finishing)
        return;
    if (failure)
        run_fail(run, STATUS_USAGE, failure); /* the launcher has said what is missing */
    else
        provider_create(run->provider, &run->spec, sandbox_created, run);
}

/* --- what happens by itself ----------------------------------------------------------------- */

static void sandbox_exited(void *context, const struct id *id, const struct ending *ending)
{
    struct run *run = context;

    if (strcmp(id->text, run->id.text) == 0) {
        run->sandbox_ended = true; /* the session notices by itself */
        run->ending = *ending;
    }
}

static void provider_lost(void *context, const struct error *reason)
{
    run_fail(context, STATUS_FAILURE, reason);
}

/* A signal is the command's. Before there is one it ends us, as it would without a handler. */
static void signal_arrived(void *context, int number)
{
    struct run *run = context;

    if (number == SIGCONT) {
        if (run->terminal.raw)
            (void) run_terminal_enter(&run->terminal, run->terminal.fd);
        number = SIGWINCH; /* it may have been resized meanwhile */
    }
    if (run->session)
        run_session_signal(run->session, number);
    else if (number != SIGWINCH)
        run_finish(run, STATUS_SIGNAL + number);
}

/* --- preparations --------------------------------------------------------------------------- */

/* 0, 1 and 2 must be something, or sockets of ours would get these numbers. */
static int fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return -errno;
    }
    return 0;
}

/* The launcher knows folders by names: ours are made up, and known to this launcher alone. */
static int make_binds(struct run *run, struct pool *pool, struct error *err)
{
    for (size_t i = 0; i < run->options.bind_count; i++) {
        const struct run_bind *bind = &run->options.binds[i];
        AUTO(free) char *folder = realpath(bind->source, NULL);

        if (!folder)
            return error_set(err, ERR_INVALID, errno, "--bind-ro %s", bind->source);
        (void) snprintf(run->bind_names[i], BIND_NAME_SIZE, "run-%zu", i);
        run->launcher_binds[i] = (struct launcher_process_bind){
            .name = run->bind_names[i],
            .folder = pool_copy_text(pool, folder),
        };
        run->binds[i] = (struct provider_bind){.source = run->bind_names[i], .place = bind->place};
    }
    return 0;
}

/* The variables are not in it: they go with the command, which spares a request. */
static void make_spec(struct run *run)
{
    run->spec = (struct provider_spec){
        .id = id_new(),
        .hostname = HOSTNAME,
        .image = run->options.image,
        .limits = run->options.limits,
        .network = run->options.network,
        .binds = run->binds,
        .bind_count = run->options.bind_count,
    };
}

static int start_launcher(struct run *run, struct error *err)
{
    struct launcher_process_options options = {
        .data = run->options.data,
        .run = run->options.run_folder,
        .cgroup = run->options.cgroup,
        .network = run->options.network_name,
        .binds = run->launcher_binds,
        .bind_count = run->options.bind_count,
    };

    return launcher_process_start(&options, &run->launcher, err);
}

static int open_provider(struct run *run, struct error *err)
{
    struct provider_local_options options = {
        .loop = &run->loop,
        .conversation = TAKE_FD(run->launcher.conversation),
        .agents = run->launcher.agents,
        .stock = 0,
    };
    const struct provider_watcher watcher = {
        .exited = sandbox_exited, .lost = provider_lost, .context = run};

    run->provider = provider_local_new(&options, err);
    if (!run->provider)
        return -1;
    provider_open(run->provider, &watcher, provider_ready, run);
    return 0;
}

/* From here on everything happens in the loop. Returns the exit status. */
static int run_loop(struct run *run)
{
    struct error err = ERROR_INIT;
    int r = loop_init(&run->loop, NULL);

    if (r < 0)
        return run_complain(STATUS_FAILURE, "cannot make an event loop");
    r = run_signals_open(&run->signals, &run->loop, signal_arrived, run);
    if (r < 0)
        (void) error_set(&err, ERR_INTERNAL, r, "listen for signals");
    if (r < 0 || open_provider(run, &err) < 0)
        run_finish(run, run_complain(STATUS_FAILURE, err.message));
    loop_run(&run->loop);
    loop_done(&run->loop);
    return run->status;
}

static int print_plan(const struct run *run)
{
    AUTO(text) struct text text = TEXT_INIT(TEXT_MAX);
    struct error err = ERROR_INIT;

    if (provider_local_print_plan(&run->spec, &text, &err) < 0)
        return run_complain(STATUS_USAGE, err.message);
    for (size_t i = 0; i < run->options.bind_count; i++)
        text_format(&text, "folder    %s is %s\n", run->launcher_binds[i].name,
                    run->launcher_binds[i].folder);
    (void) fputs(text_string(&text), stdout);
    return 0;
}

static int print_help(void)
{
    AUTO(text) struct text text = TEXT_INIT(TEXT_MAX);

    run_options_describe(&text);
    (void) fputs(text_string(&text), stdout);
    return 0;
}

/* The command that the image names, when none is given. */
static int find_command(struct run *run, struct pool *pool, struct error *err)
{
    static const enum wire_image_key keys[] = {WIRE_IMAGE_ENTRYPOINT, WIRE_IMAGE_CMD};
    const struct image_place place = {.data = run->options.data, .run = run->options.run_folder};
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    const char **words = pool_alloc(pool, (2 * WIRE_IMAGE_WORDS_MAX + 1) * sizeof(*words));
    size_t count = 0;

    if (run->options.command_count)
        return 0;
    if (image_registry_show(&place, run->options.image, &image, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        for (size_t j = 0; j < image.by_key[keys[i]].count; j++)
            words[count++] = pool_copy_text(pool, image.by_key[keys[i]].words[j]);
    }
    if (!count)
        return error_set(err, ERR_INVALID, 0, "no command is given, and image '%s' names none",
                         run->options.image);
    run->options.command = words;
    run->options.command_count = count;
    return 0;
}

static int run_command(struct run *run, struct pool *pool)
{
    struct error err = ERROR_INIT;
    int status;

    if (geteuid() != 0)
        return run_complain(STATUS_USAGE,
                            "run needs root: it makes namespaces, mounts and cgroups");
    if (find_command(run, pool, &err) < 0)
        return run_complain(STATUS_USAGE, err.message);
    if (start_launcher(run, &err) < 0)
        return run_complain(STATUS_USAGE, err.message);
    status = run_loop(run);
    if (launcher_process_end(&run->launcher, LAUNCHER_END_MS, &err) < 0 && status == 0)
        (void) run_complain(0, err.message); /* else it was part of what has been said */
    return status;
}

int command_run(int argc, char **argv)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct run run = {.launcher = LAUNCHER_PROCESS_INIT, .terminal = RUN_TERMINAL_INIT};
    struct error err = ERROR_INIT;

    if (fill_standard() < 0)
        return STATUS_FAILURE;
    if (run_options_read(argc, argv, (const char *const *) environ, &pool, &run.options, &err) <
        0) {
        (void) run_complain(0, err.message);
        return run_complain(STATUS_USAGE, "see burrow run --help");
    }
    if (run.options.help)
        return print_help();
    if (make_binds(&run, &pool, &err) < 0)
        return run_complain(STATUS_USAGE, err.message);
    make_spec(&run);
    return run.options.plan ? print_plan(&run) : run_command(&run, &pool);
}
