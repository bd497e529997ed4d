/* For tests that hold a part of a document, between its two marks, to a table in the code; with
 * --write they write that part anew, from the top of the tree. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DOCUMENT_MAX (1 << 18)

struct document_part {
    const char *page;         /* "docs/api.md" */
    const char *first, *last; /* the lines around it, with their line feeds */
    void (*put)(struct text *page);
};

static inline char *document_read(const char *page)
{
    AUTO(text) struct text path = TEXT_INIT(4096);
    const char *root = getenv("BURROW_SOURCE");
    char *content = calloc(1, DOCUMENT_MAX);
    FILE *file;

    text_format(&path, "%s%s%s", root ? root : "", root ? "/" : "", page);
    file = fopen(text_string(&path), "r");
    if (!file || fread(content, 1, DOCUMENT_MAX - 1, file) == 0) {
        free(content);
        content = NULL;
    }
    if (file)
        (void) fclose(file);
    return content;
}

/* The page as it should be; empty when it has no marks. */
static inline void document_make(const struct document_part *part, const char *old,
                                 struct text *page)
{
    const char *first = strstr(old, part->first), *last = strstr(old, part->last);

    if (!first || !last)
        return;
    first += strlen(part->first);
    text_append_bytes(page, old, (size_t) (first - old));
    part->put(page);
    text_append(page, last);
}

static inline bool document_is_true(const struct document_part *part)
{
    AUTO(free) char *old = document_read(part->page);
    AUTO(text) struct text page = TEXT_INIT(DOCUMENT_MAX);

    if (!old)
        return false;
    document_make(part, old, &page);
    return strcmp(old, text_string(&page)) == 0;
}

/* For main: 0 when it is written. */
static inline int document_write(const struct document_part *part)
{
    AUTO(free) char *old = document_read(part->page);
    AUTO(text) struct text page = TEXT_INIT(DOCUMENT_MAX);
    FILE *file;
    bool is_written;

    if (old)
        document_make(part, old, &page);
    if (!page.length)
        return 1;
    file = fopen(part->page, "w");
    is_written = file && fputs(text_string(&page), file) >= 0;
    return file && fclose(file) == 0 && is_written ? 0 : 1;
}
