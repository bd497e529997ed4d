/* What a keeper needs that has no disks to work on: for verbs that handle images. */
#pragma once

#include "launcher/keeper/keeper_job.h"

struct image_tools {
    struct keeper_host host; /* its parts are owned */
    struct seccomp_filter filter;
    struct process_limits limits;
};

#define IMAGE_TOOLS_INIT                                                                           \
    {                                                                                              \
        .host = {.program = -EBADF }                                                               \
    }

/* `run` is the run folder. The tools must stay where they are. 0, or -1 with `err`. */
int image_tools_open(struct image_tools *tools, const char *run, struct error *err);
/* The id ranges in it alone. The caller frees them. */
int image_tools_open_ids(const char *run, struct id_range_table **ret_ids, struct error *err);

void image_tools_done(struct image_tools *tools);

AUTO_DEFINE(image_tools, struct image_tools, image_tools_done);
