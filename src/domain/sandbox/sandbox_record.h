/* A sandbox as a row of the store, and back.
 *
 * The column "spec" is the spec's JSON (model/spec_json.h). Beside the spec it holds what has no
 * column: "endedByRequest", "rebuilding", "newDisk", "unenforced" and "base". */
#pragma once

#include "base/text.h"
#include "domain/sandbox/sandbox.h"
#include "model/spec_json.h"
#include "store/store.h"

/* What a row or an event shall say of a sandbox where memory does not say it yet: memory changes
 * when the row is kept. */
struct sandbox_next {
    const struct sandbox_spec *spec; /* borrowed */
    enum sandbox_status status;
    const char *stored; /* borrowed, may be NULL */
    struct id base;
};

/* All of it as it is now, for the caller to change. */
struct sandbox_next sandbox_next(const struct sandbox *sandbox);

/* The values of a row; they borrow from the sandbox, from `next` and from `spec`. */
struct sandbox_row {
    struct store_value values[STORE_SANDBOX_COLUMN_COUNT];
    struct text spec;
};

/* `next` NULL: as it is now. */
void sandbox_row_init(struct sandbox_row *row, const struct sandbox *sandbox,
                      const struct sandbox_next *next);
void sandbox_row_done(struct sandbox_row *row);
AUTO_DEFINE(sandbox_row, struct sandbox_row, sandbox_row_done);

/* A sandbox from its row: what the row holds, everything else 0 and in no list. The caller frees it
 * with sandbox_free. NULL with ERR_INTERNAL that names the row. */
struct sandbox *sandbox_from_row(const struct store_value *row, struct error *err);

/* A new one with nothing in it but an empty reason; and its end, also for half-built ones. */
struct sandbox *sandbox_new(void);
void sandbox_free(struct sandbox *sandbox);
AUTO_DEFINE_PTR(sandbox, struct sandbox, sandbox_free);

/* "stopped by its owner": replaces the reason; cut at 255 bytes. */
void sandbox_set_reason(struct sandbox *sandbox, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
