/* burrow-admin doctor: what this machine has of what sandboxes need. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/doctor/doctor.h"
#include "launcher/site.h"
#include "programs/admin/verb.h"
#include "programs/root/root_verb.h"

#define SANDBOXES_MAX 1000000
#define PRINT_MAX     ((size_t) 1 << 20)

static const struct option long_options[] = {
    {"data", required_argument, NULL, 'd'},
    {"run", required_argument, NULL, 'r'},
    {"cgroup", required_argument, NULL, 'c'},
    {"user", required_argument, NULL, 'u'},
    {"programs", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {"sandboxes", required_argument, NULL, 's'},
    {"cgroup-parent", required_argument, NULL, 'C'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: burrow doctor [--data DIR] [--run DIR] [--cgroup NAME] [--user NAME]\n"
    "                     [--cgroup-parent GROUP] [--programs DIR] [--sandboxes N]\n"
    "\n"
    "Prints each kernel feature, limit and wall as on, off, warning or missing, and what to do.\n"
    "--sandboxes says how many shall be alive at once [1000]. Nothing is made or changed.\n"
    "Status 0: sandboxes can run here; 1: something is missing; 2: not root.\n";

static int parse_option(int option, struct doctor_options *options)
{
    int64_t number;

    switch (option) {
    case 'd':
        options->data = optarg;
        return 0;
    case 'r':
        options->run = optarg;
        return 0;
    case 'c':
        options->cgroup = optarg;
        return 0;
    case 'C':
        options->cgroup_parent = optarg;
        return 0;
    case 'u':
        options->user = optarg;
        return 0;
    case 'p':
        options->programs = optarg;
        return 0;
    case 's':
        if (number_parse(optarg, 1, SANDBOXES_MAX, &number) < 0)
            break;
        options->sandboxes = (uint64_t) number;
        return 0;
    default:
        break;
    }
    (void) fputs(usage, stderr);
    return -1;
}

/* The programs of an installation lie side by side. */
static void own_folder(char ret_path[static PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
    char *slash;

    ret_path[length < 0 ? 0 : length] = '\0';
    slash = strrchr(ret_path, '/');
    if (slash)
        *slash = '\0';
}

int verb_doctor(int argc, char **argv)
{
    struct doctor_options options = DOCTOR_OPTIONS_DEFAULT;
    AUTO(free) struct doctor_report *report = NULL;
    AUTO(text) struct text out = TEXT_INIT(PRINT_MAX);
    char programs[PATH_MAX];
    int option;

    own_folder(programs);
    options.programs = programs;
    options.data = SITE_DATA_DEFAULT;
    options.run = SITE_RUN_DEFAULT;
    options.cgroup = SITE_CGROUP_DEFAULT;
    options.cgroup_parent = SITE_CGROUP_UNIT;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
        if (option == 'h') {
            (void) fputs(usage, stdout);
            return 0;
        }
        if (parse_option(option, &options) < 0)
            return ROOT_VERB_REFUSED;
    }
    if (optind < argc) {
        (void) fputs(usage, stderr);
        return ROOT_VERB_REFUSED;
    }
    if (!root_verb_is_allowed("doctor"))
        return ROOT_VERB_REFUSED;
    report = doctor_run(&options);
    doctor_print(report, &out);
    (void) fputs(text_string(&out), stdout);
    return doctor_exit_status(report);
}
