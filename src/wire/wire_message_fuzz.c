/* Any bytes are refused with a reason, or are a message that is valid and encodes to them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_done.h"
#include "wire/wire_permit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* What code beyond the codec relies on, said without the codec. */
static void check_meaning(const struct wire_message *message)
{
    struct error err = ERROR_INIT;

    must(wire_message_fds(message) <= WIRE_FDS_MAX);
    if (message->number == WIRE_MESSAGE_DONE)
        must((wire_done_get(&message->done, &err) == 0) == (err.code == ERR_NONE));
    if (message->number == WIRE_MESSAGE_LISTED)
        must(message->listed.entries.count <= WIRE_LIST_PAGE);
    if (message->number == WIRE_MESSAGE_SNAPSHOTS_LISTED)
        must(message->snapshots_listed.names.count <= WIRE_LIST_PAGE);
    if (message->number == WIRE_MESSAGE_DISK_USAGE)
        must(id_is_valid(message->disk_usage.disk.id.text));
    if (message->number == WIRE_MESSAGE_SNAPSHOT || message->number == WIRE_MESSAGE_ROLL_BACK)
        must(id_is_valid(message->snapshot.id.text) &&
             id_is_valid(message->snapshot.snapshot.text));
    if (message->number == WIRE_MESSAGE_KEEPER_JOB && message->keeper_job.on.id.text[0])
        must(strcmp(message->keeper_job.on.id.text, message->keeper_job.target.text) != 0 ||
             message->keeper_job.on.set == DISK_OF_SNAPSHOT);
    if (message->number == WIRE_MESSAGE_KILL)
        must(id_is_valid(message->kill.id.text) && message->kill.scope <= WIRE_KILL_EVERYTHING);
    if (message->number == WIRE_MESSAGE_OPEN_MOUNT)
        must(message->open_mount.place[0] == '/' && !strstr(message->open_mount.place, "/../") &&
             strlen(message->open_mount.place) <= WIRE_PATH_MAX);
    if (message->number == WIRE_MESSAGE_SOCKETS)
        must(message->sockets.count >= 1 && message->sockets.count <= WIRE_SOCKETS_MAX);
    /* Exactly one of the two ends takes a message that is permitted. */
    for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++)
        must((wire_permit_receive(WIRE_LAUNCHER, at, message->number, &err) == 0) +
                 (wire_permit_receive(WIRE_DAEMON, at, message->number, &err) == 0) ==
             (wire_permit(at, message->number) != WIRE_FORBID));
}

static void check(const uint8_t *data, size_t size, unsigned int version)
{
    struct error err = ERROR_INIT;
    struct wire_message message;
    struct wire_packet packet;

    if (wire_message_decode(data, size, version, &message, &err) < 0) {
        must(message.number == WIRE_MESSAGE_NONE && err.code != ERR_NONE && err.message[0]);
        must(wire_text_is_printable(err.message));
        return;
    }
    must(wire_message_encode(&message, version, &packet, &err) == 0);
    must(packet.length == size && memcmp(packet.bytes, data, size) == 0);
    check_meaning(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, WIRE_VERSION_GREETING);
    check(data, size, WIRE_VERSION_MAX);
    return 0;
}
