/* Images that come with Burrow as recipes: `agent`, with coding agents in it. Root prepares them, in the
 * foreground (`burrow image prepare agent`) or, when the setting `prepare-images` names them, in the
 * background of the first start.
 *
 *     recipes/NAME/packages        Debian packages of its base, NAME-base        burrow image build --debian
 *     recipes/NAME/fetch           lines FOLDER PACKAGE...: what is taken from npm,
 *                 package-lock.json     exactly as this says                     as nobody, without any right
 *     recipes/NAME/Dockerfile      the image itself, of those folders            burrow image build
 *
 *     DATA/prepare/NAME/state      one line: "step 2 of 3: ...", "ready DIGEST", "failed: ..."
 *                       log        all that was written, of one in the background
 *
 * The first two may be missing. What is ready and of the same recipe is not done again. No byte from outside is read by root. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct image_prepare {
    const char *name;
    const char *recipe; /* its folder; NULL: as it was installed, or lies in the tree */
    const char *data, *run, *cgroup, *network_name; /* of the launcher; NULL: its defaults */
    bool is_background; /* return at once; the rest is done by a child that nobody waits for */
};

#define IMAGE_PREPARE_DATA "/var/lib/burrow"

/* 0, or -1 with what failed and what to do. Blocks, unless it is in the background. */
int image_prepare(const struct image_prepare *options, struct error *err);
