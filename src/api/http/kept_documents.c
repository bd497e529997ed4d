#include "api/http/kept_documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define KEPT_MAX 8
#define TEXT_MAX ((size_t) 4 * 1024 * 1024)

struct kept_documents {
    struct {
        const struct http_mount *mounts;
        const char *type;
        struct text text;
    } kept[KEPT_MAX];
    size_t count;
};

struct kept_documents *kept_documents_new(void)
{
    return mem_alloc(sizeof(struct kept_documents));
}

void kept_documents_free(struct kept_documents *documents)
{
    for (size_t i = 0; documents && i < documents->count; i++)
        text_done(&documents->kept[i].text);
    free(documents);
}

const struct text *kept_document(const struct kept_documents *documents,
                                 const struct http_mount *mounts, const char *type)
{
    for (size_t i = 0; documents && i < documents->count; i++) {
        if (documents->kept[i].mounts == mounts && strcmp(documents->kept[i].type, type) == 0)
            return &documents->kept[i].text;
    }
    return NULL;
}

void kept_document_add(struct kept_documents *documents, const struct http_mount *mounts,
                       const char *type, const struct text *text)
{
    struct text copy = TEXT_INIT(TEXT_MAX);

    if (!documents || documents->count == KEPT_MAX)
        return;
    text_append_bytes(&copy, text_string(text), text->length);
    documents->kept[documents->count].mounts = mounts;
    documents->kept[documents->count].type = type;
    documents->kept[documents->count].text = copy;
    documents->count++;
}
