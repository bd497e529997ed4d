#include "wire/wire_testing.h"

#define VERSION  WIRE_VERSION_MAX
#define RUNS     50 /* with other values each */
#define RUNS_FEW 6  /* of what takes the square of a message's length */

static const unsigned int numbers[] = {
#define X(number, ...) number,
    WIRE_MESSAGES(X)
#undef X
};

static void encode(const struct wire_message *message, struct wire_packet *packet)
{
    struct error err = ERROR_INIT;

    assert_ok(wire_message_encode(message, VERSION, packet, &err), &err);
}

/* Bytes that decode are the bytes of what they decode to. Returns whether they do. */
static bool refused_or_canonical(const uint8_t *bytes, size_t length)
{
    struct error err = ERROR_INIT;
    struct wire_message message;
    struct wire_packet again;

    if (wire_message_decode(bytes, length, VERSION, &message, &err) < 0) {
        assert_int_equal(message.number, WIRE_MESSAGE_NONE);
        assert_true(err.code != ERR_NONE && err.message[0]);
        return false;
    }
    encode(&message, &again);
    assert_int_equal(again.length, length);
    assert_memory_equal(again.bytes, bytes, length);
    return true;
}

/* Call `check` for messages of every number with the smallest, the largest and random values. */
static void for_every_message(int runs, void (*check)(const struct wire_message *message))
{
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct fill fill = {.seed = 88172645463325252ULL + numbers[i]};
        struct wire_message message;

        for (int run = 0; run < runs; run++) {
            fill.mode = run < FILL_RANDOM ? (enum fill_mode) run : FILL_RANDOM;
            fill_message(&fill, numbers[i], &message);
            check(&message);
        }
    }
}

static void check_round_trip(const struct wire_message *message)
{
    struct error err = ERROR_INIT;
    struct wire_message back;
    struct wire_packet packet, again;

    encode(message, &packet);
    assert_ok(wire_message_decode(packet.bytes, packet.length, VERSION, &back, &err), &err);
    assert_memory_equal(&back, message, sizeof(back));
    encode(&back, &again);
    assert_int_equal(again.length, packet.length);
    assert_memory_equal(again.bytes, packet.bytes, packet.length);
    assert_int_equal(wire_message_fds(&back), wire_message_fds(message));
    assert_true(wire_message_fds(&back) <= WIRE_FDS_MAX);
}

static void every_message_comes_back_as_it_was(void **state)
{
    (void) state;
    for_every_message(RUNS, check_round_trip);
}

static void check_cuts(const struct wire_message *message)
{
    struct wire_packet packet;

    encode(message, &packet);
    for (size_t length = 0; length < packet.length; length++)
        assert_false(refused_or_canonical(packet.bytes, length));
    for (unsigned int byte = 0; byte < 256 && packet.length < sizeof(packet.bytes); byte += 5) {
        packet.bytes[packet.length] = (uint8_t) byte;
        assert_false(refused_or_canonical(packet.bytes, packet.length + 1));
    }
}

static void no_other_length_is_taken(void **state)
{
    (void) state;
    for_every_message(RUNS_FEW, check_cuts);
}

static void check_flips(const struct wire_message *message)
{
    struct wire_packet packet;

    encode(message, &packet);
    for (size_t bit = 0; bit < packet.length * 8; bit++) {
        packet.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
        (void) refused_or_canonical(packet.bytes, packet.length);
        packet.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
}

static void flipped_bits_are_refused_or_another_message(void **state)
{
    (void) state;
    for_every_message(RUNS_FEW, check_flips);
}

static void the_bytes_are_what_the_specification_says(void **state)
{
    static const uint8_t hello[] = {0, 0, 1, 0, 7, 0, 0,   0,   0,   0,   0,  0,
                                    1, 0, 2, 0, 5, 0, '0', '.', '1', '.', '0'};
    static const uint8_t exited[] = "\3\0\x60\0\0\0\0\0\0\0\0\0"
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaa\1\x9";
    const struct wire_message first = {
        .number = WIRE_MESSAGE_HELLO,
        .request = 7,
        .hello = {.version_min = 1, .version_max = 2, .program = "0.1.0"}};
    const struct wire_message second = {.number = WIRE_MESSAGE_EXITED,
                                        .exited = {.id = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"},
                                                   .ending = {.kind = ENDED_SIGNAL, .value = 9}}};
    struct wire_packet packet;

    (void) state;
    encode(&first, &packet);
    assert_int_equal(packet.length, sizeof(hello));
    assert_memory_equal(packet.bytes, hello, sizeof(hello));
    encode(&second, &packet);
    assert_int_equal(packet.length, sizeof(exited) - 1);
    assert_memory_equal(packet.bytes, exited, sizeof(exited) - 1);
}

static void the_largest_message_fits_into_a_packet(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        assert_true(WIRE_HEADER_SIZE + WIRE_TRACE_SIZE +
                        wire_record_size_max(wire_message_row(numbers[i])->body) <=
                    WIRE_PACKET_MAX);
}

/* A member that is in no row would be sent as garbage, or not at all. */
static void tables_cover_their_structs(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        const struct wire_record *record = wire_message_row(numbers[i])->body;
        size_t end = 0;

        for (size_t j = 0; j < record->count; j++) {
            const struct wire_field *field = &record->fields[j];
            size_t start = field->kind == WIRE_KIND_LIST ? field->count_offset : field->offset;

            assert_true(start >= end && start - end < 8);
            assert_true(field->offset - start <= 8);
            end = field->offset + field->size;
        }
        assert_true(end <= record->size && record->size - end < 8);
    }
}

static int decode_code(const uint8_t *bytes, size_t length, unsigned int version)
{
    struct error err = ERROR_INIT;
    struct wire_message message;

    return wire_message_decode(bytes, length, version, &message, &err) < 0 ? (int) err.code : 0;
}

static void other_versions_are_refused_as_such(void **state)
{
    const struct wire_message list = {.number = WIRE_MESSAGE_LIST, .request = 1};
    const struct wire_message hello = {
        .number = WIRE_MESSAGE_HELLO, .request = 1, .hello = {.version_min = 1, .version_max = 1}};
    struct error err = ERROR_INIT;
    struct wire_packet packet;

    (void) state;
    encode(&list, &packet);
    assert_int_equal(decode_code(packet.bytes, packet.length, VERSION), 0);
    assert_int_equal(decode_code(packet.bytes, packet.length, VERSION - 1), ERR_UPGRADE_REQUIRED);
    assert_int_equal(decode_code(packet.bytes, packet.length, VERSION + 1), ERR_UPGRADE_REQUIRED);
    assert_int_equal(decode_code(packet.bytes, packet.length, WIRE_VERSION_GREETING),
                     ERR_UPGRADE_REQUIRED);
    packet.bytes[0] = 0;
    assert_int_equal(decode_code(packet.bytes, packet.length, WIRE_VERSION_GREETING),
                     ERR_UPGRADE_REQUIRED);
    assert_int_equal(wire_message_encode(&list, WIRE_VERSION_GREETING, &packet, &err), -1);
    /* The greeting is the same in every version. */
    encode(&hello, &packet);
    assert_int_equal(decode_code(packet.bytes, packet.length, WIRE_VERSION_GREETING), 0);
    assert_int_equal(decode_code(packet.bytes, packet.length, 1), 0);
    packet.bytes[0] = 1;
    assert_int_equal(decode_code(packet.bytes, packet.length, 1), ERR_UPGRADE_REQUIRED);
}

static void unknown_numbers_are_refused_as_such(void **state)
{
    (void) state;
    for (unsigned int number = 0; number < 300; number++) {
        const uint8_t bytes[WIRE_HEADER_SIZE] = {1, 0, (uint8_t) number, (uint8_t) (number >> 8),
                                                 1};

        if (wire_message_row(number))
            continue;
        assert_int_equal(decode_code(bytes, sizeof(bytes), 1), ERR_NOT_IMPLEMENTED);
        assert_string_equal(wire_message_name(number), "an unknown message");
    }
    assert_null(wire_message_row(UINT32_MAX));
    assert_string_equal(wire_message_name(WIRE_MESSAGE_CREATE), "create");
}

static void only_events_go_without_a_request_number(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct fill fill = {.mode = FILL_LEAST, .seed = 1};
        struct error err = ERROR_INIT;
        struct wire_message message;
        struct wire_packet packet;

        fill_message(&fill, numbers[i], &message);
        encode(&message, &packet);
        assert_int_equal(message.request == 0, wire_message_row(numbers[i])->type == WIRE_EVENT);
        message.request = !message.request;
        assert_int_equal(wire_message_encode(&message, VERSION, &packet, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        packet.bytes[4] ^= 1;
        assert_int_equal(decode_code(packet.bytes, packet.length, VERSION), ERR_INVALID);
    }
}

static void requests_have_a_trace_and_nothing_else_has(void **state)
{
    static const struct id trace = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        bool has_one =
            wire_message_row(numbers[i])->type == WIRE_REQUEST && numbers[i] != WIRE_MESSAGE_HELLO;
        struct fill fill = {.mode = FILL_LEAST, .seed = 1};
        struct error err = ERROR_INIT;
        struct wire_message message, back;
        struct wire_packet with, without;

        fill_message(&fill, numbers[i], &message);
        encode(&message, &without);
        message.trace = trace;
        encode(&message, &with);
        assert_int_equal(with.length, without.length);
        assert_int_equal(memcmp(with.bytes, without.bytes, with.length) != 0, has_one);
        assert_ok(wire_message_decode(with.bytes, with.length, VERSION, &back, &err), &err);
        assert_string_equal(back.trace.text, has_one ? trace.text : "");
        if (!has_one)
            continue;
        with.bytes[WIRE_HEADER_SIZE] = 'A';
        assert_int_equal(decode_code(with.bytes, with.length, VERSION), ERR_INVALID);
        assert_int_equal(decode_code(with.bytes, WIRE_HEADER_SIZE + 5, VERSION), ERR_INVALID);
        (void) snprintf(message.trace.text, sizeof(message.trace.text), "no id");
        assert_int_equal(wire_message_encode(&message, VERSION, &with, &err), -1);
    }
}

static void what_a_message_is_about_is_known(void **state)
{
    struct wire_message message = {.number = WIRE_MESSAGE_KILL};

    (void) state;
    assert_ptr_equal(wire_message_subject(&message), &message.kill.id);
    message.number = WIRE_MESSAGE_STATS;
    assert_ptr_equal(wire_message_subject(&message), &message.stats.id);
    message.number = WIRE_MESSAGE_LIST;
    assert_null(wire_message_subject(&message));
    message.number = WIRE_MESSAGE_CREATE;
    assert_null(wire_message_subject(&message));
}

static void a_request_has_its_answer_and_a_failure(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        const struct wire_row *row = wire_message_row(numbers[i]);
        unsigned int taken = 0;

        if (row->type != WIRE_REQUEST) {
            assert_int_equal(row->answer, WIRE_MESSAGE_NONE);
            continue;
        }
        assert_int_equal(wire_message_row(row->answer)->type, WIRE_REPLY);
        for (size_t j = 0; j < ARRAY_COUNT(numbers); j++) {
            struct wire_message reply = {.number = numbers[j]};

            taken += wire_message_answers(numbers[i], &reply);
            assert_true(!wire_message_answers(numbers[i], &reply) ||
                        wire_message_row(numbers[j])->type == WIRE_REPLY);
        }
        assert_int_equal(taken, row->answer == WIRE_MESSAGE_DONE ? 1 : 2);
    }
}

static void success_must_bring_the_result(void **state)
{
    struct wire_message done = {.number = WIRE_MESSAGE_DONE, .done = {.code = "ok"}};

    (void) state;
    assert_true(wire_message_answers(WIRE_MESSAGE_FREEZE, &done));
    assert_false(wire_message_answers(WIRE_MESSAGE_CREATE, &done));
    assert_false(wire_message_answers(WIRE_MESSAGE_HELLO, &done));
    memcpy(done.done.code, "gone", sizeof("gone"));
    assert_true(wire_message_answers(WIRE_MESSAGE_CREATE, &done));
    assert_false(wire_message_answers(WIRE_MESSAGE_HELLO, &done));
}

static void descriptors_are_fixed_or_announced(void **state)
{
    const struct wire_message sockets = {.number = WIRE_MESSAGE_SOCKETS_MADE,
                                         .sockets_made = {.count = 7}};

    (void) state;
    assert_int_equal(wire_message_fds(&sockets), 7);
    assert_int_equal(wire_message_fds(&(struct wire_message){.number = WIRE_MESSAGE_CREATE}), 1);
    assert_int_equal(wire_message_fds(&(struct wire_message){.number = WIRE_MESSAGE_KEEPER_JOB}),
                     3);
    assert_int_equal(wire_message_fds(&(struct wire_message){.number = WIRE_MESSAGE_LIST}), 0);
    /* What comes to the launcher never depends on what the daemon announces. */
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        const struct wire_row *row = wire_message_row(numbers[i]);

        for (size_t j = 0; j < row->body->count; j++)
            assert_true(!row->body->fields[j].counts_fds || row->type == WIRE_REPLY);
    }
}

static void a_keeper_job_has_just_the_disks_it_speaks_of(void **state)
{
    static const struct disk_ref disk = {.id.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const struct disk_ref snapshot = {.set = DISK_OF_SNAPSHOT,
                                             .id.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const struct id other = {.text = "baaaaaaaaaaaaaaaaaaaaaaaaa"};
    const struct wire_keeper_job right[] = {
        {.job = DISK_JOB_DELETE, .on = disk},
        {.job = DISK_JOB_COPY, .on = snapshot, .target = other, .disk_bytes = 1},
        {.job = DISK_JOB_COPY, .on = snapshot, .target = disk.id},
        {.job = DISK_JOB_DIFF, .on = snapshot, .base = disk},
        {.job = DISK_JOB_PACK, .on = snapshot},
        {.job = DISK_JOB_PACK, .on = disk, .base = snapshot},
        {.job = DISK_JOB_UNPACK, .target = other, .disk_bytes = 1},
        {.job = DISK_JOB_UNARCHIVE},
        {.job = DISK_JOB_ARCHIVE, .on = disk, .image = "host"},
    };
    const struct wire_keeper_job wrong[] = {
        {.job = DISK_JOB_LIST},
        {.job = DISK_JOB_DELETE, .on = snapshot},
        {.job = DISK_JOB_DELETE, .on = disk, .target = other},
        {.job = DISK_JOB_MEASURE, .on = {.set = DISK_OF_SNAPSHOT}},
        {.job = DISK_JOB_MEASURE, .on = disk, .disk_bytes = 1},
        {.job = DISK_JOB_MEASURE, .on = disk, .base = snapshot},
        {.job = DISK_JOB_MEASURE, .on = disk, .image = "host"},
        {.job = DISK_JOB_COPY, .on = disk},
        {.job = DISK_JOB_COPY, .on = disk, .target = disk.id},
        {.job = DISK_JOB_DIFF, .on = disk},
        {.job = DISK_JOB_UNPACK},
        {.job = DISK_JOB_UNPACK, .on = disk, .target = other},
        {.job = DISK_JOB_UNARCHIVE, .on = disk},
        {.job = DISK_JOB_ARCHIVE, .on = disk},
        {.job = DISK_JOB_SCAN, .on = disk, .image = "Host"},
    };
    struct wire_message message = {.number = WIRE_MESSAGE_KEEPER_JOB, .request = 1};
    struct error err = ERROR_INIT;
    struct wire_packet packet;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(right); i++) {
        message.keeper_job = right[i];
        assert_ok(wire_message_encode(&message, VERSION, &packet, &err), &err);
    }
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        message.keeper_job = wrong[i];
        if (wire_message_encode(&message, VERSION, &packet, &err) == 0)
            fail_msg("case %zu was taken", i);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void fields_that_contradict_each_other_are_refused(void **state)
{
    static const struct id id = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    const struct wire_message wrong[] = {
        {.number = WIRE_MESSAGE_HELLO, .request = 1, .hello = {.version_min = 2, .version_max = 1}},
        {.number = WIRE_MESSAGE_HELLO, .request = 1, .hello = {.version_min = 0, .version_max = 1}},
        {.number = WIRE_MESSAGE_ADOPT, .request = 1, .adopt = {.id = id, .start_time = 1}},
        {.number = WIRE_MESSAGE_DONE, .request = 1, .done = {.code = "ok", .system = 1}},
        {.number = WIRE_MESSAGE_DONE, .request = 1, .done = {.code = "ok", .message = "why"}},
        {.number = WIRE_MESSAGE_LISTED, .request = 1, .listed = {.more = true}},
        {.number = WIRE_MESSAGE_SNAPSHOTS_LISTED, .request = 1, .snapshots_listed = {.more = true}},
        {.number = WIRE_MESSAGE_SNAPSHOTS_LISTED,
         .request = 1,
         .snapshots_listed = {.names = {.count = 2, .items = {{.id = id}, {.id = id}}}}},
        {.number = WIRE_MESSAGE_DISK_USAGE, .request = 1},
        {.number = WIRE_MESSAGE_DISK_USAGE,
         .request = 1,
         .disk_usage.disk = {.set = DISK_OF_SNAPSHOT}},
        {.number = WIRE_MESSAGE_LISTED,
         .request = 1,
         .listed = {.entries = {.count = 2, .items = {{.id = id}, {.id = id}}}}},
        {.number = WIRE_MESSAGE_EXITED,
         .exited = {.id = id, .ending = {.kind = ENDED_SIGNAL, .value = 0}}},
        {.number = WIRE_MESSAGE_EXITED,
         .exited = {.id = id, .ending = {.kind = ENDED_SIGNAL, .value = 65}}},
        {.number = WIRE_MESSAGE_EXITED,
         .exited = {.id = id, .ending = {.kind = ENDED_UNKNOWN, .value = 1}}},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct error err = ERROR_INIT;
        struct wire_packet packet;

        if (wire_message_encode(&wrong[i], VERSION, &packet, &err) == 0)
            fail_msg("case %zu was taken", i);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void the_newest_common_version_is_chosen(void **state)
{
    static const struct {
        uint16_t least, most;
        unsigned int chosen; /* 0: none */
    } cases[] = {{3, 3, 3}, {1, 9, 3}, {4, 9, 0}, {1, 2, 0}, {1, UINT16_MAX, 3}};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct wire_hello hello = {.version_min = cases[i].least,
                                         .version_max = cases[i].most};
        struct error err = ERROR_INIT;
        unsigned int version = 0;

        assert_int_equal(wire_version_choose(&hello, &version, &err), cases[i].chosen ? 0 : -1);
        assert_int_equal(version, cases[i].chosen);
        assert_int_equal(err.code, cases[i].chosen ? ERR_NONE : ERR_UPGRADE_REQUIRED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_comes_back_as_it_was),
        cmocka_unit_test(no_other_length_is_taken),
        cmocka_unit_test(flipped_bits_are_refused_or_another_message),
        cmocka_unit_test(the_bytes_are_what_the_specification_says),
        cmocka_unit_test(the_largest_message_fits_into_a_packet),
        cmocka_unit_test(tables_cover_their_structs),
        cmocka_unit_test(other_versions_are_refused_as_such),
        cmocka_unit_test(unknown_numbers_are_refused_as_such),
        cmocka_unit_test(only_events_go_without_a_request_number),
        cmocka_unit_test(requests_have_a_trace_and_nothing_else_has),
        cmocka_unit_test(what_a_message_is_about_is_known),
        cmocka_unit_test(a_request_has_its_answer_and_a_failure),
        cmocka_unit_test(success_must_bring_the_result),
        cmocka_unit_test(descriptors_are_fixed_or_announced),
        cmocka_unit_test(a_keeper_job_has_just_the_disks_it_speaks_of),
        cmocka_unit_test(fields_that_contradict_each_other_are_refused),
        cmocka_unit_test(the_newest_common_version_is_chosen),
    };

    return cmocka_run_group_tests_name("wire_message", tests, NULL, NULL);
}
