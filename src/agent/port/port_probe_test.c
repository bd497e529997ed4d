#include <errno.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/port/port_probe.h"
#include "base/auto.h"

static void a_status_is_read_from_its_line(void **state)
{
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\n", 200},
        {"HTTP/1.0 404\r\n", 404},
        {"HTTP/1.1 503", 503},
        {"HTTP/1.1 50", -EAGAIN},
        {"", -EAGAIN},
        {"HTTP/1.1 ", -EAGAIN},
        {"SSH-2.0-OpenSSH", -EPROTO},
        {"HTTP/1.1 2x0 OK", -EPROTO},
        {"HTTP/1.1 099", -EPROTO},
        {"HTTP/x", -EPROTO},
        {"http/1.1 200", -EPROTO},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(port_probe_parse_status(rows[i].text, strlen(rows[i].text)),
                         rows[i].status);
}

/* However an answer is cut, it is not decided wrongly before it is whole. */
static void a_cut_status_is_waited_for(void **state)
{
    static const char text[] = "HTTP/1.1 418";

    (void) state;
    for (size_t length = 0; length < sizeof(text) - 1; length++)
        assert_int_equal(port_probe_parse_status(text, length), -EAGAIN);
    assert_int_equal(port_probe_parse_status(text, sizeof(text) - 1), 418);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_read_from_its_line),
        cmocka_unit_test(a_cut_status_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
