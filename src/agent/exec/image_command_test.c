#include <stdlib.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/exec/image_command.h"
#include "base/auto.h"

static void words_come_a_line_each(void **state)
{
    AUTO(free) const char **words = image_command_read("/bin/sh\n-c\n\necho \\\\ a\\nb\n");

    (void) state;
    assert_non_null(words);
    assert_string_equal(words[0], "/bin/sh");
    assert_string_equal(words[1], "-c");
    assert_string_equal(words[2], "");
    assert_string_equal(words[3], "echo \\ a\nb");
    assert_string_equal(words[4], "");
    assert_null(words[5]);
}

static void what_is_no_command_is_none(void **state)
{
    static const char *const none[] = {NULL, "", "\nx", "a\\", "a\\x", "a\nb\\"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(none); i++)
        assert_null(image_command_read(none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_come_a_line_each),
        cmocka_unit_test(what_is_no_command_is_none),
    };

    return cmocka_run_group_tests_name("image_command", tests, NULL, NULL);
}
