/* The parts of an image by their names: the files of a tar archive (`docker save`, an OCI layout in
 * one file), found once and then read where they lie, or those of a folder. Both may come from
 * anybody: names are looked up, never followed out of it. */
#pragma once

#include "base/auto.h"
#include "base/error.h"
#include "keeper/image/image_blob.h"

/* Files of an archive, and the length of their names. */
#define IMAGE_FILES_MAX     4096
#define IMAGE_FILE_NAME_MAX 255

struct image_source;

/* The archive in `file`, a regular file, borrowed. All of it is read. The caller frees it. 0, or -1
 * with `err`: ERR_INVALID for what is no tar archive, ERR_TOO_LARGE. */
int image_source_archive(int file, struct image_source **ret_source, struct error *err);

/* The folder `folder`, borrowed. */
int image_source_folder(int folder, struct image_source **ret_source, struct error *err);

/* Accepts NULL. */
void image_source_free(struct image_source *source);

AUTO_DEFINE_PTR(image_source, struct image_source, image_source_free);

/* Where the file `name` lies; its descriptor is borrowed until the next call. ERR_NOT_FOUND. */
int image_source_find(struct image_source *source, const char *name, struct image_place *ret_place,
                      struct error *err);

/* The whole of a small file, NUL behind it; the caller frees it. ERR_NOT_FOUND, ERR_TOO_LARGE. */
int image_source_read(struct image_source *source, const char *name, size_t limit, char **ret_bytes,
                      size_t *ret_length, struct error *err);
