#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "load/response.h"

static const struct sample {
    const char *text;
    int status;
    uint64_t body_bytes;
} samples[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, 5},
    {"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", 200, 0},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, 0},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, 0},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Too Large\r\nContent-Length: 1\r\n\r\nx", 413, 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1A;x=y\r\n"
     "abcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: 1\r\n\r\n",
     200, 31},
};

/* Feed `text` cut into pieces of `step` bytes. Returns the number of bytes used. */
static size_t feed_in_steps(struct response *response, const char *text, size_t length, size_t step)
{
    size_t used = 0;

    response_begin(response);
    while (used < length) {
        size_t piece = length - used < step ? length - used : step;
        ssize_t part = response_feed(response, text + used, piece);

        assert_true(part >= 0);
        used += (size_t) part;
        if ((size_t) part < piece)
            break;
    }
    return used;
}

static void every_way_of_cutting_gives_the_same_response(void **state)
{
    struct response response;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        size_t length = strlen(samples[i].text);

        for (size_t step = 1; step <= length; step++) {
            assert_int_equal(feed_in_steps(&response, samples[i].text, length, step), length);
            assert_true(response_is_done(&response));
            assert_int_equal(response.status, samples[i].status);
            assert_int_equal(response.body_bytes, samples[i].body_bytes);
        }
    }
}

static void bytes_after_the_end_are_left_alone(void **state)
{
    struct response response;
    char text[512];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        size_t length = strlen(samples[i].text);

        (void) snprintf(text, sizeof(text), "%sHTTP/1.1 200 OK\r\n", samples[i].text);
        assert_int_equal(feed_in_steps(&response, text, strlen(text), strlen(text)), length);
        assert_true(response_is_done(&response));
    }
}

static void a_cut_response_is_not_done(void **state)
{
    struct response response;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        for (size_t length = 0; length < strlen(samples[i].text); length++) {
            (void) feed_in_steps(&response, samples[i].text, length, 7);
            assert_false(response_is_done(&response));
        }
    }
}

static void body_bytes_can_be_skipped_unseen(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    struct response response;

    (void) state;
    response_begin(&response);
    assert_int_equal(response_skippable(&response), 0);
    assert_int_equal(response_feed(&response, head, strlen(head)), strlen(head));
    assert_int_equal(response_skippable(&response), 1000);
    response_skip(&response, 999);
    assert_false(response_is_done(&response));
    response_skip(&response, 1);
    assert_true(response_is_done(&response));
    assert_int_equal(response_skippable(&response), 0);
    assert_int_equal(response.body_bytes, 1000);
}

static void what_is_not_a_framed_response_is_refused(void **state)
{
    static const char *const wrong[] = {
        "HTTP/1.0 200 OK\r\n",
        "SSH-2.0\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    };
    struct response response;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        response_begin(&response);
        assert_int_equal(response_feed(&response, wrong[i], strlen(wrong[i])), -EPROTO);
    }
}

static void an_endless_line_is_refused(void **state)
{
    struct response response;
    char line[RESPONSE_LINE_MAX + 1];

    (void) state;
    memset(line, 'a', sizeof(line));
    response_begin(&response);
    assert_int_equal(response_feed(&response, line, sizeof(line)), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_cutting_gives_the_same_response),
        cmocka_unit_test(bytes_after_the_end_are_left_alone),
        cmocka_unit_test(a_cut_response_is_not_done),
        cmocka_unit_test(body_bytes_can_be_skipped_unseen),
        cmocka_unit_test(what_is_not_a_framed_response_is_refused),
        cmocka_unit_test(an_endless_line_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
