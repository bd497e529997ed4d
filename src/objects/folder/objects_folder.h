/* Objects in a folder of this machine: one plain file each, found under its key (objects_key.h).
 *
 *     ROOT/backups/x/data.sqsh    the bytes, and nothing else
 *          .tmp/                  what is being put
 *
 * Crash-safe: a new object is written into .tmp, synced, renamed, and its folder is synced, before
 * anybody hears of it. Folders that hold nothing are removed with the last object in them.
 *
 * What belongs to an object (sum, tag, media type, metadata) is in an extended attribute of the
 * file, user.burrow.object. A file system that keeps none (NFS before 4.2, tmpfs before Linux 6.6)
 * is refused by every put and by objects_check, with ERR_UNAVAILABLE: objects whose damage nobody
 * can see would be worse. A file that was put there by hand, or copied without its attributes, is
 * an object all the same, without a sum.
 *
 * Holes of files that are put or copied stay holes, and so do pages of zeros.
 *
 * `only_tag` holds between all who use one handle, the other promises between all processes. */
#pragma once

#include "net/loop.h"
#include "objects/objects.h"

/* Make or open the folder `path` (trusted) and remove what earlier processes left half put. Puts and
 * copies leave `floor` bytes of the disk free (sys_disk_room.h; 0: none): ERR_NO_SPACE. Blocks: only
 * at start. NULL with what the system said. */
struct objects *objects_folder_new(struct loop *loop, const char *path, uint64_t floor,
                                   struct error *err);
