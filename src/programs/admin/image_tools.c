#include "programs/admin/image_tools.h"

#include "launcher/site.h"
#include "launcher/wall/seccomp.h"

void image_tools_done(struct image_tools *tools)
{
    id_range_table_free(tools->host.ids);
    tools->host.program = fd_close(tools->host.program);
}

int image_tools_open_ids(const char *run, struct id_range_table **ret_ids, struct error *err)
{
    return site_open_ids(run, ret_ids, err);
}

int image_tools_open(struct image_tools *tools, const char *run, struct error *err)
{
    int r = seccomp_filter_init_keeper(&tools->filter);

    if (r == 0)
        r = process_limits_plan(&tools->limits, 0);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "prepare the walls");
    tools->host.filter = &tools->filter;
    tools->host.limits = &tools->limits;
    if (image_tools_open_ids(run, &tools->host.ids, err) < 0)
        return -1;
    return site_load_program(NULL, "burrow-keeper", &tools->host.program, err);
}
