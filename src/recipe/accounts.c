#include "recipe/accounts.h"

#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/format/account.h"
#include "base/memory.h"
#include "base/number.h"

#define NAME_MAX_LENGTH 255
#define ID_MAX          65535

static int find_owning_user(const char *passwd, const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
    struct account account;
    uint64_t number;

    if (account_find_name(passwd, name, &account) == 0) {
        *ret_uid = account.uid;
        *ret_gid = account.gid;
    } else if (number_parse_digits(name, strlen(name), ID_MAX, &number) == 0) {
        *ret_uid = (uid_t) number;
        *ret_gid = (gid_t) number;
    } else {
        return -ENOENT;
    }
    return *ret_uid > ID_MAX || *ret_gid > ID_MAX ? -ENOENT : 0;
}

static int owner_not_found(const char *noun, const char *name, struct error *err)
{
    return error_set(err, ERR_NOT_FOUND, 0, "there is no %s '%s' in the image", noun, name);
}

int accounts_find(const char *owner, const char *passwd, const char *group, uid_t *ret_uid,
                  gid_t *ret_gid, struct error *err)
{
    AUTO(free) char *user = mem_copy_text(owner);
    char *colon = strchr(user, ':');
    const char *group_name = colon ? colon + 1 : "";
    uid_t uid = 0;
    gid_t gid = 0;

    if (colon)
        *colon = '\0';
    if (strlen(owner) > NAME_MAX_LENGTH || (!*user && !*group_name))
        return error_set(err, ERR_INVALID, 0, "an owner is USER, USER:GROUP or :GROUP");
    if (*user && find_owning_user(passwd, user, &uid, &gid) < 0)
        return owner_not_found("user", user, err);
    if (*group_name && (account_find_group(group, group_name, &gid) < 0 || gid > ID_MAX))
        return owner_not_found("group", group_name, err);
    *ret_uid = uid;
    *ret_gid = gid;
    return 0;
}
