#include "programs/admin/verb_image_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/image/image_pull.h"
#include "launcher/site.h"
#include "programs/admin/child_screen.h"
#include "programs/admin/image_tools.h"
#include "programs/admin/verb_image_import.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_signal.h"

#define PROGRAM "burrow-puller"

/* "NAME:PASSWORD", overwritten when done with. */
struct secret {
    char text[IMAGE_PULL_CREDENTIALS_MAX + 1];
};

static void secret_done(struct secret *secret)
{
    explicit_bzero(secret, sizeof(*secret));
}

AUTO_DEFINE(secret, struct secret, secret_done);

bool verb_image_pull_option(struct image_pull_options *options, int option, const char *value)
{
    if (option == 'u')
        options->user = value;
    else if (option == 'c')
        options->credentials = value;
    else if (option == 'a')
        options->allow = value;
    else if (option == 'p')
        options->plain_http = true;
    else
        return false;
    options->is_given = true;
    return true;
}

/* --- who we are ------------------------------------------------------------------------------ */

/* The first line, without its end, into `size` bytes. Byte by byte: the rest is not ours. */
static int read_line(int fd, char *ret_line, size_t size, struct error *err)
{
    size_t length = 0;
    ssize_t got;

    while ((got = read(fd, ret_line + length, 1)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, ERR_INVALID, errno, "read the password");
        if (ret_line[length] == '\n' || ret_line[length] == '\0')
            break;
        if (++length == size)
            return error_set(err, ERR_TOO_LARGE, 0, "the password is longer than %zu bytes",
                             size - 1);
    }
    if (length && ret_line[length - 1] == '\r')
        length--;
    ret_line[length] = '\0';
    return length ? 0 : error_set(err, ERR_INVALID, 0, "there is no password on standard input");
}

/* Until a line is typed; false: a signal came first, which waits for its mask. */
static bool wait_for_line(int signals)
{
    struct pollfd both[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = signals, .events = POLLIN}};
    int r;

    do
        r = poll(both, ARRAY_COUNT(both), -1);
    while (r < 0 && errno == EINTR);
    return !both[1].revents;
}

/* Asked for, and not shown. Whoever ends us meanwhile gets a terminal that shows what is typed. */
static int ask_terminal(const struct termios *before, const char *user, char *ret_line, size_t size,
                        struct error *err)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct termios silent = *before;
    AUTO(close) int signals = -EBADF;
    sigset_t mask;
    int result;

    (void) sigprocmask(SIG_BLOCK, NULL, &mask); /* reads it; cannot fail */
    signals = sys_signal_open(ends, ARRAY_COUNT(ends));
    if (signals < 0)
        return error_set(err, ERR_INTERNAL, signals, "wait for the password");
    silent.c_lflag &= ~(tcflag_t) ECHO;
    (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent); /* before anybody answers */
    (void) fprintf(stderr, "password of %s: ", user);
    result = wait_for_line(signals) ? read_line(STDIN_FILENO, ret_line, size, err)
                                    : error_set(err, ERR_CANCELLED, 0, "no password was given");
    (void) tcsetattr(STDIN_FILENO, TCSADRAIN, before);
    (void) fputc('\n', stderr);
    (void) sys_signal_restore(&mask); /* one that came ends us here */
    return result;
}

static int read_password(const char *user, char *ret_line, size_t size, struct error *err)
{
    struct termios before;

    if (tcgetattr(STDIN_FILENO, &before) == 0)
        return ask_terminal(&before, user, ret_line, size, err);
    return read_line(STDIN_FILENO, ret_line, size, err);
}

static int ask_for(const char *user, struct secret *secret, struct error *err)
{
    int length = snprintf(secret->text, sizeof(secret->text), "%s:", user);

    if (!*user || strchr(user, ':') || (size_t) length >= sizeof(secret->text))
        return error_set(err, ERR_INVALID, 0, "a user's name is not empty and has no ':'");
    return read_password(user, secret->text + length, sizeof(secret->text) - (size_t) length, err);
}

static int read_file(const char *path, struct secret *secret, struct error *err)
{
    AUTO(close) int file = sys_file_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    struct stat status;

    if (file < 0)
        return error_set(err, error_code_from_errno(file), file, "open '%s'", path);
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || (status.st_mode & 077))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "'%s' must be a file that its owner alone can read (chmod 600)", path);
    if (read_line(file, secret->text, sizeof(secret->text), err) < 0)
        return -1;
    if (secret->text[0] == ':' || !strchr(secret->text, ':'))
        return error_set(err, ERR_INVALID, 0, "'%s' must have one line, NAME:PASSWORD", path);
    return 0;
}

static int find_secret(const struct image_pull_options *options, struct secret *secret,
                       struct error *err)
{
    if (options->user && options->credentials)
        return error_set(err, ERR_INVALID, 0, "give --user or --credentials, not both");
    if (options->user)
        return ask_for(options->user, secret, err);
    return options->credentials ? read_file(options->credentials, secret, err) : 0;
}

/* --- the verb -------------------------------------------------------------------------------- */

int verb_image_pull(struct image_registry *images, const char *run,
                    const struct image_pull_options *options, char **words, struct error *err)
{
    AUTO(image_tools) struct image_tools tools = IMAGE_TOOLS_INIT;
    AUTO(secret) struct secret secret = {.text = ""};
    AUTO(close) int program = -EBADF;
    const char *reference = words[1] ? words[1] : words[0];
    char name[IMAGE_NAME_MAX + 1];
    struct image_pull pull = {
        .name = words[1] ? words[0] : name,
        .reference = reference,
        .allow = options->allow,
        .ca_file = getenv("SSL_CERT_FILE"),
        .plain_http = options->plain_http,
        .columns = child_screen_columns(),
        .show = child_screen_show,
        .progress = verb_image_show_layer,
    };

    if ((!words[1] && image_pull_name(reference, name, err) < 0) ||
        find_secret(options, &secret, err) < 0 || image_tools_open(&tools, run, err) < 0 ||
        site_load_program(NULL, PROGRAM, &program, err) < 0)
        return -1;
    pull.credentials = secret.text[0] ? secret.text : NULL;
    pull.program = program;
    return image_pull(images, &tools.host, &pull, err);
}
