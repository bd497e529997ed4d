#include "agent/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/sys_file.h"

/* name:password:uid:gid:comment:home:shell */
enum { FIELD_NAME, FIELD_PASSWORD, FIELD_UID, FIELD_GID, FIELD_COMMENT, FIELD_HOME, FIELD_SHELL };

#define FIELD_COUNT 7

struct field {
    const char *text;
    size_t length;
};

static bool split(const char *line, size_t length, struct field fields[static FIELD_COUNT])
{
    const char *end = line + length;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *colon = memchr(line, ':', (size_t) (end - line));
        const char *stop = colon ? colon : end;

        fields[i] = (struct field){.text = line, .length = (size_t) (stop - line)};
        if (i + 1 == FIELD_COUNT)
            return !colon;
        if (!colon)
            return false;
        line = colon + 1;
    }
    return false;
}

static bool copy_field(const struct field *field, char ret_text[static ACCOUNT_FIELD_MAX])
{
    if (field->length >= ACCOUNT_FIELD_MAX)
        return false;
    memcpy(ret_text, field->text, field->length);
    ret_text[field->length] = '\0';
    return true;
}

static bool parse_line(const char *line, size_t length, struct account *account)
{
    struct field fields[FIELD_COUNT];
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
static int find(const char *passwd,
                bool (*is_it)(const struct account *account, const void *wanted),
                const void *wanted, struct account *ret_account)
{
    while (*passwd) {
        size_t length = strcspn(passwd, "\n");
        struct account account;

        if (parse_line(passwd, length, &account) && is_it(&account, wanted)) {
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
    return find(passwd, has_uid, &uid, ret_account);
}

int account_find_name(const char *passwd, const char *name, struct account *ret_account)
{
    uint64_t number;

    if (number_parse_digits(name, strlen(name), UINT32_MAX - 1, &number) == 0)
        return account_find(passwd, (uid_t) number, ret_account);
    return find(passwd, has_name, name, ret_account);
}

int account_read(uid_t uid, struct account *ret_account)
{
    AUTO(free) char *passwd = NULL;
    size_t length;
    int r = sys_file_read_all(AT_FDCWD, ACCOUNT_FILE, ACCOUNT_FILE_MAX, &passwd, &length);

    return r < 0 ? r : account_find(passwd, uid, ret_account);
}

int account_read_name(const char *name, struct account *ret_account)
{
    AUTO(free) char *passwd = NULL;
    size_t length;
    int r = sys_file_read_all(AT_FDCWD, ACCOUNT_FILE, ACCOUNT_FILE_MAX, &passwd, &length);

    return r < 0 ? r : account_find_name(passwd, name, ret_account);
}
