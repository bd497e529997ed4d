#include "launcher/network/network_slot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

/* So many random numbers are tried before all are tried in order. */
#define RANDOM_TRIES 32

static void auto_folder(DIR **folder)
{
    if (*folder)
        (void) closedir(*folder);
}

/* "id.mark", which is also enough for a number. */
#define RECORD_SIZE (ID_SIZE + NUMBER_TEXT_SIZE)

struct record {
    char text[RECORD_SIZE];
};

static struct record make_record(const struct network_slot *slot)
{
    struct record record;

    (void) snprintf(record.text, sizeof(record.text), "%s.%u", slot->id.text, slot->mark);
    return record;
}

/* The content of a link; -ENOENT for none. */
static int read_record(int folder, const char *name, struct record *ret_record)
{
    ssize_t length = readlinkat(folder, name, ret_record->text, sizeof(ret_record->text) - 1);

    if (length < 0)
        return -errno;
    ret_record->text[length] = '\0';
    return 0;
}

/* What the link of slot `name` says; -EBADMSG when it is none of ours. */
static int read_slot(int folder, const char *name, struct network_slot *ret_slot)
{
    struct network_slot slot;
    struct record record = {0};
    int64_t number, mark;
    int result = read_record(folder, name, &record);

    if (result < 0)
        return result;
    if (number_parse(name, 1, UINT32_MAX, &number) < 0 || record.text[ID_LENGTH] != '.')
        return -EBADMSG;
    record.text[ID_LENGTH] = '\0';
    if (!id_is_valid(record.text) ||
        number_parse(record.text + ID_SIZE, NETWORK_MARK_MIN, INT32_MAX, &mark) < 0)
        return -EBADMSG;
    slot = (struct network_slot){.number = (uint32_t) number, .mark = (uint32_t) mark};
    memcpy(slot.id.text, record.text, ID_SIZE);
    *ret_slot = slot;
    return 0;
}

static uint32_t random_mark(void)
{
    uint32_t number;

    random_bytes(&number, sizeof(number));
    return NETWORK_MARK_MIN + number % ((uint32_t) INT32_MAX - NETWORK_MARK_MIN);
}

/* 1 when the slot was free and is ours now, 0 when not, or -errno. */
static int try_slot(int folder, const struct network_slot *slot)
{
    struct record record = make_record(slot);
    char name[NUMBER_TEXT_SIZE];

    (void) number_format(slot->number, name);
    if (symlinkat(record.text, folder, name) == 0)
        return 1;
    return errno == EEXIST ? 0 : -errno;
}

static int find_free(int folder, uint32_t count, struct network_slot *slot)
{
    int result = 0;

    for (int i = 0; i < RANDOM_TRIES && result == 0; i++) {
        uint32_t number;

        random_bytes(&number, sizeof(number));
        slot->number = number % count + 1;
        result = try_slot(folder, slot);
    }
    for (uint32_t number = 1; number <= count && result == 0; number++) {
        slot->number = number;
        result = try_slot(folder, slot);
    }
    return result == 0 ? -ENOSPC : result;
}

int network_slot_take(int folder, uint32_t count, const struct id *id,
                      struct network_slot *ret_slot)
{
    struct network_slot slot = {.mark = random_mark(), .id = *id};
    char name[NUMBER_TEXT_SIZE];
    int result = count ? find_free(folder, count, &slot) : -ENOSPC;

    if (result < 0)
        return result;
    (void) number_format(slot.number, name);
    if (symlinkat(name, folder, id->text) < 0) {
        result = -errno;
        (void) unlinkat(folder, name, 0);
        return result;
    }
    *ret_slot = slot;
    return 0;
}

int network_slot_is_taken(int folder, const struct network_slot *slot)
{
    struct record expected = make_record(slot), record;
    char name[NUMBER_TEXT_SIZE];
    int result;

    (void) number_format(slot->number, name);
    result = read_record(folder, name, &record);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    return strcmp(record.text, expected.text) == 0;
}

int network_slot_release(int folder, const struct network_slot *slot)
{
    char name[NUMBER_TEXT_SIZE];
    struct record of_id;
    int result = network_slot_is_taken(folder, slot);

    if (result <= 0)
        return result < 0 ? result : -ENOENT;
    (void) number_format(slot->number, name);
    result = read_record(folder, slot->id.text, &of_id);
    if (result == 0 && strcmp(of_id.text, name) == 0 && unlinkat(folder, slot->id.text, 0) < 0)
        return -errno;
    /* The lock goes last: until then nobody else writes these two names. */
    return unlinkat(folder, name, 0) < 0 ? -errno : 0;
}

struct search {
    const struct id *id;
    struct network_slot *slot;
    bool found;
};

static void compare(void *context, const struct network_slot *slot)
{
    struct search *search = context;

    if (strcmp(slot->id.text, search->id->text) != 0)
        return;
    *search->slot = *slot;
    search->found = true;
}

/* Whoever is killed between the two links of a slot leaves the first one only. */
static int find_halfway(int folder, const struct id *id, struct network_slot *ret_slot)
{
    struct search search = {.id = id, .slot = ret_slot};
    int result = network_slot_each(folder, compare, &search);

    if (result < 0)
        return result;
    return search.found ? 0 : -ENOENT;
}

int network_slot_find(int folder, const struct id *id, struct network_slot *ret_slot)
{
    struct network_slot slot;
    struct record name;
    int result = read_record(folder, id->text, &name);

    if (result == -ENOENT)
        return find_halfway(folder, id, ret_slot);
    if (result == 0)
        result = read_slot(folder, name.text, &slot);
    if (result < 0)
        return result;
    /* Released halfway by somebody who was killed, and taken by another since. */
    if (strcmp(slot.id.text, id->text) != 0)
        return -ENOENT;
    *ret_slot = slot;
    return 0;
}

int network_slot_each(int folder, network_slot_function *call, void *context)
{
    AUTO(close) int copy = sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(folder) DIR *listing = NULL;
    struct dirent *entry;

    if (copy < 0)
        return copy;
    listing = fdopendir(copy);
    if (!listing)
        return -errno;
    (void) TAKE_FD(copy); /* the listing's now */
    while ((errno = 0, entry = readdir(listing))) {
        struct network_slot slot;

        if (read_slot(folder, entry->d_name, &slot) == 0)
            call(context, &slot);
    }
    return -errno;
}
