#include "base/format/account.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"

/* name:password:uid:gid:comment:home:shell */
enum { FIELD_NAME, FIELD_PASSWORD, FIELD_UID, FIELD_GID, FIELD_COMMENT, FIELD_HOME, FIELD_SHELL };

#define FIELD_COUNT 7

struct account_field {
    const char *text;
    size_t length;
};

static bool split(const char *line, size_t length, struct account_field fields[static FIELD_COUNT])
{
    const char *end = line + length;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *colon = memchr(line, ':', (size_t) (end - line));
        const char *stop = colon ? colon : end;

        fields[i] = (struct account_field){.text = line, .length = (size_t) (stop - line)};
        if (i + 1 == FIELD_COUNT)
            return !colon;
        if (!colon)
            return false;
        line = colon + 1;
    }
    return false;
}

static bool copy_field(const struct account_field *field, char ret_text[static ACCOUNT_FIELD_MAX])
{
    if (field->length >= ACCOUNT_FIELD_MAX)
        return false;
    memcpy(ret_text, field->text, field->length);
    ret_text[field->length] = '\0';
    return true;
}

static bool parse_line(const char *line, size_t length, struct account *account)
{
    struct account_field fields[FIELD_COUNT];
    uint64_t uid, gid;

    if (!split(line, length, fields) ||
        number_parse_digits(fields[FIELD_UID].text, fields[FIELD_UID].length, UINT32_MAX - 1,
                            &uid) < 0 ||
        number_parse_digits(fields[FIELD_GID].text, fields[FIELD_GID].length, UINT32_MAX - 1,
                            &gid) < 0)
        return false;
    account->uid = (uid_t) uid;
    account->gid = (gid_t) gid;
    return copy_field(&fields[FIELD_NAME], account->name) &&
           copy_field(&fields[FIELD_HOME], account->home) &&
           copy_field(&fields[FIELD_SHELL], account->shell);
}

/* The first account that `is_it` says yes to. */
static int account_find_line(const char *passwd,
                             bool (*is_it)(const struct account *account, const void *wanted),
                             const void *wanted, struct account *ret_account)
{
    while (*passwd) {
        size_t length = strcspn(passwd, "\n");
        struct account account;

        if (parse_line(passwd, length, &account) && is_it(&account, wanted)) {
            account.group_count = 0;
            *ret_account = account;
            return 0;
        }
        passwd += length + (passwd[length] == '\n');
    }
    return -ENOENT;
}

static bool has_uid(const struct account *account, const void *wanted)
{
    return account->uid == *(const uid_t *) wanted;
}

static bool has_name(const struct account *account, const void *wanted)
{
    return strcmp(account->name, wanted) == 0;
}

int account_find(const char *passwd, uid_t uid, struct account *ret_account)
{
    return account_find_line(passwd, has_uid, &uid, ret_account);
}

int account_find_name(const char *passwd, const char *name, struct account *ret_account)
{
    uint64_t number;

    if (number_parse_digits(name, strlen(name), UINT32_MAX - 1, &number) == 0)
        return account_find(passwd, (uid_t) number, ret_account);
    return account_find_line(passwd, has_name, name, ret_account);
}

/* --- as images name them ---------------------------------------------------------------------- */

static bool is_number(const char *text, size_t length, uint64_t *ret_number)
{
    return length && number_parse_digits(text, length, UINT32_MAX - 1, ret_number) == 0;
}

/* A line is name:password:gid:members. */
int account_find_group(const char *group, const char *name, gid_t *ret_gid)
{
    size_t wanted = strlen(name);
    uint64_t number;

    if (is_number(name, wanted, &number)) {
        *ret_gid = (gid_t) number;
        return 0;
    }
    for (size_t length; *group; group += length + (group[length] == '\n')) {
        const char *password, *gid;

        length = strcspn(group, "\n");
        if (length <= wanted || memcmp(group, name, wanted) != 0 || group[wanted] != ':')
            continue;
        password = group + wanted + 1;
        gid = memchr(password, ':', (size_t) (group + length - password));
        if (gid && is_number(gid + 1, strcspn(gid + 1, ":\n"), &number)) {
            *ret_gid = (gid_t) number;
            return 0;
        }
    }
    return -ENOENT;
}

/* Whether the fourth field of a line, "a,b,c", has that name. */
static bool has_member(const char *line, size_t length, const char *name)
{
    const char *end = line + length, *at = memrchr(line, ':', length);
    size_t wanted = strlen(name);

    while (at && at < end) {
        const char *member = at + 1, *comma = memchr(member, ',', (size_t) (end - member));

        if ((size_t) ((comma ? comma : end) - member) == wanted &&
            memcmp(member, name, wanted) == 0)
            return wanted > 0;
        at = comma;
    }
    return false;
}

static void add_group(struct account *account, gid_t gid)
{
    for (size_t i = 0; i < account->group_count; i++) {
        if (account->groups[i] == gid)
            return;
    }
    if (account->group_count < ACCOUNT_GROUPS_MAX)
        account->groups[account->group_count++] = gid;
}

static void add_memberships(const char *group, struct account *account)
{
    for (size_t length; *group; group += length + (group[length] == '\n')) {
        const char *at = group, *end;
        uint64_t gid;

        length = strcspn(group, "\n");
        end = group + length;
        for (int i = 0; at && i < 2; i++) {
            at = memchr(at, ':', (size_t) (end - at));
            at = at ? at + 1 : NULL;
        }
        if (at && strcspn(at, ":\n") < (size_t) (end - at) &&
            is_number(at, strcspn(at, ":\n"), &gid) &&
            has_member(at, (size_t) (end - at), account->name))
            add_group(account, (gid_t) gid);
    }
}

int account_find_owner(const char *passwd, const char *group, const char *owner,
                       struct account *ret_account)
{
    size_t length = strcspn(owner, ":");
    struct account account = {.home = "/"}, found;
    uint64_t number = 0;
    int r;

    if (!length || length >= sizeof(account.name) || (owner[length] && !owner[length + 1]))
        return -EINVAL;
    memcpy(account.name, owner, length);
    r = account_find_name(passwd, account.name, &found);
    if (r == 0)
        account = found;
    if (r < 0 && !is_number(owner, length, &number))
        return r;
    if (r < 0)
        account.uid = (uid_t) number;
    r = owner[length] ? account_find_group(group, owner + length + 1, &account.gid) : 0;
    if (r < 0)
        return r;
    add_group(&account, account.gid);
    if (!owner[length])
        add_memberships(group, &account);
    *ret_account = account;
    return 0;
}
