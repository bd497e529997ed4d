/* What a shell is given to run, and whether it is still at it. */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/session/session_shell_internal.h"

/* How soon it is looked whether a shell still is at what it was given; then ever more rarely. */
#define DOUBT_MIN_MS 500
#define DOUBT_MAX_MS 8000

void session_shell_write(struct session_shell *shell)
{
    struct watch *watch = &shell->lines[LINE_INPUT].watch;
    ssize_t sent;

    while (watch->open && shell->sent < shell->script.length) {
        sent =
            write(watch->fd, shell->script.data + shell->sent, shell->script.length - shell->sent);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (sent < 0)
            return; /* it is gone: its end will be told */
        shell->sent += (size_t) sent;
        shell->written += (size_t) sent;
    }
    if (shell->sent < shell->script.length) {
        watch_for(watch, UV_WRITABLE);
        return;
    }
    watch_for(watch, 0);
    text_done(&shell->script);
    shell->sent = 0;
}

void session_shell_input_ready(struct watch *watch)
{
    session_shell_write(CONTAINER_OF(watch, struct shell_line, watch)->shell);
}

void session_shell_run(struct session_shell *shell, struct text *script, uint64_t serial,
                       unsigned int sections)
{
    shell->busy = true;
    shell->spoiled = false;
    shell->serial = serial;
    shell->sections = sections;
    shell->written_before = shell->written;
    text_append_bytes(&shell->script, text_string(script), script->length);
    text_done(script);
    session_shell_write(shell);
    shell->doubt_ms = DOUBT_MIN_MS;
    deadline_set(&shell->doubt, shell->doubt_ms);
}

int session_shell_unread_input(const struct session_shell *shell)
{
    int unread = 0;

    return ioctl(shell->lines[LINE_INPUT].watch.fd, FIONREAD, &unread) < 0 ? -errno : unread;
}

/* `set -n`, `set -r`, a function `command`, a trap that skips everything: the shell has passed by
 * what it was given, and would be waited for for ever. Only of bash it can be known: it reads byte
 * by byte, and the line behind a script (session_script.h) not before that is done. */
static bool shell_input_is_lost(struct session_shell *shell)
{
    if (session_shell_dialect(shell) != SESSION_BASH || shell->script.length ||
        session_shell_unread_input(shell) != 0)
        return false;
    session_shell_read_channel(shell); /* the report came first */
    return !shell->reported;
}

void session_shell_doubt_due(struct deadline *deadline)
{
    struct session_shell *shell = CONTAINER_OF(deadline, struct session_shell, doubt);

    if (!shell->busy || shell->reported || shell->ended || shell->killed)
        return;
    if (shell_input_is_lost(shell)) {
        session_shell_kill(shell);
        return;
    }
    if (shell->doubt_ms < DOUBT_MAX_MS)
        shell->doubt_ms *= 2;
    deadline_set(&shell->doubt, shell->doubt_ms);
}
