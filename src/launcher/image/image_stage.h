/* A folder in which an image comes to be: beside the layers, so that they can be renamed to their
 * place, and gone when it is done with, whatever is in it. What a process that was killed left goes
 * with image_layers_prune. */
#pragma once

#include "launcher/image/image_layers.h"
#include "sys/file/sys_file.h"

#define IMAGE_STAGE_PREFIX ".new-"

struct image_stage {
    int layers; /* owned: where it is */
    int folder; /* owned */
    char name[SYS_FILE_NAME_SIZE + sizeof(IMAGE_STAGE_PREFIX)];
};

#define IMAGE_STAGE_INIT                                                                           \
    {                                                                                              \
        .layers = -EBADF, .folder = -EBADF                                                         \
    }

/* Into an empty one. Returns 0, or -1 with `err`. */
int image_stage_open(struct image_registry *registry, struct image_stage *stage, struct error *err);

/* Delete it. Accepts IMAGE_STAGE_INIT. */
void image_stage_done(struct image_stage *stage);

AUTO_DEFINE(image_stage, struct image_stage, image_stage_done);
