/* The small text files of a cgroup: write one value, read one value.
 *
 * `directory` is an open group and `path` a file beneath it that we named ourselves. Everything
 * returns -errno on failure; -ENOENT is a file that this kernel does not have. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* More than any file read whole here has, with room for the disks of a large machine. */
#define CGROUP_FILE_SIZE 16384

/* Hand the kernel `text` in one write. Blocks as long as the kernel works on it. */
int cgroup_file_write(int directory, const char *path, const char *text);

/* The whole file, terminated. Returns its length; -EFBIG when it does not fit. */
int cgroup_file_read(int directory, const char *path, char *ret_text, size_t size);

/* A file of one number; "max" is UINT64_MAX. -EINVAL when it holds anything else. */
int cgroup_file_number(int directory, const char *path, uint64_t *ret_number);

/* A file of "key number" lines: the number of `key`. -ENODATA when there is none. */
int cgroup_file_field(int directory, const char *path, const char *key, uint64_t *ret_number);

/* The parsers behind them. */
int cgroup_file_parse_number(const char *text, uint64_t *ret_number);
int cgroup_file_find_field(const char *text, const char *key, uint64_t *ret_number);

/* The sum of all numbers that follow `marker`: " rbytes=" in io.stat, " Read " in v1's files. */
uint64_t cgroup_file_sum(const char *text, const char *marker);
