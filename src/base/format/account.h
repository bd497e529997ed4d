/* Users and groups in the texts of passwd and group: a static program cannot use NSS, and an
 * image's are not ours. Pure. */
#pragma once

#include <sys/types.h>

#define ACCOUNT_FIELD_MAX 256
/* More groups that name a member are passed over. */
#define ACCOUNT_GROUPS_MAX 256

struct account {
    uid_t uid;
    gid_t gid;
    char name[ACCOUNT_FIELD_MAX];
    char home[ACCOUNT_FIELD_MAX];
    char shell[ACCOUNT_FIELD_MAX];
    gid_t groups[ACCOUNT_GROUPS_MAX]; /* all of them, `gid` first; only of an owner */
    size_t group_count;
};

/* The first account with that uid in the text of a passwd file. Lines that are malformed, or have
 * a field that is too long, are passed over. Returns 0 or -ENOENT. */
int account_find(const char *passwd, uid_t uid, struct account *ret_account);

/* The first account with that name; of a number, the account with that uid. */
int account_find_name(const char *passwd, const char *name, struct account *ret_account);

/* The first group with that name; of a number, itself. Returns 0 or -ENOENT. */
int account_find_group(const char *group, const char *name, gid_t *ret_gid);

/* Who "user" or "user:group" is, names or numbers, in the texts of a passwd and a group file, as
 * images name it. A number needs no account: then its group is 0, its home "/" and its name the
 * number. Without a group it is also in those that name it as a member. Returns 0, -ENOENT for a
 * name that is not there, or -EINVAL. */
int account_find_owner(const char *passwd, const char *group, const char *owner,
                       struct account *ret_account);
