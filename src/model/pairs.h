/* Lists of names with values, and lists of texts, as specs have them. They own what is in them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"

struct sandbox_pair {
    char *name;  /* owned */
    char *value; /* owned; NULL only in a change: the pair is removed */
};

struct sandbox_pairs {
    struct sandbox_pair *items; /* owned; each name once */
    size_t count;
};

/* Free all of them; the list is empty then. */
void sandbox_pairs_done(struct sandbox_pairs *pairs);
AUTO_DEFINE(sandbox_pairs, struct sandbox_pairs, sandbox_pairs_done);

/* A deep copy. */
struct sandbox_pairs sandbox_pairs_copy(const struct sandbox_pairs *pairs);

/* Add one, or replace the value of the one of that name. `value` NULL: as a change has it. */
void sandbox_pairs_set(struct sandbox_pairs *pairs, const char *name, const char *value);

/* The same with a name that is not there, which is not looked for: hundreds of them cost that many
 * times less. */
void sandbox_pairs_add(struct sandbox_pairs *pairs, const char *name, const char *value);
void sandbox_pairs_remove(struct sandbox_pairs *pairs, const char *name);

/* The value of that name, or NULL. Borrowed. */
const char *sandbox_pairs_get(const struct sandbox_pairs *pairs, const char *name);

/* The same, in the same order. */
bool sandbox_pairs_equal(const struct sandbox_pairs *a, const struct sandbox_pairs *b);

/* Set or remove what the changes say. */
void sandbox_pairs_merge(struct sandbox_pairs *pairs, const struct sandbox_pairs *changes);

struct sandbox_texts {
    char **items; /* owned */
    size_t count;
};

void sandbox_texts_done(struct sandbox_texts *texts);
AUTO_DEFINE(sandbox_texts, struct sandbox_texts, sandbox_texts_done);
struct sandbox_texts sandbox_texts_copy(const struct sandbox_texts *texts);
bool sandbox_texts_equal(const struct sandbox_texts *a, const struct sandbox_texts *b);
void sandbox_texts_add(struct sandbox_texts *texts, const char *text);
