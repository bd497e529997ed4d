/* Between the files of the folder store. Included by objects_folder*.c only. */
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "objects/objects_backend.h"
#include "objects/objects_key.h"
#include "sys/file/sys_file.h"

#define FOLDER_LOCKS 64

/* To open a folder of ours: never through a link. */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

struct folder {
    char *path;             /* owned */
    char *text;             /* owned */
    int root;               /* owned */
    uint64_t floor;         /* of the disk, that stays free; 0: none */
    int temporary;          /* owned: .tmp, locked against who would clean it */
    pthread_rwlock_t tree;  /* read: who needs a folder to stay; write: who removes one */
    pthread_mutex_t making; /* of folders, and syncing them */
    pthread_mutex_t keys[FOLDER_LOCKS]; /* by hash: who changes an object */
};

/* --- names (objects_folder_path.c) ------------------------------------------------------------ */

/* The folder with this path (NULL: the root), one name after the other and following no link.
 * Returns a descriptor the caller owns, or -errno; -ENOTDIR when an object is in the way. `make`:
 * what is missing is made, durably. */
int folder_open(struct folder *folder, const char *path, bool make);

/* The folder of what has `path`, and its name in it, which points into `path`. */
int folder_open_parent(struct folder *folder, const char *path, bool make, const char **ret_name);

/* The file with this name, for reading; -ENOENT when there is none, or something else. */
int folder_open_file(int parent, const char *name);

/* The file of a key. */
int folder_open_key(struct folder *folder, const char *key);

/* Remove the folder of what has `path`, and those above it, as long as they are empty; then make it
 * durable. Returns 0 or -errno. */
int folder_sweep(struct folder *folder, const char *path);

pthread_mutex_t *folder_lock(struct folder *folder, const char *key);

/* Fill `err` for an errno of the system. Returns -1. */
int folder_failure(const struct folder *folder, const char *doing, const char *key, int r,
                   struct error *err);

/* --- what a file says of itself (objects_folder_label.c) -------------------------------------- */

struct folder_label {
    char tag[OBJECTS_TAG_SIZE];
    bool has_sum;
    uint8_t sum[OBJECTS_SUM_SIZE];
    const char *media_type; /* NULL: none */
    const struct object_pair *metadata;
    size_t metadata_count;
};

/* A new tag: none is ever given twice. */
void folder_label_stamp(struct folder_label *label);

/* Returns 0 or -errno. */
int folder_label_write(int file, const struct folder_label *label);

/* What it points to is in the pool. A file without a label has a tag made of what the system says
 * of it, and no sum. -EBADMSG: it is damaged. */
int folder_label_read(int file, const struct stat *status, struct pool *pool,
                      struct folder_label *ret_label);

/* What callers are told. */
void folder_label_info(const struct folder_label *label, const struct stat *status,
                       struct object_info *ret_info);

/* --- the calls -------------------------------------------------------------------------------- */

int folder_put(void *self, struct objects_work *work, const char *key,
               const struct objects_source *source, const struct object_put_options *options,
               struct object_info *ret_info, struct error *err);
int folder_copy(void *self, struct objects_work *work, const char *from, const char *to,
                struct object_info *ret_info, struct error *err);
int folder_check(void *self, struct objects_work *work, struct error *err);
int folder_get(void *self, struct objects_work *work, const char *key,
               const struct object_range *range, const char *only_tag, struct objects_sink *sink,
               struct object_info *ret_info, struct error *err);
int folder_list(void *self, struct objects_work *work, const struct object_query *query,
                struct object_list *ret_list, struct error *err);

/* An object that is open, its label and its size. -1 with ERR_NOT_FOUND, or ERR_UPSTREAM when its
 * label is damaged. */
int folder_look(struct folder *folder, struct objects_work *work, const char *key, int *ret_file,
                struct stat *ret_status, struct folder_label *ret_label, struct error *err);
