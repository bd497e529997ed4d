/* Inside launcher/sandbox: the steps of the child that mount something, in the order they run. Each
 * returns 0 or -errno. */
#pragma once

#include "launcher/sandbox/sandbox_child.h"

int child_separate_mounts(struct child *child);

/* Before disk and image are there. */
int child_mount_stage(struct child *child);
int child_mount_devices(struct child *child);
int child_mount_proc(struct child *child);

/* With them. */
int child_attach_layers(struct child *child);
int child_mount_root(struct child *child);
int child_check_places(struct child *child);
int child_mount_image_parts(struct child *child);
int child_mount_binds(struct child *child);
int child_move_stage(struct child *child);
int child_pivot(struct child *child);
