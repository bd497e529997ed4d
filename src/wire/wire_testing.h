/* For the tests and fuzzers of wire/ only: valid values for every field of every struct, made from
 * the same tables that the codec walks. A struct whose fields must fit together has a repair here;
 * one without fails the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "wire/wire_message.h"
#include "wire/wire_plan.h"

enum fill_mode { FILL_LEAST, FILL_MOST, FILL_RANDOM, FILL_MODE_COUNT };

struct fill {
    enum fill_mode mode;
    uint64_t seed; /* not 0 */
};

/* xorshift64: the same values in every run. */
static inline uint64_t fill_random(struct fill *fill)
{
    fill->seed ^= fill->seed << 13;
    fill->seed ^= fill->seed >> 7;
    fill->seed ^= fill->seed << 17;
    return fill->seed;
}

static inline uint64_t fill_number(struct fill *fill, uint64_t least, uint64_t most)
{
    if (fill->mode == FILL_LEAST || least == most)
        return least;
    if (fill->mode == FILL_MOST)
        return most;
    return most - least == UINT64_MAX ? fill_random(fill)
                                      : least + fill_random(fill) % (most - least + 1);
}

static inline void fill_id(struct fill *fill, struct id *id, bool optional)
{
    uint8_t bytes[ID_RANDOM_SIZE];

    if (optional && fill_number(fill, 0, 1) == 0) {
        id->text[0] = '\0';
        return;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t) fill_number(fill, 0, UINT8_MAX);
    *id = id_from_bytes(bytes);
}

/* The alphabets make no ".." and no name of a folder that is ours. */
static inline void fill_text(struct fill *fill, const struct wire_field *field, char *text)
{
    static const char name[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    static const char *const alphabets[WIRE_KIND_COUNT] = {
        [WIRE_KIND_NAME] = name,
        [WIRE_KIND_NAME_OR_NONE] = name,
        [WIRE_KIND_TEXT] = " !\"#$%&'()*+,-./0189:;<=>?@ABYZ[\\]^_`abyz{|}~",
        [WIRE_KIND_PATH] = name,
    };
    const char *alphabet = alphabets[field->kind];
    static const size_t least[WIRE_KIND_COUNT] = {[WIRE_KIND_NAME] = 1, [WIRE_KIND_PATH] = 2};
    size_t length = fill_number(fill, least[field->kind], field->maximum);

    for (size_t i = 0; i < length; i++)
        text[i] = alphabet[fill_number(fill, 0, strlen(alphabet) - 1)];
    text[length] = '\0';
    if (field->kind == WIRE_KIND_PATH)
        text[0] = '/';
}

static inline void fill_record(struct fill *fill, const struct wire_record *record, void *object);

static inline void fill_member(void *member, size_t size, uint64_t number)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t) (number >> 8 * i);
    memcpy(member, bytes, size);
}

static inline void fill_field(struct fill *fill, const struct wire_field *field, char *object)
{
    char *member = object + field->offset;
    uint16_t count;

    switch (field->kind) {
    case WIRE_KIND_NUMBER:
        fill_member(member, field->size, fill_number(fill, field->minimum, field->maximum));
        return;
    case WIRE_KIND_ID:
    case WIRE_KIND_ID_OR_NONE:
        fill_id(fill, (struct id *) (void *) member, field->kind == WIRE_KIND_ID_OR_NONE);
        return;
    case WIRE_KIND_NAME:
    case WIRE_KIND_NAME_OR_NONE:
    case WIRE_KIND_TEXT:
    case WIRE_KIND_PATH:
        fill_text(fill, field, member);
        return;
    case WIRE_KIND_RECORD:
        fill_record(fill, field->record, member);
        return;
    case WIRE_KIND_LIST:
        count = (uint16_t) fill_number(fill, 0, field->maximum);
        fill_member(object + field->count_offset, sizeof(count), count);
        for (size_t i = 0; i < count; i++)
            fill_record(fill, field->record, member + i * field->record->size);
        return;
    case WIRE_KIND_COUNT:
        break;
    }
    fail_msg("field %s has a kind without a test value", field->name);
}

static inline void repair_ending(void *object)
{
    struct ending *ending = object;

    if (ending->kind == ENDED_SIGNAL)
        ending->value = (uint8_t) (ending->value % ENDING_SIGNAL_MAX + 1);
    else if (ending->kind != ENDED_STATUS)
        ending->value = 0;
}

static inline void repair_hello(void *object)
{
    struct wire_hello *hello = object;

    hello->version_min = (uint16_t) (hello->version_min % 100 + 1);
    hello->version_max |= 100;
}

static inline void repair_refused(void *object)
{
    struct wire_refused *refused = object;

    refused->version_min = (uint16_t) (refused->version_min % 100 + 1);
    refused->version_max |= 100;
}

static inline void repair_adopt(void *object)
{
    struct wire_adopt *adopt = object;

    if (adopt->pid == 0)
        adopt->start_time = 0;
}

static inline void repair_entry(void *object)
{
    struct wire_entry *entry = object;

    if (entry->pid == 0)
        entry->start_time = 0;
}

static inline void repair_disk(void *object)
{
    struct disk_ref *disk = object;

    if (!disk->id.text[0])
        disk->set = DISK_OF_SANDBOX;
}

/* Each job gets the disks that it has, as the table of wire_body.c says. */
static inline void repair_keeper_job(void *object)
{
    static const uint8_t one[ID_RANDOM_SIZE] = {3, 2, 1}, other[ID_RANDOM_SIZE] = {1, 2, 3};
    struct wire_keeper_job *job = object;
    bool is_view =
        job->job == DISK_JOB_ARCHIVE || job->job == DISK_JOB_SCAN || job->job == DISK_JOB_READ;

    if (job->job == DISK_JOB_UNPACK || job->job == DISK_JOB_UNARCHIVE)
        memset(&job->on, 0, sizeof(job->on));
    else
        job->on.id = id_from_bytes(one);
    if (job->job == DISK_JOB_DELETE)
        job->on.set = DISK_OF_SANDBOX;
    if (job->job == DISK_JOB_DIFF)
        job->base.id = id_from_bytes(other);
    else if (job->job != DISK_JOB_PACK)
        memset(&job->base, 0, sizeof(job->base));
    memset(&job->target, 0, sizeof(job->target));
    if (job->job == DISK_JOB_COPY || job->job == DISK_JOB_UNPACK)
        job->target = id_from_bytes(other);
    else
        job->disk_bytes = 0;
    if (!is_view)
        memset(job->image, 0, sizeof(job->image));
    else if (!job->image[0])
        job->image[0] = 'i';
}

static inline void repair_done(void *object)
{
    struct wire_done *done = object;

    if (strcmp(done->code, "ok") == 0)
        done->code[0] = 'k';
}

/* Ids that rise as ASCII does: the digits of base32 come after its letters. */
static inline void repair_listed(void *object)
{
    static const char digits[] = "234567abcdefghijklmnopqrstuvwxyz";
    struct wire_listed *listed = object;

    for (size_t i = 0; i < listed->entries.count; i++) {
        listed->entries.items[i].id.text[0] = digits[i / 32];
        listed->entries.items[i].id.text[1] = digits[i % 32];
    }
    listed->more = listed->more && listed->entries.count;
}

static inline void repair_disk_usage(void *object)
{
    static const uint8_t some[ID_RANDOM_SIZE] = {4, 5, 6};
    struct wire_disk_usage *asked = object;

    if (!asked->disk.id.text[0])
        asked->disk.id = id_from_bytes(some);
}

static inline void repair_snapshots_listed(void *object)
{
    static const char digits[] = "234567abcdefghijklmnopqrstuvwxyz";
    struct wire_snapshots_listed *listed = object;

    for (size_t i = 0; i < listed->names.count; i++) {
        listed->names.items[i].id.text[0] = digits[i / 32];
        listed->names.items[i].id.text[1] = digits[i % 32];
    }
    listed->more = listed->more && listed->names.count;
}

static inline void repair_prefix(void *object)
{
    struct network_prefix *prefix = object;

    prefix->address &= prefix->bits ? UINT32_MAX << (32 - prefix->bits) : 0;
}

static inline void repair_ports(void *object)
{
    struct network_ports *ports = object;

    if (ports->first > ports->last)
        ports->first = ports->last;
}

static inline void repair_rule(void *object)
{
    struct network_rule *rule = object;

    if (rule->protocol == NETWORK_ANY)
        rule->ports = (struct network_ports){.first = 0, .last = UINT16_MAX};
}

static inline void repair_bind(void *object)
{
    struct wire_bind *bind = object;

    bind->place[1] = 'a';
}

/* One first letter for each place. */
static inline void repair_plan(void *object)
{
    struct wire_plan *plan = object;

    for (size_t i = 0; i < plan->binds.count; i++)
        plan->binds.items[i].place[1] = (char) ('E' + i);
    if (plan->network != NETWORK_NAT)
        plan->rules.count = 0;
    if (plan->flags & ~WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN) ||
        strcmp(plan->origin.id.text, plan->id.text) == 0)
        memset(&plan->origin, 0, sizeof(plan->origin));
    if (!plan->origin.id.text[0])
        plan->flags &= ~WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN);
}

static inline void fill_record(struct fill *fill, const struct wire_record *record, void *object)
{
    static const struct {
        const struct wire_record *record;
        void (*call)(void *object);
    } repairs[] = {
        {&wire_ending_record, repair_ending},
        {&wire_hello_record, repair_hello},
        {&wire_refused_record, repair_refused},
        {&wire_adopt_record, repair_adopt},
        {&wire_entry_record, repair_entry},
        {&wire_keeper_job_record, repair_keeper_job},
        {&wire_disk_record, repair_disk},
        {&wire_done_record, repair_done},
        {&wire_listed_record, repair_listed},
        {&wire_prefix_record, repair_prefix},
        {&wire_ports_record, repair_ports},
        {&wire_rule_record, repair_rule},
        {&wire_bind_record, repair_bind},
        {&wire_plan_record, repair_plan},
        {&wire_disk_usage_record, repair_disk_usage},
        {&wire_snapshots_listed_record, repair_snapshots_listed},
    };
    bool repaired = !record->check;

    for (size_t i = 0; i < record->count; i++)
        fill_field(fill, &record->fields[i], object);
    for (size_t i = 0; i < ARRAY_COUNT(repairs); i++) {
        if (repairs[i].record == record) {
            repairs[i].call(object);
            repaired = true;
        }
    }
    if (!repaired)
        fail_msg("struct %s has a check, so it needs a repair here", record->name);
}

/* A valid message of that number. */
static inline void fill_message(struct fill *fill, unsigned int number,
                                struct wire_message *message)
{
    const struct wire_row *row = wire_message_row(number);

    memset(message, 0, sizeof(*message));
    message->number = number;
    message->request = row->type == WIRE_EVENT ? 0 : fill_number(fill, 1, UINT64_MAX);
    fill_record(fill, row->body, &message->hello);
}

static inline void assert_ok(int result, const struct error *err)
{
    if (result != 0)
        fail_msg("%s: %s", error_code_text(err->code), err->message);
}
