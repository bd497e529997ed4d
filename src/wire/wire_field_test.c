/* The codec on a struct with one field of every kind, byte by byte. */
#include "wire/wire_testing.h"

#define COLORS(W)                                                                                  \
    W(RED, "red", "")                                                                              \
    W(GREEN, "green", "")                                                                          \
    W(BLUE, "blue", "")
WIRE_ENUM(color, COLORS);
WIRE_WORDS(color, COLORS);

#define POINT_FIELDS(F, S)                                                                         \
    F(S, U8, x, 9, "")                                                                             \
    F(S, U8, y, 9, "")
WIRE_STRUCT(point, POINT_FIELDS);
WIRE_LIST(point, 3);

#define SAMPLE_FIELDS(F, S)                                                                        \
    F(S, U16, port, UINT16_MAX, "")                                                                \
    F(S, U32, pid, 1000, "")                                                                       \
    F(S, U64, bytes, UINT64_MAX, "")                                                               \
    F(S, BOOL, yes, , "")                                                                          \
    F(S, ENUM, color, color, "")                                                                   \
    F(S, FLAGS, colors, color, "")                                                                 \
    F(S, COUNT, count, 4, "")                                                                      \
    F(S, ID, id, , "")                                                                             \
    F(S, ID_OR_NONE, other, , "")                                                                  \
    F(S, NAME, name, , "")                                                                         \
    F(S, NAME_OR_NONE, nickname, , "")                                                             \
    F(S, TEXT, text, 5, "")                                                                        \
    F(S, PATH, path, , "")                                                                         \
    F(S, RECORD, point, point, "")                                                                 \
    F(S, LIST, points, point, "")
WIRE_STRUCT(sample, SAMPLE_FIELDS);

/* No point lies on the diagonal. */
static int check_point(const void *object, struct error *err)
{
    const struct wire_point *point = object;

    return point->x == point->y ? error_set(err, ERR_INVALID, 0, "diagonal") : 0;
}

WIRE_RECORD(point, POINT_FIELDS, check_point);
WIRE_RECORD(sample, SAMPLE_FIELDS, NULL);

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct wire_sample sample = {
    .port = 0x1234,
    .pid = 1000,
    .bytes = UINT64_C(0x0102030405060708),
    .yes = true,
    .color = BLUE,
    .colors = WIRE_BIT(RED) | WIRE_BIT(BLUE),
    .count = 4,
    .id = {.text = ID_A},
    .name = "n",
    .text = "hi",
    .path = "/p",
    .point = {.x = 1, .y = 2},
    .points = {.count = 2, .items = {{.x = 3, .y = 4}, {.x = 5, .y = 6}}},
};

/* Where the fields begin, in bytes. */
enum {
    AT_PORT = 0,
    AT_PID = 2,
    AT_BYTES = 6,
    AT_YES = 14,
    AT_COLOR = 15,
    AT_COLORS = 16,
    AT_COUNT = 20,
    AT_ID = 21,
    AT_OTHER = 47,
    AT_NAME = 73,
    AT_NICKNAME = 76,
    AT_TEXT = 78,
    AT_PATH = 82,
    AT_POINT = 86,
    AT_POINTS = 88,
    AT_END = 94,
};

static const uint8_t expected[AT_END] = {
    0x34, 0x12, 0xe8, 0x03, 0,   0,   8,   7,   6,   5,   4,   3,   2,   1,   1,   2,
    5,    0,    0,    0,    4,   'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a',
    'a',  'a',  'a',  'a',  'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', [AT_NAME] = 1,
    0,    'n',  0,    0,    2,   0,   'h', 'i', 2,   0,   '/', 'p', 1,   2,   2,   0,
    3,    4,    5,    6,
};

struct buffer {
    size_t length;
    uint8_t bytes[256];
};

static int encode(const struct wire_sample *from, struct buffer *buffer, struct error *err)
{
    struct wire_writer writer = {.at = buffer->bytes, .end = buffer->bytes + sizeof(buffer->bytes)};
    int result = wire_record_encode(&wire_sample_record, from, &writer, err);

    buffer->length = (size_t) (writer.at - buffer->bytes);
    return result;
}

static int decode(const uint8_t *bytes, size_t length, struct wire_sample *to, struct error *err)
{
    struct wire_reader reader = {.at = bytes, .end = bytes + length};

    return wire_record_decode(&wire_sample_record, &reader, to, err);
}

static void every_kind_has_its_bytes(void **state)
{
    struct error err = ERROR_INIT;
    struct wire_sample back;
    struct buffer buffer;

    (void) state;
    assert_ok(encode(&sample, &buffer, &err), &err);
    assert_int_equal(buffer.length, sizeof(expected));
    assert_memory_equal(buffer.bytes, expected, sizeof(expected));
    memset(&back, 0xff, sizeof(back));
    assert_ok(decode(expected, sizeof(expected), &back, &err), &err);
    assert_int_equal(back.port, 0x1234);
    assert_int_equal(back.pid, 1000);
    assert_true(back.bytes == sample.bytes);
    assert_true(back.yes);
    assert_int_equal(back.color, BLUE);
    assert_int_equal(back.colors, 5);
    assert_int_equal(back.count, 4);
    assert_string_equal(back.id.text, ID_A);
    assert_string_equal(back.other.text, "");
    assert_string_equal(back.name, "n");
    assert_string_equal(back.nickname, "");
    assert_string_equal(back.text, "hi");
    assert_string_equal(back.path, "/p");
    assert_int_equal(back.point.y, 2);
    assert_int_equal(back.points.count, 2);
    assert_int_equal(back.points.items[1].x, 5);
    assert_int_equal(back.points.items[2].x, 0);
}

static void wrong_bytes_are_refused_with_the_field(void **state)
{
    static const struct {
        size_t at;
        uint8_t byte;
        const char *field;
    } cases[] = {
        {AT_PID, 0xe9, "pid"},
        {AT_YES, 2, "yes"},
        {AT_COLOR, 3, "color"},
        {AT_COLORS, 8, "colors"},
        {AT_COLORS + 3, 1, "colors"},
        {AT_COUNT, 0, "count"},
        {AT_COUNT, 5, "count"},
        {AT_ID, 'A', "id"},
        {AT_ID, 0, "id"},
        {AT_ID + 25, 'b', "id"},
        {AT_ID + 5, 0, "id"},
        {AT_OTHER, 'a', "other"},
        {AT_OTHER + 25, 1, "other"},
        {AT_NAME, 0, "name"},
        {AT_NAME + 1, 1, "name: 257 characters"},
        {AT_NAME + 2, 'N', "name"},
        {AT_NAME + 2, 0, "name"},
        {AT_NICKNAME, 1, "nickname"},
        {AT_NICKNAME + 1, 1, "nickname: 256 characters"},
        {AT_TEXT, 6, "text: 6 characters"},
        {AT_TEXT + 2, 0, "text"},
        {AT_TEXT + 3, '\n', "text"},
        {AT_TEXT + 2, 0x80, "text"},
        {AT_PATH + 3, '/', "path"},
        {AT_PATH + 3, '.', "path"},
        {AT_PATH + 2, 'p', "path"},
        {AT_POINT, 10, "point: x"},
        {AT_POINT, 2, "point: diagonal"},
        {AT_POINTS, 4, "points: 4"},
        {AT_POINTS + 1, 1, "points"},
        {AT_POINTS + 4, 6, "points: item 1: diagonal"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = ERROR_INIT;
        struct wire_sample back;
        uint8_t bytes[sizeof(expected)];

        memcpy(bytes, expected, sizeof(bytes));
        bytes[cases[i].at] = cases[i].byte;
        if (decode(bytes, sizeof(bytes), &back, &err) == 0)
            fail_msg("case %zu (%s) was taken", i, cases[i].field);
        assert_int_equal(err.code, ERR_INVALID);
        if (strncmp(err.message, cases[i].field, strlen(cases[i].field)) != 0)
            fail_msg("case %zu: '%s' instead of '%s...'", i, err.message, cases[i].field);
    }
}

static void every_cut_is_noticed(void **state)
{
    (void) state;
    for (size_t length = 0; length < sizeof(expected); length++) {
        AUTO(free) uint8_t *exact = malloc(length + 1);
        struct error err = ERROR_INIT;
        struct wire_sample back;

        /* At the end of an allocation, so that ASan sees a byte too far. */
        memcpy(exact + 1, expected, length);
        assert_int_equal(decode(exact + 1, length, &back, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void invalid_objects_are_not_written(void **state)
{
    struct wire_sample wrong[11];
    struct buffer buffer;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        wrong[i] = sample;
    wrong[0].pid = 1001;
    wrong[1].color = (enum wire_color) wire_color_count;
    wrong[2].colors = 8;
    wrong[3].count = 0;
    wrong[4].id.text[3] = '!';
    memset(wrong[5].id.text, 'a', sizeof(wrong[5].id.text));
    memset(wrong[6].text, 'a', sizeof(wrong[6].text));
    wrong[7].points.count = 4;
    wrong[8].points.items[1].x = 6;
    wrong[9].name[0] = '\0';
    wrong[10].nickname[0] = 'N';
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct error err = ERROR_INIT;

        assert_int_equal(encode(&wrong[i], &buffer, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void no_byte_is_written_past_the_end(void **state)
{
    (void) state;
    for (size_t room = 0; room < sizeof(expected); room++) {
        AUTO(free) uint8_t *exact = malloc(room + 1);
        struct wire_writer writer = {.at = exact + 1, .end = exact + 1 + room};
        struct error err = ERROR_INIT;

        assert_int_equal(wire_record_encode(&wire_sample_record, &sample, &writer, &err), -1);
        assert_int_equal(err.code, ERR_TOO_LARGE);
        assert_true(writer.at <= writer.end);
    }
}

static void the_largest_size_is_known(void **state)
{
    (void) state;
    assert_int_equal(wire_record_size_max(&wire_sample_record),
                     2 + 4 + 8 + 1 + 1 + 4 + 1 + 26 + 26 + 2 * (2 + WIRE_NAME_MAX) + (2 + 5) +
                         (2 + WIRE_PATH_MAX) + 2 + (2 + 3 * 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_bytes),
        cmocka_unit_test(wrong_bytes_are_refused_with_the_field),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(invalid_objects_are_not_written),
        cmocka_unit_test(no_byte_is_written_past_the_end),
        cmocka_unit_test(the_largest_size_is_known),
    };

    return cmocka_run_group_tests_name("wire_field", tests, NULL, NULL);
}
