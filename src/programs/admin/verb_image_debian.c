#include "programs/admin/verb_image_debian.h"

#include "launcher/image/debian_build.h"
#include "launcher/image/image_import.h"
#include "programs/admin/child_screen.h"
#include "programs/admin/image_tools.h"

int verb_image_debian(struct image_registry *images, const char *run, char **words,
                      struct error *err)
{
    AUTO(image_tools) struct image_tools tools = IMAGE_TOOLS_INIT;
    AUTO(debian_layout) struct debian_layout layout = DEBIAN_LAYOUT_INIT;
    const struct debian_build build = {
        .packages = words[1], .suite = words[2], .source = words[3], .show = child_screen_show};
    struct image_import import = {.name = words[0]};

    if (image_check_name(images, words[0], err) < 0 || image_tools_open(&tools, run, err) < 0 ||
        debian_build(tools.host.ids, &build, &layout, err) < 0)
        return -1;
    import.source = layout.folder;
    return image_import(images, &tools.host, &import, err);
}
