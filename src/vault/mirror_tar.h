/* Entries of a mirror's list as a tar stream (POSIX pax): what an agent extracts. Owners are root;
 * pipes and the like have no entry. */
#pragma once

#include "base/text.h"
#include "vault/mirror_list.h"

#define MIRROR_TAR_BLOCK 512

/* Append what comes before the content of an entry; a file has `size` bytes of it, whatever its
 * line says. False: such an entry has no place in the stream, nothing was appended. */
bool mirror_tar_entry(struct text *stream, const struct mirror_entry *entry, uint64_t size);

/* Behind `size` bytes of content: up to the next block. */
void mirror_tar_pad(struct text *stream, uint64_t size);

/* The end of the stream. */
void mirror_tar_end(struct text *stream);
