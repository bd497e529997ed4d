/* The rules of backups: which folders and archives they may be of, and what an exclude means to
 * mksquashfs. Pure functions. */
#pragma once

#include <stddef.h>

#include "base/text.h"

#define BACKUP_PATH_MAX     ((size_t) 4096)
#define BACKUP_EXCLUDES_MAX ((size_t) 10000)
#define BACKUP_THREADS_MAX  64

/* Where archives are. */
#define BACKUP_FOLDER "/var/backups/"

/* NULL when the path will do, else the reason (static) why not. */
const char *backup_rules_folder(const char *path);
const char *backup_rules_archive(const char *path);

/* gzip, lz4 or zstd. */
const char *backup_rules_compression(const char *format);

/* Why a client's exclude is none, or NULL. */
const char *backup_rules_exclude(const char *pattern);

/* Append the lines of an exclude file (-ef with -wildcards) for a client's pattern: at the top,
 * and, when it is a single name, at any depth. What gitignore writes as any depth, a leading or
 * inner "**" step, is left out. */
void backup_rules_add_pattern(struct text *lines, const char *pattern);

/* Append the line for exactly this path, relative to the archived folder. False, and nothing, when
 * it cannot be written in such a file. */
bool backup_rules_add_path(struct text *lines, const char *path, size_t length);
