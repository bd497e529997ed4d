#include "domain/snapshot/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/snapshot/snapshot_internal.h"
#include "json/json_write.h"

#define EVENT_DATA_MAX 512
#define SHORT_SPEC     ((size_t) 8 * 1024) /* not worth a brief one beside it */

struct templates {
    struct table by_name;
    struct list all;
};

/* --- memory ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct domain *domain, const struct id *owner, const char *name)
{
    return table_hash(domain_id_hash(domain, owner), name, strlen(name));
}

static struct template *find(const struct domain *domain, const struct id *owner, const char *name)
{
    struct table_link *at = table_find(&domain->templates->by_name, hash_of(domain, owner, name));

    for (; at; at = table_next(at)) {
        struct template *template = CONTAINER_OF(at, struct template, by_name);

        if (id_equal(&template->owner, owner) && strcmp(template->name, name) == 0)
            return template;
    }
    return NULL;
}

/* What its row takes. */
static uint64_t template_size(const struct template *template)
{
    return strlen(template->name) + strlen(template->spec);
}

static void template_free(struct template *template)
{
    share_release(&template->count);
    share_release(&template->bytes);
    free(template->name);
    free(template->spec);
    free(template->brief);
    free(template);
}

/* Lists read this one: reading and writing what is long, for each of them, would hold the loop. */
static char *make_brief(const char *spec)
{
    AUTO(sandbox_spec) struct sandbox_spec read = SANDBOX_SPEC_INIT;
    AUTO(text) struct text json = TEXT_INIT(SANDBOX_SPEC_MAX);
    size_t length = strlen(spec);

    if (length <= SHORT_SPEC || sandbox_spec_read(spec, length, &read, NULL) < 0 ||
        !sandbox_spec_is_long(&read))
        return NULL;
    sandbox_spec_shorten(&read);
    sandbox_spec_write(&read, &json);
    return text_take(&json);
}

/* The one behind it: older ones are first, which is how they come but for one that replaces another. */
static struct list *place_of(struct templates *templates, const struct template *template)
{
    struct list *at = templates->all.previous;

    for (; at != &templates->all; at = at->previous) {
        const struct template *other = CONTAINER_OF(at, struct template, link);

        if (other->created_ms < template->created_ms ||
            (other->created_ms == template->created_ms && strcmp(other->name, template->name) < 0))
            break;
    }
    return at->next;
}

static void add(struct domain *domain, struct template *template)
{
    template->by_name.hash = hash_of(domain, &template->owner, template->name);
    template->brief = make_brief(template->spec);
    table_add(&domain->templates->by_name, &template->by_name);
    list_append(place_of(domain->templates, template), &template->link);
    if (template->count.account)
        return;
    domain_claim_anyway(domain, &template->owner, SHARE_TEMPLATES, 1, &template->count);
    domain_claim_anyway(domain, &template->owner, SHARE_TEMPLATE_BYTES, template_size(template),
                        &template->bytes);
}

static void forget(struct domain *domain, struct template *template)
{
    table_remove(&domain->templates->by_name, &template->by_name);
    list_remove(&template->link);
    template_free(template);
}

/* A key for one sandbox has nothing to do with what others are made from: it may hold secrets. */
static bool sees_any(const struct caller *caller)
{
    return caller->scope != CALLER_SANDBOX && caller->scope != CALLER_PORT &&
           caller->scope != CALLER_NOBODY;
}

struct template *template_find(const struct domain *domain, const struct caller *caller,
                               const char *name, struct error *err)
{
    struct template *template = sees_any(caller) ? find(domain, &caller->owner, name) : NULL;

    if (!template)
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such template '%.64s'", name);
    return template;
}

/* A page begins behind a template that may be gone by then: it is told by time and name. */
struct place {
    int64_t created_ms;
    char name[TEMPLATE_NAME_MAX + 1]; /* "": before all */
};

static const char *write_place(const struct template *template, struct pool *pool)
{
    char name[HEX_TEXT_SIZE(TEMPLATE_NAME_MAX)];

    (void) hex_encode(template->name, strlen(template->name), name);
    return pool_format(pool, "%lld.%s", (long long) template->created_ms, name);
}

static int read_place(const char *text, struct place *place, struct error *err)
{
    const char *dot = strchr(text, '.');
    size_t length = 0;
    uint64_t created_ms;

    *place = (struct place){.created_ms = 0};
    if (!dot || number_parse_digits(text, (size_t) (dot - text), INT64_MAX, &created_ms) < 0 ||
        hex_decode(dot + 1, strlen(dot + 1), place->name, TEMPLATE_NAME_MAX, &length) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "invalid cursor; use the nextCursor of the page before");
    place->created_ms = (int64_t) created_ms;
    return 0;
}

static bool is_behind(const struct template *template, const struct place *place)
{
    if (template->created_ms != place->created_ms)
        return template->created_ms > place->created_ms;
    return strcmp(template->name, place->name) > 0;
}

int template_list(const struct domain *domain, const struct caller *caller,
                  const struct template_filter *filter, struct pool *pool,
                  void (*each)(void *context, const struct template *template), void *context,
                  const char **ret_next, struct error *err)
{
    const struct template *last = NULL;
    struct place place = {.created_ms = -1};
    size_t count = 0;

    if (filter->limit < 1 || filter->limit > TEMPLATE_LIST_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d templates", TEMPLATE_LIST_MAX);
    if (filter->after && read_place(filter->after, &place, err) < 0)
        return -1;
    *ret_next = NULL;
    LIST_EACH (&domain->templates->all, at) {
        const struct template *template = CONTAINER_OF(at, struct template, link);

        if (!sees_any(caller) || !id_equal(&template->owner, &caller->owner) ||
            !is_behind(template, &place))
            continue;
        if (count == filter->limit ||
            (count && filter->is_full && filter->is_full(filter->full_context))) {
            *ret_next = write_place(last, pool);
            break;
        }
        last = template;
        count++;
        each(context, template);
    }
    return 0;
}

int template_spec_brief(const struct template *template, struct sandbox_spec *ret_spec,
                        bool *ret_is_brief, struct error *err)
{
    const char *spec = template->brief ? template->brief : template->spec;

    *ret_is_brief = template->brief != NULL;
    return sandbox_spec_read(spec, strlen(spec), ret_spec, err);
}

int template_spec(const struct template *template, struct sandbox_spec *ret_spec, struct error *err)
{
    return sandbox_spec_read(template->spec, strlen(template->spec), ret_spec, err);
}

const char *template_of_snapshot(const struct domain *domain, const struct id *snapshot)
{
    LIST_EACH (&domain->templates->all, at) {
        const struct template *template = CONTAINER_OF(at, struct template, link);

        if (id_equal(&template->snapshot, snapshot))
            return template->name;
    }
    return NULL;
}

/* --- the module ------------------------------------------------------------------------------ */

static int load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct template *template = mem_alloc(sizeof(*template));

    (void) err;
    *template = (struct template){.owner = domain_row_id(&row[STORE_TEMPLATE_OWNER]),
                                  .name = mem_copy_text(row[STORE_TEMPLATE_NAME].bytes),
                                  .snapshot = domain_row_id(&row[STORE_TEMPLATE_SNAPSHOT]),
                                  .spec = mem_copy_text(row[STORE_TEMPLATE_SPEC].bytes),
                                  .created_ms = row[STORE_TEMPLATE_CREATED].integer,
                                  .updated_ms = row[STORE_TEMPLATE_UPDATED].integer};
    list_init(&template->link);
    add(domain, template);
    return 0;
}

/* In the order of lists. */
static void templates_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_TEMPLATE, STORE_TEMPLATE_CREATED, load_one, done, context);
}

static void templates_begin(struct domain *domain)
{
    domain->templates = mem_alloc(sizeof(*domain->templates));
    list_init(&domain->templates->all);
}

static void templates_end(struct domain *domain)
{
    if (!domain->templates)
        return;
    LIST_EACH (&domain->templates->all, at)
        template_free(CONTAINER_OF(at, struct template, link));
    table_done(&domain->templates->by_name);
    free(domain->templates);
    domain->templates = NULL;
}

static void templates_owner_deleting(struct domain *domain, struct store_transaction *change,
                                     const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_TEMPLATE, STORE_TEMPLATE_OWNER, owner);
}

static void templates_owner_deleted(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->templates->all, at) {
        struct template *template = CONTAINER_OF(at, struct template, link);

        if (id_equal(&template->owner, owner))
            forget(domain, template);
    }
}

const struct domain_module domain_templates = {
    .name = "templates",
    .begin = templates_begin,
    .load = templates_load,
    .owner_deleting = templates_owner_deleting,
    .owner_deleted = templates_owner_deleted,
    .end = templates_end,
};

/* --- changing -------------------------------------------------------------------------------- */

struct template_change {
    struct domain_change base;
    struct template *wished; /* owned; of a delete: only its owner and name count */
    bool is_delete;
    template_done *done;
    void *context;
};

/* Answers of the store come in the order of the calls: the last one asked for is what is there. */
static void template_change_end(struct domain_change *base, const struct error *failure,
                                const struct store_receipt *receipt)
{
    struct template_change *change = CONTAINER_OF(base, struct template_change, base);
    struct template *wished = change->wished;
    struct template *known = find(base->domain, &wished->owner, wished->name);

    if (receipt && known)
        forget(base->domain, known);
    if (receipt && !change->is_delete)
        add(base->domain, TAKE_PTR(change->wished));
    change->done(change->context, failure, change->wished ? NULL : wished);
    if (change->wished)
        template_free(change->wished);
    free(change);
}

static struct template_change *template_change_new(struct domain *domain,
                                                   const struct caller *caller, const char *name,
                                                   template_done *done, void *context)
{
    struct template_change *change =
        domain_change_new(sizeof(*change), domain, caller, template_change_end);

    change->done = done;
    change->context = context;
    change->wished = mem_alloc(sizeof(*change->wished));
    change->wished->owner = caller->owner;
    change->wished->name = mem_copy_text(name);
    list_init(&change->wished->link);
    return change;
}

static void template_add_event(struct template_change *change, struct store_transaction *rows,
                               const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    json_document_begin(&json, &data);
    json_add_text(&json, "template", change->wished->name);
    (void) json_document_end(&json); /* a name is short: it fits */
    event_add(change->base.domain, rows, &change->base.caller, &change->wished->owner, "system",
              type, text_string(&data));
}

static void template_add_row(struct store_transaction *rows, const struct template *template,
                             const struct sandbox_spec *spec)
{
    const struct store_value values[STORE_TEMPLATE_COLUMN_COUNT] = {
        [STORE_TEMPLATE_OWNER] = store_text(template->owner.text),
        [STORE_TEMPLATE_NAME] = store_text(template->name),
        [STORE_TEMPLATE_IMAGE] = store_text(spec->image),
        [STORE_TEMPLATE_SNAPSHOT] =
            *template->snapshot.text ? store_text(template->snapshot.text) : store_null(),
        [STORE_TEMPLATE_SPEC] = store_text(template->spec),
        [STORE_TEMPLATE_CREATED] = store_integer(template->created_ms),
        [STORE_TEMPLATE_UPDATED] = store_integer(template->updated_ms),
    };

    store_put(rows, STORE_TEMPLATE, values);
}

/* In place of the one that it replaces; until the store has answered both count. */
static int template_claim(struct template_change *change, struct error *err)
{
    struct domain *domain = change->base.domain;
    struct template *wished = change->wished;
    const struct template *known = find(domain, &wished->owner, wished->name);
    uint64_t size = template_size(wished), before = known ? template_size(known) : 0;

    if (!known && domain_claim(domain, &wished->owner, SHARE_TEMPLATES, 1, &wished->count, err) < 0)
        return -1;
    if (size > before &&
        domain_check_share(domain, &wished->owner, SHARE_TEMPLATE_BYTES, size - before, err) < 0)
        return -1;
    if (known)
        domain_claim_anyway(domain, &wished->owner, SHARE_TEMPLATES, 1, &wished->count);
    domain_claim_anyway(domain, &wished->owner, SHARE_TEMPLATE_BYTES, size, &wished->bytes);
    return 0;
}

static int check_writer(const struct domain_change *change, struct error *err)
{
    if (!domain_is_open(change->domain, err))
        return -1;
    if (!caller_may_write(&change->caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change templates");
    return 0;
}

static int check_put(const struct template_change *change, const struct sandbox_spec *spec,
                     const struct snapshot *snapshot, struct error *err)
{
    const char *name = change->wished->name;
    size_t length = strlen(name);

    if (check_writer(&change->base, err) < 0)
        return -1;
    if (length == 0 || length > TEMPLATE_NAME_MAX || !utf8_is_valid(name, length) ||
        strpbrk(name, "\n\r\t/"))
        return error_set(err, ERR_INVALID, 0,
                         "a template's name must be 1 to %d characters on one line without '/'",
                         TEMPLATE_NAME_MAX);
    if (sandbox_spec_check(spec, err) < 0)
        return -1;
    if (!snapshot)
        return 0;
    if (snapshot_check_ready(snapshot, err) < 0)
        return -1;
    if (snapshot->reason != SNAPSHOT_MANUAL || snapshot->expires_ms)
        return error_set(err, ERR_CONFLICT, 0,
                         "snapshot %s will go by itself; make one for the template that stays",
                         snapshot->id.text);
    return 0;
}

void template_put(struct domain *domain, const struct caller *caller, const char *name,
                  const struct sandbox_spec *spec, struct snapshot *snapshot, template_done *done,
                  void *context)
{
    struct template_change *change = template_change_new(domain, caller, name, done, context);
    AUTO(text) struct text json = TEXT_INIT(SANDBOX_SPEC_MAX);
    const struct template *known = find(domain, &caller->owner, name);
    struct template *wished = change->wished;
    struct store_transaction *rows;

    if (check_put(change, spec, snapshot, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    sandbox_spec_write(spec, &json);
    wished->spec = text_take(&json);
    if (template_claim(change, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    if (snapshot)
        wished->snapshot = snapshot->id;
    wished->updated_ms = domain_wall_ms(domain);
    wished->created_ms = known ? known->created_ms : wished->updated_ms;
    rows = store_begin(domain->options.store);
    template_add_row(rows, wished, spec);
    template_add_event(change, rows, "template.put");
    domain_change_commit(&change->base, rows);
}

void template_delete(struct domain *domain, const struct caller *caller, const char *name,
                     template_done *done, void *context)
{
    struct template_change *change = template_change_new(domain, caller, name, done, context);
    const struct store_condition conditions[] = {
        {STORE_TEMPLATE_OWNER, STORE_EQUAL, store_text(caller->owner.text)},
        {STORE_TEMPLATE_NAME, STORE_EQUAL, store_text(name)},
    };
    struct store_transaction *rows;

    change->is_delete = true;
    if (check_writer(&change->base, &change->base.failure) < 0 ||
        !template_find(domain, caller, name, &change->base.failure)) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = store_begin(domain->options.store);
    store_delete(rows, STORE_TEMPLATE, conditions, ARRAY_COUNT(conditions));
    template_add_event(change, rows, "template.deleted");
    domain_change_commit(&change->base, rows);
}
