/* Folders of the host by name: what root registered for sandboxes, as images or as binds.
 *
 * A registry is a root-owned folder with one small file per name (its content is the folder's
 * path), so that it can be read, backed up and repaired by hand. A plan names names, never paths.
 *
 * Returns are 0, or -1 with `err` filled. One thread uses a registry. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/error.h"

/* [a-z0-9][a-z0-9._-]{0,63} */
#define FOLDER_NAME_MAX 64

/* More are not listed. */
#define FOLDERS_MAX 4096

/* Of the registry itself: see folder_place. */
#define FOLDER_TEXT_MAX 64

struct folder_registry {
    int folder;       /* owned */
    const char *noun; /* borrowed: "image" */
    char path[PATH_MAX];
};

#define FOLDER_REGISTRY_INIT                                                                       \
    {                                                                                              \
        .folder = -EBADF                                                                           \
    }

struct folder_entry {
    char name[FOLDER_NAME_MAX + 1];
    char folder[PATH_MAX];
};

bool folder_name_is_valid(const char *name);

/* Open the registry at `path` (absolute, trusted; made 0700 when missing). `noun` is what messages
 * call an entry; it stays the caller's. ERR_FORBIDDEN when others than root could change it. */
int folder_registry_init(struct folder_registry *registry, const char *path, const char *noun,
                         struct error *err);

/* Accepts FOLDER_REGISTRY_INIT. */
void folder_registry_done(struct folder_registry *registry);

/* A name that may be registered. ERR_INVALID. */
int folder_registry_check_name(const struct folder_registry *registry, const char *name,
                               struct error *err);

/* Register `folder` (absolute; links in it are resolved now) under `name`, in place of what has
 * that name. Acknowledged means on disk. ERR_INVALID: the name, or a folder that folder_rules.h
 * refuses. */
int folder_registry_add(struct folder_registry *registry, const char *name, const char *folder,
                        struct error *err);

/* Forget a name; the folder stays. ERR_NOT_FOUND. */
int folder_registry_remove(struct folder_registry *registry, const char *name, struct error *err);

/* The path in the entry of a name, which is a valid one; the folder itself is not looked at.
 * ERR_NOT_FOUND; ERR_INVALID, ERR_FORBIDDEN, ERR_INTERNAL: the entry is something else. */
int folder_registry_read(const struct folder_registry *registry, const char *name,
                         char ret_path[static PATH_MAX], struct error *err);

/* The folder behind a name, checked again as in add. `*ret_fd` is O_PATH and the caller's.
 * ERR_NOT_FOUND: no such name, or its folder is gone. Some 0.2 ms. */
int folder_registry_open(const struct folder_registry *registry, const char *name, int *ret_fd,
                         struct error *err);

/* All entries by name; those that cannot be read are left out. The caller frees the array. */
int folder_registry_list(const struct folder_registry *registry, struct folder_entry **ret_entries,
                         size_t *ret_count, struct error *err);
