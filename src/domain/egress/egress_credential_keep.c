/* All credentials: in memory, as rows, made and gone. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_share.h"
#include "domain/egress/egress_internal.h"
#include "domain/event/event.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define ROW_TEXT_MAX   ((size_t) 128 * 1024)
#define EVENT_DATA_MAX 512
#define USED_EVERY_MS  60000 /* how exact "last used" is after a crash */

/* --- memory ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct domain *domain, const struct id *owner, const char *name)
{
    return table_hash(domain_id_hash(domain, owner), name, strlen(name));
}

struct egress_credential *egress_credential_of(const struct domain *domain, const struct id *owner,
                                               const char *name)
{
    struct table_link *at = table_find(&domain->egress->credentials, hash_of(domain, owner, name));

    for (; at; at = table_next(at)) {
        struct egress_credential *credential = CONTAINER_OF(at, struct egress_credential, by_name);

        if (id_equal(&credential->owner, owner) && strcmp(credential->name, name) == 0)
            return credential;
    }
    return NULL;
}

static void credential_enter(struct domain *domain, struct egress_credential *credential)
{
    credential->by_name.hash = hash_of(domain, &credential->owner, credential->name);
    table_add(&domain->egress->credentials, &credential->by_name);
    list_append(&domain->egress->credential_list, &credential->link);
    if (!credential->claim.account)
        domain_claim_anyway(domain, &credential->owner, SHARE_CREDENTIALS, 1, &credential->claim);
}

void egress_credential_release(struct egress_credential *credential)
{
    if (credential->is_gone && !credential->holds)
        egress_credential_free(credential);
}

static void credential_leave(struct domain *domain, struct egress_credential *credential)
{
    struct error gone = ERROR_INIT;

    (void) error_set(&gone, ERR_NOT_FOUND, 0, "credential '%s' is gone", credential->name);
    table_remove(&domain->egress->credentials, &credential->by_name);
    list_remove(&credential->link);
    share_release(&credential->claim);
    credential->is_gone = true;
    credential->holds++;
    egress_renewal_end(credential, &gone);
    credential->holds--;
    egress_credential_release(credential);
}

/* A key for one sandbox has nothing to do with what opens others. */
static bool sees_any(const struct caller *caller)
{
    return caller->scope != CALLER_SANDBOX && caller->scope != CALLER_PORT &&
           caller->scope != CALLER_NOBODY;
}

const struct egress_credential *egress_credential_find(const struct domain *domain,
                                                       const struct caller *caller,
                                                       const char *name, struct error *err)
{
    const struct egress_credential *credential =
        sees_any(caller) ? egress_credential_of(domain, &caller->owner, name) : NULL;

    if (!credential)
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such credential '%.64s'", name);
    return credential;
}

void egress_credential_each(const struct domain *domain, const struct caller *caller,
                            void (*each)(void *context, const struct egress_credential *credential),
                            void *context)
{
    LIST_EACH (&domain->egress->credential_list, at) {
        const struct egress_credential *credential =
            CONTAINER_OF(at, struct egress_credential, link);

        if (sees_any(caller) && id_equal(&credential->owner, &caller->owner))
            each(context, credential);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

static void write_texts(const struct egress_credential *credential, bool secrets, struct text *text)
{
    struct json_writer json;

    json_document_begin(&json, text);
    for (size_t i = 0; i < EGRESS_TEXT_COUNT; i++) {
        char *const *value =
            (char *const *) (const void *) ((const char *) credential + egress_texts[i].offset);

        if (*value && egress_texts[i].is_secret == secrets)
            json_add_text(&json, egress_texts[i].name, *value);
    }
    (void) json_document_end(&json); /* each text has an end: it fits */
}

void egress_credential_add_row(struct store_transaction *rows,
                               const struct egress_credential *credential)
{
    AUTO(text) struct text hosts = TEXT_INIT(ROW_TEXT_MAX);
    AUTO(text) struct text shown = TEXT_INIT(ROW_TEXT_MAX);
    AUTO(text) struct text secret = TEXT_INIT(ROW_TEXT_MAX);
    struct store_value values[STORE_CREDENTIAL_COLUMN_COUNT] = {
        [STORE_CREDENTIAL_OWNER] = store_text(credential->owner.text),
        [STORE_CREDENTIAL_NAME] = store_text(credential->name),
        [STORE_CREDENTIAL_KIND] = store_text(egress_kind_text(credential->kind)),
        [STORE_CREDENTIAL_EXPIRES] =
            credential->expires_ms ? store_integer(credential->expires_ms) : store_null(),
        [STORE_CREDENTIAL_USED] =
            credential->used_ms ? store_integer(credential->used_ms) : store_null(),
        [STORE_CREDENTIAL_CREATED] = store_integer(credential->created_ms),
        [STORE_CREDENTIAL_UPDATED] = store_integer(credential->updated_ms),
    };
    struct json_writer json;

    json_writer_init_text(&json, &hosts);
    json_begin_array(&json);
    for (size_t i = 0; i < credential->hosts.count; i++)
        json_put_text(&json, credential->hosts.items[i]);
    json_end_array(&json);
    (void) json_writer_finish(&json); /* as above */
    write_texts(credential, false, &shown);
    write_texts(credential, true, &secret);
    values[STORE_CREDENTIAL_HOSTS] = store_text(text_string(&hosts));
    values[STORE_CREDENTIAL_OPTIONS] = store_text(text_string(&shown));
    values[STORE_CREDENTIAL_SECRET] = store_bytes(text_string(&secret), secret.length);
    store_put(rows, STORE_CREDENTIAL, values);
    explicit_bzero(secret.data, secret.capacity);
}

/* Texts of a row; those that are not known are of a newer daemon. */
static int read_texts(const struct store_value *value, struct egress_credential *credential,
                      struct error *err)
{
    AUTO(json) json_t *read = json_read(value->bytes, value->length, NULL, err);

    if (!read)
        return -1;
    for (size_t i = 0; i < EGRESS_TEXT_COUNT; i++) {
        const char *text = json_string_value(json_object_get(read, egress_texts[i].name));
        char **at = (char **) (void *) ((char *) credential + egress_texts[i].offset);

        if (text && !*at)
            *at = mem_copy_text(text);
    }
    return 0;
}

static int read_row(const struct store_value *row, struct egress_credential *credential,
                    struct error *err)
{
    AUTO(json)
    json_t *hosts =
        json_read(row[STORE_CREDENTIAL_HOSTS].bytes, row[STORE_CREDENTIAL_HOSTS].length, NULL, err);

    if (!hosts || read_texts(&row[STORE_CREDENTIAL_OPTIONS], credential, err) < 0 ||
        read_texts(&row[STORE_CREDENTIAL_SECRET], credential, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(hosts); i++)
        if (json_is_string(json_array_get(hosts, i)))
            sandbox_texts_add(&credential->hosts, json_string_value(json_array_get(hosts, i)));
    for (size_t i = 0; i < EGRESS_KIND_COUNT; i++)
        if (strcmp(row[STORE_CREDENTIAL_KIND].bytes, egress_kind_text((enum egress_kind) i)) == 0) {
            credential->kind = (enum egress_kind) i;
            return 0;
        }
    return error_set(err, ERR_INTERNAL, 0, "a credential of a kind that is not known: '%.32s'",
                     row[STORE_CREDENTIAL_KIND].bytes);
}

static int credential_load_one(struct domain *domain, const struct store_value *row,
                               struct error *err)
{
    AUTO(egress_credential) struct egress_credential *credential = mem_alloc(sizeof(*credential));

    list_init(&credential->link);
    list_init(&credential->waiting);
    credential->owner = domain_row_id(&row[STORE_CREDENTIAL_OWNER]);
    credential->name = mem_copy_text(row[STORE_CREDENTIAL_NAME].bytes);
    credential->expires_ms = row[STORE_CREDENTIAL_EXPIRES].integer;
    credential->used_ms = row[STORE_CREDENTIAL_USED].integer;
    credential->created_ms = row[STORE_CREDENTIAL_CREATED].integer;
    credential->updated_ms = row[STORE_CREDENTIAL_UPDATED].integer;
    if (read_row(row, credential, err) < 0)
        return -1;
    credential_enter(domain, TAKE_PTR(credential));
    return 0;
}

void egress_credentials_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_CREDENTIAL, STORE_CREDENTIAL_CREATED, credential_load_one, done,
                context);
}

void egress_credentials_end(struct domain *domain)
{
    LIST_EACH (&domain->egress->credential_list, at)
        egress_credential_free(CONTAINER_OF(at, struct egress_credential, link));
    table_done(&domain->egress->credentials);
}

void egress_credentials_forget(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->egress->credential_list, at) {
        struct egress_credential *credential = CONTAINER_OF(at, struct egress_credential, link);

        if (id_equal(&credential->owner, owner))
            credential_leave(domain, credential);
    }
}

void egress_credential_used(struct domain *domain, struct egress_credential *credential)
{
    credential->used_ms = domain_wall_ms(domain);
    credential->is_used_unkept = true;
}

/* When it was used last is kept once a minute, all of them together in slices. */
void egress_credentials_tick(struct domain *domain)
{
    struct store_transaction *rows = NULL;
    int64_t now_ms = domain_wall_ms(domain);
    size_t count = 0;

    LIST_EACH (&domain->egress->credential_list, at) {
        struct egress_credential *credential = CONTAINER_OF(at, struct egress_credential, link);

        egress_renewal_tick(domain, credential);
        if (!credential->is_used_unkept || credential->changes || count == STORE_CHANGES_MAX ||
            now_ms / USED_EVERY_MS == credential->used_ms / USED_EVERY_MS)
            continue;
        rows = rows ? rows : store_begin(domain->options.store);
        egress_credential_add_row(rows, credential);
        credential->is_used_unkept = false;
        count++;
    }
    if (rows)
        domain_commit(domain, rows, NULL, NULL);
}

/* --- changes --------------------------------------------------------------------------------- */

struct egress_credential_change {
    struct domain_change base;
    struct egress_credential *wished; /* owned; NULL: it shall go */
    char *name;                       /* owned */
    egress_credential_done *done;
    void *context;
};

/* Answers of the store come in the order of the calls: the last one asked for is what is there. What
 * was opened with the one before is cut: it may have been taken away because it is known. */
static void credential_changed(struct domain_change *base, const struct error *failure,
                               const struct store_receipt *receipt)
{
    struct egress_credential_change *change =
        CONTAINER_OF(base, struct egress_credential_change, base);
    struct domain *domain = base->domain;
    struct egress_credential *known =
        egress_credential_of(domain, &base->caller.owner, change->name);
    struct egress_credential *made = NULL;
    unsigned int others = known && known->changes ? known->changes - 1 : 0;

    if (known && !base->is_refused)
        known->changes = others;
    if (receipt && known) {
        credential_leave(domain, known);
        egress_ways_cut(domain, &base->caller.owner, change->name);
    }
    if (receipt && change->wished) {
        made = TAKE_PTR(change->wished);
        made->changes = others;
        credential_enter(domain, made);
    }
    change->done(change->context, failure, made);
    egress_credential_free(change->wished);
    free(change->name);
    free(change);
}

/* The row of the one that is there is written by nobody else meanwhile. */
static void credential_commit(struct egress_credential_change *change,
                              struct store_transaction *rows)
{
    struct egress_credential *known =
        egress_credential_of(change->base.domain, &change->base.caller.owner, change->name);

    if (known)
        known->changes++;
    domain_change_commit(&change->base, rows);
}

static int check_writer(const struct domain_change *change, struct error *err)
{
    if (!domain_is_open(change->domain, err))
        return -1;
    if (!caller_may_write(&change->caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change credentials");
    return 0;
}

static struct egress_credential_change *
credential_change_new(struct domain *domain, const struct caller *caller, const char *name,
                      egress_credential_done *done, void *context)
{
    struct egress_credential_change *change =
        domain_change_new(sizeof(*change), domain, caller, credential_changed);

    change->name = mem_copy_text(name);
    change->done = done;
    change->context = context;
    return change;
}

/* Never with a value, or with what it was. */
static void add_event(struct egress_credential_change *change, struct store_transaction *rows,
                      const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    json_document_begin(&json, &data);
    json_add_text(&json, "credential", change->name);
    if (change->wished)
        json_add_text(&json, "kind", egress_kind_text(change->wished->kind));
    (void) json_document_end(&json); /* a name is short: it fits */
    event_add(change->base.domain, rows, &change->base.caller, &change->base.caller.owner, "system",
              type, text_string(&data));
}

static int credential_claim(const struct domain_change *change,
                            const struct egress_credential *known, struct egress_credential *wished,
                            struct error *err)
{
    if (!known)
        return domain_claim(change->domain, &wished->owner, SHARE_CREDENTIALS, 1, &wished->claim,
                            err);
    domain_claim_anyway(change->domain, &wished->owner, SHARE_CREDENTIALS, 1, &wished->claim);
    return 0;
}

void egress_credential_put(struct domain *domain, const struct caller *caller,
                           struct egress_credential *credential, egress_credential_done *done,
                           void *context)
{
    struct egress_credential_change *change =
        credential_change_new(domain, caller, credential->name, done, context);
    const struct egress_credential *known =
        egress_credential_of(domain, &caller->owner, credential->name);
    struct store_transaction *rows;

    change->wished = credential;
    credential->owner = caller->owner;
    credential->updated_ms = domain_wall_ms(domain);
    credential->created_ms = known ? known->created_ms : credential->updated_ms;
    if (check_writer(&change->base, &change->base.failure) < 0 ||
        credential_claim(&change->base, known, credential, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = store_begin(domain->options.store);
    egress_credential_add_row(rows, credential);
    add_event(change, rows, "credential.put");
    credential_commit(change, rows);
}

void egress_credential_delete(struct domain *domain, const struct caller *caller, const char *name,
                              egress_credential_done *done, void *context)
{
    struct egress_credential_change *change =
        credential_change_new(domain, caller, name, done, context);
    const struct store_condition conditions[] = {
        {STORE_CREDENTIAL_OWNER, STORE_EQUAL, store_text(caller->owner.text)},
        {STORE_CREDENTIAL_NAME, STORE_EQUAL, store_text(name)},
    };
    struct store_transaction *rows;

    if (check_writer(&change->base, &change->base.failure) < 0 ||
        !egress_credential_find(domain, caller, name, &change->base.failure)) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = store_begin(domain->options.store);
    store_delete(rows, STORE_CREDENTIAL, conditions, ARRAY_COUNT(conditions));
    add_event(change, rows, "credential.deleted");
    credential_commit(change, rows);
}
