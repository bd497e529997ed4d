/* The XML that S3 answers with: small documents of nested elements with text at their leaves.
 *
 * Only what such answers contain: elements, text, CDATA, the five named entities and numeric ones.
 * Attributes, comments and processing instructions are skipped, prefixes of names are dropped. A
 * DOCTYPE is refused, and with it everything that expands. The document is UTF-8 without NUL, so
 * that every text is an honest C string. Pure; memory is bounded by the document's length. */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define S3_XML_DEPTH_MAX 16
#define S3_XML_NAME_MAX  64

struct s3_xml_events {
    /* An element begins. `parent` is "" for the root. May be NULL. */
    void (*on_open)(void *context, const char *parent, const char *name);
    /* It ends. `text` is what it held, "" when it held elements. Borrowed for the call. */
    void (*on_close)(void *context, const char *parent, const char *name, const char *text);
};

/* Read a whole document. Returns 0, or -1 with ERR_UPSTREAM; what was told before is then void. */
int s3_xml_read(const char *bytes, size_t length, const struct s3_xml_events *events, void *context,
                struct error *err);
