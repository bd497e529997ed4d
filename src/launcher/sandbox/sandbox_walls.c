#include "launcher/sandbox/sandbox_walls.h"

#include <string.h>

static const struct {
    const char *text, *keeps_out;
} walls[SANDBOX_WALL_COUNT] = {
#define X(name, wall_text, out) [SANDBOX_WALL_##name] = {wall_text, out},
    SANDBOX_WALLS(X)
#undef X
};

const char *sandbox_wall_text(enum sandbox_wall wall)
{
    return walls[wall].text;
}

const char *sandbox_wall_keeps_out(enum sandbox_wall wall)
{
    return walls[wall].keeps_out;
}

enum sandbox_wall sandbox_wall_from_text(const char *text)
{
    unsigned int wall = 0;

    while (wall < SANDBOX_WALL_COUNT && strcmp(walls[wall].text, text) != 0)
        wall++;
    return (enum sandbox_wall) wall;
}
