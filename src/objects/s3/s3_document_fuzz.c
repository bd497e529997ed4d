/* Answers of S3 from arbitrary bytes. Beyond not crashing: what opens also closes, in order; texts
 * are UTF-8; a listing's keys are not empty; what is escaped and read again is the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "objects/s3/s3_document.h"
#include "objects/s3/s3_xml.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
    char names[S3_XML_DEPTH_MAX][S3_XML_NAME_MAX + 1];
    size_t depth;
    size_t text_bytes;
};

static void walk_open(void *context, const char *parent, const char *name)
{
    struct walk *walk = context;

    HOLDS(walk->depth < S3_XML_DEPTH_MAX && *name && strlen(name) <= S3_XML_NAME_MAX);
    HOLDS(strcmp(parent, walk->depth ? walk->names[walk->depth - 1] : "") == 0);
    memcpy(walk->names[walk->depth++], name, strlen(name) + 1);
}

static void walk_close(void *context, const char *parent, const char *name, const char *text)
{
    struct walk *walk = context;

    HOLDS(walk->depth > 0 && strcmp(walk->names[--walk->depth], name) == 0);
    HOLDS(strcmp(parent, walk->depth ? walk->names[walk->depth - 1] : "") == 0);
    HOLDS(utf8_is_valid(text, strlen(text)));
    walk->text_bytes += strlen(text);
}

static bool check_xml(const char *bytes, size_t length)
{
    static const struct s3_xml_events events = {.on_open = walk_open, .on_close = walk_close};
    struct error err = ERROR_INIT;
    struct walk walk = {.depth = 0};

    if (s3_xml_read(bytes, length, &events, &walk, &err) < 0) {
        HOLDS(err.code == ERR_UPSTREAM && err.message[0]);
        return false;
    }
    HOLDS(walk.depth == 0 && walk.text_bytes <= length);
    return true;
}

static void check_listing(const char *bytes, size_t length, struct pool *pool)
{
    struct s3_listing listing;

    if (s3_document_listing(bytes, length, pool, &listing, NULL) < 0)
        return;
    HOLDS(listing.count <= S3_ENTRIES_MAX);
    for (size_t i = 0; i < listing.count; i++)
        HOLDS(*listing.entries[i].key && listing.entries[i].tag);
}

static void check_documents(const char *bytes, size_t length, bool is_xml)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct s3_undeleted undeleted;
    struct s3_uploads uploads;
    struct s3_failure failure;
    const char *text;
    int64_t when;
    int read = 0;

    check_listing(bytes, length, &pool);
    if (s3_document_failure(bytes, length, &pool, &failure, NULL) == 0) {
        HOLDS(failure.code && failure.message && failure.region && failure.server_time);
        HOLDS(s3_document_is_failure(bytes, length));
        read++;
    }
    if (s3_document_upload_id(bytes, length, &pool, &text, NULL) == 0) {
        HOLDS(*text);
        read++;
    }
    read += s3_document_undeleted(bytes, length, &pool, &undeleted, NULL) == 0;
    read += s3_document_uploads(bytes, length, &pool, &uploads, NULL) == 0;
    HOLDS(read <= 1); /* a root has one name */
    if (s3_document_tag(bytes, length, &pool, &text, &when, NULL) == 0)
        HOLDS(*text && is_xml);
    HOLDS(is_xml || !read);
}

static void note_text(void *context, const char *parent, const char *name, const char *text)
{
    (void) parent;
    (void) name;
    text_append(context, text);
}

static void check_escape(const char *bytes, size_t length)
{
    static const struct s3_xml_events events = {.on_close = note_text};
    AUTO(text) struct text document = TEXT_INIT(SIZE_MAX / 2), back = TEXT_INIT(SIZE_MAX / 2);
    AUTO(free) char *plain = mem_copy_bytes(bytes, length);

    if (!utf8_is_valid(plain, strlen(plain)))
        return;
    text_append(&document, "<a>");
    s3_document_escape(&document, plain);
    text_append(&document, "</a>");
    HOLDS(s3_xml_read(document.data, document.length, &events, &back, NULL) == 0);
    HOLDS(strcmp(text_string(&back), plain) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An exact copy on the heap, so that reading one byte too far is seen. */
    AUTO(free) char *bytes = malloc(size ? size : 1);

    if (!bytes || size > 65536)
        return 0;
    if (size)
        memcpy(bytes, data, size);
    check_documents(bytes, size, check_xml(bytes, size));
    check_escape(bytes, size);
    return 0;
}
