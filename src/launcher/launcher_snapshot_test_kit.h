/* For tests of the launcher's snapshots only: disks as they lie in a pool of either kind, and what
 * is asked of a launcher about them. */
#pragma once

#include "launcher/launcher_test_kit.h"

#define STORE_SIZE 128

/* A pool that holds disks without a filesystem of its own is a plain one, and stays so. */
static inline int set_up_plain_in(const char *parent, void **state)
{
    static const char *const parts[] = {"data", "data/pool", "data/pool/store",
                                        "data/pool/store/disks", NULL};
    struct kit *kit = calloc(1, sizeof(*kit));
    struct id other = id_new();
    char path[STORE_SIZE];

    *state = kit;
    if (!kit_can_run())
        return 0;
    kit_make_in(parent, kit);
    for (size_t i = 0; parts[i]; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", kit->folder, parts[i]);
        assert_int_equal(mkdir(path, i == 0 ? 0755 : 0700), 0);
    }
    (void) snprintf(path, sizeof(path), "%s/data/pool/store/disks/%s", kit->folder, other.text);
    assert_int_equal(mkdir(path, 0755), 0);
    kit_start(kit);
    return 0;
}

static inline int set_up_plain(void **state)
{
    return set_up_plain_in(scratch_parent(), state);
}

static inline int set_up_plain_on_disk(void **state)
{
    return set_up_plain_in(SCRATCH_USUAL, state);
}

/* What KIT_TEST is for the other kind of pool. */
#define PLAIN(name)                                                                                \
    {                                                                                              \
        "plain: " #name, name, set_up_plain, kit_tear_down, NULL                                   \
    }

/* Where it matters that files are copied twice in memory, whose times say less. */
#define PLAIN_ON_DISK(name)                                                                        \
    {                                                                                              \
        "plain: " #name, name, set_up_plain_on_disk, kit_tear_down, NULL                           \
    }

/* --- disks, from outside --------------------------------------------------------------------- */

static inline const char *in_store(const struct kit *kit, const char *set, const struct id *id,
                                   const char *file)
{
    static char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/%s/%s%s", kit_store(kit), set, id ? id->text : "",
                    file);
    return path;
}

/* A name of a disk or snapshot where it is: in its upper folder or in a layer beneath. */
static inline const char *in_stack(const struct kit *kit, const char *set, const struct id *id,
                                   const char *name)
{
    AUTO(free) char *list = NULL;
    char file[64], *at, *layer;
    struct stat status;
    size_t length;

    (void) snprintf(file, sizeof(file), "/u/%s", name);
    if (lstat(in_store(kit, set, id, file), &status) == 0 ||
        sys_file_read_all(AT_FDCWD, in_store(kit, set, id, "/l"), 4096, &list, &length) < 0)
        return in_store(kit, set, id, file);
    at = list;
    while ((layer = strsep(&at, "\n")) && *layer) {
        struct id layer_id;

        (void) snprintf(layer_id.text, sizeof(layer_id.text), "%s", layer);
        if (lstat(in_store(kit, "layers", &layer_id, file), &status) == 0)
            return in_store(kit, "layers", &layer_id, file);
    }
    return in_store(kit, set, id, file);
}

static inline void write_text(const struct kit *kit, const struct id *id, const char *name,
                              const char *text)
{
    char file[64];

    (void) snprintf(file, sizeof(file), "/u/%s", name);
    assert_int_equal(
        sys_file_replace(AT_FDCWD, in_store(kit, "disks", id, file), text, strlen(text), 0644), 0);
}

/* "" when there is no such file. */
static inline const char *text_of(const struct kit *kit, const struct id *id, const char *name)
{
    static char text[64];
    ssize_t got = 0;
    int fd = open(in_stack(kit, "disks", id, name), O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        got = read(fd, text, sizeof(text) - 1);
    (void) fd_close(fd);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static inline size_t count_in(const struct kit *kit, const char *set)
{
    DIR *folder = opendir(in_store(kit, set, NULL, ""));
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        count += id_is_valid(entry->d_name);
    (void) closedir(folder);
    return count;
}

/* Copies that are being made, by whomever. */
static inline size_t count_unfinished(const struct kit *kit)
{
    DIR *folder = opendir(in_store(kit, "unfinished", NULL, ""));
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char set[64];

        (void) snprintf(set, sizeof(set), "unfinished/%.32s", entry->d_name);
        if (id_is_valid(entry->d_name))
            count += count_in(kit, set);
    }
    (void) closedir(folder);
    return count;
}

/* --- questions ------------------------------------------------------------------------------- */

static inline void ask_snapshot(struct kit *kit, const struct id *id, const struct id *snapshot,
                                bool freeze, struct kit_answer *answer)
{
    struct wire_message request = {.number = WIRE_MESSAGE_SNAPSHOT,
                                   .snapshot = {*id, *snapshot, freeze}};

    kit_ask(kit, &request, answer);
}

static inline struct snapshot_made snapshot(struct kit *kit, const struct id *id,
                                            const struct id *snapshot_id, bool freeze)
{
    struct kit_answer answer;

    ask_snapshot(kit, id, snapshot_id, freeze, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SNAPSHOT_MADE);
    return answer.message.snapshot_made;
}

static inline void ask_roll_back(struct kit *kit, const struct id *id, const struct id *snapshot_id,
                                 struct kit_answer *answer)
{
    struct wire_message request = {.number = WIRE_MESSAGE_ROLL_BACK,
                                   .roll_back = {*id, *snapshot_id, 64 * KIT_MEGABYTE}};

    kit_ask(kit, &request, answer);
}

static inline void delete_snapshot(struct kit *kit, const struct id *snapshot_id)
{
    struct wire_message request = {.number = WIRE_MESSAGE_DELETE_SNAPSHOT,
                                   .delete_snapshot = {*snapshot_id}};
    struct kit_answer answer;

    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static inline size_t count_snapshots(struct kit *kit)
{
    struct wire_message request = {.number = WIRE_MESSAGE_LIST_SNAPSHOTS};
    struct kit_answer answer;

    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_SNAPSHOTS_LISTED);
    assert_false(answer.message.snapshots_listed.more);
    return answer.message.snapshots_listed.names.count;
}

static inline struct wire_plan fork_plan(enum disk_set set, const struct id *origin)
{
    struct wire_plan plan = kit_plan();

    plan.origin = (struct disk_ref){set, *origin};
    return plan;
}

static inline void stop(struct kit *kit, const struct id *id)
{
    struct kit_answer answer;

    kit_kill(kit, id, WIRE_KILL_PROCESSES, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static inline void destroy(struct kit *kit, const struct id *id)
{
    struct kit_answer answer;

    kit_kill(kit, id, WIRE_KILL_EVERYTHING, &answer);
    kit_expect(&answer, WIRE_MESSAGE_DONE);
}

static inline enum run_state state_of(struct kit *kit, const struct id *id)
{
    struct wire_message request = {.number = WIRE_MESSAGE_LIST};
    struct kit_answer answer;

    kit_ask(kit, &request, &answer);
    kit_expect(&answer, WIRE_MESSAGE_LISTED);
    for (size_t i = 0; i < answer.message.listed.entries.count; i++) {
        if (strcmp(answer.message.listed.entries.items[i].id.text, id->text) == 0)
            return answer.message.listed.entries.items[i].state;
    }
    return RUN_STATE_BROKEN;
}
