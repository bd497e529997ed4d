/* A folder as a tar archive, made while it is read.
 *
 * Files, folders, links, named pipes and hard links (of which the first TAR_EXPORT_LINKS_MAX are
 * known again; more become files of their own). Sockets and devices are left out, and what vanishes
 * meanwhile. A file that shrinks is filled up with zeros, one that grows is cut: an archive has
 * each size first. */
#pragma once

#include "base/auto.h"
#include "base/text.h"

#define TAR_EXPORT_LINKS_MAX 65536

/* The most that one tar_export_next appends. */
#define TAR_EXPORT_PIECE ((size_t) 512 * 1024)

struct tar_export;

/* Takes `directory`, open for reading, also on failure. `excludes`: paths below it that are left
 * out with all that is in them; NULL at the end, or NULL; borrowed, outlive the export. Returns
 * NULL and -errno. */
struct tar_export *tar_export_new(int directory, const char *const *excludes, int *ret_error);

void tar_export_free(struct tar_export *export);

AUTO_DEFINE_PTR(tar_export, struct tar_export, tar_export_free);

/* Append the next piece. Returns 1 when there is more, 0 at the end, or -errno: what may not be
 * read ends it, since an archive with holes would look complete. tar_export_path says what it was.
 */
int tar_export_next(struct tar_export *export, struct text *out);

const char *tar_export_path(const struct tar_export *export);
