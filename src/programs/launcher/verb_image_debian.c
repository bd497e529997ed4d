#include "programs/launcher/verb_image_debian.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "base/text.h"
#include "launcher/image/debian_bar.h"
#include "launcher/image/debian_build.h"
#include "launcher/image/image_import.h"
#include "programs/launcher/child_screen.h"
#include "programs/launcher/image_tools.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define SUITE      "bookworm"
#define PLACE      "/var/tmp"
#define NAME       "burrow-layout-XXXXXX"
#define BLOBS      "blobs/sha256"
#define ARCHIVE    BLOBS "/archive"
#define CHUNK_SIZE ((size_t) 1 << 20)
#define TEXT_MAX   ((size_t) 8 * 1024)
#define SHOWN_MAX  ((size_t) 1 << 20)
#define NS_PER_MS  UINT64_C(1000000)

/* What agents reach for, and what Burrow's own API wants in an image. */
static const char packages[] =
    "bash,ca-certificates,curl,git,ipython3,jq,less,nodejs,npm,procps,python3,python3-ipython,"
    "python3-matplotlib,python3-numpy,python3-pandas,python3-pip,python3-venv,ripgrep,"
    "squashfs-tools,wget";

/* An OCI layout on its way to become an image. */
struct layout {
    char path[sizeof(PLACE "/" NAME)]; /* "": none */
    int folder;                        /* owned */
};

static void layout_done(struct layout *layout)
{
    AUTO(close) int place = sys_file_open(AT_FDCWD, PLACE, O_RDONLY | O_DIRECTORY, 0);

    layout->folder = fd_close(layout->folder);
    if (layout->path[0] && place >= 0)
        (void) sys_tree_delete(place, layout->path + strlen(PLACE "/")); /* /var/tmp is cleaned */
}

AUTO_DEFINE(layout, struct layout, layout_done);

static int layout_make(struct layout *layout, struct error *err)
{
    int r;

    (void) snprintf(layout->path, sizeof(layout->path), "%s", PLACE "/" NAME);
    if (!mkdtemp(layout->path)) {
        layout->path[0] = '\0';
        return error_set(err, ERR_INTERNAL, errno, "make a folder in " PLACE);
    }
    r = layout->folder = sys_file_open(AT_FDCWD, layout->path, O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0)
        r = sys_file_make_directories(layout->folder, BLOBS, 0755);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "make a layout") : 0;
}

static void print_digest(struct sha256 *sha, char ret_text[static 2 * SHA256_SIZE + 1])
{
    uint8_t digest[SHA256_SIZE];

    sha256_finish(sha, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void) snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

static int hash_archive(int file, char ret_digest[static 2 * SHA256_SIZE + 1], struct error *err)
{
    AUTO(free) char *chunk = mem_alloc(CHUNK_SIZE);
    struct sha256 sha;
    off_t at = 0;
    ssize_t got;

    sha256_init(&sha);
    while ((got = sys_file_pread_full(file, chunk, CHUNK_SIZE, at)) > 0) {
        sha256_add(&sha, chunk, (size_t) got);
        at += got;
    }
    if (got < 0)
        return error_set(err, ERR_INTERNAL, (int) got, "read the archive");
    print_digest(&sha, ret_digest);
    return 0;
}

/* A document under its digest, which is then in `ret_digest`. */
static int put_blob(const struct layout *layout, const struct text *text,
                    char ret_digest[static 2 * SHA256_SIZE + 1], struct error *err)
{
    char path[sizeof(BLOBS "/") + 2 * SHA256_SIZE];
    struct sha256 sha;
    int r;

    sha256_init(&sha);
    sha256_add(&sha, text->data, text->length);
    print_digest(&sha, ret_digest);
    (void) snprintf(path, sizeof(path), BLOBS "/%s", ret_digest);
    r = sys_file_replace(layout->folder, path, text->data, text->length, 0644);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "write a layout") : 0;
}

/* The documents around the one layer. */
static int describe(const struct layout *layout, const char *layer, uint64_t size,
                    struct error *err)
{
    static const char marker[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    AUTO(text) struct text config = TEXT_INIT(TEXT_MAX), manifest = TEXT_INIT(TEXT_MAX);
    AUTO(text) struct text index = TEXT_INIT(TEXT_MAX);
    char digest[2 * SHA256_SIZE + 1];
    int r;

    text_format(&config,
                "{\"os\":\"linux\",\"config\":{\"Env\":[\"PATH=/usr/local/sbin:/usr/local/bin:"
                "/usr/sbin:/usr/bin:/sbin:/bin\",\"LANG=C.UTF-8\"],\"Cmd\":[\"bash\"]},"
                "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:%s\"]}}",
                layer);
    if (put_blob(layout, &config, digest, err) < 0)
        return -1;
    text_format(&manifest,
                "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
                "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
                "\"digest\":\"sha256:%s\",\"size\":%zu},\"layers\":[{\"mediaType\":"
                "\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"sha256:%s\","
                "\"size\":%llu}]}",
                digest, config.length, layer, (unsigned long long) size);
    if (put_blob(layout, &manifest, digest, err) < 0)
        return -1;
    text_format(&index,
                "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
                "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\","
                "\"size\":%zu}]}",
                digest, manifest.length);
    r = sys_file_replace(layout->folder, "index.json", index.data, index.length, 0644);
    if (r == 0)
        r = sys_file_replace(layout->folder, "oci-layout", marker, strlen(marker), 0644);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "write a layout") : 0;
}

/* For people who watch: a bar instead of remarks. */
struct screen {
    struct debian_bar bar;
    uint64_t started_ns;
};

static void show(void *context, const char *bytes, size_t length)
{
    AUTO(text) struct text out = TEXT_INIT(SHOWN_MAX);
    struct screen *screen = context;
    uint64_t elapsed_ns = clock_monotonic_ns(clock_system()) - screen->started_ns;

    if (screen->bar.columns)
        debian_bar_take(&screen->bar, bytes, length, elapsed_ns / NS_PER_MS, &out);
    else
        text_append_bytes(&out, bytes, length);
    child_screen_show(NULL, text_string(&out), out.length);
}

static void screen_end(struct screen *screen)
{
    AUTO(text) struct text out = TEXT_INIT(SHOWN_MAX);

    if (screen->bar.columns)
        debian_bar_end(&screen->bar, &out);
    child_screen_show(NULL, text_string(&out), out.length);
}

AUTO_DEFINE(screen, struct screen, screen_end);

static int build_archive(struct id_range_table *ids, char **words, int archive, struct error *err)
{
    AUTO(screen)
    struct screen screen = {.bar.columns = child_screen_columns(),
                            .started_ns = clock_monotonic_ns(clock_system())};
    const struct debian_build build = {
        .packages = *words[1] ? words[1] : packages,
        .suite = *words[2] ? words[2] : SUITE,
        .source = words[3],
        .archive = archive,
        .show = show,
        .context = &screen,
    };

    return debian_build(ids, &build, err);
}

static int fill(const struct layout *layout, struct id_range_table *ids, char **words,
                struct error *err)
{
    AUTO(close)
    int archive = sys_file_open(layout->folder, ARCHIVE, O_RDWR | O_CREAT | O_EXCL, 0644);
    char digest[2 * SHA256_SIZE + 1], path[sizeof(BLOBS "/") + 2 * SHA256_SIZE];
    struct stat status;

    if (archive < 0)
        return error_set(err, ERR_INTERNAL, archive, "make an archive");
    if (build_archive(ids, words, archive, err) < 0 || hash_archive(archive, digest, err) < 0)
        return -1;
    (void) snprintf(path, sizeof(path), BLOBS "/%s", digest);
    if (renameat(layout->folder, ARCHIVE, layout->folder, path) < 0 || fstat(archive, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "keep the archive");
    return describe(layout, digest, (uint64_t) status.st_size, err);
}

int verb_image_debian(struct image_registry *images, const char *run, char **words,
                      struct error *err)
{
    AUTO(image_tools) struct image_tools tools = IMAGE_TOOLS_INIT;
    AUTO(layout) struct layout layout = {.path = "", .folder = -EBADF};
    struct image_import import = {.name = words[0]};

    if (image_check_name(images, words[0], err) < 0 || image_tools_open(&tools, run, err) < 0 ||
        layout_make(&layout, err) < 0 || fill(&layout, tools.host.ids, words, err) < 0)
        return -1;
    import.source = layout.folder;
    return image_import(images, &tools.host, &import, err);
}
