/* Backups: a folder as a squashfs archive under /var/backups, back again, and in parts to where
 * presigned URLs say. The work is done by the image's own mksquashfs, unsquashfs and curl. */
#pragma once

#include "agent/operation.h"

struct call;

extern const struct operation_table backup_operations;

/* The operations behind it. */

/* The archive is made under another name, in a folder of its own beside it, and then renamed: a
 * failure leaves an archive of before as it was. */
void backup_create_run(struct call *call);

/* The archive is unpacked in a hidden folder inside `dir`; only when that succeeded its entries
 * take the place of those that were there. The folder itself stays the same one: it may be a mount,
 * or where a shell is. A failure leaves its content as it was. */
void backup_restore_run(struct call *call);

/* Each part is a PUT by curl. The URL, a secret, is in a config that only curl sees: a sealed memfd
 * that it inherits, so it is neither in its arguments nor on a disk. The bytes come by its stdin.
 */
void backup_upload_run(struct call *call);
