/* wall_lab: sandboxes with walls left out, for tests of isolation only. Never installed.
 *
 *     wall_lab [OPTION]... --without WALL,WALL -- PROGRAM ARGUMENT...
 *         run one program in a fresh sandbox without these walls; print what it printed, exit with
 *         its status
 *     wall_lab [OPTION]...
 *         serve: one command per line, words with blanks between, answered by one line of JSON
 *             run WALLS PROGRAM ARGUMENT...   as above: {"exitCode":0,"stdout":"",...}
 *             start WALLS [ID]                a sandbox that stays; ID: on the disk of that one
 *                                             {"id":"...","socket":"/path of the agent's socket"}
 *             stop ID [keep]                  end it; `keep` its disk: {}
 *             stats ID                        what it has used (wall_measure.h)
 *             memory ID BYTES                 change its limit
 *         with --network, where sandboxes have none until they join (wall_world.h):
 *             join ID                         {"address":"10.66.0.7"}
 *             open WALLS                      leave out these walls of the network, and only these
 *             policy ID RULE...               rules of its own
 *             router_ipv6 ID                  {"address":"fe80::1"}, or ""
 *         anything that fails: {"error":"..."}. The end of the input ends everything.
 *
 * WALLS are names as in wall_set.h with commas between, "-" for none. Everything happens inside an
 * outer guard (wall_guard.h), and nothing is left of it, whatever ends the lab.
 *
 * Exit status: the program's, 124 deadline, 125 the lab failed, 77 this machine cannot do it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/auto.h"
#include "base/number.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"
#include "wall_bare.h"
#include "wall_box.h"
#include "wall_guard.h"
#include "wall_measure.h"
#include "wall_world.h"

#define EXIT_LAB    125
#define EXIT_UNABLE 77
#define LINE_SIZE   65536
#define WORDS_MAX   1024
#define BOXES_MAX   16
#define ANSWER_MAX  ((size_t) 32 << 20)

struct lab {
    struct wall_guard guard;
    struct wall_box_options options;
    struct wall_stage stage;
    struct wall_box *boxes[BOXES_MAX];
    char *without;
    const char *const *program; /* NULL: serve */
    bool has_network;
    struct wall_world *world;
};

/* --- commands ------------------------------------------------------------------------------- */

static int run_program(struct lab *lab, const struct wall_set *without, const char *const *argv,
                       struct text *answer, struct error *err)
{
    struct wall_box box;
    int r;

    if (wall_set_is_bare(without))
        return wall_bare_execute(&lab->stage, without, argv, answer, err);
    if (wall_box_start(&lab->stage, without, NULL, &box, err) < 0)
        return -1;
    r = wall_box_execute(&lab->stage, &box, argv, answer, err);
    return wall_box_stop(&lab->stage, &box, false, r < 0 ? NULL : err) < 0 ? -1 : r;
}

static int command_run(struct lab *lab, char **words, size_t count, struct text *answer,
                       struct error *err)
{
    struct wall_set without;

    if (count < 2)
        return error_set(err, ERR_INVALID, 0, "run WALLS PROGRAM");
    if (wall_set_parse(words[0], &without, err) < 0)
        return -1;
    return run_program(lab, &without, (const char *const *) (words + 1), answer, err);
}

static int command_start(struct lab *lab, char **words, size_t count, struct text *answer,
                         struct error *err)
{
    struct wall_set without;
    struct wall_box *box;
    struct id id;
    size_t slot = 0;

    while (slot < BOXES_MAX && lab->boxes[slot])
        slot++;
    if (slot == BOXES_MAX || count < 1 || (count > 1 && !id_is_valid(words[1])))
        return error_set(err, ERR_INVALID, 0, "start WALLS [ID], at most %d", BOXES_MAX);
    if (wall_set_parse(words[0], &without, err) < 0)
        return -1;
    if (count > 1)
        memcpy(id.text, words[1], ID_SIZE);
    box = calloc(1, sizeof(*box));
    if (!box || wall_box_start(&lab->stage, &without, count > 1 ? &id : NULL, box, err) < 0) {
        free(box);
        return -1;
    }
    lab->boxes[slot] = box;
    text_format(answer, "{\"id\":\"%s\",\"socket\":\"%s\"}", box->plan.id.text, box->socket);
    return 0;
}

static int command_stop(struct lab *lab, char **words, size_t count, struct text *answer,
                        struct error *err)
{
    for (size_t i = 0; count > 0 && i < BOXES_MAX; i++) {
        int r;

        if (!lab->boxes[i] || strcmp(lab->boxes[i]->plan.id.text, words[0]) != 0)
            continue;
        r = wall_box_stop(&lab->stage, lab->boxes[i], count > 1, err);
        if (lab->world && r == 0)
            r = wall_world_leave(lab->world, &lab->boxes[i]->plan.id, err);
        free(TAKE_PTR(lab->boxes[i]));
        text_append(answer, "{}");
        return r;
    }
    return error_set(err, ERR_NOT_FOUND, 0, "stop ID [keep]");
}

static struct wall_box *find_box(struct lab *lab, char **words, size_t count, struct error *err)
{
    for (size_t i = 0; count > 0 && i < BOXES_MAX; i++) {
        if (lab->boxes[i] && strcmp(lab->boxes[i]->plan.id.text, words[0]) == 0)
            return lab->boxes[i];
    }
    (void) error_set(err, ERR_NOT_FOUND, 0, "there is no such sandbox");
    return NULL;
}

static int command_stats(struct lab *lab, char **words, size_t count, struct text *answer,
                         struct error *err)
{
    struct wall_box *box = find_box(lab, words, count, err);

    if (!box)
        return -1;
    wall_measure(box, answer);
    return 0;
}

static int command_memory(struct lab *lab, char **words, size_t count, struct text *answer,
                          struct error *err)
{
    struct wall_box *box = find_box(lab, words, count, err);
    int64_t bytes;

    if (!box || count < 2 || number_parse(words[1], 0, INT64_MAX, &bytes) < 0)
        return error_set(err, ERR_INVALID, 0, "memory ID BYTES");
    box->plan.limits.memory_bytes = (uint64_t) bytes;
    text_append(answer, "{}");
    return cgroup_set_limits(&box->sandbox.cgroup, NULL, &box->plan.limits, err);
}

/* --- the network ---------------------------------------------------------------------------- */

static int command_join(struct lab *lab, char **words, size_t count, struct text *answer,
                        struct error *err)
{
    struct wall_box *box = find_box(lab, words, count, err);
    char address[INET_ADDRSTRLEN];

    if (!box || !lab->world ||
        wall_world_join(lab->world, &box->plan.id, box->sandbox.pid, address, err) < 0)
        return -1;
    text_format(answer, "{\"address\":\"%s\"}", address);
    return 0;
}

static int command_open(struct lab *lab, char **words, size_t count, struct text *answer,
                        struct error *err)
{
    if (!lab->world || count != 1)
        return error_set(err, ERR_INVALID, 0, "open WALLS, with --network");
    text_append(answer, "{}");
    return wall_world_open(lab->world, words[0], err);
}

static int command_policy(struct lab *lab, char **words, size_t count, struct text *answer,
                          struct error *err)
{
    struct wall_box *box = find_box(lab, words, count, err);

    if (!box || !lab->world)
        return -1;
    text_append(answer, "{}");
    return wall_world_set_policy(lab->world, &box->plan.id, words + 1, count - 1, err);
}

static int command_router_ipv6(struct lab *lab, char **words, size_t count, struct text *answer,
                               struct error *err)
{
    struct wall_box *box = find_box(lab, words, count, err);
    char address[INET6_ADDRSTRLEN];

    if (!box || !lab->world || wall_world_router_ipv6(lab->world, &box->plan.id, address, err) < 0)
        return -1;
    text_format(answer, "{\"address\":\"%s\"}", address);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct lab *lab, char **words, size_t count, struct text *answer, struct error *err);
} commands[] = {
    {"run", command_run},     {"start", command_start},   {"stop", command_stop},
    {"stats", command_stats}, {"memory", command_memory}, {"join", command_join},
    {"open", command_open},   {"policy", command_policy}, {"router_ipv6", command_router_ipv6},
};

static void obey(struct lab *lab, char *line)
{
    AUTO(text) struct text answer = TEXT_INIT(ANSWER_MAX);
    struct error error = ERROR_INIT;
    char *words[WORDS_MAX + 1], *word;
    size_t count = 0, i = 0;
    int r = -1;

    while ((word = strsep(&line, " \n")) && count < WORDS_MAX) {
        if (*word)
            words[count++] = word;
    }
    words[count] = NULL;
    if (!count)
        return;
    while (i < ARRAY_COUNT(commands) && strcmp(commands[i].name, words[0]) != 0)
        i++;
    if (i < ARRAY_COUNT(commands))
        r = commands[i].run(lab, words + 1, count - 1, &answer, &error);
    if (r < 0) {
        struct json_writer json;

        text_clear(&answer);
        json_writer_init_text(&json, &answer);
        json_begin_object(&json);
        json_add_text(&json, "error", error.message[0] ? error.message : "unknown command");
        json_end_object(&json);
        (void) json_writer_finish(&json);
    }
    (void) printf("%s\n", text_string(&answer));
    (void) fflush(stdout);
}

static int serve(struct lab *lab)
{
    static char line[LINE_SIZE];

    while (fgets(line, sizeof(line), stdin))
        obey(lab, line);
    for (size_t i = 0; i < BOXES_MAX; i++) {
        if (lab->boxes[i])
            (void) wall_box_stop(&lab->stage, lab->boxes[i], false, NULL);
        free(lab->boxes[i]);
    }
    return 0;
}

/* --- one program ---------------------------------------------------------------------------- */

static void print_field(json_t *body, const char *key, FILE *to)
{
    json_t *text = json_object_get(body, key);

    (void) fwrite(json_string_value(text), 1, json_string_length(text), to);
}

static int print_answer(const struct text *answer, struct error *err)
{
    /* Programs print what they like, NUL characters too. */
    AUTO(json) json_t *body = json_loadb(text_string(answer), answer->length, JSON_ALLOW_NUL, NULL);

    if (!json_is_string(json_object_get(body, "stdout")))
        return error_set(err, ERR_UPSTREAM, 0, "%s", text_string(answer));
    print_field(body, "stdout", stdout);
    print_field(body, "stderr", stderr);
    return (int) json_integer_value(json_object_get(body, "exitCode"));
}

static int run_one(struct lab *lab, struct error *err)
{
    AUTO(text) struct text answer = TEXT_INIT(ANSWER_MAX);
    struct wall_set without;

    if (wall_set_parse(lab->without, &without, err) < 0 ||
        run_program(lab, &without, lab->program, &answer, err) < 0)
        return -1;
    return print_answer(&answer, err);
}

/* As most machines have it: no cores, but everybody may ask for some. */
static void set_core_limit(void)
{
    struct rlimit limit;

    (void) getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = 0;
    (void) setrlimit(RLIMIT_CORE, &limit);
}

static int make_world(struct lab *lab, struct error *err)
{
    char folder[128];

    (void) snprintf(folder, sizeof(folder), "%s/store", lab->guard.folder);
    return wall_world_make(folder, &lab->world, err);
}

static int work(void *context)
{
    struct lab *lab = context;
    struct error error = ERROR_INIT;
    int status = -1;

    set_core_limit();
    if (wall_stage_set(&lab->stage, &lab->options, &error) < 0 ||
        (lab->has_network && make_world(lab, &error) < 0))
        status = error.code == ERR_UNAVAILABLE ? EXIT_UNABLE : -1;
    else
        status = lab->program ? run_one(lab, &error) : serve(lab);
    if (error.message[0])
        (void) fprintf(stderr, "wall_lab: %s\n", error.message);
    wall_stage_strike(&lab->stage);
    return status < 0 ? EXIT_LAB : status;
}

/* --- options -------------------------------------------------------------------------------- */

enum { OPTION_MEMORY = 256, OPTION_PIDS, OPTION_CPU, OPTION_DISK };

static const struct option long_options[] = {
    {"without", required_argument, NULL, 'w'},
    {"agent", required_argument, NULL, 'a'},
    {"bind-ro", required_argument, NULL, 'b'},
    {"memory", required_argument, NULL, 'm'},
    {"pids", required_argument, NULL, 'p'},
    {"cpu", required_argument, NULL, 'c'},
    {"disk", required_argument, NULL, 'd'},
    {"timeout", required_argument, NULL, 't'},
    {"guard-memory", required_argument, NULL, OPTION_MEMORY},
    {"guard-pids", required_argument, NULL, OPTION_PIDS},
    {"guard-cpu", required_argument, NULL, OPTION_CPU},
    {"network", no_argument, NULL, 'n'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: wall_lab --agent PATH [--bind-ro DIRECTORY:PLACE]... [--without WALL,WALL...]\n"
    "                [--memory BYTES] [--pids N] [--cpu MILLIS] [--disk BYTES] [--timeout S]\n"
    "                [--guard-memory BYTES] [--guard-pids N] [--guard-cpu MILLIS] [--network]\n"
    "                [-- PROGRAM ARGUMENT...]\n";

static int add_bind(struct wall_box_options *options, char *argument)
{
    char *place = strchr(argument, ':');

    if (!place || options->bind_count == SANDBOX_BINDS_MAX)
        return -1;
    *place++ = '\0';
    options->bind_paths[options->bind_count] = argument;
    options->binds[options->bind_count++] = (struct sandbox_bind){-EBADF, place};
    return 0;
}

static int set_number(struct lab *lab, int option, int64_t number)
{
    switch (option) {
    case 'm':
        lab->options.memory = (uint64_t) number;
        return 0;
    case 'p':
        lab->options.pids = (uint32_t) number;
        return 0;
    case 'c':
        lab->options.cpu = (uint32_t) number;
        return 0;
    case 'd':
        lab->options.disk = (uint64_t) number;
        return 0;
    case 't':
        lab->guard.seconds = (unsigned) number;
        return 0;
    case OPTION_MEMORY:
        lab->guard.memory = (uint64_t) number;
        return 0;
    case OPTION_PIDS:
        lab->guard.pids = (uint32_t) number;
        return 0;
    case OPTION_CPU:
        lab->guard.cpu = (uint32_t) number;
        return 0;
    default:
        return -1;
    }
}

static int set_option(struct lab *lab, int option)
{
    int64_t number;

    switch (option) {
    case 'w':
        lab->without = optarg;
        return 0;
    case 'a':
        lab->options.agent = optarg;
        return 0;
    case 'b':
        return add_bind(&lab->options, optarg);
    case 'n':
        lab->has_network = true;
        return 0;
    default:
        return option == '?' || number_parse(optarg, 0, INT64_MAX, &number) < 0
                   ? -1
                   : set_number(lab, option, number);
    }
}

int main(int argc, char **argv)
{
    static char nothing[] = "-";
    static struct lab lab = {
        .guard = {.memory = 1ULL << 30, .pids = 1024, .cpu = 1500, .seconds = 120},
        .options = {.memory = 256ULL << 20, .pids = 128, .cpu = 1000, .disk = 64ULL << 20},
        .without = nothing,
    };
    struct error error = ERROR_INIT;
    int option, status = 0;

    while (status == 0 && (option = getopt_long(argc, argv, "+", long_options, NULL)) >= 0)
        status = set_option(&lab, option);
    if (status < 0 || !lab.options.agent) {
        (void) fputs(usage, stderr);
        return EXIT_LAB;
    }
    if (optind < argc)
        lab.program = (const char *const *) (argv + optind);
    lab.options.folder = lab.guard.folder;
    status = wall_guard_run(&lab.guard, work, &lab, &error);
    if (status < 0)
        (void) fprintf(stderr, "wall_lab: %s\n", error.message);
    return status < 0 ? error.code == ERR_UNAVAILABLE ? EXIT_UNABLE : EXIT_LAB : status;
}
