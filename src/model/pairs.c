#include "model/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void pair_done(struct sandbox_pair *pair)
{
    free(pair->name);
    free(pair->value);
}

void sandbox_pairs_done(struct sandbox_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++)
        pair_done(&pairs->items[i]);
    free(pairs->items);
    *pairs = (struct sandbox_pairs){.count = 0};
}

static char *pair_value_copy(const char *value)
{
    return value ? mem_copy_text(value) : NULL;
}

static struct sandbox_pair *find_pair(const struct sandbox_pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].name, name) == 0)
            return &pairs->items[i];
    return NULL;
}

void sandbox_pairs_add(struct sandbox_pairs *pairs, const char *name, const char *value)
{
    pairs->items = mem_resize(pairs->items, (pairs->count + 1) * sizeof(*pairs->items));
    pairs->items[pairs->count++] =
        (struct sandbox_pair){.name = mem_copy_text(name), .value = pair_value_copy(value)};
}

struct sandbox_pairs sandbox_pairs_copy(const struct sandbox_pairs *pairs)
{
    struct sandbox_pairs copy = {.count = 0};

    for (size_t i = 0; i < pairs->count; i++)
        sandbox_pairs_add(&copy, pairs->items[i].name, pairs->items[i].value);
    return copy;
}

void sandbox_pairs_set(struct sandbox_pairs *pairs, const char *name, const char *value)
{
    struct sandbox_pair *pair = find_pair(pairs, name);
    char *copy;

    if (!pair) {
        sandbox_pairs_add(pairs, name, value);
        return;
    }
    copy = pair_value_copy(value); /* before the old one is freed: it may be in it */
    free(pair->value);
    pair->value = copy;
}

void sandbox_pairs_remove(struct sandbox_pairs *pairs, const char *name)
{
    struct sandbox_pair *pair = find_pair(pairs, name);

    if (!pair)
        return;
    pair_done(pair);
    pairs->count--;
    memmove(pair, pair + 1, (size_t) ((char *) &pairs->items[pairs->count] - (char *) pair));
}

const char *sandbox_pairs_get(const struct sandbox_pairs *pairs, const char *name)
{
    const struct sandbox_pair *pair = find_pair(pairs, name);

    return pair ? pair->value : NULL;
}

static bool value_is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool sandbox_pairs_equal(const struct sandbox_pairs *a, const struct sandbox_pairs *b)
{
    for (size_t i = 0; a->count == b->count && i < a->count; i++)
        if (strcmp(a->items[i].name, b->items[i].name) != 0 ||
            !value_is_same(a->items[i].value, b->items[i].value))
            return false;
    return a->count == b->count;
}

void sandbox_pairs_merge(struct sandbox_pairs *pairs, const struct sandbox_pairs *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct sandbox_pair *pair = &changes->items[i];

        if (pair->value)
            sandbox_pairs_set(pairs, pair->name, pair->value);
        else
            sandbox_pairs_remove(pairs, pair->name);
    }
}

void sandbox_texts_done(struct sandbox_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct sandbox_texts){.count = 0};
}

struct sandbox_texts sandbox_texts_copy(const struct sandbox_texts *texts)
{
    struct sandbox_texts copy = {.count = 0};

    for (size_t i = 0; i < texts->count; i++)
        sandbox_texts_add(&copy, texts->items[i]);
    return copy;
}

bool sandbox_texts_equal(const struct sandbox_texts *a, const struct sandbox_texts *b)
{
    for (size_t i = 0; a->count == b->count && i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return a->count == b->count;
}

void sandbox_texts_add(struct sandbox_texts *texts, const char *text)
{
    texts->items = mem_resize(texts->items, (texts->count + 1) * sizeof(*texts->items));
    texts->items[texts->count++] = mem_copy_text(text);
}
