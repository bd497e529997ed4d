/* Whose the files and folders are that the API makes: those of the image's user, who runs the
 * commands that name nobody, and could not change them otherwise. Without such a user they are the
 * agent's own. What is there already keeps its owner. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "sys/file/sys_file.h"

struct agent;

struct file_owner {
    uid_t uid;
    gid_t gid;
};

/* As fchown knows it: no change. */
#define FILE_OWNER_AGENT                                                                           \
    {                                                                                              \
        .uid = SYS_FILE_SAME_OWNER, .gid = SYS_FILE_SAME_OWNER                                     \
    }

/* Looked up each time, as for a command. One that has no account, which every command says, is the
 * agent's own. */
struct file_owner file_owner_find(const struct agent *agent);

bool file_owner_is_agent(const struct file_owner *owner);

/* mkdirat, and it is theirs. */
int file_owner_make_folder(const struct file_owner *owner, int at, const char *path, mode_t mode);

/* sys_file_make_directories, and those that were made are theirs. */
int file_owner_make_folders(const struct file_owner *owner, int at, const char *path, mode_t mode);
