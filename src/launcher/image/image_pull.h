/* An image from a registry: fetched by burrow-puller, then imported like any other layout.
 *
 * Root does not talk to the internet. The puller is a process with a user id of its own that
 * nothing else has, no capabilities, no way to any, and one folder to write to; whatever it starts
 * ends with it. It gets
 *
 *     0   credentials, "NAME:PASSWORD", or nothing
 *     1   where it says why it failed
 *     2   where it says how far it is
 *     3   the folder, for an OCI layout
 *     4   the digests of layers that are here already, a line each
 *
 * and never our terminal: what it says is passed on without anything that a terminal obeys, but for
 * the two that a progress bar is made of. What it fetched is believed no more than a file from
 * anywhere (image_import.h). */
#pragma once

#include "launcher/image/image_import.h"

#define IMAGE_PULL_CREDENTIALS_MAX ((size_t) 16 * 1024)
#define IMAGE_PULL_HERE_MAX        ((size_t) 65536) /* layers that are told of */

struct image_pull {
    const char *name;        /* under which it is registered */
    const char *reference;   /* what is pulled; the puller understands it */
    const char *credentials; /* "NAME:PASSWORD"; NULL: none */
    const char *allow;       /* networks that the registry may send us to; NULL: none */
    const char *ca_file;     /* for the puller to read as well; NULL: none */
    bool plain_http;
    int program;          /* borrowed: burrow-puller, see site_load_program */
    unsigned int columns; /* of the terminal; 0: there is none */
    /* Bytes to show, made harmless. */
    void (*show)(void *context, const char *bytes, size_t length);
    void (*progress)(void *context, uint64_t number, uint64_t count, bool is_new); /* may be NULL */
    void *context;
};

/* `keepers` as for image_import. Returns 0, or -1 with `err`: what the puller said, or what
 * image_import does. As slow as the line and the image. */
int image_pull(struct image_registry *registry, const struct keeper_host *keepers,
               const struct image_pull *pull, struct error *err);

/* The name of an image that is pulled without one: "debian" of "docker.io/library/debian:12".
 * Returns 0, or -1 with ERR_INVALID. */
int image_pull_name(const char *reference, char ret_name[static IMAGE_NAME_MAX + 1],
                    struct error *err);
