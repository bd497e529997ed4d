/* The channel of a shell: what it answers to questions, and that a script is done. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/session/session_shell_internal.h"
#include "base/number.h"

#define EXIT_STATUS_MAX 255
/* Longest report: two numbers. */
#define REPORT_MAX 64

/* "<serial> <status>\n". Returns whether it is that of what runs. */
static bool shell_report_read_report(struct session_shell *shell, const char *line)
{
    size_t digits = strspn(line, "0123456789");
    uint64_t serial;
    int64_t status;

    if (number_parse_digits(line, digits, UINT64_MAX, &serial) < 0 || line[digits] != ' ' ||
        number_parse(line + digits + 1, SESSION_NO_DIRECTORY, EXIT_STATUS_MAX, &status) < 0 ||
        serial != shell->serial)
        return false;
    shell->status = (int) status;
    return true;
}

/* Behind the sections a line is a report. Others are of nobody: what runs in a session can write
 * there if it tries hard. */
static void shell_report_take_line(struct session_shell *shell, size_t start, size_t end)
{
    char line[REPORT_MAX];
    size_t length = end - start;

    if (length >= sizeof(line) || !shell->busy || shell->reported)
        return;
    memcpy(line, shell->answer.data + start, length);
    line[length] = '\0';
    if (!shell_report_read_report(shell, line))
        return;
    shell->answer.length = start; /* the sections alone */
    shell->reported = true;
    session_shell_count_output(shell);
    session_shell_read_left(shell);
    session_shell_settle_soon(shell);
}

/* New bytes begin at `from`. */
static void take_answer(struct session_shell *shell, size_t from)
{
    struct text *answer = &shell->answer;

    while (!shell->reported && from < answer->length) {
        size_t start = from;
        char mark = shell->sections ? '\0' : '\n';
        const char *end = memchr(answer->data + from, mark, answer->length - from);

        if (!end)
            break;
        from = (size_t) (end + 1 - answer->data);
        if (shell->sections) {
            shell->sections--;
            continue;
        }
        while (start && answer->data[start - 1] != '\0' && answer->data[start - 1] != '\n')
            start--;
        shell_report_take_line(shell, start, from - 1);
    }
}

/* Too much: what was asked for is lost, but its report is still waited for. */
static void add_answer(struct session_shell *shell, const char *bytes, size_t length)
{
    size_t before = shell->answer.length;

    if (before + length > SESSION_ANSWER_MAX) {
        shell->spoiled = true;
        text_clear(&shell->answer);
        before = 0;
    }
    text_append_bytes(&shell->answer, bytes, length);
    take_answer(shell, before);
}

void session_shell_read_channel(struct session_shell *shell)
{
    struct watch *watch = &shell->lines[LINE_CHANNEL].watch;

    for (int i = 0; i < SESSION_SHELL_READS && watch->open; i++) {
        ssize_t got = read(watch->fd, shell->agent->loop.scratch, SESSION_SHELL_READ_SIZE);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            watch_close(watch);
            return;
        }
        if (shell->busy && !shell->reported)
            add_answer(shell, shell->agent->loop.scratch, (size_t) got);
    }
}

void session_shell_channel_ready(struct watch *watch)
{
    session_shell_read_channel(CONTAINER_OF(watch, struct shell_line, watch)->shell);
}
