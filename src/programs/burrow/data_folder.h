/* The data folder: the one place the daemon keeps things (design: DATA/{version,db/,...}).
 *
 * Made with mode 0700, marked with the version of its layout, and locked: two daemons never work on
 * the same folder, and an older daemon never touches the data of a newer one. */
#pragma once

#include <stdbool.h>

#include "base/auto.h"
#include "base/error.h"

#define DATA_FOLDER_VERSION 1

/* What others keep in it. */
#define DATA_FOLDER_DATABASE "db/burrow.sqlite"
#define DATA_FOLDER_KEYRING  "keys/ring"

struct data_folder {
    int fd;      /* owned */
    int lock_fd; /* owned: the lock lasts as long as it is open */
};

#define DATA_FOLDER_INIT                                                                           \
    {                                                                                              \
        .fd = -EBADF, .lock_fd = -EBADF                                                            \
    }

/* Open or make the folder. Blocks on the disk. Returns 0, or -1 with ERR_CONFLICT when another
 * daemon has it, ERR_INVALID when it is newer or not ours, or what the system said. */
int data_folder_open(struct data_folder *folder, const char *path, struct error *err);

void data_folder_done(struct data_folder *folder);

AUTO_DEFINE(data_folder, struct data_folder, data_folder_done);

/* The administrator's key, made and kept with mode 0600 on first use. `*ret_key` is the caller's
 * to free; `*ret_is_new` says whether it was made just now. */
int data_folder_admin_key(struct data_folder *folder, char **ret_key, bool *ret_is_new,
                          struct error *err);
