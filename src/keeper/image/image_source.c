#include "keeper/image/image_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/format/tar_reader.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

#define CHUNK_SIZE ((size_t) 1 << 20)

struct file {
    char *name; /* owned */
    char *link; /* owned: the file it is another name of, or NULL */
    off_t offset;
    uint64_t size;
};

struct image_source {
    int archive;        /* borrowed, or -EBADF */
    int folder;         /* borrowed, or -EBADF */
    int opened;         /* owned: the file that was found last in the folder */
    struct file *files; /* owned */
    size_t count;
    off_t position; /* behind the block that is read */
};

/* --- archives ------------------------------------------------------------------------------- */

/* "./a/b" and "a/b" are one. */
static const char *plain(const char *name)
{
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return name;
}

/* What a symbolic link says, as a name of the archive: docker has "../<id>/layer.tar" for a layer
 * that is there already. Others lead nowhere. */
static char *resolve(const char *name, const char *link)
{
    const char *slash = strchr(name, '/');

    if (slash && !strchr(slash + 1, '/') && strncmp(link, "../", 3) == 0)
        return mem_copy_text(link + 3);
    return mem_copy_text(slash ? "" : plain(link));
}

static int on_entry(void *owner, const struct tar_entry *entry, struct error *err)
{
    struct image_source *source = owner;
    const char *name = plain(entry->path);
    struct file *file;

    if (entry->type != TAR_FILE && entry->type != TAR_LINK && entry->type != TAR_HARD_LINK)
        return 0;
    if (strlen(name) > IMAGE_FILE_NAME_MAX)
        return 0; /* none that anything refers to */
    if (source->count == IMAGE_FILES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the archive has more than %d files",
                         IMAGE_FILES_MAX);
    source->files = mem_resize(source->files, (source->count + 1) * sizeof(*source->files));
    file = &source->files[source->count++];
    *file =
        (struct file){.name = mem_copy_text(name), .offset = source->position, .size = entry->size};
    if (entry->type == TAR_LINK)
        file->link = resolve(name, entry->link);
    else if (entry->type == TAR_HARD_LINK)
        file->link = mem_copy_text(plain(entry->link));
    return 0;
}

static int on_bytes(void *owner, const char *bytes, size_t length, struct error *err)
{
    (void) owner;
    (void) bytes;
    (void) length;
    (void) err;
    return 0;
}

static int on_entry_end(void *owner, struct error *err)
{
    (void) owner;
    (void) err;
    return 0;
}

static const struct tar_reader_events events = {
    .on_entry = on_entry,
    .on_bytes = on_bytes,
    .on_entry_end = on_entry_end,
};

/* Block by block: so an entry's content begins where the block of its head ends. */
static int feed(struct image_source *source, struct tar_reader *reader, const char *bytes,
                size_t length, struct error *err)
{
    for (size_t at = 0; at < length; at += TAR_BLOCK) {
        size_t part = length - at < TAR_BLOCK ? length - at : TAR_BLOCK;

        source->position += (off_t) part;
        if (tar_reader_feed(reader, bytes + at, part, err) < 0)
            return -1;
    }
    return 0;
}

static int list_archive(struct image_source *source, struct tar_reader *reader, struct error *err)
{
    AUTO(free) char *chunk = mem_alloc(CHUNK_SIZE);
    ssize_t got;

    while ((got = sys_file_pread_full(source->archive, chunk, CHUNK_SIZE, source->position)) > 0) {
        if (source->position == 0 && got > 1 && memcmp(chunk, "\x1f\x8b", 2) == 0)
            return error_set(err, ERR_INVALID, 0, "the archive is compressed; gunzip it first");
        if (feed(source, reader, chunk, (size_t) got, err) < 0)
            return -1;
    }
    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read the archive");
    return tar_reader_finish(reader, err);
}

static struct image_source *new_source(int archive, int folder)
{
    struct image_source *source = mem_alloc(sizeof(*source));

    source->archive = archive;
    source->folder = folder;
    source->opened = -EBADF;
    return source;
}

int image_source_archive(int file, struct image_source **ret_source, struct error *err)
{
    AUTO(image_source) struct image_source *source = new_source(file, -EBADF);
    struct tar_reader *reader = mem_alloc(sizeof(*reader));
    int result;

    tar_reader_init(reader, &events, source);
    reader->takes_devices = true;
    result = list_archive(source, reader, err);
    tar_reader_done(reader);
    free(reader);
    if (result < 0)
        return -1;
    *ret_source = TAKE_PTR(source);
    return 0;
}

int image_source_folder(int folder, struct image_source **ret_source, struct error *err)
{
    (void) err;
    *ret_source = new_source(-EBADF, folder);
    return 0;
}

void image_source_free(struct image_source *source)
{
    if (!source)
        return;
    for (size_t i = 0; i < source->count; i++) {
        free(source->files[i].name);
        free(source->files[i].link);
    }
    free(source->files);
    (void) fd_close(source->opened);
    free(source);
}

/* --- looking up ----------------------------------------------------------------------------- */

static int not_found(const char *name, struct error *err)
{
    return error_set(err, ERR_NOT_FOUND, 0, "the image has no '%.120s'", name);
}

/* The last of that name, as tar has it; another name of a file is followed once. */
static const struct file *find(const struct image_source *source, const char *name)
{
    for (size_t i = source->count; i > 0; i--) {
        if (strcmp(source->files[i - 1].name, name) == 0)
            return &source->files[i - 1];
    }
    return NULL;
}

static int find_in_folder(struct image_source *source, const char *name,
                          struct image_place *ret_place, struct error *err)
{
    struct stat status;

    source->opened = fd_close(source->opened);
    source->opened = sys_open_beneath(source->folder, name, O_RDONLY | O_NONBLOCK, 0);
    if (source->opened == -ENOENT)
        return not_found(name, err);
    if (source->opened < 0)
        return error_set(err, error_code_from_errno(source->opened), source->opened,
                         "open '%.120s' of the image", name);
    if (fstat(source->opened, &status) < 0 || !S_ISREG(status.st_mode))
        return error_set(err, ERR_INVALID, 0, "'%.120s' of the image is no file", name);
    *ret_place = (struct image_place){source->opened, 0, (uint64_t) status.st_size};
    return 0;
}

int image_source_find(struct image_source *source, const char *name, struct image_place *ret_place,
                      struct error *err)
{
    const struct file *file;

    name = plain(name);
    if (source->folder >= 0)
        return find_in_folder(source, name, ret_place, err);
    file = find(source, name);
    if (file && file->link)
        file = find(source, file->link);
    if (!file || file->link)
        return not_found(name, err);
    *ret_place = (struct image_place){source->archive, file->offset, file->size};
    return 0;
}

int image_source_read(struct image_source *source, const char *name, size_t limit, char **ret_bytes,
                      size_t *ret_length, struct error *err)
{
    AUTO(free) char *bytes = NULL;
    struct image_place place;
    ssize_t got;

    if (image_source_find(source, name, &place, err) < 0)
        return -1;
    if (place.size > limit)
        return error_set(err, ERR_TOO_LARGE, 0, "'%.120s' of the image is too long", name);
    bytes = mem_alloc((size_t) place.size + 1);
    got = sys_file_pread_full(place.file, bytes, (size_t) place.size, place.offset);
    if (got < 0 || (uint64_t) got != place.size)
        return error_set(err, got < 0 ? error_code_from_errno((int) got) : ERR_INVALID,
                         got < 0 ? (int) got : 0, "read '%.120s' of the image", name);
    *ret_bytes = TAKE_PTR(bytes);
    *ret_length = (size_t) place.size;
    return 0;
}
