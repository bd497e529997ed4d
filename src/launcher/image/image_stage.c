#include "launcher/image/image_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sys/file/sys_tree.h"

void image_stage_done(struct image_stage *stage)
{
    stage->folder = fd_close(stage->folder);
    if (stage->name[0])
        (void) sys_tree_delete(stage->layers, stage->name); /* or by image_layers_prune */
    stage->layers = fd_close(stage->layers);
}

int image_stage_open(struct image_registry *registry, struct image_stage *stage, struct error *err)
{
    char random[SYS_FILE_NAME_SIZE];
    int r;

    stage->layers = image_layers_open(registry, err);
    if (stage->layers < 0)
        return -1;
    r = sys_file_temporary_name(random);
    if (r == 0) {
        (void) snprintf(stage->name, sizeof(stage->name), IMAGE_STAGE_PREFIX "%s", random);
        r = mkdirat(stage->layers, stage->name, 0700) < 0 ? -errno : 0;
    }
    if (r == 0)
        r = stage->folder =
            sys_file_open(stage->layers, stage->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "make a folder for the image") : 0;
}
