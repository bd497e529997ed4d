/* The process that stays: it starts the one that attacks, prints what that tells, and takes away what
 * it made. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/id.h"
#include "cli/attack/drill.h"
#include "cli/attack/drill_target.h"
#include "json/json_read.h"

#define MARK_BYTES   4
#define LINE_MAX_LEN ((size_t) 1024 * 1024)
#define CLEAN_TRIES  5
#define CLEAN_WAIT_S 1

#define STATUS_STOPPED 130

static const struct drill_group *const groups[] = {&drill_escape, &drill_tenancy, &drill_shares,
                                                   &drill_door};

/* The only thing a handler can reach. */
static volatile sig_atomic_t stopped_by;

struct drill_report {
    const struct drill_options *options;
    json_t *results; /* owned */
    size_t counts[3];
    const char *group; /* of the last line; in `results` */
};

/* --- the one that attacks -------------------------------------------------------------------- */

static bool group_is_wanted(const struct drill_options *options, const struct drill_group *group)
{
    for (size_t i = 0; i < options->group_count; i++) {
        if (strcmp(options->groups[i], group->name) == 0)
            return true;
    }
    return options->group_count == 0;
}

/* The exit status. */
static int drill_attack(struct drill *drill)
{
    struct error err = ERROR_INIT;
    int status = 0;

    if (client_open(&drill->client, drill->options->url, drill->options->key, &err) < 0) {
        drill_tell(drill, "", "", DRILL_UNTRIED, "%s", err.message);
        return DRILL_STATUS_FAILED;
    }
    for (size_t i = 0; i < ARRAY_COUNT(groups); i++) {
        err = (struct error) ERROR_INIT;
        if (!group_is_wanted(drill->options, groups[i]))
            continue;
        if (groups[i]->make(drill, groups[i], &err) < 0) {
            drill_tell(drill, groups[i]->name, "", DRILL_UNTRIED, "%s", err.message);
            status = DRILL_STATUS_FAILED;
        }
    }
    client_close(&drill->client);
    return status;
}

static pid_t drill_start(const struct drill_options *options, const char *mark, int *ret_results)
{
    pid_t pid, parent = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    (void) fflush(stdout);
    pid = fork();
    if (pid == 0) {
        struct drill drill = {.options = options, .results = ends[1]};

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(DRILL_STATUS_FAILED);
        (void) signal(SIGINT, SIG_DFL);
        (void) signal(SIGTERM, SIG_DFL);
        (void) signal(SIGHUP, SIG_DFL);
        (void) close(ends[0]);
        (void) snprintf(drill.mark, sizeof(drill.mark), "%s", mark);
        _exit(drill_attack(&drill));
    }
    (void) close(ends[1]);
    *ret_results = ends[0];
    return pid;
}

/* --- printing -------------------------------------------------------------------------------- */

static void report_print(struct drill_report *report, json_t *line)
{
    const char *group = json_string_value(json_object_get(line, "group"));
    const char *name = json_string_value(json_object_get(line, "name"));
    const char *verdict = json_string_value(json_object_get(line, "verdict"));
    const char *told = json_string_value(json_object_get(line, "told"));

    if (report->options->is_json || !group || !name || !verdict || !told)
        return;
    (void) printf("%-8s %-30s %-8s ", group, name,
                  strcmp(verdict, "broken") == 0 ? "BROKEN" : verdict);
    for (const char *at = told; *at; at++)
        (void) putchar((unsigned char) *at < ' ' || *at == 0x7f ? '?' : *at);
    (void) putchar('\n');
    (void) fflush(stdout);
}

static void report_take(struct drill_report *report, const char *text, size_t length)
{
    json_t *line = json_read(text, length, NULL, NULL);
    const char *verdict = json_string_value(json_object_get(line, "verdict"));

    if (!verdict) {
        json_decref(line);
        return;
    }
    report->counts[strcmp(verdict, "held") == 0     ? DRILL_HELD
                   : strcmp(verdict, "broken") == 0 ? DRILL_BROKEN
                                                    : DRILL_UNTRIED]++;
    report_print(report, line);
    (void) json_array_append_new(report->results, line);
}

/* Until the other has ended, or we are told to. */
static void report_follow(struct drill_report *report, int results)
{
    AUTO(text) struct text held = TEXT_INIT(LINE_MAX_LEN);
    char bytes[4096];

    while (!stopped_by) {
        ssize_t got = read(results, bytes, sizeof(bytes));
        const char *end;

        if (got == 0 || (got < 0 && errno != EINTR))
            return;
        if (got < 0)
            continue;
        text_append_bytes(&held, bytes, (size_t) got);
        while ((end = memchr(text_string(&held), '\n', held.length))) {
            size_t length = (size_t) (end - text_string(&held));

            report_take(report, text_string(&held), length);
            text_consume(&held, length + 1);
        }
    }
}

static void report_end(struct drill_report *report, bool is_clean, const char *problem)
{
    if (report->options->is_json) {
        AUTO(json) json_t *all = json_object();

        (void) json_object_set_new(all, "held",
                                   json_integer((json_int_t) report->counts[DRILL_HELD]));
        (void) json_object_set_new(all, "broken",
                                   json_integer((json_int_t) report->counts[DRILL_BROKEN]));
        (void) json_object_set_new(all, "untried",
                                   json_integer((json_int_t) report->counts[DRILL_UNTRIED]));
        (void) json_object_set_new(all, "leftNothing", json_boolean(is_clean));
        (void) json_object_set(all, "attacks", report->results);
        (void) json_dumpf(all, stdout, isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT);
        (void) putchar('\n');
    } else {
        (void) printf("%zu held, %zu broken, %zu not tried; %s\n", report->counts[DRILL_HELD],
                      report->counts[DRILL_BROKEN], report->counts[DRILL_UNTRIED],
                      is_clean ? "nothing of it is left" : "NOT ALL OF IT IS TAKEN AWAY");
    }
    if (problem && *problem)
        (void) fprintf(stderr, "burrow: %s\n", problem);
}

/* --- the whole ------------------------------------------------------------------------------- */

static void drill_stop(int number)
{
    stopped_by = number;
}

static void drill_catch(void)
{
    const struct sigaction action = {.sa_handler = drill_stop};

    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
    (void) sigaction(SIGHUP, &action, NULL);
}

/* Whether nothing of it is left. What was begun may only just be ending: more than one try. */
static bool drill_take_away(const struct drill_options *options, const char *mark,
                            struct error *err)
{
    for (int i = 0; i < CLEAN_TRIES; i++) {
        AUTO(client) struct client client = {.pool = POOL_INIT};

        *err = (struct error) ERROR_INIT;
        if (client_open(&client, options->url, options->key, err) == 0 &&
            drill_clean(&client, mark, err) == 0)
            return true;
        if (err->code)
            (void) sleep(CLEAN_WAIT_S);
    }
    return false;
}

static void drill_say(const struct drill_options *options)
{
    if (options->is_json)
        return;
    (void) printf(
        "Attacks by users and sandboxes made for it, which are taken away at the end. At most 20 "
        "small\nsandboxes are awake at a time, some hundred MB are written, no attack lasts longer "
        "than 30 s.\nOthers feel what is not held as long as it goes on.\n\n");
    (void) fflush(stdout);
}

/* That we may do it at all: it is said before anything is made. */
static int drill_check(const struct drill_options *options, struct error *err)
{
    AUTO(client) struct client client = {.pool = POOL_INIT};
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_open(&client, options->url, options->key, err) < 0)
        return -1;
    return client_call(&client, "GET", CLIENT_PREFIX "/audit?limit=1", NULL, &reply, err) < 0
               ? error_wrap(err, "the administrator's key is needed")
               : 0;
}

static int drill_complain(const struct error *err)
{
    (void) fprintf(stderr, "burrow: %s\n", err->message);
    return DRILL_STATUS_FAILED;
}

int drill_run_clean(const struct drill_options *options)
{
    AUTO(client) struct client client = {.pool = POOL_INIT};
    struct error err = ERROR_INIT;
    int found;

    if (client_open(&client, options->url, options->key, &err) < 0)
        return drill_complain(&err);
    found = drill_clean(&client, DRILL_PREFIX, &err);
    if (found < 0)
        return drill_complain(&err);
    (void) printf("%d users of earlier attacks taken away\n", found);
    return 0;
}

int drill_run(const struct drill_options *options)
{
    struct drill_report report = {.options = options};
    AUTO(close) int told = -EBADF;
    struct error err = ERROR_INIT;
    unsigned char random[MARK_BYTES];
    char mark[DRILL_NAME_SIZE];
    int status = 0;
    bool is_clean;
    pid_t pid;

    if (drill_check(options, &err) < 0)
        return drill_complain(&err);
    drill_say(options);
    report.results = json_array();
    random_bytes(random, sizeof(random));
    (void) snprintf(mark, sizeof(mark), DRILL_PREFIX "%02x%02x%02x%02x", random[0], random[1],
                    random[2], random[3]);
    drill_catch();
    pid = drill_start(options, mark, &told);
    if (pid < 0) {
        json_decref(report.results);
        (void) fprintf(stderr, "burrow: start the attacks: %s\n", strerror(errno));
        return DRILL_STATUS_FAILED;
    }
    report_follow(&report, told);
    if (stopped_by)
        (void) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        (void) kill(pid, SIGKILL);
    drill_target_sweep(mark);
    err = (struct error) ERROR_INIT;
    is_clean = drill_take_away(options, mark, &err);
    report_end(&report, is_clean, is_clean ? NULL : err.message);
    json_decref(report.results);
    if (stopped_by)
        return STATUS_STOPPED;
    if (!is_clean || !WIFEXITED(status) || WEXITSTATUS(status))
        return DRILL_STATUS_FAILED;
    return report.counts[DRILL_BROKEN] ? DRILL_STATUS_BROKEN : DRILL_STATUS_HELD;
}

static bool drill_knows(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(groups); i++) {
        if (groups[i]->knows && groups[i]->knows(name))
            return true;
        for (const struct drill_row *row = groups[i]->rows; row && row->name; row++) {
            if (strcmp(row->name, name) == 0)
                return true;
        }
    }
    return false;
}

int drill_check_names(const struct drill_options *options, struct error *err)
{
    for (size_t i = 0; i < options->only_count; i++) {
        if (!drill_knows(options->only[i]))
            return error_set(err, ERR_INVALID, 0,
                             "there is no attack '%s'; `burrow attack --list` has all names",
                             options->only[i]);
    }
    return 0;
}

void drill_list(const struct drill_options *options)
{
    for (size_t i = 0; i < ARRAY_COUNT(groups); i++) {
        if (!group_is_wanted(options, groups[i]))
            continue;
        (void) printf("%s: %s\n", groups[i]->name, groups[i]->summary);
        if (groups[i]->list)
            groups[i]->list();
        for (const struct drill_row *row = groups[i]->rows; row && row->name; row++)
            (void) printf("    %-30s %s\n", row->name, row->what);
    }
}
