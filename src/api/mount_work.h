/* A visit that mounts or unmounts: what the dialects that speak of mounts have in common. The work
 * goes on when the client leaves; then nobody is told. */
#pragma once

#include "api/agent/visit.h"
#include "domain/bucket/bucket_mount.h"

/* How it ended. `mount` is NULL after a failure or an unmount; the request is to be answered. */
typedef void mount_work_done(struct visit *visit, const struct error *failure,
                             const struct bucket_mount *mount);

/* Uses visit->gone, and visit->data, which is as before when `done` is called. */
void mount_work_add(struct visit *visit, const struct bucket_mount_spec *spec,
                    mount_work_done *done);
void mount_work_remove(struct visit *visit, const char *place, mount_work_done *done);

/* A path that a client gave, as mounts have it: no "//", "." or "/" at the end, ".." resolved; in
 * the pool. NULL: it is "/", or not absolute. */
const char *mount_work_place(struct pool *pool, const char *path);
