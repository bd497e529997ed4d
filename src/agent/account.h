/* Users, read from passwd by ourselves: a static program cannot use NSS. */
#pragma once

#include <sys/types.h>

#define ACCOUNT_FILE      "/etc/passwd"
#define ACCOUNT_FILE_MAX  (1 << 20)
#define ACCOUNT_FIELD_MAX 256

struct account {
    uid_t uid;
    gid_t gid;
    char name[ACCOUNT_FIELD_MAX];
    char home[ACCOUNT_FIELD_MAX];
    char shell[ACCOUNT_FIELD_MAX];
};

/* The first account with that uid in the text of a passwd file. Lines that are malformed, or have
 * a field that is too long, are passed over. Returns 0 or -ENOENT. */
int account_find(const char *passwd, uid_t uid, struct account *ret_account);

/* The first account with that name; of a number, the account with that uid. */
int account_find_name(const char *passwd, const char *name, struct account *ret_account);

/* The same from ACCOUNT_FILE; also -errno when that cannot be read. May block. */
int account_read(uid_t uid, struct account *ret_account);
int account_read_name(const char *name, struct account *ret_account);
