/* What a shell writes: passed on as it comes, and counted where a report or the end waits for it.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/session/session_shell_internal.h"

/* Output that belongs before a report or the end is counted then: a background job that never stops
 * writing keeps nobody. */
static bool is_counting(const struct session_shell *shell)
{
    return shell->reported || shell->ended;
}

static struct watch *output_watch(struct session_shell *shell, size_t which)
{
    return &shell->lines[LINE_STDOUT + which].watch;
}

void session_shell_watch_outputs(struct session_shell *shell)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        bool wanted = !shell->paused && (!is_counting(shell) || shell->left[i]);

        watch_for(output_watch(shell, i), wanted ? UV_READABLE : 0);
    }
}

void session_shell_count_output(struct session_shell *shell)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        int waiting = 0;

        if (output_watch(shell, i)->open &&
            ioctl(output_watch(shell, i)->fd, FIONREAD, &waiting) < 0)
            waiting = 0;
        shell->left[i] = (size_t) waiting;
    }
}

/* Returns whether there may be more to read right now. */
static bool shell_output_read_some(struct session_shell *shell, size_t which)
{
    struct watch *watch = output_watch(shell, which);
    char *buffer = shell->agent->loop.scratch;
    bool counting = is_counting(shell);
    size_t wanted = counting && shell->left[which] < SESSION_SHELL_READ_SIZE
                        ? shell->left[which]
                        : SESSION_SHELL_READ_SIZE;
    ssize_t got = wanted ? read(watch->fd, buffer, wanted) : 0;

    if (got < 0 && errno == EAGAIN)
        shell->left[which] = 0; /* what was counted, somebody else has read */
    if (!wanted || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (got <= 0) {
        shell->left[which] = 0;
        watch_close(watch); /* nobody has it open any more */
        session_shell_settle_soon(shell);
        return false;
    }
    if (counting)
        shell->left[which] -= (size_t) got;
    shell->events->on_output(shell, shell->owner, (enum exec_output) which, buffer, (size_t) got);
    return (size_t) got == SESSION_SHELL_READ_SIZE || (counting && shell->left[which]);
}

static void read_output(struct session_shell *shell, size_t which)
{
    for (int i = 0; i < SESSION_SHELL_READS; i++) {
        if (!output_watch(shell, which)->open || shell->paused ||
            !shell_output_read_some(shell, which))
            break;
    }
    if (is_counting(shell) && !shell->left[which]) {
        session_shell_watch_outputs(shell);
        session_shell_settle_soon(shell);
    }
}

void session_shell_output_ready(struct watch *watch)
{
    struct shell_line *line = CONTAINER_OF(watch, struct shell_line, watch);

    read_output(line->shell, (size_t) (line - line->shell->lines) - LINE_STDOUT);
}

/* Most output is short: then it is all there already, and no further turn is needed. */
void session_shell_read_left(struct session_shell *shell)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        if (shell->left[i])
            read_output(shell, i);
    }
    session_shell_watch_outputs(shell);
}

void session_shell_pause(struct session_shell *shell)
{
    shell->paused = true;
    session_shell_watch_outputs(shell);
}

void session_shell_resume(struct session_shell *shell)
{
    shell->paused = false;
    session_shell_watch_outputs(shell);
    session_shell_settle_soon(shell);
}

bool session_shell_has_output_left(const struct session_shell *shell)
{
    return shell->left[EXEC_STDOUT] || shell->left[EXEC_STDERR];
}
