/* Copying between here and a sandbox: the two directions behind `burrow cp`. */
#pragma once

#include "cli/client/client.h"
#include "cli/copy/copy_place.h"
#include "cli/progress.h"

struct copy {
    struct client *client;
    const char *sandbox;
    const char *folder; /* where relative paths in it begin */
    struct copy_place from, to;
    struct progress progress;
    bool is_quiet;
};

/* Both return 0 or -1. They block. */
int copy_into(struct copy *copy, struct error *err); /* from here into the sandbox */
int copy_out(struct copy *copy, struct error *err);  /* from the sandbox to here */

/* The path of a file in the API, with `query` behind it. In the client's pool. */
const char *copy_file_path(struct copy *copy, const char *path, const char *query);
/* The same for the archive of a folder. */
const char *copy_archive_path(struct copy *copy, const char *path);

/* Whether a path in the sandbox is a folder: 1, 0, or -1. What does not exist is none. */
int copy_is_folder_there(struct copy *copy, const char *path, struct error *err);

/* Begin to show how far it is, unless nobody wants to know. */
void copy_show(struct copy *copy, const char *what, int64_t total);
