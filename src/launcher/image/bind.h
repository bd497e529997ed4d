/* Binds: folders of the host that sandboxes may see read-only.
 *
 * Like images (image.h): root registers a folder by name, a plan names the name and the place
 * inside, never a path of the host.
 *
 *     DATA/binds/datasets     "/srv/datasets\n"
 *
 * Besides, whoever starts a launcher by hand may name folders on its command line, for the
 * sandboxes of that launcher only: `burrow-launcher once --bind NAME=DIR`. They are held in memory,
 * by an open descriptor, and come before registered ones of the same name. Root's word is enough
 * for those; folder_rules.h says what is refused all the same, and DATA and RUN are the own places
 * there. Registered folders are never in DATA or RUN either.
 *
 * What is bound is the folder on its own filesystem: mounts beneath it are not shown.
 *
 * Functions return 0, or -1 with `err` filled. One thread uses a registry. */
#pragma once

#include "base/auto.h"
#include "base/error.h"
#include "launcher/image/folder_registry.h"

/* Binds of one command line. */
#define BIND_NOW_MAX 64

struct bind_registry;

/* Open the registry in `data` (absolute, trusted): DATA/binds, made 0700 when missing. `run` is the
 * run folder; both need not exist. ERR_FORBIDDEN when others than root could change it. */
int bind_registry_open(const char *data, const char *run, struct bind_registry **ret_registry,
                       struct error *err);

/* Accepts NULL. */
void bind_registry_free(struct bind_registry *registry);

AUTO_DEFINE_PTR(bind_registry, struct bind_registry, bind_registry_free);

/* Bind `folder` (links in it are resolved now) under `name` until the registry is freed.
 * ERR_INVALID: the name, a refused folder; ERR_CONFLICT: the name was given before; ERR_TOO_LARGE:
 * more than BIND_NOW_MAX. */
int bind_registry_add_now(struct bind_registry *registry, const char *name, const char *folder,
                          struct error *err);

/* The same for the word of a command line: "NAME=DIR". */
int bind_registry_add_word(struct bind_registry *registry, const char *word, struct error *err);

/* Register, forget, list: as image_add, image_remove and image_list. Those that hold now only are
 * not listed. */
int bind_add(struct bind_registry *registry, const char *name, const char *folder,
             struct error *err);
int bind_remove(struct bind_registry *registry, const char *name, struct error *err);
int bind_list(struct bind_registry *registry, struct folder_entry **ret_entries, size_t *ret_count,
              struct error *err);

/* The folder of a name, checked again: O_PATH, CLOEXEC, the caller's. ERR_NOT_FOUND: no such name,
 * or its folder is gone. Inline: some 0.2 ms for a registered one. */
int bind_open(struct bind_registry *registry, const char *name, int *ret_folder, struct error *err);
