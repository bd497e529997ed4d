#include "agent/session/session_script.h"

/* Where the shell keeps its own descriptors: above what scripts use. POSIX shells know only digits.
 */
struct session_script_places {
    const char *begin;
    const char *output;  /* redirections of a command */
    const char *channel; /* a redirection to the channel */
};

static const struct session_script_places places[] = {
    [SESSION_BASH] = {.begin = "exec 60>&1 61>&2 62>&3 3>&-\n",
                      .output = " </dev/null >&60 2>&61 60>&- 61>&- 62>&-",
                      .channel = " >&62"},
    [SESSION_SH] = {.begin = "exec 7>&1 8>&2 9>&3 3>&-\n",
                    .output = " </dev/null >&7 2>&8 7>&- 8>&- 9>&-",
                    .channel = " >&9"},
};

/* --- quoting -------------------------------------------------------------------------------- */

static bool is_plain(unsigned char byte)
{
    return (byte >= ' ' && byte < 0x7f && byte != '\'' && byte != '\\') || byte == '\n' ||
           byte == '\t';
}

/* $'...' in ASCII. */
static void append_ascii_quoted(struct text *script, const char *text)
{
    text_append(script, "$'");
    while (*text) {
        size_t length = 0;

        while (is_plain((unsigned char) text[length]))
            length++;
        text_append_bytes(script, text, length);
        text += length;
        if (*text)
            text_format(script, "\\%03o", (unsigned int) (unsigned char) *text++);
    }
    text_append_char(script, '\'');
}

static void append_quoted(enum session_dialect dialect, struct text *script, const char *text)
{
    if (dialect == SESSION_BASH) {
        append_ascii_quoted(script, text);
        return;
    }
    text_append_char(script, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            text_append(script, "'\\''");
        else
            text_append_char(script, *text);
    }
    text_append_char(script, '\'');
}

/* --- the frame ------------------------------------------------------------------------------ */

/* The empty line makes bash forget the state in which the syntax error of the last command left its
 * parser. Nothing of ours shall be seen when `set -x` is on: that goes to /dev/null. The variable
 * is gone before the command runs: `set -a` would export it. The line behind the frame is read once
 * that is done: so it is known whether the shell is still at it. */
static void append_frame(enum session_dialect dialect, struct text *script,
                         const struct text *frame)
{
    if (dialect == SESSION_BASH)
        text_format(script,
                    "\n{ command read -rN %zu __burrow||command exit 125;command eval "
                    "\"$__burrow\";} 2>/dev/null\n",
                    frame->length);
    else
        text_append(script, "\n{ ");
    text_append_bytes(script, text_string(frame), frame->length);
    text_append(script, dialect == SESSION_SH ? "; } 2>/dev/null\n" : "\n");
    if (frame->overflowed)
        script->overflowed = true;
}

static void begin_frame(enum session_dialect dialect, struct text *frame)
{
    if (dialect == SESSION_BASH)
        text_append(frame, "command unset -v __burrow;");
}

/* A shell that cannot report (the command took its descriptors away, with `ulimit -n` perhaps) is
 * of no use: it ends, and that is told. */
static void append_report(enum session_dialect dialect, struct text *frame, uint64_t serial,
                          const char *status)
{
    text_format(frame, "command printf '%llu %%d\\n' %s%s||command exit 125",
                (unsigned long long) serial, status, places[dialect].channel);
}

/* --- scripts -------------------------------------------------------------------------------- */

void session_script_begin(enum session_dialect dialect, struct text *script)
{
    text_append(script, places[dialect].begin);
}

static void append_eval(enum session_dialect dialect, const struct session_request *request,
                        struct text *frame)
{
    for (size_t i = 0; i < request->change_count; i++) {
        text_append(frame, request->changes[i].name);
        text_append_char(frame, '=');
        append_quoted(dialect, frame, request->changes[i].text);
        text_append_char(frame, ' ');
    }
    /* `command`: else a syntax error ends a POSIX shell, and the variables stay. */
    text_append(frame, "command eval ");
    append_quoted(dialect, frame, request->command);
    text_append(frame, places[dialect].output);
    text_append_char(frame, ';');
}

static void append_in_directory(enum session_dialect dialect, const struct session_request *request,
                                struct text *frame)
{
    text_append(frame, "__burrow_here=$PWD __burrow_before=${OLDPWD-};"
                       "if CDPATH= command cd -- ");
    append_quoted(dialect, frame, request->directory);
    text_append(frame, " >/dev/null 2>&1;then ");
    append_eval(dialect, request, frame);
    text_append(frame, "__burrow_status=$?;"
                       "CDPATH= command cd -- \"$__burrow_here\" >/dev/null 2>&1||:;"
                       "OLDPWD=$__burrow_before;else __burrow_status=-1;fi;");
    append_report(dialect, frame, request->serial, "\"$__burrow_status\"");
    text_append(frame, ";command unset -v __burrow_here __burrow_before __burrow_status");
}

void session_script_command(enum session_dialect dialect, const struct session_request *request,
                            struct text *script)
{
    AUTO(text) struct text frame = TEXT_INIT(script->maximum);

    begin_frame(dialect, &frame);
    if (request->directory) {
        append_in_directory(dialect, request, &frame);
    } else {
        append_eval(dialect, request, &frame);
        append_report(dialect, &frame, request->serial, "$?");
    }
    append_frame(dialect, script, &frame);
}

void session_script_ask(enum session_dialect dialect, uint64_t serial, struct text *script)
{
    AUTO(text) struct text frame = TEXT_INIT(script->maximum);

    begin_frame(dialect, &frame);
    text_append(&frame, "{ command printf '%s\\0' \"${PWD-}\";command export -p;"
                        "command printf '\\0';");
    if (dialect == SESSION_BASH)
        text_append(&frame, "command declare -Fx;");
    text_append(&frame, "command printf '\\0';} ");
    text_append(&frame, places[dialect].channel);
    text_append_char(&frame, ';');
    append_report(dialect, &frame, serial, "0");
    append_frame(dialect, script, &frame);
}

void session_script_functions(uint64_t serial, const char *const *names, size_t count,
                              struct text *script)
{
    AUTO(text) struct text frame = TEXT_INIT(script->maximum);

    begin_frame(SESSION_BASH, &frame);
    for (size_t i = 0; i < count; i++) {
        text_append(&frame, "{ command declare -f -- ");
        append_quoted(SESSION_BASH, &frame, names[i]);
        text_append(&frame, ";command printf '\\0';} >&62;");
    }
    append_report(SESSION_BASH, &frame, serial, "0");
    append_frame(SESSION_BASH, script, &frame);
}
