/* burrow image: `build` and `prepare` are done here, with sandboxes; all else is burrow-admin's. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/number.h"
#include "programs/burrow/command.h"
#include "programs/burrow/image_build.h"
#include "programs/burrow/image_prepare.h"
#include "programs/burrow/root_program.h"

#define STATUS_FAILED  1
#define STATUS_REFUSED 2
#define ARGUMENTS_MAX  256
#define SIZE_MAXIMUM   (UINT64_C(1) << 50)

#define MEMORY_DEFAULT (UINT64_C(4) << 30)
#define DISK_DEFAULT   (UINT64_C(32) << 30)
#define PIDS_DEFAULT   4096

#define DEBIAN_WORDS_MAX 12

static const struct option long_options[] = {
    {"debian", no_argument, NULL, 'b'},
    {"packages", required_argument, NULL, 'p'},
    {"mirror", required_argument, NULL, 'M'},
    {"suite", required_argument, NULL, 's'},
    {"build-arg", required_argument, NULL, 'a'},
    {"cgroup", required_argument, NULL, 'c'},
    {"data", required_argument, NULL, 'd'},
    {"disk", required_argument, NULL, 'D'},
    {"file", required_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {"memory", required_argument, NULL, 'm'},
    {"net", required_argument, NULL, 'n'},
    {"network-name", required_argument, NULL, 'N'},
    {"no-cache", no_argument, NULL, 'C'},
    {"run", required_argument, NULL, 'r'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: burrow image build [OPTION...] NAME DIR\n"
    "       burrow image build --debian [--packages A,B,...] [--suite NAME] [--mirror URL] [NAME]\n"
    "\n"
    "Build an image by DIR/Dockerfile, its steps in sandboxes; DIR is what COPY copies from.\n"
    "Or build Debian from packages with mmdebstrap, from this machine's sources, as `debian`.\n"
    "\n"
    "  --file FILE             another Dockerfile\n"
    "  --build-arg NAME=VALUE  the value of an ARG. Repeatable\n"
    "  --no-cache              do every step, also those that were done before\n"
    "  --net nat|none          whether steps have a network (nat where there is one)\n"
    "  --memory SIZE           of each step (4G)\n"
    "  --disk SIZE             that each step may write (32G)\n"
    "  --data DIR, --run DIR, --cgroup NAME, --network-name NAME   of the launcher\n"
    "\n"
    "Known are FROM RUN COPY ENV WORKDIR USER CMD ENTRYPOINT EXPOSE ARG. Needs root.\n";

struct image_words {
    struct image_build build;
    const char *arguments[ARGUMENTS_MAX + 1];
    size_t argument_count;
    const char *packages, *suite, *mirror; /* of --debian; NULL: the usual */
    bool is_debian;
    bool only_help;
};

static int image_complain(const char *what, const char *value)
{
    (void) fprintf(stderr, "burrow image build: %s '%s'\n", what, value);
    return -1;
}

static int parse_network(struct image_words *words)
{
    bool is_nat = strcmp(optarg, "nat") == 0;

    if (!is_nat && strcmp(optarg, "none") != 0)
        return image_complain("--net is nat or none, not", optarg);
    words->build.workshop.network = is_nat ? WORKSHOP_NAT : WORKSHOP_NONE;
    return 0;
}

static int parse_argument(struct image_words *words)
{
    if (words->argument_count == ARGUMENTS_MAX || !strchr(optarg, '='))
        return image_complain("not NAME=VALUE, or too many:", optarg);
    words->arguments[words->argument_count++] = optarg;
    return 0;
}

static int parse_size(uint64_t *ret_size)
{
    return number_parse_size(optarg, SIZE_MAXIMUM, ret_size) < 0
               ? image_complain("not a size:", optarg)
               : 0;
}

static int image_parse_option(int option, struct image_words *words)
{
    struct workshop_options *workshop = &words->build.workshop;

    switch (option) {
    case 'a':
        return parse_argument(words);
    case 'c':
        workshop->cgroup = optarg;
        return 0;
    case 'b':
        words->is_debian = true;
        return 0;
    case 'M':
        words->mirror = optarg;
        return 0;
    case 'p':
        words->packages = optarg;
        return 0;
    case 's':
        words->suite = optarg;
        return 0;
    case 'C':
        words->build.no_cache = true;
        return 0;
    case 'd':
        workshop->data = words->build.place.data = optarg;
        return 0;
    case 'D':
        return parse_size(&workshop->limits.disk_bytes);
    case 'f':
        words->build.file = optarg;
        return 0;
    case 'm':
        return parse_size(&workshop->limits.memory_bytes);
    case 'n':
        return parse_network(words);
    case 'N':
        workshop->network_name = optarg;
        return 0;
    case 'r':
        workshop->run = words->build.place.run = optarg;
        return 0;
    case 'h':
        words->only_help = true;
        return 0;
    default:
        return -1;
    }
}

static int image_parse(int argc, char **argv, struct image_words *words)
{
    int option;

    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
        if (image_parse_option(option, words) < 0)
            return -1;
    }
    if (words->only_help)
        return 0;
    if (words->is_debian && argc - optind <= 1) {
        words->build.name = optind < argc ? argv[optind] : "debian";
        return 0;
    }
    if (argc - optind != 2 || words->is_debian)
        return -1;
    words->build.name = argv[optind];
    words->build.folder = argv[optind + 1];
    words->build.arguments = words->arguments;
    return 0;
}

/* The launcher's to do: it has the ids. */
static int build_debian(const struct image_words *words)
{
    const struct image_place *place = &words->build.place;
    const char *list[DEBIAN_WORDS_MAX];
    size_t count = 0;
    struct error err = ERROR_INIT;

    list[count++] = "image";
    if (place->data) {
        list[count++] = "--data";
        list[count++] = place->data;
    }
    if (place->run) {
        list[count++] = "--run";
        list[count++] = place->run;
    }
    list[count++] = "debian";
    list[count++] = words->build.name;
    list[count++] = words->packages ? words->packages : "";
    list[count++] = words->suite ? words->suite : "";
    list[count++] = words->mirror ? words->mirror : "";
    list[count] = NULL;
    (void) root_program_exec(ADMIN_PROGRAM, list, &err);
    (void) fprintf(stderr, "burrow image build: %s\n", err.message);
    return STATUS_FAILED;
}

static int command_build(int argc, char **argv)
{
    struct image_words words = {.build.workshop.limits = {.memory_bytes = MEMORY_DEFAULT,
                                                          .disk_bytes = DISK_DEFAULT,
                                                          .pids = PIDS_DEFAULT}};
    struct error err = ERROR_INIT;

    if (image_parse(argc, argv, &words) < 0) {
        (void) fputs(usage, stderr);
        return STATUS_REFUSED;
    }
    if (words.only_help) {
        (void) fputs(usage, stdout);
        return 0;
    }
    if (geteuid() != 0) {
        (void) fputs("burrow image: needs root: run it with sudo\n", stderr);
        return STATUS_REFUSED;
    }
    if (words.is_debian)
        return build_debian(&words);
    if (image_build(&words.build, &err) == 0)
        return 0;
    (void) fflush(stdout);
    utf8_make_harmless(err.message); /* it may have words of the Dockerfile, names, and the agent */
    (void) fprintf(stderr, "burrow image build: %s\n", err.message);
    return STATUS_FAILED;
}

/* --- prepare --------------------------------------------------------------------------------- */

static const struct option prepare_options[] = {
    {"background", no_argument, NULL, 'b'},         {"cgroup", required_argument, NULL, 'c'},
    {"data", required_argument, NULL, 'd'},         {"help", no_argument, NULL, 'h'},
    {"network-name", required_argument, NULL, 'N'}, {"recipe", required_argument, NULL, 'R'},
    {"run", required_argument, NULL, 'r'},          {NULL, 0, NULL, 0},
};

static const char prepare_usage[] =
    "usage: burrow image prepare [OPTION...] NAME\n"
    "\n"
    "Make an image that comes with Burrow as a recipe: `agent`, Debian with OpenCode, Claude Code "
    "and\n"
    "Codex. Fetches Debian packages and, as nobody, packages from npm ($NPM_REGISTRY); does "
    "nothing\n"
    "when it is there and its recipe has not changed. Needs root, mmdebstrap and python3.\n"
    "\n"
    "  --recipe DIR            another folder with a recipe\n"
    "  --background            return at once; DATA/prepare/NAME/state says how far it is\n"
    "  --data DIR, --run DIR, --cgroup NAME, --network-name NAME   of the launcher\n";

/* Where what an option says is kept. */
static const char **prepare_place(struct image_prepare *prepare, int option)
{
    switch (option) {
    case 'c':
        return &prepare->cgroup;
    case 'd':
        return &prepare->data;
    case 'N':
        return &prepare->network_name;
    case 'r':
        return &prepare->run;
    case 'R':
        return &prepare->recipe;
    default:
        return NULL;
    }
}

static int prepare_parse(int argc, char **argv, struct image_prepare *prepare)
{
    int option;

    while ((option = getopt_long(argc, argv, "h", prepare_options, NULL)) >= 0) {
        const char **place = prepare_place(prepare, option);

        if (place)
            *place = optarg;
        else if (option == 'b')
            prepare->is_background = true;
        else
            return option == 'h' ? 1 : -1;
    }
    if (argc - optind != 1)
        return -1;
    prepare->name = argv[optind];
    return 0;
}

static int command_prepare(int argc, char **argv)
{
    struct image_prepare prepare = {.name = NULL};
    struct error err = ERROR_INIT;
    int parsed = prepare_parse(argc, argv, &prepare);

    if (parsed != 0) {
        (void) fputs(prepare_usage, parsed > 0 ? stdout : stderr);
        return parsed > 0 ? 0 : STATUS_REFUSED;
    }
    if (geteuid() != 0) {
        (void) fputs("burrow image: needs root: run it with sudo\n", stderr);
        return STATUS_REFUSED;
    }
    if (image_prepare(&prepare, &err) == 0)
        return 0;
    (void) fflush(stdout);
    (void) fprintf(stderr, "burrow image prepare: %s\n", err.message);
    return STATUS_FAILED;
}

/* --- which verb ------------------------------------------------------------------------------- */

static const struct own_verb {
    const char *name;
    int (*run)(int argc, char **argv);
} own_verbs[] = {{"build", command_build}, {"prepare", command_prepare}};

/* Where the verb stands among the words, behind options of all image verbs; 0: there is none. */
static int find_verb(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-')
            return i + 1;
        if (strcmp(argv[i], "--data") == 0 || strcmp(argv[i], "--run") == 0)
            i++;
    }
    return 0;
}

int command_image(int argc, char **argv)
{
    int at = find_verb(argc, argv);
    const struct own_verb *own = NULL;

    for (size_t i = 0; at && i < ARRAY_COUNT(own_verbs); i++) {
        if (strcmp(argv[at - 1], own_verbs[i].name) == 0)
            own = &own_verbs[i];
    }
    if (!own)
        return root_program_exec_verb("image", argc, argv);
    /* getopt wants a word before the options: the verb, from wherever it stood. */
    for (char *verb = argv[--at]; at > 0; at--) {
        argv[at] = argv[at - 1];
        argv[at - 1] = verb;
    }
    return own->run(argc, argv);
}
