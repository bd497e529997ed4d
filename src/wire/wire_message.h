/* The messages between daemon and launcher: the list of them, and their bytes.
 *
 *     0        2        4                     12             38
 *     | version | number | request             | trace        | body ...     little endian, no padding
 *
 * One message is one packet of a SOCK_SEQPACKET socket, at most WIRE_PACKET_MAX bytes, with the
 * number of descriptors that the list states. A request carries a number of the daemon's choice,
 * above 0 and rising; its one answer carries the same number; an event carries 0. Requests but hello
 * have a trace: the id of the client's request that this is done for, or zero bytes. It is for logs
 * and traces and changes nothing of what is done.
 *
 * Decoding takes any bytes and gives an error or a message that is valid in every field and encodes
 * to the same bytes. Pure, thread-safe. */
#pragma once

#include "wire/wire_body.h"

/* hello, welcome and refused are sent before a version is agreed on: they carry this one, and their
 * bytes never change. */
#define WIRE_VERSION_GREETING 0
/* What this program speaks. */
#define WIRE_VERSION_MIN 3
#define WIRE_VERSION_MAX 3

#define WIRE_HEADER_SIZE 12 /* without the trace */
#define WIRE_TRACE_SIZE  ID_LENGTH
#define WIRE_PACKET_MAX  4096
#define WIRE_FDS_MAX     WIRE_SOCKETS_MAX

enum wire_type {
    WIRE_REQUEST, /* to the launcher */
    WIRE_REPLY,   /* to the daemon, one for each request */
    WIRE_EVENT,   /* to the daemon */
};

/* What a conversation is up to; wire_permit.h tells the story. */
enum wire_state { WIRE_FRESH, WIRE_GREETED, WIRE_SERVING, WIRE_DRAINING, WIRE_STATE_COUNT };

enum wire_permission {
    WIRE_FORBID, /* ends the conversation */
    WIRE_REFUSE, /* answered with an error: the daemon may not have known */
    WIRE_ALLOW,
};

/* The list. number, NAME, name, body, type, descriptors, answer when a request succeeds, state
 * after it (STAY: the same), permission when fresh, greeted, serving, draining, meaning.
 *
 * Numbers are never given to another message. A request that fails is answered with `done`, a hello
 * with `refused`. */
#define WIRE_MESSAGES(X)                                                                           \
    X(1, HELLO, hello, hello, REQUEST, 0, WELCOME, STAY, ALLOW, FORBID, FORBID, FORBID,            \
      "the first message: which versions the daemon speaks")                                       \
    X(2, SUBSCRIBE_EXIT, subscribe_exit, nothing, REQUEST, 0, SUBSCRIBED, STAY, FORBID, ALLOW,     \
      FORBID, REFUSE, "tell me of every exit from now on; opens the service")                      \
    X(3, LIST, list, list, REQUEST, 0, LISTED, STAY, FORBID, ALLOW, ALLOW, ALLOW,                  \
      "one page of all sandboxes on this host that are ours")                                      \
    X(4, ADOPT, adopt, adopt, REQUEST, 0, SANDBOX, STAY, FORBID, ALLOW, ALLOW, REFUSE,             \
      "take a sandbox over that an earlier launcher started")                                      \
    X(5, CREATE, create, nothing, REQUEST, 1, SANDBOX, STAY, FORBID, FORBID, ALLOW, REFUSE,        \
      "start the sandbox of this plan (descriptor: a sealed memfd)")                               \
    X(6, ASSIGN, assign, nothing, REQUEST, 1, SANDBOX, STAY, FORBID, FORBID, ALLOW, REFUSE,        \
      "make a pooled sandbox the one of this plan (descriptor: a sealed memfd)")                   \
    X(7, SOCKETS, sockets, sockets, REQUEST, 0, SOCKETS_MADE, STAY, FORBID, FORBID, ALLOW, REFUSE, \
      "unconnected sockets in the sandbox's network")                                              \
    X(8, FREEZE, freeze, target, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, REFUSE,            \
      "stop all processes where they are")                                                         \
    X(9, THAW, thaw, target, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, ALLOW,                 \
      "let them go on")                                                                            \
    X(10, KILL, kill, kill, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, ALLOW,                  \
      "end all processes, frozen ones too; answered when they are gone")                           \
    X(11, LIMITS, limits, set_limits, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, REFUSE,       \
      "change the limits of a running sandbox")                                                    \
    X(12, STATS, stats, target, REQUEST, 0, STATS_READ, STAY, FORBID, FORBID, ALLOW, ALLOW,        \
      "what a sandbox has used")                                                                   \
    X(13, OPEN_MOUNT, open_mount, open_mount, REQUEST, 0, MOUNT_OPENED, STAY, FORBID, FORBID,      \
      ALLOW, REFUSE, "prepare a mount whose files the daemon serves")                              \
    X(14, ATTACH_MOUNT, attach_mount, mount, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW,        \
      REFUSE, "show it in the sandbox, once its server answers")                                   \
    X(15, DETACH_MOUNT, detach_mount, mount, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, ALLOW, \
      "break it off and take it away")                                                             \
    X(16, KEEPER_JOB, keeper_job, keeper_job, REQUEST, 3, JOB_ENDED, STAY, FORBID, FORBID, ALLOW,  \
      REFUSE, "run a keeper on disks (descriptors: input, output, data; /dev/null: none)")         \
    X(17, SNAPSHOT, snapshot, snapshot, REQUEST, 0, SNAPSHOT_MADE, STAY, FORBID, FORBID, ALLOW,    \
      REFUSE, "copy a sandbox's disk, whatever its state; answered when it would survive a crash") \
    X(18, DELETE_SNAPSHOT, delete_snapshot, snapshot_name, REQUEST, 0, DONE, STAY, FORBID, FORBID, \
      ALLOW, ALLOW, "disks that were made from it stay")                                           \
    X(19, LIST_SNAPSHOTS, list_snapshots, list, REQUEST, 0, SNAPSHOTS_LISTED, STAY, FORBID, ALLOW, \
      ALLOW, ALLOW, "one page of all snapshots on this host that are ours")                        \
    X(20, ROLL_BACK, roll_back, roll_back, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, REFUSE,  \
      "make the disk of a stopped sandbox a copy of a snapshot")                                   \
    X(21, DISK_USAGE, disk_usage, disk_usage, REQUEST, 0, BYTES_COUNTED, STAY, FORBID, FORBID,     \
      ALLOW, ALLOW, "what a disk or snapshot has on its account")                                  \
    X(22, RECLAIM, reclaim, target, REQUEST, 0, BYTES_COUNTED, STAY, FORBID, FORBID, ALLOW,        \
      REFUSE, "push the memory of a frozen sandbox out to swap")                                   \
    X(23, SYNC, sync, sync, REQUEST, 0, DONE, STAY, FORBID, FORBID, ALLOW, ALLOW,                  \
      "answered when every disk that is there now would survive a power cut")                      \
    X(24, INSPECT, inspect, inspect, REQUEST, 0, INSPECTED, STAY, FORBID, FORBID, ALLOW, ALLOW,    \
      "what you did last, or have now: for `burrow debug`")                                        \
                                                                                                   \
    X(64, WELCOME, welcome, welcome, REPLY, 0, NONE, GREETED, ALLOW, FORBID, FORBID, FORBID,       \
      "the version is agreed on")                                                                  \
    X(65, REFUSED, refused, refused, REPLY, 0, NONE, STAY, ALLOW, FORBID, FORBID, FORBID,          \
      "no version in common; the launcher closes")                                                 \
    X(66, DONE, done, done, REPLY, 0, NONE, STAY, FORBID, ALLOW, ALLOW, ALLOW,                     \
      "success without a result, or the failure of any request")                                   \
    X(67, SUBSCRIBED, subscribed, nothing, REPLY, 0, NONE, SERVING, FORBID, ALLOW, FORBID, FORBID, \
      "exits that nobody was told of follow as events")                                            \
    X(68, LISTED, listed, listed, REPLY, 0, NONE, STAY, FORBID, ALLOW, ALLOW, ALLOW, "one page")   \
    X(69, SANDBOX, sandbox, sandbox, REPLY, 0, NONE, STAY, FORBID, ALLOW, ALLOW, ALLOW,            \
      "the sandbox runs")                                                                          \
    X(70, SOCKETS_MADE, sockets_made, sockets_made, REPLY, 0, NONE, STAY, FORBID, FORBID, ALLOW,   \
      ALLOW, "here they are")                                                                      \
    X(71, STATS_READ, stats_read, stats_read, REPLY, 0, NONE, STAY, FORBID, FORBID, ALLOW, ALLOW,  \
      "numbers since the sandbox began")                                                           \
    X(72, MOUNT_OPENED, mount_opened, mount_opened, REPLY, 1, NONE, STAY, FORBID, FORBID, ALLOW,   \
      ALLOW, "serve this (descriptor: of /dev/fuse), then attach it")                              \
    X(73, JOB_ENDED, job_ended, job_ended, REPLY, 0, NONE, STAY, FORBID, FORBID, ALLOW, ALLOW,     \
      "the keeper ended")                                                                          \
    X(74, SNAPSHOT_MADE, snapshot_made, snapshot_made, REPLY, 0, NONE, STAY, FORBID, FORBID,       \
      ALLOW, ALLOW, "it is there, and on disk")                                                    \
    X(75, SNAPSHOTS_LISTED, snapshots_listed, snapshots_listed, REPLY, 0, NONE, STAY, FORBID,      \
      ALLOW, ALLOW, ALLOW, "one page")                                                             \
    X(76, BYTES_COUNTED, bytes_counted, bytes_counted, REPLY, 0, NONE, STAY, FORBID, FORBID,       \
      ALLOW, ALLOW, "so many")                                                                     \
    X(77, INSPECTED, inspected, nothing, REPLY, 1, NONE, STAY, FORBID, FORBID, ALLOW, ALLOW,       \
      "it is in here (descriptor: a sealed memfd)")                                                \
                                                                                                   \
    X(96, EXITED, exited, exited, EVENT, 0, NONE, STAY, FORBID, FORBID, ALLOW, ALLOW,              \
      "a sandbox ended; told once for each")                                                       \
    X(97, STOPPING, stopping, stopping, EVENT, 0, NONE, DRAINING, FORBID, ALLOW, ALLOW, FORBID,    \
      "the launcher is about to end; sandboxes go on")

enum wire_number {
    WIRE_MESSAGE_NONE = 0,
#define X(number, NAME, ...) WIRE_MESSAGE_##NAME = (number),
    WIRE_MESSAGES(X)
#undef X
        WIRE_NUMBER_END = 128
};

/* A state after a message that changes none. */
#define WIRE_STAY WIRE_STATE_COUNT

struct wire_message {
    enum wire_number number;
    uint64_t request; /* 0 in an event, nowhere else */
    struct id trace;  /* of a request: for which of a client's; "": none */
    union {           /* the member that has the message's name */
#define X(number, NAME, name, body, ...) wire_##body##_type name;
        WIRE_MESSAGES(X)
#undef X
    };
};

/* One row of the list. */
struct wire_row {
    const char *name;
    enum wire_type type;
    unsigned int fds; /* besides those that a FD_COUNT field announces */
    enum wire_number answer;
    enum wire_state then;
    enum wire_permission permissions[WIRE_STATE_COUNT];
    const struct wire_record *body;
};

/* The row of a message; NULL for a number that is not in the list. Static. */
const struct wire_row *wire_message_row(unsigned int number);

/* "create"; "an unknown message" for a number that is not in the list. */
const char *wire_message_name(unsigned int number);

struct wire_packet {
    size_t length;
    uint8_t bytes[WIRE_PACKET_MAX];
};

/* The bytes of a message in this version of the protocol (messages of the greeting: always
 * WIRE_VERSION_GREETING). -1 with ERR_INVALID: the message is not valid. */
int wire_message_encode(const struct wire_message *message, unsigned int version,
                        struct wire_packet *ret_packet, struct error *err);

/* The other way. All of `ret_message` is written; after a failure its number is WIRE_MESSAGE_NONE.
 * -1 with ERR_UPGRADE_REQUIRED: another version; ERR_NOT_IMPLEMENTED: a number that is not in the
 * list; ERR_INVALID: anything else. Each of them ends the conversation. */
int wire_message_decode(const void *bytes, size_t length, unsigned int version,
                        struct wire_message *ret_message, struct error *err);

/* The sandbox that a valid message is about, as far as its body has one id; NULL: none, or several. */
const struct id *wire_message_subject(const struct wire_message *message);

/* How many descriptors go with a valid message. */
size_t wire_message_fds(const struct wire_message *message);

/* Whether `reply` is an answer that this request can have. */
bool wire_message_answers(enum wire_number request, const struct wire_message *reply);

/* The newest version that both speak. -1 with ERR_UPGRADE_REQUIRED: there is none. */
int wire_version_choose(const struct wire_hello *hello, unsigned int *ret_version,
                        struct error *err);
