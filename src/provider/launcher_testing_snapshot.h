/* For tests of the provider `local`: the snapshots of the played launcher of launcher_testing.h,
 * and what it answers about them. Included by that only. */
#pragma once

#include "provider/launcher_testing_state.h"

/* Where it is, or would go. */
static inline size_t play_snapshot_place(const struct played_launcher *launcher,
                                         const struct id *id, bool *ret_is_there)
{
    size_t place = 0;

    while (place < launcher->snapshot_count &&
           strcmp(launcher->snapshots[place].text, id->text) < 0)
        place++;
    *ret_is_there =
        place < launcher->snapshot_count && strcmp(launcher->snapshots[place].text, id->text) == 0;
    return place;
}

static inline bool play_has_snapshot(const struct played_launcher *launcher, const struct id *id)
{
    bool is_there;

    (void) play_snapshot_place(launcher, id, &is_there);
    return is_there;
}

static inline void play_add_snapshot(struct played_launcher *launcher, const struct id *id)
{
    bool is_there;
    size_t place = play_snapshot_place(launcher, id, &is_there);
    struct id *at = &launcher->snapshots[place];

    assert_true(!is_there && launcher->snapshot_count < PLAYED_SNAPSHOTS_MAX);
    memmove(at + 1, at, (launcher->snapshot_count - place) * sizeof(*at));
    *at = *id;
    launcher->snapshot_count++;
}

static inline void play_snapshot(struct played_launcher *launcher,
                                 const struct wire_message *message)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SNAPSHOT_MADE,
                                 .snapshot_made = {.pause_us = 100, .took_us = 2000}};

    launcher->last_snapshot = message->snapshot;
    if (!play_find(launcher, &message->snapshot.id)) {
        play_done(launcher, message->request, ERR_NOT_FOUND);
    } else if (play_has_snapshot(launcher, &message->snapshot.snapshot)) {
        play_done(launcher, message->request, ERR_CONFLICT);
    } else {
        play_add_snapshot(launcher, &message->snapshot.snapshot);
        play_answer(launcher, message->request, &reply, NULL, 0);
    }
}

static inline void play_delete_snapshot(struct played_launcher *launcher,
                                        const struct wire_message *message)
{
    bool is_there;
    size_t place = play_snapshot_place(launcher, &message->delete_snapshot.id, &is_there);
    struct id *at = &launcher->snapshots[place];

    if (is_there) {
        launcher->snapshot_count--;
        memmove(at, at + 1, (launcher->snapshot_count - place) * sizeof(*at));
    }
    play_done(launcher, message->request, ERR_NONE);
}

static inline void play_list_snapshots(struct played_launcher *launcher,
                                       const struct wire_message *message)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SNAPSHOTS_LISTED};
    struct wire_snapshot_name_list *names = &reply.snapshots_listed.names;

    for (size_t i = 0; i < launcher->snapshot_count; i++) {
        if (strcmp(launcher->snapshots[i].text, message->list_snapshots.after.text) <= 0)
            continue;
        if (names->count == WIRE_LIST_PAGE) {
            reply.snapshots_listed.more = true;
            break;
        }
        names->items[names->count++].id = launcher->snapshots[i];
    }
    play_answer(launcher, message->request, &reply, NULL, 0);
}

static inline void play_roll_back(struct played_launcher *launcher,
                                  const struct wire_message *message)
{
    bool is_there = play_find(launcher, &message->roll_back.id) &&
                    play_has_snapshot(launcher, &message->roll_back.snapshot);

    launcher->last_roll_back = message->roll_back;
    play_done(launcher, message->request, is_there ? ERR_NONE : ERR_NOT_FOUND);
}

/* None is there, too. */
static inline bool play_has_disk(const struct played_launcher *launcher,
                                 const struct disk_ref *disk)
{
    if (!disk->id.text[0])
        return true;
    return disk->set == DISK_OF_SNAPSHOT ? play_has_snapshot(launcher, &disk->id)
                                         : play_find(launcher, &disk->id) != NULL;
}

static inline void play_usage(struct played_launcher *launcher, const struct wire_message *message)
{
    const struct disk_ref *disk = &message->disk_usage.disk;
    struct wire_message reply = {.number = WIRE_MESSAGE_BYTES_COUNTED, .bytes_counted = {4096}};

    if (play_has_disk(launcher, disk))
        play_answer(launcher, message->request, &reply, NULL, 0);
    else
        play_done(launcher, message->request, ERR_NOT_FOUND);
}
