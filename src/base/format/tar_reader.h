/* Reading a tar archive that comes in pieces, from anybody.
 *
 * Understands ustar, pax, GNU's long names and large numbers, and old tar. What it passes on is
 * bounded (paths and links TAR_PATH_MAX, entries TAR_ENTRIES_MAX) but nothing more: where a path
 * leads is the owner's to judge. Sparse files and parts of volumes are refused, and devices unless
 * `takes_devices` is set. */
#pragma once

#include "base/error.h"
#include "base/format/tar_attributes.h"
#include "base/format/tar_header.h"

/* As many as a backup may have: what was archived must come back. */
#define TAR_ENTRIES_MAX ((uint64_t) 64 << 20)

/* The most that an extended header may hold. */
#define TAR_EXTENDED_MAX ((size_t) 64 * 1024)

/* Each returns 0, or -1 with `err` filled in: then the reader fails with it. */
struct tar_reader_events {
    /* An entry begins. Everything is borrowed for the call. */
    int (*on_entry)(void *owner, const struct tar_entry *entry, struct error *err);
    /* Bytes of the file that came last. */
    int (*on_bytes)(void *owner, const char *bytes, size_t length, struct error *err);
    /* All of its bytes came; for every entry. */
    int (*on_entry_end)(void *owner, struct error *err);
};

/* What extended headers say of the entry to come. */
struct tar_reader_extra {
    char *path; /* owned; NULL: nothing was said */
    char *link; /* owned */
    bool has_size, has_uid, has_gid, has_mtime, is_sparse;
    uint64_t size, uid, gid;
    struct timespec mtime;
    struct tar_attributes attributes;
};

enum tar_reader_state {
    TAR_READER_HEADER,
    TAR_READER_EXTENDED, /* in an extended header's records */
    TAR_READER_BYTES,    /* in a file */
    TAR_READER_PADDING,
    TAR_READER_END,
};

struct tar_reader {
    const struct tar_reader_events *events; /* borrowed: static */
    void *owner;                            /* borrowed */
    bool takes_devices; /* they are passed on, as TAR_CHARACTER and TAR_BLOCK_DEV */
    enum tar_reader_state state;
    unsigned char block[TAR_BLOCK];
    size_t filled;      /* of the block */
    uint64_t left;      /* bytes, or padding */
    size_t padding;     /* after the bytes */
    bool in_entry;      /* on_entry_end is owed */
    char extended_type; /* of the extended header */
    struct text extended;
    struct tar_reader_extra extra;
    uint64_t entries;
    char entry_path[TAR_PATH_MAX + 1]; /* for messages */
};

void tar_reader_init(struct tar_reader *reader, const struct tar_reader_events *events,
                     void *owner);
void tar_reader_done(struct tar_reader *reader);

/* The next piece. Returns 0, or -1 with `err`, ERR_INVALID for what is wrong with the archive; then
 * feed it nothing more. Whatever follows the end is ignored. */
int tar_reader_feed(struct tar_reader *reader, const char *bytes, size_t length, struct error *err);

/* There is no more. Returns 0, or -1 when the archive was cut short. */
int tar_reader_finish(struct tar_reader *reader, struct error *err);
