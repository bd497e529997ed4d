/* Documents that are the same as long as a daemon runs, written once: anybody may ask for them, as often
 * as he likes, and writing one holds the loop for a millisecond.
 *
 *     const struct text *kept = kept_document(documents, mounts, type);
 *     if (!kept)
 *         ... write it, and kept_document_add(documents, mounts, type, &text)
 *
 * Named by the routes that it describes and the type of what is written. `documents` may be NULL: then
 * nothing is kept. */
#pragma once

#include "base/text.h"
#include "net/http/http_route.h"

struct kept_documents;

struct kept_documents *kept_documents_new(void);
void kept_documents_free(struct kept_documents *documents);

/* Borrowed; NULL: it was not written yet. */
const struct text *kept_document(const struct kept_documents *documents,
                                 const struct http_mount *mounts, const char *type);

/* Keep a copy. `type` is a literal. */
void kept_document_add(struct kept_documents *documents, const struct http_mount *mounts,
                       const char *type, const struct text *text);
