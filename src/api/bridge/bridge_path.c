#include "api/bridge/bridge_internal.h"
#include "base/path.h"

const char *bridge_path_resolve(struct pool *pool, const char *path)
{
    const char *resolved = path_resolve(pool, BRIDGE_ROOT, path);

    return path_is_inside(resolved, BRIDGE_ROOT) ? resolved : NULL;
}
