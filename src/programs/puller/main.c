/* burrow-puller: fetches one image from a registry, and can do nothing else. Started by
 * burrow-launcher as a user of its own; launcher/image/image_pull.h tells what its descriptors are.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/progress.h"
#include "net/outbound/curl_exchange.h"
#include "registry/registry_pull.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define FOLDER_FD   3
#define HERE_FD     4
#define HERE_MAX    ((size_t) 65536)
#define COLUMNS_MAX 1000
#define LINE_SIZE   ((size_t) 1024)
#define EVERY_NS    UINT64_C(100000000)
#define CLEAR_LINE  "\r\033[K"
#define DIGEST_LINE (REGISTRY_DIGEST_LENGTH + 1)

struct puller {
    struct registry_client_settings settings;
    struct registry_pull pull;
    struct progress progress;
    unsigned int columns;
    char *credentials;         /* owned */
    char (*here)[DIGEST_LINE]; /* owned */
};

static void puller_done(struct puller *puller)
{
    free(puller->credentials);
    free(puller->here);
}

AUTO_DEFINE(puller, struct puller, puller_done);

/* --- what people see ------------------------------------------------------------------------- */

static void tell(void *context, const char *line)
{
    struct puller *puller = context;

    (void) fprintf(stderr, "%s%s\n", puller->progress.shown_ns ? CLEAR_LINE : "", line);
    puller->progress.shown_ns = 0;
}

static void found(void *context, const char *digest, size_t layers, uint64_t bytes)
{
    struct puller *puller = context;
    const char *path = puller->settings.reference.path, *slash = strrchr(path, '/');
    char size[NUMBER_TEXT_SIZE], line[LINE_SIZE];

    number_format_size(bytes, size);
    (void) snprintf(line, sizeof(line), "sha256:%s: %zu layer%s, %s to fetch", digest, layers,
                    layers == 1 ? "" : "s", size);
    tell(puller, line);
    puller->progress = (struct progress){.what = slash ? slash + 1 : path,
                                         .total = (int64_t) bytes,
                                         .started_ns = clock_monotonic_ns(clock_system())};
}

static void moved(void *context, uint64_t bytes)
{
    struct puller *puller = context;
    uint64_t now = clock_monotonic_ns(clock_system());
    AUTO(text) struct text line = TEXT_INIT(LINE_SIZE);

    puller->progress.done = bytes;
    if (!puller->columns || now - puller->progress.shown_ns < EVERY_NS)
        return;
    progress_line(&puller->progress, (now - puller->progress.started_ns) / 1000000,
                  puller->columns - 1, &line);
    (void) fprintf(stderr, CLEAR_LINE "%s", text_string(&line));
    puller->progress.shown_ns = now;
}

static void layer(void *context, size_t number, size_t count, uint64_t size, bool was_here)
{
    char amount[NUMBER_TEXT_SIZE], line[LINE_SIZE];

    number_format_size(size, amount);
    (void) snprintf(line, sizeof(line), "layer %zu of %zu: %s%s", number, count,
                    was_here ? "here already" : "fetched, ", was_here ? "" : amount);
    tell(context, line);
}

/* --- what we are told ------------------------------------------------------------------------ */

static const struct option options[] = {
    {"allow", required_argument, NULL, 'a'},
    {"columns", required_argument, NULL, 'c'},
    {"plain-http", no_argument, NULL, 'p'},
    {NULL, 0, NULL, 0},
};

static int read_options(struct puller *puller, int argc, char **argv, struct error *err)
{
    int64_t columns = 0;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'a')
            puller->settings.allow = optarg;
        else if (option == 'p')
            puller->settings.plain_http = true;
        else if (option != 'c' || number_parse(optarg, 0, COLUMNS_MAX, &columns) < 0)
            return error_set(err, ERR_INVALID, 0, "wrong options");
    }
    if (argc != optind + 1)
        return error_set(err, ERR_INVALID, 0, "one image is wanted");
    puller->columns = (unsigned int) columns;
    puller->settings.ca_file = getenv("SSL_CERT_FILE");
    return registry_reference_parse(argv[optind], &puller->settings.reference, err);
}

/* All of a descriptor, up to `maximum`, NUL behind it; the caller's. */
static ssize_t read_whole(int fd, size_t maximum, char **ret_bytes, struct error *err)
{
    AUTO(free) char *bytes = mem_alloc(maximum + 2);
    ssize_t length = sys_file_read_full(fd, bytes, maximum + 1);

    if (length < 0 || (size_t) length > maximum)
        return error_set(err, ERR_INVALID, length < 0 ? (int) length : 0,
                         "read what the launcher gives");
    *ret_bytes = TAKE_PTR(bytes);
    return length;
}

static int read_credentials(struct puller *puller, struct error *err)
{
    if (read_whole(STDIN_FILENO, REGISTRY_CREDENTIALS_MAX, &puller->credentials, err) < 0)
        return -1;
    if (puller->credentials[0])
        puller->settings.credentials = puller->credentials;
    return 0;
}

static int read_here(struct puller *puller, struct error *err)
{
    AUTO(free) char *bytes = NULL;
    ssize_t length = read_whole(HERE_FD, HERE_MAX * DIGEST_LINE, &bytes, err);

    if (length < 0)
        return -1;
    puller->pull.here_count = (size_t) length / DIGEST_LINE;
    puller->here = mem_alloc_array(puller->pull.here_count + 1, DIGEST_LINE);
    for (size_t i = 0; i < puller->pull.here_count; i++)
        memcpy(puller->here[i], bytes + i * DIGEST_LINE, REGISTRY_DIGEST_LENGTH);
    puller->pull.here = (const char(*)[DIGEST_LINE]) puller->here;
    return 0;
}

/* --- the work -------------------------------------------------------------------------------- */

static int run(struct puller *puller, int argc, char **argv, struct error *err)
{
    AUTO(registry_client) struct registry_client *client = NULL;

    if (geteuid() == 0)
        return error_set(err, ERR_FORBIDDEN, 0, "root does not talk to registries");
    if (outbound_global_init(err) < 0 || read_options(puller, argc, argv, err) < 0 ||
        read_credentials(puller, err) < 0 || read_here(puller, err) < 0 ||
        registry_client_new(&puller->settings, &client, err) < 0)
        return -1;
    return registry_pull(client, &puller->settings.reference, &puller->pull, err);
}

int main(int argc, char **argv)
{
    AUTO(puller) struct puller puller = {.columns = 0};
    struct error err = ERROR_INIT;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void) puts("burrow-puller " BURROW_VERSION);
        return 0;
    }
    (void) sys_process_set_dumpable(false);
    (void) sys_signal_ignore(SIGPIPE);
    (void) umask(022);
    puller.settings.tell = tell;
    puller.settings.context = &puller;
    puller.pull = (struct registry_pull){
        .folder = FOLDER_FD, .found = found, .moved = moved, .layer = layer, .context = &puller};
    if (run(&puller, argc, argv, &err) == 0)
        return 0;
    if (puller.progress.shown_ns)
        (void) fputs(CLEAR_LINE, stderr);
    (void) fputs(err.message, stdout);
    return EXIT_FAILURE;
}
