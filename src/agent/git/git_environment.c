#include "agent/git/git_environment.h"

#include "agent/environment.h"
#include "base/number.h"

/* More than anybody sets. */
#define CONFIG_COUNT_MAX 1000

#define HELPER                                                                                     \
    "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' "                           \
    "\"$BURROW_GIT_USER\" \"$BURROW_GIT_PASSWORD\"; }; f"

static const struct environment_change always[] = {
    /* Nobody is there to answer. */
    {.name = "GIT_TERMINAL_PROMPT", .text = "0"},
    {.name = "GIT_ASKPASS", .text = ""},
    {.name = "SSH_ASKPASS", .text = NULL},
    {.name = "GIT_ALLOW_PROTOCOL", .text = GIT_URL_PROTOCOLS},
    {.name = "GIT_TRACE_REDACT", .text = "1"},
    /* We read its messages. */
    {.name = "LC_ALL", .text = "C"},
    {.name = "LANGUAGE", .text = NULL},
    /* Of another repository. */
    {.name = "GIT_DIR", .text = NULL},
    {.name = "GIT_WORK_TREE", .text = NULL},
    {.name = "GIT_INDEX_FILE", .text = NULL},
    {.name = "GIT_OBJECT_DIRECTORY", .text = NULL},
    {.name = "GIT_ALTERNATE_OBJECT_DIRECTORIES", .text = NULL},
    {.name = "GIT_COMMON_DIR", .text = NULL},
    {.name = "GIT_NAMESPACE", .text = NULL},
    {.name = "GIT_PREFIX", .text = NULL},
};

#define CHANGES_MAX (ARRAY_COUNT(always) + 8)

struct changes {
    struct environment_change list[CHANGES_MAX];
    size_t count;
};

static void git_environment_add(struct changes *changes, const char *name, const char *text)
{
    changes->list[changes->count++] = (struct environment_change){.name = name, .text = text};
}

static void add_setting(struct changes *changes, struct pool *pool, int64_t number, const char *key,
                        const char *value)
{
    git_environment_add(changes, pool_format(pool, "GIT_CONFIG_KEY_%lld", (long long) number), key);
    git_environment_add(changes, pool_format(pool, "GIT_CONFIG_VALUE_%lld", (long long) number),
                        value);
}

/* Behind the settings the session has there already. The empty helper forgets the user's own, which
 * would be asked, and told to keep the password. */
static void add_credentials(struct changes *changes, const char *const *base,
                            const struct git_url *url, struct pool *pool)
{
    const char *text = environment_get(base, "GIT_CONFIG_COUNT");
    int64_t count = 0;

    if (text)
        (void) number_parse(text, 0, CONFIG_COUNT_MAX, &count); /* git would refuse it: 0 then */
    add_setting(changes, pool, count, "credential.helper", "");
    add_setting(changes, pool, count + 1, pool_format(pool, "credential.%s.helper", url->origin),
                HELPER);
    git_environment_add(changes, "GIT_CONFIG_COUNT",
                        pool_format(pool, "%lld", (long long) count + 2));
    git_environment_add(changes, "BURROW_GIT_USER", url->user);
    git_environment_add(changes, "BURROW_GIT_PASSWORD", url->password);
}

const char **git_environment_new(const char *const *base, const struct git_url *url,
                                 struct pool *pool)
{
    struct changes changes = {.count = 0};

    for (size_t i = 0; i < ARRAY_COUNT(always); i++)
        git_environment_add(&changes, always[i].name, always[i].text);
    if (url->user)
        add_credentials(&changes, base, url, pool);
    return environment_merge(base, changes.list, changes.count);
}
