#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "load/echo_reader.h"

#define MESSAGE_LENGTH 300

static void fill(unsigned char *message, uint64_t number)
{
    for (size_t i = 0; i < MESSAGE_LENGTH; i++)
        message[i] = (unsigned char) (i * 7);
    memcpy(message, &number, sizeof(number));
}

/* The message in frames of at most `part` bytes, part < 65536. Returns the length written. */
static size_t write_frames(unsigned char *wire, const unsigned char *message, size_t part)
{
    size_t used = 0;

    for (size_t done = 0; done < MESSAGE_LENGTH;) {
        size_t length = MESSAGE_LENGTH - done < part ? MESSAGE_LENGTH - done : part;
        bool last = done + length == MESSAGE_LENGTH;

        wire[used++] = (unsigned char) ((last ? 0x80 : 0) | (done == 0 ? 0x02 : 0));
        if (length < 126) {
            wire[used++] = (unsigned char) length;
        } else {
            wire[used++] = 126;
            wire[used++] = (unsigned char) (length >> 8);
            wire[used++] = (unsigned char) length;
        }
        memcpy(wire + used, message + done, length);
        used += length;
        done += length;
    }
    return used;
}

static void read_in_steps(struct echo_reader *reader, const unsigned char *wire, size_t length,
                          size_t step)
{
    for (size_t used = 0; used < length; used += step) {
        size_t piece = length - used < step ? length - used : step;

        assert_false(reader->done);
        assert_int_equal(echo_reader_feed(reader, wire + used, piece), piece);
    }
}

static void every_cut_into_frames_and_pieces_reads_the_same(void **state)
{
    unsigned char message[MESSAGE_LENGTH], wire[MESSAGE_LENGTH * 4];
    struct echo_reader reader;

    (void) state;
    fill(message, 77);
    for (size_t part = 1; part <= MESSAGE_LENGTH; part++) {
        size_t length = write_frames(wire, message, part);

        for (size_t step = 1; step <= length; step += 1 + step / 8) {
            echo_reader_begin(&reader, message, MESSAGE_LENGTH);
            read_in_steps(&reader, wire, length, step);
            assert_true(reader.done);
            assert_false(reader.differs);
            assert_int_equal(reader.number, 77);
        }
    }
}

static void a_changed_byte_is_seen(void **state)
{
    unsigned char message[MESSAGE_LENGTH], wire[MESSAGE_LENGTH * 4];
    struct echo_reader reader;
    size_t length;

    (void) state;
    fill(message, 1);
    length = write_frames(wire, message, 100);
    wire[length - 1] ^= 1;
    echo_reader_begin(&reader, message, MESSAGE_LENGTH);
    read_in_steps(&reader, wire, length, 11);
    assert_true(reader.differs);
}

static void a_longer_or_shorter_message_is_seen(void **state)
{
    unsigned char message[MESSAGE_LENGTH], wire[MESSAGE_LENGTH * 4];
    struct echo_reader reader;
    size_t length;

    (void) state;
    fill(message, 1);
    length = write_frames(wire, message, 100);
    echo_reader_begin(&reader, NULL, MESSAGE_LENGTH - 1);
    read_in_steps(&reader, wire, length, 11);
    assert_true(reader.differs);
    echo_reader_begin(&reader, NULL, MESSAGE_LENGTH + 1);
    read_in_steps(&reader, wire, length, 11);
    assert_true(reader.differs);
}

static void frames_out_of_order_are_refused(void **state)
{
    static const unsigned char wrong[][2] = {
        {0x89, 0x00}, /* ping */
        {0x88, 0x00}, /* close */
        {0x80, 0x01}, /* continuation of nothing */
        {0x82, 0x81}, /* masked by the server */
        {0xc2, 0x01}, /* compressed */
    };
    struct echo_reader reader;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        echo_reader_begin(&reader, NULL, 1);
        assert_int_equal(echo_reader_feed(&reader, wrong[i], 2), -EPROTO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_into_frames_and_pieces_reads_the_same),
        cmocka_unit_test(a_changed_byte_is_seen),
        cmocka_unit_test(a_longer_or_shorter_message_is_seen),
        cmocka_unit_test(frames_out_of_order_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
