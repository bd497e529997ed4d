#include "launcher/image/image_ground.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/image/image_internal.h"
#include "launcher/network/router_rules.h"
#include "sys/file/sys_file.h"

#define GROUND   ".ground"
#define RESOLVER "etc/resolv.conf"

static const struct {
    const char *path;
    mode_t mode;
} folders[] = {
    {"dev", 0755}, {"etc", 0755},       {"proc", 0555},
    {"sys", 0555}, {"workspace", 0777}, /* whichever user a step runs as, it is its own */
};

_Static_assert(sizeof("nameserver \n") + INET_ADDRSTRLEN <= IMAGE_RESOLVER_SIZE, "the text fits");

void image_ground_resolver(char ret_text[static IMAGE_RESOLVER_SIZE])
{
    struct in_addr address = router_rules_address(0);
    char server[INET_ADDRSTRLEN];

    (void) snprintf(ret_text, IMAGE_RESOLVER_SIZE, "nameserver %s\n",
                    inet_ntop(AF_INET, &address, server, sizeof(server)));
}

/* Replaced only if it has to be: a sandbox may look at it. */
static int make_resolver(int ground)
{
    AUTO(free) char *before = NULL;
    char text[IMAGE_RESOLVER_SIZE];
    size_t length = 0;

    image_ground_resolver(text);
    if (sys_file_read_all(ground, RESOLVER, sizeof(text), &before, &length) == 0 &&
        length == strlen(text) && memcmp(before, text, length) == 0)
        return 0;
    return sys_file_replace(ground, RESOLVER, text, strlen(text), 0644);
}

static int make_folders(int ground)
{
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        if (mkdirat(ground, folders[i].path, folders[i].mode) < 0 && errno != EEXIST)
            return -errno;
        if (fchmodat(ground, folders[i].path, folders[i].mode, 0) < 0)
            return -errno; /* the umask took something away */
    }
    return 0;
}

int image_ground_open(struct image_registry *registry, struct error *err)
{
    AUTO(close) int ground = -EBADF;
    int r = sys_file_make_directories(registry->names.folder, GROUND, 0755);

    if (r == 0)
        r = ground =
            sys_file_open(registry->names.folder, GROUND, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (r >= 0)
        r = make_folders(ground);
    if (r == 0)
        r = make_resolver(ground);
    if (r == 0)
        r = sys_file_open(registry->names.folder, GROUND, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "make what lies below a step") : r;
}
