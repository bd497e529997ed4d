/* `burrow image pull [NAME] REFERENCE`: its options, and who we are for the registry. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "launcher/image/image.h"

struct image_pull_options {
    const char *user;        /* its password is the first line of standard input */
    const char *credentials; /* or both are in this file */
    const char *allow;
    bool plain_http;
    bool is_given; /* any of them */
};

/* Rows for getopt_long; their values are no letters of others. */
#define IMAGE_PULL_OPTIONS                                                                         \
    {"user", required_argument, NULL, 'u'}, {"credentials", required_argument, NULL, 'c'},         \
        {"allow", required_argument, NULL, 'a'},                                                   \
    {                                                                                              \
        "plain-http", no_argument, NULL, 'p'                                                       \
    }

#define IMAGE_PULL_USAGE                                                                           \
    "pull [--user NAME | --credentials FILE] [--plain-http] [--allow NETWORKS]\n"                  \
    "                    [NAME] REFERENCE"

/* Whether it was one of them. */
bool verb_image_pull_option(struct image_pull_options *options, int option, const char *value);

/* [NAME] REFERENCE, NULL behind them. `run`: where id ranges are kept. */
int verb_image_pull(struct image_registry *images, const char *run,
                    const struct image_pull_options *options, char **words, struct error *err);
