/* The job `unarchive`: a squashfs image, from anybody, as a tar stream.
 *
 * Images are ours or mksquashfs': version 4.0, any block size, with or without fragments,
 * compressed by gzip, xz, lz4 or zstd. The stream is POSIX pax: "./" first, folders before what is
 * in them, names in the order of their bytes. Kept are files, folders, links, hard links, fifos,
 * modes, owners and times. Attributes are SCHILY.xattr records, which an extractor may ignore;
 * those that do not fit into ARCHIVE_RECORDS_MAX are left out. Blocks of zeros are zeros: no sparse
 * format is understood by all. Sockets and device nodes are left out: no sandbox could make them
 * again. What was left out is counted.
 *
 * A hostile image gets an error that says what is wrong with it, and what came before stays in the
 * stream. Each folder is entered once, whatever refers to it; memory is bounded
 * (ARCHIVE_LINKS_MAX); the stream is as long as the image says it is: how much is too much is for
 * its reader to say.
 *
 *     {"progress":{"files":1000,"bytes":123456}}
 *     {"unpacked":{"files":1000,"folders":10,"bytes":123456,"sockets_left_out":0,
 *      "devices_left_out":0,"attributes_left_out":0}} */
#pragma once

#include "base/error.h"
#include "keeper/output.h"

/* Bytes of attributes in one entry. */
#define ARCHIVE_RECORDS_MAX ((size_t) 48 << 10)

/* Memory for the paths of files that have further names. */
#define ARCHIVE_LINKS_MAX ((size_t) 192 << 20)

/* Inodes that an image may have. */
#define ARCHIVE_INODES_MAX ((uint32_t) 64 << 20)

/* Unpack `file`, a regular file open for reading, to the stream `tar`. 0, or -1 with `err`:
 * ERR_INVALID for what is wrong with the image, ERR_CANCELLED when nobody reads, or what the system
 * said. May block for long. */
int archive_unpack(int file, int tar, struct output *output, struct error *err);
