#include "registry/registry_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "sys/file/sys_file.h"

#define BLOBS         "blobs/sha256"
#define LAYOUT        "{\"imageLayoutVersion\":\"1.0.0\"}\n"
#define NAME_SIZE     (sizeof("sha256:") + REGISTRY_DIGEST_LENGTH)
#define INDEX_DEPTH   3
#define READABLE_FILE 0644 /* whoever unpacks it is another user */

struct pulling {
    struct registry_client *client;
    const struct registry_pull *pull;
    int blobs;      /* owned */
    uint64_t moved; /* bytes of layers that are whole */
};

/* A blob on its way: into a file, or into memory. */
struct arriving {
    struct pulling *pulling;
    struct sha256 hash;
    int file; /* owned; -EBADF: into the text */
    struct text text;
    uint64_t received;
};

static void arriving_done(struct arriving *arriving)
{
    arriving->file = fd_close(arriving->file);
    text_done(&arriving->text);
}

AUTO_DEFINE(arriving, struct arriving, arriving_done);

static int restart(void *context, struct error *err)
{
    struct arriving *arriving = context;

    sha256_init(&arriving->hash);
    arriving->received = 0;
    text_clear(&arriving->text);
    if (arriving->file >= 0 &&
        (ftruncate(arriving->file, 0) < 0 || lseek(arriving->file, 0, SEEK_SET) < 0))
        return error_set(err, error_code_from_errno(errno), errno, "begin a layer again");
    return 0;
}

static int take(void *context, const char *bytes, size_t length, struct error *err)
{
    struct arriving *arriving = context;
    const struct registry_pull *pull = arriving->pulling->pull;
    int r = 0;

    sha256_add(&arriving->hash, bytes, length);
    arriving->received += length;
    if (arriving->file < 0) {
        text_append_bytes(&arriving->text, bytes, length);
        return 0;
    }
    r = sys_file_write_full(arriving->file, bytes, length);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "write a layer");
    if (pull->moved)
        pull->moved(pull->context, arriving->pulling->moved + arriving->received);
    return 0;
}

/* Get it, and return what its digest is. */
static int get(struct arriving *arriving, const char *kind, const char *name, uint64_t size,
               char ret_digest[static REGISTRY_DIGEST_LENGTH + 1], struct error *err)
{
    const struct registry_wanted wanted = {
        .kind = kind,
        .name = name,
        .size = size,
        .size_max = REGISTRY_DOCUMENT_MAX,
        .restart = restart,
        .take = take,
        .context = arriving,
    };
    uint8_t sum[SHA256_SIZE];

    /* An empty answer begins nothing. */
    if (restart(arriving, err) < 0 ||
        registry_client_get(arriving->pulling->client, &wanted, err) < 0)
        return -1;
    sha256_finish(&arriving->hash, sum);
    (void) hex_encode(sum, sizeof(sum), ret_digest);
    return 0;
}

static int check_digest(const char *what, const char *found, const char *wanted, struct error *err)
{
    if (strcmp(found, wanted) == 0)
        return 0;
    return error_set(err, ERR_UPSTREAM, 0,
                     "%s is not what the registry says it is: its digest is %.12s, not %.12s", what,
                     found, wanted);
}

/* --- documents ------------------------------------------------------------------------------- */

static int write_file(int folder, const char *name, const void *bytes, size_t length,
                      struct error *err)
{
    AUTO(close)
    int file =
        sys_file_open(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, READABLE_FILE);
    int r = file < 0 ? file : sys_file_write_full(file, bytes, length);

    return r < 0 ? error_set(err, error_code_from_errno(r), r, "write '%s'", name) : 0;
}

/* A document, written down under its digest; `name` is a tag or "sha256:...". `blob->digest` is ""
 * when it is not known yet, and filled. The caller's. */
static json_t *get_document(struct pulling *pulling, const char *kind, const char *name,
                            struct registry_blob *blob, struct error *err)
{
    AUTO(arriving)
    struct arriving arriving = {
        .pulling = pulling, .file = -EBADF, .text = TEXT_INIT(REGISTRY_DOCUMENT_MAX)};
    char digest[REGISTRY_DIGEST_LENGTH + 1];
    const char *bytes;

    if (get(&arriving, kind, name, blob->size, digest, err) < 0 ||
        (*blob->digest && check_digest("a document", digest, blob->digest, err) < 0))
        return NULL;
    memcpy(blob->digest, digest, sizeof(blob->digest));
    blob->size = arriving.text.length;
    bytes = text_string(&arriving.text);
    if (write_file(pulling->blobs, digest, bytes, arriving.text.length, err) < 0)
        return NULL;
    return registry_document_read(bytes, arriving.text.length, err);
}

static json_t *get_named(struct pulling *pulling, const char *kind, struct registry_blob *blob,
                         struct error *err)
{
    char name[NAME_SIZE];

    (void) snprintf(name, sizeof(name), "sha256:%s", blob->digest);
    return get_document(pulling, kind, name, blob, err);
}

/* The manifest for this machine, behind an index where there is one. */
static json_t *get_manifest(struct pulling *pulling, const struct registry_reference *reference,
                            struct registry_blob *ret_blob, struct error *err)
{
    struct registry_blob blob = {.size = REGISTRY_SIZE_UNKNOWN};
    json_t *document;

    memcpy(blob.digest, reference->digest, sizeof(blob.digest));
    document = *blob.digest ? get_named(pulling, "manifests", &blob, err)
                            : get_document(pulling, "manifests", reference->tag, &blob, err);
    for (int depth = 0; document && registry_document_is_index(document); depth++) {
        AUTO(json) json_t *index = document;

        document = NULL;
        if (depth == INDEX_DEPTH)
            (void) error_set(err, ERR_INVALID, 0, "an index leads to another without an end");
        else if (registry_index_choose(index, &blob, err) == 0)
            document = get_named(pulling, "manifests", &blob, err);
    }
    *ret_blob = blob;
    return document;
}

/* --- layers ---------------------------------------------------------------------------------- */

static bool is_here(const struct registry_pull *pull, const char *digest)
{
    for (size_t i = 0; i < pull->here_count; i++) {
        if (strcmp(pull->here[i], digest) == 0)
            return true;
    }
    return false;
}

static int check_space(const struct pulling *pulling, uint64_t bytes, struct error *err)
{
    struct statvfs disk;
    uint64_t room;

    if (fstatvfs(pulling->blobs, &disk) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the disk");
    room = (uint64_t) disk.f_bavail * disk.f_frsize;
    if (room >= REGISTRY_FREE_MIN && room - REGISTRY_FREE_MIN >= bytes)
        return 0;
    return error_set(err, ERR_NO_SPACE, 0,
                     "the image has %" PRIu64 " MiB to fetch, and %" PRIu64
                     " MiB are free, of which 2048 stay",
                     bytes >> 20, room >> 20);
}

/* One that comes twice is got once. */
static int get_layer(struct pulling *pulling, const struct registry_blob *layer, struct error *err)
{
    AUTO(arriving) struct arriving arriving = {.pulling = pulling, .file = -EBADF};
    char name[NAME_SIZE], digest[REGISTRY_DIGEST_LENGTH + 1];

    (void) snprintf(name, sizeof(name), "sha256:%s", layer->digest);
    if (faccessat(pulling->blobs, layer->digest, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    arriving.file = sys_file_open(pulling->blobs, layer->digest,
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, READABLE_FILE);
    if (arriving.file < 0)
        return error_set(err, error_code_from_errno(arriving.file), arriving.file,
                         "make the file of a layer");
    if (get(&arriving, "blobs", name, layer->size, digest, err) < 0)
        return -1;
    return check_digest("it", digest, layer->digest, err);
}

static int get_layers(struct pulling *pulling, const struct registry_manifest *manifest,
                      char (*unpacked)[REGISTRY_DIGEST_LENGTH + 1], struct error *err)
{
    const struct registry_pull *pull = pulling->pull;

    for (size_t i = 0; i < manifest->layer_count; i++) {
        const struct registry_blob *layer = &manifest->layers[i];
        bool was_here = is_here(pull, unpacked[i]);

        if (!was_here && get_layer(pulling, layer, err) < 0)
            return error_wrap(err, "layer %zu of %zu", i + 1, manifest->layer_count);
        pulling->moved += was_here ? 0 : layer->size;
        if (pull->layer)
            pull->layer(pull->context, i + 1, manifest->layer_count, layer->size, was_here);
    }
    return 0;
}

/* --- the layout ------------------------------------------------------------------------------ */

static int open_folder(struct pulling *pulling, struct error *err)
{
    int folder = pulling->pull->folder;
    int r = sys_file_make_directories(folder, BLOBS, 0755);

    if (r == 0)
        r = pulling->blobs = sys_file_open(folder, BLOBS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "make the folder of the image") : 0;
}

/* Last, so that a layout with an index is whole. */
static int write_index(const struct pulling *pulling, const struct registry_blob *manifest,
                       struct error *err)
{
    AUTO(text) struct text index = TEXT_INIT(REGISTRY_DOCUMENT_MAX);
    int folder = pulling->pull->folder;

    text_format(&index,
                "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
                "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\","
                "\"size\":%" PRIu64 "}]}\n",
                manifest->digest, manifest->size);
    if (write_file(folder, "oci-layout", LAYOUT, strlen(LAYOUT), err) < 0)
        return -1;
    return write_file(folder, "index.json", text_string(&index), index.length, err);
}

static int tell_found(const struct pulling *pulling, const char *digest,
                      const struct registry_manifest *manifest,
                      char (*unpacked)[REGISTRY_DIGEST_LENGTH + 1], struct error *err)
{
    const struct registry_pull *pull = pulling->pull;
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->layer_count; i++)
        bytes += is_here(pull, unpacked[i]) ? 0 : manifest->layers[i].size;
    if (pull->found)
        pull->found(pull->context, digest, manifest->layer_count, bytes);
    return check_space(pulling, bytes, err);
}

static int pull_all(struct pulling *pulling, const struct registry_reference *reference,
                    struct error *err)
{
    AUTO(registry_manifest) struct registry_manifest manifest = REGISTRY_MANIFEST_INIT;
    AUTO(free) char(*unpacked)[REGISTRY_DIGEST_LENGTH + 1] = NULL;
    AUTO(json) json_t *document = NULL, *config = NULL;
    struct registry_blob blob;

    document = get_manifest(pulling, reference, &blob, err);
    if (!document || registry_manifest_read(document, &manifest, err) < 0)
        return -1;
    config = get_named(pulling, "blobs", &manifest.config, err);
    if (!config || registry_config_layers(config, manifest.layer_count, &unpacked, err) < 0 ||
        tell_found(pulling, blob.digest, &manifest, unpacked, err) < 0 ||
        get_layers(pulling, &manifest, unpacked, err) < 0)
        return -1;
    return write_index(pulling, &blob, err);
}

int registry_pull(struct registry_client *client, const struct registry_reference *reference,
                  const struct registry_pull *pull, struct error *err)
{
    struct pulling pulling = {.client = client, .pull = pull, .blobs = -EBADF};
    int result = open_folder(&pulling, err);

    if (result == 0)
        result = pull_all(&pulling, reference, err);
    pulling.blobs = fd_close(pulling.blobs);
    return result;
}
