#include "programs/burrow/image_registry.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "programs/burrow/root_program.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_spawn.h"

#define DATA_DEFAULT "/var/lib/burrow" /* the launcher's */
#define LAYERS       "images/.layers"
#define WORDS_MAX    12
#define PREFIX       "burrow image: "

/* All that is in a file of ours, terminated; the caller frees it. */
static char *read_back(int file)
{
    char *bytes = mem_alloc(WIRE_IMAGE_TEXT_MAX + 1);
    ssize_t length = sys_file_pread_full(file, bytes, WIRE_IMAGE_TEXT_MAX, 0);

    bytes[length < 0 ? 0 : length] = '\0';
    return bytes;
}

/* The launcher's complaint as an error of ours. */
static int image_registry_complain(int errors, struct error *err)
{
    AUTO(free) char *said = read_back(errors);
    char *text = strncmp(said, PREFIX, strlen(PREFIX)) == 0 ? said + strlen(PREFIX) : said;

    text[strcspn(text, "\n")] = '\0';
    return error_set(err, ERR_INVALID, 0, "%.300s", *text ? text : "the launcher failed");
}

static size_t make_words(const struct image_place *place, const char *verb, const char *name,
                         const char *ret_words[static WORDS_MAX])
{
    size_t count = 0;

    ret_words[count++] = ADMIN_PROGRAM;
    ret_words[count++] = "image";
    if (place->data) {
        ret_words[count++] = "--data";
        ret_words[count++] = place->data;
    }
    if (place->run) {
        ret_words[count++] = "--run";
        ret_words[count++] = place->run;
    }
    ret_words[count++] = "--"; /* a name may be anything that a file says */
    ret_words[count++] = verb;
    if (name)
        ret_words[count++] = name;
    ret_words[count] = NULL;
    return count;
}

/* Run it with `input` as its stdin; what it printed is the caller's. */
static int image_registry_call(const struct image_place *place, const char *verb, const char *name,
                               int input, char **ret_printed, struct error *err)
{
    AUTO(close) int output = memfd_create("output", MFD_CLOEXEC);
    AUTO(close) int errors = memfd_create("errors", MFD_CLOEXEC);
    AUTO(close) int pidfd = -EBADF;
    const struct sys_spawn_descriptor stdio[] = {{output, 1}, {errors, 2}, {input, 0}};
    const char *words[WORDS_MAX];
    char path[PATH_MAX];
    struct sys_exit ended = {0};
    const struct sys_spawn how = {
        .path = path,
        .arguments = words,
        .environment = (const char *const *) environ,
        .descriptors = stdio,
        .descriptor_count = ARRAY_COUNT(stdio) - (input < 0),
    };

    if (output < 0 || errors < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a file in memory");
    if (root_program_find(ADMIN_PROGRAM, NULL, getenv("PATH"), path, err) < 0)
        return -1;
    (void) make_words(place, verb, name, words);
    pidfd = sys_spawn(&how, NULL);
    if (pidfd < 0)
        return error_set(err, ERR_INTERNAL, pidfd, "start %s", path);
    if (sys_process_wait(pidfd, -1, &ended) < 0 || ended.kind != SYS_EXIT_STATUS || ended.value)
        return image_registry_complain(errors, err);
    *ret_printed = read_back(output);
    return 0;
}

/* As image_layers_hold of the launcher does it for its own verbs; a build is many of them. */
int image_registry_hold(const struct image_place *place, int *ret_held, struct error *err)
{
    AUTO(close) int held = -EBADF;
    const char *data = place->data ? place->data : DATA_DEFAULT;
    AUTO(close) int folder = -EBADF;
    int r = sys_file_make_directories(AT_FDCWD, data, 0755);

    if (r == 0)
        r = folder = sys_file_open(AT_FDCWD, data, O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0)
        r = sys_file_make_directories(folder, LAYERS, 0700);
    if (r >= 0)
        r = held = sys_file_open(folder, LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (r >= 0)
        r = sys_lock_take(held, SYS_LOCK_SHARED, -1);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "hold the layers of images");
    *ret_held = TAKE_FD(held);
    return 0;
}

int image_registry_show(const struct image_place *place, const char *name,
                        struct wire_image *ret_image, struct error *err)
{
    AUTO(free) char *printed = NULL;

    if (image_registry_call(place, "show", name, -EBADF, &printed, err) < 0)
        return -1;
    if (!*printed)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no image '%s'", name);
    return wire_image_read(printed, strlen(printed), ret_image, err);
}

int image_registry_identify(const struct image_place *place, const char *name, char **ret_identity,
                            struct error *err)
{
    return image_registry_call(place, "identify", name, -EBADF, ret_identity, err);
}

int image_registry_set(const struct image_place *place, const char *name,
                       const struct wire_image *image, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    AUTO(close) int input = memfd_create("image", MFD_CLOEXEC);
    AUTO(free) char *printed = NULL;
    int r = input < 0 ? -errno : 0;

    if (wire_image_write(image, &text, err) < 0)
        return -1;
    if (r == 0)
        r = sys_file_pwrite_full(input, text.data, text.length, 0);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make a file in memory");
    return image_registry_call(place, "set", name, input, &printed, err);
}

int image_registry_add_layer(const struct image_place *place, int file, struct wire_image *image,
                             struct error *err)
{
    AUTO(free) char *printed = NULL;

    if (image_registry_call(place, "layer", NULL, file, &printed, err) < 0)
        return -1;
    printed[strcspn(printed, "\n")] = '\0';
    return wire_image_add(image, WIRE_IMAGE_LAYER, printed, err);
}
