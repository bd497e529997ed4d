#include "programs/admin/verb_image_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "launcher/image/image_import.h"
#include "launcher/image/image_layers.h"
#include "launcher/site.h"
#include "launcher/wall/seccomp.h"
#include "programs/admin/image_tools.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"

void verb_image_show_layer(void *context, uint64_t number, uint64_t count, bool is_new)
{
    (void) context;
    (void) printf("layer %" PRIu64 " of %" PRIu64 ": %s\n", number, count,
                  is_new ? "unpacked" : "here already");
    (void) fflush(stdout);
}

int verb_image_import(struct image_registry *images, const char *run, char **words,
                      struct error *err)
{
    AUTO(image_tools) struct image_tools tools = IMAGE_TOOLS_INIT;
    AUTO(close) int source = sys_file_open(AT_FDCWD, words[1], O_RDONLY | O_NONBLOCK, 0);
    struct image_import import = {
        .name = words[0], .source = source, .progress = verb_image_show_layer};

    if (source < 0)
        return error_set(err, error_code_from_errno(source), source, "open '%s'", words[1]);
    if (image_tools_open(&tools, run, err) < 0)
        return -1;
    return image_import(images, &tools.host, &import, err);
}

/* As in its entry, one word after the other. */
static void print_word(const char *name, const char *word)
{
    AUTO(free) char *shown = mem_copy_text(word);

    utf8_make_harmless(shown);
    (void) printf("%-12s%s\n", name, shown);
}

static const struct {
    enum wire_image_key key;
    const char *name;
} shown[] = {
    {WIRE_IMAGE_BASE, "base"},       {WIRE_IMAGE_LAYER, "layer"},
    {WIRE_IMAGE_ENV, "env"},         {WIRE_IMAGE_USER, "user"},
    {WIRE_IMAGE_WORKDIR, "workdir"}, {WIRE_IMAGE_ENTRYPOINT, "entrypoint"},
    {WIRE_IMAGE_CMD, "cmd"},         {WIRE_IMAGE_PORT, "port"},
};

static int print_folder(struct image_registry *images, const char *name, struct error *err)
{
    AUTO(free) struct folder_entry *entries = NULL;
    size_t count;

    if (image_list(images, &entries, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, name) == 0 && entries[i].folder[0]) {
            print_word("folder", entries[i].folder);
            return 0;
        }
    }
    return error_set(err, ERR_NOT_FOUND, 0, "there is no image '%s'", name);
}

int verb_image_inspect(struct image_registry *images, char **words, struct error *err)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;

    if (strcmp(words[0], IMAGE_HOST) == 0) {
        print_word("built in", "this machine's /usr");
        return 0;
    }
    if (!images)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no image '%s'", words[0]);
    if (image_read(images, words[0], &image, err) < 0)
        return err->code == ERR_INVALID ? print_folder(images, words[0], err) : -1;
    for (size_t i = 0; i < ARRAY_COUNT(shown); i++) {
        const struct wire_image_words *list = &image.by_key[shown[i].key];

        for (size_t j = 0; j < list->count; j++)
            print_word(shown[i].name, list->words[j]);
    }
    return 0;
}

/* Of our run folder: others have layers of their own. A range whose process was killed stays until
 * a launcher finds it, but nobody works in it: with PID 1 of a sandbox, and with who started a job,
 * everything else ends. */
static size_t count_living(const struct id_range_table *ids, const struct id_range_entry *entries,
                           size_t count)
{
    size_t living = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t started;

        living += id_range_is_for_us(ids, &entries[i]) &&
                  sys_process_start_time(entries[i].owner, &started) == 0 &&
                  started == entries[i].owner_start;
    }
    return living;
}

int verb_image_prune(struct image_registry *images, const char *run, struct error *err)
{
    AUTO(free) struct id_range_entry *entries = NULL;
    AUTO(close) int alone = -EBADF;
    AUTO(id_range_table) struct id_range_table *ids = NULL;
    size_t count = 0, deleted;

    if (!images) {
        (void) puts("0 deleted");
        return 0;
    }
    alone = image_layers_hold_alone(images, err);
    if (alone < 0 || image_tools_open_ids(run, &ids, err) < 0)
        return -1;
    if (id_range_list(ids, &entries, &count, err) < 0)
        return -1;
    count = count_living(ids, entries, count);
    if (count)
        return error_set(err, ERR_CONFLICT, 0,
                         "%zu sandboxes or jobs run, which may use the layers: try again without",
                         count);
    if (image_layers_prune(images, &deleted, err) < 0)
        return -1;
    (void) printf("%zu deleted\n", deleted);
    return 0;
}
