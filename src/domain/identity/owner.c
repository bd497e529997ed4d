#include "domain/identity/owner.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/identity/owner_internal.h"

#define OWNER_QUOTAS_MAX ((size_t) 4096)

/* --- looking --------------------------------------------------------------------------------- */

struct owner *owner_find(const struct domain *domain, const struct id *id)
{
    uint64_t hash = domain_id_hash(domain, id);

    for (struct table_link *at = table_find(&domain->owners->by_id, hash); at;
         at = table_next(at)) {
        struct owner *owner = CONTAINER_OF(at, struct owner, by_id);

        if (id_equal(&owner->id, id))
            return owner;
    }
    return NULL;
}

void owner_lower(const char *text, char *ret_text, size_t size)
{
    size_t i = 0;

    for (; text[i] && i + 1 < size; i++)
        ret_text[i] = (char) tolower((unsigned char) text[i]);
    ret_text[i] = '\0';
}

bool owner_is_gone(const struct domain *domain, const char *id)
{
    struct id owner = {.text = ""};

    (void) snprintf(owner.text, sizeof(owner.text), "%s", id);
    return id_is_valid(owner.text) && owner_count(domain) > 0 && !owner_find(domain, &owner);
}

struct owner *owner_find_email(const struct domain *domain, const char *email)
{
    char name[OWNER_EMAIL_MAX + 1];
    uint64_t hash;

    if (strlen(email) > OWNER_EMAIL_MAX)
        return NULL;
    owner_lower(email, name, sizeof(name));
    hash = table_hash(domain->seed, name, strlen(name));
    for (struct table_link *at = table_find(&domain->owners->by_email, hash); at;
         at = table_next(at)) {
        struct owner *owner = CONTAINER_OF(at, struct owner, by_email);

        if (strcmp(owner->email, name) == 0)
            return owner;
    }
    return NULL;
}

static struct owner *find_name(const struct domain *domain, const char *name)
{
    struct owner *found = NULL;

    LIST_EACH (&domain->owners->all, at) {
        struct owner *owner = CONTAINER_OF(at, struct owner, link);

        if (strcmp(owner->name, name) != 0)
            continue;
        if (found)
            return NULL; /* names need not be unique: then they name nobody */
        found = owner;
    }
    return found;
}

struct owner *owner_named(const struct domain *domain, const char *text, struct error *err)
{
    struct id id = {.text = ""};
    struct owner *owner = NULL;

    if (id_is_valid(text)) {
        memcpy(id.text, text, ID_SIZE);
        owner = owner_find(domain, &id);
    }
    if (!owner)
        owner = owner_find_email(domain, text);
    if (!owner)
        owner = find_name(domain, text);
    if (!owner)
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such user");
    return owner;
}

struct owner *owner_first_admin(const struct domain *domain)
{
    LIST_EACH (&domain->owners->all, at) {
        struct owner *owner = CONTAINER_OF(at, struct owner, link);

        if (owner->is_admin && !owner->is_disabled)
            return owner;
    }
    return NULL;
}

size_t owner_count(const struct domain *domain)
{
    return domain->owners->count;
}

void owner_each(const struct domain *domain, void (*each)(void *context, struct owner *owner),
                void *context)
{
    LIST_EACH (&domain->owners->all, at)
        each(context, CONTAINER_OF(at, struct owner, link));
}

bool owner_take_request(struct domain *domain, struct owner *owner, unsigned int *ret_retry_s)
{
    double most = owner->quota.requests_per_minute, per_ns = most / 60e9;
    uint64_t now = domain_now_ns(domain);

    if (most <= 0)
        return true;
    owner->tokens += (double) (now - owner->filled_ns) * per_ns;
    owner->filled_ns = now;
    if (owner->tokens > most)
        owner->tokens = most;
    if (owner->tokens >= 1) {
        owner->tokens -= 1;
        return true;
    }
    *ret_retry_s = (unsigned int) ((1 - owner->tokens) / per_ns / 1e9) + 1;
    return false;
}

/* --- in memory ------------------------------------------------------------------------------- */

void owner_free(struct owner *owner)
{
    if (!owner)
        return;
    free(owner->name);
    free(owner->email);
    if (owner->password)
        explicit_bzero(owner->password, strlen(owner->password));
    free(owner->password);
    free(owner->quotas);
    free(owner);
}

void owner_enter_tables(struct domain *domain, struct owner *owner)
{
    owner->by_id.hash = domain_id_hash(domain, &owner->id);
    table_add(&domain->owners->by_id, &owner->by_id);
    if (owner->email) {
        owner->by_email.hash = table_hash(domain->seed, owner->email, strlen(owner->email));
        table_add(&domain->owners->by_email, &owner->by_email);
    }
}

void owner_remember(struct domain *domain, struct owner *owner)
{
    owner_enter_tables(domain, owner);
    list_append(&domain->owners->all, &owner->link);
    domain->owners->count++;
}

void owner_leave_tables(struct domain *domain, struct owner *owner)
{
    table_remove(&domain->owners->by_id, &owner->by_id);
    if (owner->email)
        table_remove(&domain->owners->by_email, &owner->by_email);
}

int owner_set_quotas(const struct domain *domain, struct owner *owner, const char *quotas,
                     struct error *err)
{
    static const struct quota none;
    struct quota quota = owner->is_admin ? none : domain->options.default_quota;

    if (strlen(quotas) > OWNER_QUOTAS_MAX)
        return error_set(err, ERR_INVALID, 0, "the quotas are too long");
    if (quota_read(quotas, &quota, err) < 0)
        return -1;
    free(owner->quotas);
    owner->quotas = mem_copy_text(quotas);
    owner->quota = quota;
    owner->tokens = quota.requests_per_minute;
    owner->filled_ns = domain_now_ns(domain);
    return 0;
}

static int load_row(struct domain *domain, const struct store_value *row, struct error *err)
{
    AUTO(owner) struct owner *owner = mem_alloc(sizeof(*owner));

    owner->id = domain_row_id(&row[STORE_OWNER_ID]);
    owner->name = mem_copy_text(row[STORE_OWNER_NAME].bytes);
    if (!row[STORE_OWNER_EMAIL].is_null)
        owner->email = mem_copy_text(row[STORE_OWNER_EMAIL].bytes);
    if (!row[STORE_OWNER_PASSWORD].is_null)
        owner->password = mem_copy_text(row[STORE_OWNER_PASSWORD].bytes);
    owner->is_admin = strcmp(row[STORE_OWNER_ROLE].bytes, "admin") == 0;
    owner->is_disabled = !row[STORE_OWNER_DISABLED].is_null;
    owner->created_ms = row[STORE_OWNER_CREATED].integer;
    owner->updated_ms = row[STORE_OWNER_UPDATED].integer;
    if (owner_set_quotas(domain, owner, row[STORE_OWNER_QUOTAS].bytes, err) < 0)
        return error_wrap(err, "the quotas of user %s", owner->id.text);
    owner_remember(domain, TAKE_PTR(owner));
    return 0;
}

static void owners_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_OWNER, STORE_OWNER_CREATED, load_row, done, context);
}

static void owners_begin(struct domain *domain)
{
    domain->owners = mem_alloc(sizeof(*domain->owners));
    list_init(&domain->owners->all);
}

static void owners_end(struct domain *domain)
{
    struct owners *owners = TAKE_PTR(domain->owners);

    if (!owners)
        return;
    LIST_EACH (&owners->all, at)
        owner_free(CONTAINER_OF(at, struct owner, link));
    table_done(&owners->by_id);
    table_done(&owners->by_email);
    free(owners);
}

const struct domain_module domain_owners = {
    .name = "users", .begin = owners_begin, .load = owners_load, .end = owners_end};
