/* A tar archive into a folder, while it arrives, from anybody.
 *
 * Nothing outside the folder is touched. Refused are paths that are absolute or hold "..", paths
 * that lead through a link, links that lead out of the folder (unless the owner wants them: they
 * are made, never followed), devices, and all that tar_reader.h refuses. What is there already is
 * replaced as a whole: readers see an old file or a new one. Folders are kept and filled. Modes and
 * times are those of the archive, owners too where we may. Long runs of zeros become holes. Files
 * get their extended attributes (tar_attributes.h), folders and links do not. After a failure what
 * came before stays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"

struct tar_extract;

/* `root` is an open folder (O_PATH is enough), borrowed: outlives the extract. `links_out`: accept
 * links to anywhere. */
struct tar_extract *tar_extract_new(int root, bool links_out);

void tar_extract_free(struct tar_extract *extract);

AUTO_DEFINE_PTR(tar_extract, struct tar_extract, tar_extract_free);

/* The next piece. Returns 0, or -1 with `err`, which names the entry: ERR_INVALID for what is
 * refused, else with an errno. Blocks for about 50 microseconds for every 512 bytes at most. */
int tar_extract_feed(struct tar_extract *extract, const char *bytes, size_t length,
                     struct error *err);

/* There is no more: set the times and modes of folders. Returns 1 when it must be called again, 0
 * when all is done, or -1 with `err`. */
int tar_extract_finish(struct tar_extract *extract, struct error *err);

uint64_t tar_extract_entries(const struct tar_extract *extract);
uint64_t tar_extract_bytes(const struct tar_extract *extract);

/* The path as it is used: "./a//b/" is "a/b", "." is "". Returns 0, or -EINVAL (absolute), -EXDEV
 * (".." in it), -ENAMETOOLONG (also: over PATH_STEPS_MAX folders). `ret_path` has room for all of `path`. */
int tar_extract_plain_path(const char *path, char *ret_path);

/* Whether a link at this plain path, which leads to `target`, stays inside: not absolute, and ".."
 * only in the beginning and not too often. Behind a name ".." could mean anything, if the name is a
 * link itself. */
bool tar_extract_link_stays(const char *path, const char *target);
