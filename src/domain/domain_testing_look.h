/* For tests of the domain: what the store has kept and what the provider has. The second half of
 * domain_testing.h, which includes it. */
#pragma once

/* --- what is kept ----------------------------------------------------------------------------- */

struct kept {
    int times;
    size_t count;
    char status[32], reason[256], name[64], spec[4096], inside[256];
};

static inline void copy_kept(char *to, size_t size, const struct store_value *value)
{
    (void) snprintf(to, size, "%s", value->is_null ? "(null)" : value->bytes);
}

static inline void on_kept_rows(void *context, const struct error *failure,
                                const struct store_rows *rows)
{
    struct kept *kept = context;

    assert_null(failure);
    kept->times++;
    kept->count = rows->count;
    if (rows->count != 1)
        return;
    copy_kept(kept->status, sizeof(kept->status), &rows->rows[0][STORE_SANDBOX_STATUS]);
    copy_kept(kept->reason, sizeof(kept->reason), &rows->rows[0][STORE_SANDBOX_REASON]);
    copy_kept(kept->name, sizeof(kept->name), &rows->rows[0][STORE_SANDBOX_NAME]);
    copy_kept(kept->spec, sizeof(kept->spec), &rows->rows[0][STORE_SANDBOX_SPEC]);
    copy_kept(kept->inside, sizeof(kept->inside), &rows->rows[0][STORE_SANDBOX_INSIDE]);
}

/* The row of a sandbox; count 0: there is none. */
static inline struct kept world_row(struct world *world, const struct id *id)
{
    struct kept kept = {.times = 0};
    struct store_condition is_it = {
        .column = STORE_SANDBOX_ID, .comparison = STORE_EQUAL, .value = store_text(id->text)};
    struct store_query query = {.kind = STORE_SANDBOX,
                                .conditions = &is_it,
                                .condition_count = 1,
                                .order = STORE_SANDBOX_ID,
                                .limit = 10};

    store_find(world->store, &query, on_kept_rows, &kept);
    TURN_UNTIL(&world->loop, kept.times);
    return kept;
}

struct kept_events {
    int times;
    struct text types; /* "sandbox.created sandbox.stopped " */
};

static inline void on_event_rows(void *context, const struct error *failure,
                                 const struct store_rows *rows)
{
    struct kept_events *events = context;

    assert_null(failure);
    events->times++;
    for (size_t i = 0; i < rows->count; i++)
        text_format(&events->types, "%s%s", i ? " " : "", rows->rows[i][STORE_EVENT_TYPE].bytes);
}

/* The types of all events of a stream, in order, with blanks between; the caller frees. */
static inline char *world_events(struct world *world, const struct id *id)
{
    struct kept_events events = {.types = TEXT_INIT(64 * 1024)};
    struct store_condition is_it = {
        .column = STORE_EVENT_STREAM, .comparison = STORE_EQUAL, .value = store_text(id->text)};
    struct store_query query = {.kind = STORE_EVENT,
                                .conditions = &is_it,
                                .condition_count = 1,
                                .order = STORE_EVENT_CURSOR,
                                .limit = STORE_ROWS_MAX};

    store_find(world->store, &query, on_event_rows, &events);
    TURN_UNTIL(&world->loop, events.times);
    return text_take(&events.types);
}

static inline void expect_events(struct world *world, const struct id *id, const char *expected)
{
    AUTO(free) char *types = world_events(world, id);

    assert_string_equal(types, expected);
}

static inline void expect_row(struct world *world, const struct id *id, const char *status)
{
    struct kept kept = world_row(world, id);

    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.status, status);
}

/* --- what the provider has -------------------------------------------------------------------- */

struct provider_view {
    int times;
    size_t count;
    struct provider_sandbox items[64];
};

static inline void on_provider_list(void *context, const struct error *failure,
                                    const struct provider_sandbox *sandboxes, size_t count)
{
    struct provider_view *view = context;

    assert_null(failure);
    view->times++;
    view->count = count;
    for (size_t i = 0; i < count && i < ARRAY_COUNT(view->items); i++)
        view->items[i] = sandboxes[i];
}

static inline struct provider_view world_provider(struct world *world)
{
    struct provider_view view = {.times = 0};

    provider_list(world->provider, on_provider_list, &view);
    TURN_UNTIL(&world->loop, view.times);
    return view;
}

/* -1: the provider does not know it. */
static inline int world_state(struct world *world, const struct id *id)
{
    struct provider_view view = world_provider(world);

    for (size_t i = 0; i < view.count && i < ARRAY_COUNT(view.items); i++)
        if (id_equal(&view.items[i].id, id))
            return (int) view.items[i].state;
    return -1;
}
