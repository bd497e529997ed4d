/* The layers that rows name: by `stored` of sandboxes and `layers` of snapshots. What is not among
 * them is garbage. Included by src/domain and its tests only. */
#pragma once

#include "base/auto.h"
#include "domain/domain_internal.h"
#include "domain/vault.h"

#define LAYER_MARK_SIZE (ID_LENGTH + 1 + VAULT_LAYER_SIZE)

struct layer_mark {
    char text[LAYER_MARK_SIZE]; /* "<owner>/<id>" */
};

struct layer_marks {
    struct layer_mark *items; /* owned, sorted; several may be the same */
    size_t count;
};

#define LAYER_MARKS_INIT                                                                           \
    {                                                                                              \
        .items = NULL                                                                              \
    }

/* What is named now. Returns 0, or -1 with ERR_INTERNAL when one row cannot be read: who knows what
 * it names. Fills `ret_marks` (the caller's, to be freed) either way. */
int layer_marks_read(const struct domain *domain, struct layer_marks *ret_marks, struct error *err);

bool layer_marks_have(const struct layer_marks *marks, const char *name);

void layer_marks_done(struct layer_marks *marks);
AUTO_DEFINE(layer_marks, struct layer_marks, layer_marks_done);
