/* Which folders of the host a sandbox may be shown.
 *
 * Folders are compared by device and inode, so that neither links nor bind mounts lead around the
 * rules. Two sets of them:
 *
 *     registered   a name that the daemon may use at any time, for whomever. Refused: no directory,
 *                  /, /etc, /root, /home, /proc, /sys, /dev, the own places (below), anything that
 *                  contains one of these, anything inside /etc, /proc, /sys, /dev and the own
 *                  places, and whatever others than root could change or exchange.
 *     by hand      a folder that root names on the command line of the program that shows it, for
 *                  as long as that runs. Root's word is enough, except for what is not root's to
 *                  show: refused are /proc, /sys, /dev and the own places, anything that contains
 *                  one of these (so /, too) and anything inside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A folder of ours that nobody is shown, neither from outside nor from inside. */
struct folder_place {
    int fd;           /* borrowed; negative: there is none */
    const char *text; /* for messages: "the list of images" */
};

enum folder_rules { FOLDER_REGISTERED, FOLDER_BY_HAND };

/* Whether `folder` (O_PATH is enough) may be shown. `path` and `noun` ("an image") are for the
 * message. Returns 0, or -1 with ERR_INVALID. About 0.1 ms. */
int folder_check(enum folder_rules rules, int folder, const char *path, const char *noun,
                 const struct folder_place *own, size_t own_count, struct error *err);

/* Whether only we can change what `fd` names. */
bool folder_is_ours(int fd);
