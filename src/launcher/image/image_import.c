#include "launcher/image/image_import.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "base/number.h"
#include "launcher/image/image_internal.h"
#include "launcher/image/image_layers.h"
#include "launcher/image/image_stage.h"
#include "sys/file/sys_file.h"

/* What the keeper leaves beside the layers: IMAGE_IMPORT_FILE of keeper/image/image_import.h. */
#define DESCRIPTION "image"

#define LINE_SIZE  4096
#define NUMBER_MAX 6 /* digits */
#define WAIT_MS    10000
#define CHUNK_SIZE ((size_t) 256 * 1024)

/* --- the report ----------------------------------------------------------------------------- */

/* Lines of JSON that we wrote ourselves, if nobody took over the keeper; they are only shown. */
struct report {
    const struct image_import *import; /* NULL: nobody listens */
    char line[LINE_SIZE];
    size_t length;
    char failure[ERROR_MESSAGE_MAX];
};

static bool find_number(const char *line, const char *key, uint64_t *ret_number)
{
    const char *at = strstr(line, key);
    size_t digits;

    if (!at)
        return false;
    at += strlen(key);
    digits = strspn(at, "0123456789");
    return digits && digits <= NUMBER_MAX &&
           number_parse_digits(at, digits, UINT32_MAX, ret_number) == 0;
}

/* The message of a failure, up to its closing quote; what is not for a terminal is left out. */
static void take_failure(struct report *report, const char *line)
{
    const char *key = "\"message\":\"", *at = strstr(line, key);
    size_t length = 0;

    for (at = at ? at + strlen(key) : ""; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        if (*at >= ' ' && *at <= '~' && length + 1 < sizeof(report->failure))
            report->failure[length++] = *at;
    }
    report->failure[length] = '\0';
}

static void take_line(struct report *report)
{
    const struct image_import *import = report->import;
    uint64_t number, count;

    report->line[report->length] = '\0';
    if (strncmp(report->line, "{\"error\":", strlen("{\"error\":")) == 0)
        take_failure(report, report->line);
    else if (import && import->progress && find_number(report->line, "\"number\":", &number) &&
             find_number(report->line, "\"of\":", &count))
        import->progress(import->context, number, count,
                         strstr(report->line, "\"new\":true") != NULL);
    report->length = 0;
}

/* Until the keeper ends. Of a line that is too long the rest is dropped. */
static int read_report(struct report *report, int output, struct error *err)
{
    char bytes[512];
    ssize_t got;

    while ((got = read(output, bytes, sizeof(bytes))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, ERR_INTERNAL, errno, "read what the keeper says");
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n')
                take_line(report);
            else if (report->length + 1 < sizeof(report->line))
                report->line[report->length++] = bytes[i];
        }
    }
    return 0;
}

/* --- the job -------------------------------------------------------------------------------- */

static int run_keeper(const struct keeper_host *keepers, const struct keeper_spec *spec, int input,
                      const struct image_import *import, struct error *err)
{
    struct report report = {.import = import};
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe for the keeper");
    AUTO(close) int output = ends[0], theirs = ends[1];
    const struct keeper_streams streams = {.input = input, .output = theirs, .data = -EBADF};

    if (keeper_job_start(keepers, spec, &streams, &job, err) < 0)
        return -1;
    (void) fd_close(TAKE_FD(theirs));
    if (read_report(&report, output, NULL) < 0)
        keeper_job_cancel(&job);
    /* Who has nothing more to say ends at once; one that was taken over might not. */
    if (sys_file_poll(job.pidfd, POLLIN, WAIT_MS) <= 0) {
        keeper_job_cancel(&job);
        (void) sys_file_poll(job.pidfd, POLLIN, WAIT_MS);
    }
    if (keeper_job_finish(keepers, &job, &ended, err) < 0)
        return -1;
    if (ended.kind == SYS_EXIT_STATUS && ended.value == 0)
        return 0;
    return error_set(err, ERR_INVALID, 0, "%s",
                     report.failure[0] ? report.failure : "the keeper ended without a word");
}

static int run_import(const struct keeper_host *keepers, const struct image_import *import,
                      const struct image_stage *stage, bool is_folder, struct error *err)
{
    const struct keeper_folders folders = {
        .disk = is_folder ? import->source : -EBADF,
        .base = stage->layers,
        .target = stage->folder,
    };
    const struct keeper_spec spec = {.task = is_folder ? KEEPER_IMPORT_LAYOUT : KEEPER_IMPORT,
                                     .folders = &folders};

    return run_keeper(keepers, &spec, is_folder ? -EBADF : import->source, import, err);
}

/* --- what it made --------------------------------------------------------------------------- */

static int read_description(const struct image_stage *stage, struct wire_image *ret_image,
                            struct error *err)
{
    AUTO(close)
    int file = sys_file_open(stage->folder, DESCRIPTION, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    AUTO(free) char *bytes = mem_alloc(WIRE_IMAGE_TEXT_MAX + 1);
    struct stat status;
    ssize_t length = file;

    if (file >= 0 && (fstat(file, &status) < 0 || !S_ISREG(status.st_mode)))
        return error_set(err, ERR_INVALID, 0, "the description of the image is no file");
    if (file >= 0)
        length = sys_file_read_full(file, bytes, WIRE_IMAGE_TEXT_MAX + 1);
    if (length < 0)
        return error_set(err, ERR_INTERNAL, (int) length, "read the description of the image");
    return wire_image_read(bytes, (size_t) length, ret_image, err);
}

static bool is_folder_in(int folder, const char *name)
{
    struct stat status;

    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* To the others; where another import was faster, its layer does. */
static int keep_layer(const struct image_stage *stage, const char *digest, struct error *err)
{
    if (is_folder_in(stage->layers, digest))
        return 0;
    if (!is_folder_in(stage->folder, digest))
        return error_set(err, ERR_INVALID, 0, "the import made no layer %.12s", digest);
    if (renameat2(stage->folder, digest, stage->layers, digest, RENAME_NOREPLACE) < 0 &&
        errno != EEXIST)
        return error_set(err, ERR_INTERNAL, errno, "keep layer %.12s", digest);
    return 0;
}

static int keep_layers(const struct image_stage *stage, const struct wire_image *image,
                       struct error *err)
{
    const struct wire_image_words *layers = &image->by_key[WIRE_IMAGE_LAYER];
    int r;

    for (size_t i = 0; i < layers->count; i++) {
        if (keep_layer(stage, layers->words[i], err) < 0)
            return -1;
    }
    r = sys_file_sync(stage->layers);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "sync the layers") : 0;
}

/* What it is: 1 a folder, 0 a file. */
static int look_at_source(int source, struct error *err)
{
    struct stat status;

    if (fstat(source, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the image");
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return error_set(err, ERR_INVALID, 0, "an image is a file or a folder");
    return S_ISDIR(status.st_mode);
}

int image_import(struct image_registry *registry, const struct keeper_host *keepers,
                 const struct image_import *import, struct error *err)
{
    AUTO(image_stage) struct image_stage stage = IMAGE_STAGE_INIT;
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    int is_folder = look_at_source(import->source, err);

    if (is_folder < 0 || image_check_name(registry, import->name, err) < 0)
        return -1;
    if (image_stage_open(registry, &stage, err) < 0 ||
        run_import(keepers, import, &stage, is_folder, err) < 0 ||
        read_description(&stage, &image, err) < 0)
        return -1;
    /* An archive has all of its layers; only one who took over the keeper says otherwise. */
    if (image.by_key[WIRE_IMAGE_BASE].count)
        return error_set(err, ERR_INVALID, 0, "an imported image has no base");
    if (keep_layers(&stage, &image, err) < 0)
        return -1;
    return image_put(registry, import->name, &image, err);
}

/* --- layers that were built ------------------------------------------------------------------- */

/* From the beginning of the file to its end, and back to its beginning. */
static int hash_file(int file, char ret_digest[static IMAGE_DIGEST_SIZE], struct error *err)
{
    AUTO(free) char *chunk = mem_alloc(CHUNK_SIZE);
    uint8_t sum[SHA256_SIZE];
    struct sha256 sha;
    ssize_t got = lseek(file, 0, SEEK_SET) < 0 ? -errno : 1;

    sha256_init(&sha);
    while (got > 0) {
        got = sys_file_read_full(file, chunk, CHUNK_SIZE);
        if (got > 0)
            sha256_add(&sha, chunk, (size_t) got);
    }
    if (got == 0 && lseek(file, 0, SEEK_SET) < 0)
        got = -errno;
    if (got < 0)
        return error_set(err, ERR_INVALID, (int) got, "read the layer");
    sha256_finish(&sha, sum);
    for (size_t i = 0; i < sizeof(sum); i++)
        (void) snprintf(ret_digest + 2 * i, 3, "%02x", sum[i]);
    return 0;
}

static int unpack_layer(const struct keeper_host *keepers, const struct image_stage *stage,
                        const char *digest, int file, struct error *err)
{
    AUTO(close) int target = -EBADF;
    struct keeper_folders folders = {.disk = -EBADF, .base = -EBADF};
    const struct keeper_spec spec = {.task = KEEPER_ADD_LAYER, .folders = &folders};

    if (mkdirat(stage->folder, digest, 0755) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "make the folder of a layer");
    target = sys_file_open(stage->folder, digest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (target < 0)
        return error_set(err, ERR_INTERNAL, target, "open the folder of a layer");
    folders.target = target;
    return run_keeper(keepers, &spec, file, NULL, err);
}

int image_layer_add(struct image_registry *registry, const struct keeper_host *keepers, int file,
                    char ret_digest[static IMAGE_DIGEST_SIZE], struct error *err)
{
    AUTO(image_stage) struct image_stage stage = IMAGE_STAGE_INIT;
    int r;

    if (hash_file(file, ret_digest, err) < 0 || image_stage_open(registry, &stage, err) < 0)
        return -1;
    if (is_folder_in(stage.layers, ret_digest))
        return 0;
    if (unpack_layer(keepers, &stage, ret_digest, file, err) < 0 ||
        keep_layer(&stage, ret_digest, err) < 0)
        return -1;
    r = sys_file_sync(stage.layers);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "sync the layers") : 0;
}
