/* The built-in image `host`: a curated, read-only view of the host's own programs.
 *
 *     /usr                      the host's, read-only
 *     /usr/local                the sandbox's own, empty and writable (in /var/usrlocal), or the
 *                               host's when opted in
 *     /bin /sbin /lib /lib64    links into /usr, as the host has them
 *     /etc                      generated, and a listed few files of the host
 *     /root /home/user /tmp /var/tmp /workspace   empty; /home/user/workspace and /home/workspace
 *                               lead to /workspace
 *
 * Nothing of the host's /root, /home, /var, /srv, /opt, /run comes in. Of its /etc only what is in
 * the list in image_host.c, and of that only root's files that every user of the host may read and
 * that hold no private key: certificates, alternatives, the linker's cache, time zone, services.
 *
 * The skeleton (all but /usr) is a folder made once per package state, in DATA/images/.host/<name>;
 * that state's digest is the image's identity. Sandboxes that run keep the skeleton they started
 * with. */
#pragma once

#include "launcher/image/image.h"

struct image_host_options {
    bool with_usr_local;    /* show the host's /usr/local */
    const char *nameserver; /* for /etc/resolv.conf; NULL: none */

    /* For tests; NULL: "/". Where the host's root is. */
    const char *root;
};

/* Make the skeleton unless one for this package state exists, and let image_open serve it. Call it
 * again after packages changed: later sandboxes get the new state. Slow: reads the package list,
 * and the first time copies some hundred small files. */
int image_host_prepare(struct image_registry *registry, const struct image_host_options *options,
                       struct error *err);

/* What image_host_prepare would make now, in hex: another after packages changed. Slow, as it is.
 */
int image_host_identify(const struct image_host_options *options,
                        char ret_digest[static IMAGE_DIGEST_SIZE], struct error *err);

/* Delete the skeletons of other package states: only while no sandbox runs. Slow. */
int image_host_prune(struct image_registry *registry, struct error *err);
