#include "agent/environment.h"

#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

#define OWN_PREFIX "BURROW_"

static bool names(const char *item, const char *name, size_t length)
{
    return strncmp(item, name, length) == 0 && item[length] == '=';
}

const char *environment_get(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment && *environment; environment++) {
        if (names(*environment, name, length))
            return *environment + length + 1;
    }
    return NULL;
}

static size_t count_items(const char *const *environment)
{
    size_t count = 0;

    while (environment && environment[count])
        count++;
    return count;
}

static char *make_item(const struct environment_change *change)
{
    size_t name = strlen(change->name), text = strlen(change->text);
    char *item = mem_alloc(name + text + 2);

    memcpy(item, change->name, name);
    item[name] = '=';
    memcpy(item + name + 1, change->text, text);
    return item;
}

static void drop_item(const char **items, size_t *count, size_t at)
{
    free((void *) (uintptr_t) items[at]);
    memmove(items + at, items + at + 1, (*count - at) * sizeof(*items)); /* the NULL too */
    (*count)--;
}

static void apply(const char **items, size_t *count, const struct environment_change *change)
{
    size_t length = strlen(change->name);
    bool done = false;

    for (size_t i = 0; i < *count;) {
        if (!names(items[i], change->name, length)) {
            i++;
        } else if (done || !change->text) {
            drop_item(items, count, i);
        } else {
            free((void *) (uintptr_t) items[i]);
            items[i++] = make_item(change);
            done = true;
        }
    }
    if (!done && change->text)
        items[(*count)++] = make_item(change);
}

const char **environment_merge(const char *const *environment,
                               const struct environment_change *changes, size_t count)
{
    size_t have = count_items(environment);
    const char **items = mem_alloc_array(have + count + 1, sizeof(*items));
    size_t used = 0;

    for (size_t i = 0; i < have; i++)
        items[used++] = mem_copy_text(environment[i]);
    for (size_t i = 0; i < count; i++)
        apply(items, &used, &changes[i]);
    return items;
}

void environment_free(const char **environment)
{
    for (const char **item = environment; item && *item; item++)
        free((void *) (uintptr_t) *item);
    free(environment);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

bool environment_is_name(const char *name)
{
    return *name && strchr(LETTERS, *name) && !name[strspn(name, LETTERS "0123456789")];
}

const char **environment_for_commands(const char *const *own, const char *home)
{
    struct environment_change defaults[] = {
        {.name = "PATH", .text = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {.name = "HOME", .text = home},
        {.name = "LANG", .text = "C.UTF-8"},
        {.name = "LC_ALL", .text = "C.UTF-8"},
    };
    const char **items = environment_merge(own, NULL, 0);
    const char **merged;
    size_t count = count_items(items), missing = 0;

    for (size_t i = 0; i < count;) {
        if (strncmp(items[i], OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
            drop_item(items, &count, i);
        else
            i++;
    }
    for (size_t i = 0; i < ARRAY_COUNT(defaults); i++) {
        if (!environment_get(items, defaults[i].name))
            defaults[missing++] = defaults[i];
    }
    merged = environment_merge(items, defaults, missing);
    environment_free(items);
    return merged;
}
