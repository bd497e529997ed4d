#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/bridge/bridge_internal.h"
#include "base/id.h"

#define LINE_MAX_TEST ((size_t) 4096)

static void plain_arguments_stay_as_they_are(void **state)
{
    static const char *const arguments[] = {"/bin/ls", "-la", "--color=auto", "a@b:%+,.x"};
    AUTO(text) struct text line = TEXT_INIT(LINE_MAX_TEST);

    (void) state;
    bridge_command_write(&line, arguments, ARRAY_COUNT(arguments));
    assert_string_equal(text_string(&line), "/bin/ls -la --color=auto a@b:%+,.x");
}

static void others_are_quoted(void **state)
{
    static const char *const arguments[] = {"sh", "", "a b", "it's", "a\\b", "x\ny\r\tz", "~", "_"};
    AUTO(text) struct text line = TEXT_INIT(LINE_MAX_TEST);

    (void) state;
    bridge_command_write(&line, arguments, ARRAY_COUNT(arguments));
    assert_string_equal(text_string(&line),
                        "sh $'' $'a b' $'it\\'s' $'a\\\\b' $'x\\ny\\r\\tz' $'~' $'_'");
}

/* What bash makes of a line: its arguments, each ended by a NUL. */
static size_t ask_bash(const char *line, char *answer, size_t size)
{
    size_t length = 0;
    ssize_t count;
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        (void) dup2(ends[1], STDOUT_FILENO);
        (void) execlp("bash", "bash", "-c", "eval \"printf '%s\\0' $1\"", "bash", line, NULL);
        _exit(99);
    }
    (void) close(ends[1]);
    while ((count = read(ends[0], answer + length, size - length)) > 0)
        length += (size_t) count;
    (void) close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return length;
}

static size_t random_argument(char *argument, size_t maximum)
{
    static const char bytes[] = "ab'\"\\$`!*?[]{}()<>|&;#~ \t\n\r\x01\x7f%=-./_\xc3\xa9";
    uint8_t length, choice;

    random_bytes(&length, 1);
    length = (uint8_t) (length % maximum);
    for (size_t i = 0; i < length; i++) {
        random_bytes(&choice, 1);
        argument[i] = bytes[choice % (sizeof(bytes) - 1)];
    }
    argument[length] = '\0';
    return length;
}

static void bash_reads_the_same_arguments(void **state)
{
    (void) state;
    for (int round = 0; round < 20; round++) {
        AUTO(text) struct text line = TEXT_INIT(LINE_MAX_TEST);
        AUTO(text) struct text wanted = TEXT_INIT(LINE_MAX_TEST);
        char storage[8][24], answer[LINE_MAX_TEST];
        const char *arguments[8];
        size_t length;

        for (size_t i = 0; i < ARRAY_COUNT(arguments); i++) {
            length = random_argument(storage[i], sizeof(storage[i]));
            arguments[i] = storage[i];
            text_append_bytes(&wanted, storage[i], length + 1);
        }
        bridge_command_write(&line, arguments, ARRAY_COUNT(arguments));
        assert_null(strchr(text_string(&line), '\n'));
        length = ask_bash(text_string(&line), answer, sizeof(answer));
        assert_int_equal(length, wanted.length);
        assert_memory_equal(answer, wanted.data, length);
    }
}

static void only_a_path_is_surely_a_program(void **state)
{
    (void) state;
    assert_true(bridge_command_is_program("/bin/sh"));
    assert_true(bridge_command_is_program("./run"));
    assert_false(bridge_command_is_program("cd"));
    assert_false(bridge_command_is_program(""));
    assert_false(bridge_command_is_program("PATH=/bin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_arguments_stay_as_they_are),
        cmocka_unit_test(others_are_quoted),
        cmocka_unit_test(bash_reads_the_same_arguments),
        cmocka_unit_test(only_a_path_is_surely_a_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
