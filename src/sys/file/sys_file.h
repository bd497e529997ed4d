/* Files and descriptors: whole transfers, durable replacement, bounded reading.
 *
 * Paths here are trusted (ours, or root's); a path that a sandbox or a client named goes through
 * sys_open_beneath. `directory` is what openat takes: a descriptor or AT_FDCWD. All functions
 * return -errno on failure, settle EINTR, and may block; all are thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* openat with O_CLOEXEC added. Returns a descriptor the caller owns. */
int sys_file_open(int directory, const char *path, int flags, mode_t mode);

/* Read until `size` bytes or the end. Returns the count, less than `size` only at the end.
 * On a non-blocking descriptor use read: bytes before an -EAGAIN would be lost here. */
ssize_t sys_file_read_full(int fd, void *buffer, size_t size);
ssize_t sys_file_pread_full(int fd, void *buffer, size_t size, off_t offset);

/* Write everything. Returns 0; after an error an unknown part was written. A closed pipe gives
 * -EPIPE only in programs that ignore SIGPIPE, as all of ours do. */
int sys_file_write_full(int fd, const void *bytes, size_t length);
int sys_file_pwrite_full(int fd, const void *bytes, size_t length, off_t offset);

/* The same at or behind the end of a regular file, where pages of zeros become holes: they are read
 * as zeros and take no room. Before the end all is written. */
int sys_file_pwrite_sparse(int fd, const void *bytes, size_t length, off_t offset);

/* Make the content of `fd` durable. An error is final: the kernel may have dropped the dirty
 * pages, so that a second fsync succeeds without having written them. */
int sys_file_sync(int fd);

/* Make the directory entry of `path` durable: its parent directory is fsynced. */
int sys_file_sync_parent(int directory, const char *path);

/* Replace `path` by a new file with these bytes, this exact mode (the umask is not applied) and
 * our user as owner. Afterwards readers see the old or the new content, never a mixture, also
 * across a power failure. A link at `path` is replaced, not followed. On failure the old file is
 * untouched, except that when only the last step (fsync of the directory) fails the new one may
 * already be visible. */
int sys_file_replace(int directory, const char *path, const void *bytes, size_t length,
                     mode_t mode);

/* Read a whole regular file (also one of /proc, which has no size) of at most `limit` bytes.
 * Returns 0, the bytes with a NUL behind them (free with free), and the length. -EFBIG: longer
 * than `limit`; -EINVAL: no regular file. Never blocks on a FIFO or a device. */
int sys_file_read_all(int directory, const char *path, size_t limit, char **ret_data,
                      size_t *ret_length);

/* Create `path` and its missing parents; existing directories are left as they are. `mode` is
 * for every directory made, before the umask. -ENOTDIR when something else is in the way. */
int sys_file_make_directories(int directory, const char *path, mode_t mode);

/* The same, and those that are made get this owner and group. */
#define SYS_FILE_SAME_OWNER ((uid_t) -1)
int sys_file_make_directories_for(int directory, const char *path, mode_t mode, uid_t uid,
                                  gid_t gid);

/* Whether so many bytes are free for us on the filesystem of `fd`. Also true when it does not say,
 * as one in memory without a limit. */
bool sys_file_has_room(int fd, uint64_t bytes);

int sys_file_set_nonblocking(int fd, bool nonblocking);

/* Wait for `events` (POLLIN, POLLOUT) for at most `timeout_ms` in total, also across signals;
 * negative: for ever. Returns the events that came, 0 for a timeout. POLLERR and POLLHUP count
 * as events, a descriptor that is not open gives -EBADF. */
int sys_file_poll(int fd, short events, int timeout_ms);

#define SYS_FILE_NAME_SIZE 32

/* Whether a name is one of these. */
bool sys_file_is_temporary_name(const char *name);

/* A name no other process is likely to take: ".burrow-<16 hex digits>.tmp". */
int sys_file_temporary_name(char ret_name[static SYS_FILE_NAME_SIZE]);

/* Split `path` into its parent ("." when it names none) and last component. Returns 0 and a
 * pointer into `path`, -EINVAL when there is no last component ("", "/", "a/", "a/.."), or
 * -ENAMETOOLONG when the parent does not fit. */
int sys_file_split(const char *path, char *ret_parent, size_t parent_size, const char **ret_name);
