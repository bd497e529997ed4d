/* What is done to owners: planned on a copy, kept in the store, then applied. */
#include <string.h>

#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/identity/api_key.h"
#include "domain/identity/login.h"
#include "domain/identity/owner_internal.h"
#include "domain/standing.h"
#include "json/json_write.h"

#define EVENT_TEXT_MAX ((size_t) 4096)

struct owner_change {
    struct domain_change base;
    struct owner *owner;  /* borrowed; NULL for a new one */
    struct owner *wished; /* owned: as it shall be; NULL: it shall go */
    bool ends_logins;
    bool was_disabled;
    owner_done *done;
    void *context;
};

static struct owner_change *owner_change_new(struct domain *domain, const struct caller *caller,
                                             domain_change_end *end, owner_done *done,
                                             void *context)
{
    struct owner_change *change = domain_change_new(sizeof(*change), domain, caller, end);

    change->done = done;
    change->context = context;
    return change;
}

static void owner_change_end(struct owner_change *change, const struct error *failure,
                             struct owner *owner)
{
    struct domain *domain = change->base.domain;
    struct error err;

    /* The store's own sentence names an index. */
    if (failure && failure->code == ERR_CONFLICT && change->wished && !change->base.is_refused) {
        (void) error_set(&err, ERR_CONFLICT, 0, "this email is taken");
        failure = &err;
    }
    change->done(change->context, failure, failure ? NULL : owner);
    owner_free(change->wished);
    free(change);
    standing_changed(domain);
}

/* Just enough to keep nonsense out; whether mail arrives there nobody can tell by looking. */
static int check_email(const char *email, struct error *err)
{
    const char *at = strchr(email, '@');
    size_t length = strlen(email);
    bool is_sound = at && at != email && at[1] && !strchr(at + 1, '@') && length <= OWNER_EMAIL_MAX;

    for (size_t i = 0; is_sound && i < length; i++)
        is_sound = (unsigned char) email[i] > ' ' && (unsigned char) email[i] < 0x7f;
    if (!is_sound)
        return error_set(err, ERR_INVALID, 0, "this is not an email address of at most %d bytes",
                         OWNER_EMAIL_MAX);
    return 0;
}

/* The defaults beneath them are those of an administrator, or not. */
static int owner_wish_quotas(struct owner_change *change, const struct owner_spec *spec,
                             struct error *err)
{
    struct owner *wished = change->wished;
    AUTO(free) char *quotas = mem_copy_text(spec->quotas ? spec->quotas : wished->quotas);

    if (!spec->quotas && spec->is_admin < 0)
        return 0;
    return owner_set_quotas(change->base.domain, wished, quotas, err);
}

/* What is given replaces what is there. */
static int owner_wish(struct owner_change *change, const struct owner_spec *spec, struct error *err)
{
    struct owner *wished = change->wished;
    const struct owner *taken;
    char email[OWNER_EMAIL_MAX + 1];

    if (spec->name) {
        if (domain_check_name(spec->name, OWNER_NAME_MAX, "a user's name", err) < 0)
            return -1;
        free(wished->name);
        wished->name = mem_copy_text(spec->name);
    }
    if (spec->email) {
        if (check_email(spec->email, err) < 0)
            return -1;
        taken = owner_find_email(change->base.domain, spec->email);
        if (taken && taken != change->owner)
            return error_set(err, ERR_CONFLICT, 0, "this email is taken");
        owner_lower(spec->email, email, sizeof(email));
        free(wished->email);
        wished->email = mem_copy_text(email);
    }
    if (spec->password) {
        free(wished->password);
        wished->password = mem_copy_text(spec->password);
    }
    if (spec->is_admin >= 0)
        wished->is_admin = spec->is_admin;
    return owner_wish_quotas(change, spec, err);
}

/* --- keeping --------------------------------------------------------------------------------- */

static void owner_add_row(struct store_transaction *transaction, const struct owner *owner,
                          bool is_new)
{
    struct store_value row[STORE_OWNER_COLUMN_COUNT] = {
        [STORE_OWNER_ID] = store_text(owner->id.text),
        [STORE_OWNER_OWNER] = store_text(owner->id.text),
        [STORE_OWNER_NAME] = store_text(owner->name),
        [STORE_OWNER_EMAIL] = store_text(owner->email),
        [STORE_OWNER_PASSWORD] = store_text(owner->password),
        [STORE_OWNER_ROLE] = store_text(owner->is_admin ? "admin" : "user"),
        [STORE_OWNER_QUOTAS] = store_text(owner->quotas),
        [STORE_OWNER_DISABLED] =
            owner->is_disabled ? store_integer(owner->updated_ms) : store_null(),
        [STORE_OWNER_CREATED] = store_integer(owner->created_ms),
        [STORE_OWNER_UPDATED] = store_integer(owner->updated_ms),
    };

    if (is_new)
        store_insert(transaction, STORE_OWNER, row);
    else
        store_update(transaction, STORE_OWNER, row);
}

static void owner_add_event(struct owner_change *change, struct store_transaction *rows,
                            const struct owner *owner, const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_TEXT_MAX);
    struct json_writer json;

    json_document_begin(&json, &data);
    json_add_text(&json, "userId", owner->id.text);
    json_add_text(&json, "name", owner->name);
    json_add_text(&json, "role", owner->is_admin ? "admin" : "user");
    json_add_boolean(&json, "disabled", owner->is_disabled);
    (void) json_document_end(&json); /* all of its parts are bounded */
    event_add(change->base.domain, rows, &change->base.caller, &owner->id, "system", type,
              text_string(&data));
}

/* --- create ---------------------------------------------------------------------------------- */

static void owner_created(struct domain_change *base, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct owner_change *change = CONTAINER_OF(base, struct owner_change, base);
    struct owner *owner = failure ? NULL : TAKE_PTR(change->wished);

    (void) receipt;
    if (owner)
        owner_remember(base->domain, owner);
    owner_change_end(change, failure, owner);
}

static int owner_plan_create(struct owner_change *change, const struct owner_spec *spec,
                             struct error *err)
{
    struct domain *domain = change->base.domain;

    if (!domain_is_open(domain, err))
        return -1;
    if (change->base.caller.scope < CALLER_ADMIN)
        return error_set(err, ERR_FORBIDDEN, 0, "only administrators make users");
    if (domain->owners->count >= OWNERS_MAX)
        return error_set(err, ERR_QUOTA, 0, "there are %d users, and that is the limit",
                         OWNERS_MAX);
    if (!spec->name)
        return error_set(err, ERR_INVALID, 0, "a user needs a name");
    if (owner_set_quotas(domain, change->wished, "{}", err) < 0)
        return -1;
    return owner_wish(change, spec, err);
}

void owner_create(struct domain *domain, const struct caller *caller, const struct owner_spec *spec,
                  owner_done *done, void *context)
{
    struct owner_change *change = owner_change_new(domain, caller, owner_created, done, context);
    struct store_transaction *rows;

    change->wished = mem_alloc(sizeof(*change->wished));
    change->wished->id = id_new();
    change->wished->created_ms = change->wished->updated_ms = domain_wall_ms(domain);
    if (owner_plan_create(change, spec, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = store_begin(domain->options.store);
    owner_add_row(rows, change->wished, true);
    owner_add_event(change, rows, change->wished, "user.created");
    domain_change_commit(&change->base, rows);
}

/* --- update ---------------------------------------------------------------------------------- */

static struct owner *owner_copy(const struct owner *owner)
{
    struct owner *twin = mem_alloc(sizeof(*twin));

    *twin = *owner;
    twin->name = mem_copy_text(owner->name);
    twin->email = owner->email ? mem_copy_text(owner->email) : NULL;
    twin->password = owner->password ? mem_copy_text(owner->password) : NULL;
    twin->quotas = mem_copy_text(owner->quotas);
    return twin;
}

/* The owner's place in lists and tables stays; what it says is exchanged. */
static void owner_apply(struct owner_change *change)
{
    struct owner *owner = change->owner, *wished = change->wished, before = *owner;

    owner_leave_tables(change->base.domain, owner);
    owner->name = wished->name;
    owner->email = wished->email;
    owner->password = wished->password;
    owner->quotas = wished->quotas;
    owner->quota = wished->quota;
    owner->is_admin = wished->is_admin;
    owner->is_disabled = wished->is_disabled;
    owner->updated_ms = wished->updated_ms;
    wished->name = before.name;
    wished->email = before.email;
    wished->password = before.password;
    wished->quotas = before.quotas;
    owner_enter_tables(change->base.domain, owner);
}

static void owner_updated(struct domain_change *base, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct owner_change *change = CONTAINER_OF(base, struct owner_change, base);
    struct owner *owner = change->owner;

    (void) receipt;
    if (!base->is_refused)
        owner->is_unkept = false;
    if (!failure)
        owner_apply(change);
    if (!failure)
        domain_note(base->domain, &owner->id);
    if (!failure && change->ends_logins)
        login_forget_all(base->domain, &owner->id);
    owner_change_end(change, failure, owner);
}

static bool is_last_admin(const struct domain *domain, const struct owner *owner)
{
    if (!owner->is_admin || owner->is_disabled)
        return false;
    LIST_EACH (&domain->owners->all, at) {
        const struct owner *other = CONTAINER_OF(at, struct owner, link);

        /* One whose change is under way may not be one for much longer. */
        if (other != owner && other->is_admin && !other->is_disabled && !other->is_unkept)
            return false;
    }
    return true;
}

static int check_update(const struct owner_change *change, const struct owner_spec *spec,
                        int is_disabled, struct error *err)
{
    const struct caller *caller = &change->base.caller;
    const struct owner *owner = change->owner;
    bool is_wide = spec->is_admin >= 0 || spec->quotas || is_disabled >= 0;

    if (!domain_is_open(change->base.domain, err))
        return -1;
    if (caller->scope < CALLER_ADMIN &&
        (!caller_may_write(caller) || !caller_sees_owner(caller, &owner->id)))
        return error_set(err, ERR_NOT_FOUND, 0, "no such user");
    if (caller->scope < CALLER_ADMIN && (is_wide || owner->is_admin))
        return error_set(err, ERR_FORBIDDEN, 0, "only administrators may change this");
    if (owner->is_unkept)
        return error_set(err, ERR_CONFLICT, 0, "another change of this user is under way");
    if ((spec->is_admin == 0 || is_disabled > 0) && is_last_admin(change->base.domain, owner))
        return error_set(err, ERR_CONFLICT, 0,
                         "this is the last administrator; make another one first");
    return 0;
}

void owner_update(struct domain *domain, const struct caller *caller, struct owner *owner,
                  const struct owner_spec *spec, int is_disabled, owner_done *done, void *context)
{
    struct owner_change *change = owner_change_new(domain, caller, owner_updated, done, context);
    struct store_transaction *rows;

    change->owner = owner;
    change->wished = owner_copy(owner);
    if (check_update(change, spec, is_disabled, &change->base.failure) < 0 ||
        owner_wish(change, spec, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    if (is_disabled >= 0)
        change->wished->is_disabled = is_disabled;
    change->ends_logins = spec->password || is_disabled > 0;
    change->wished->updated_ms = domain_wall_ms(domain);
    owner->is_unkept = true;
    rows = store_begin(domain->options.store);
    owner_add_row(rows, change->wished, false);
    if (change->ends_logins)
        domain_delete_rows(rows, STORE_LOGIN, STORE_LOGIN_OWNER, &owner->id);
    owner_add_event(change, rows, change->wished, "user.updated");
    domain_change_commit(&change->base, rows);
}

/* --- delete ---------------------------------------------------------------------------------- */

static void owner_deleted(struct domain_change *base, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct owner_change *change = CONTAINER_OF(base, struct owner_change, base);
    struct domain *domain = base->domain;
    struct owner *owner = change->owner;

    if (!base->is_refused) {
        owner->is_unkept = false;
        owner->is_disabled = change->was_disabled;
    }
    if (receipt) {
        login_forget_all(domain, &owner->id);
        api_key_forget_all(domain, &owner->id);
        for (size_t i = 0; domain_modules[i]; i++)
            if (domain_modules[i]->owner_deleted)
                domain_modules[i]->owner_deleted(domain, &owner->id);
        owner_leave_tables(domain, owner);
        list_remove(&owner->link);
        domain->owners->count--;
        owner_free(owner);
    }
    owner_change_end(change, failure, NULL);
}

static int check_delete(const struct owner_change *change, struct error *err)
{
    const struct domain *domain = change->base.domain;
    const struct owner *owner = change->owner;

    if (!domain_is_open(domain, err))
        return -1;
    if (change->base.caller.scope < CALLER_ADMIN)
        return error_set(err, ERR_FORBIDDEN, 0, "only administrators remove users");
    if (owner->is_unkept)
        return error_set(err, ERR_CONFLICT, 0, "another change of this user is under way");
    if (is_last_admin(domain, owner))
        return error_set(err, ERR_CONFLICT, 0,
                         "this is the last administrator; make another one first");
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->owner_check &&
            domain_modules[i]->owner_check(domain, &owner->id, err) < 0)
            return -1;
    return 0;
}

void owner_delete(struct domain *domain, const struct caller *caller, struct owner *owner,
                  owner_done *done, void *context)
{
    struct owner_change *change = owner_change_new(domain, caller, owner_deleted, done, context);
    struct store_transaction *rows;

    change->owner = owner;
    if (check_delete(change, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    /* Nothing new comes in its name from here on. */
    change->was_disabled = owner->is_disabled;
    owner->is_disabled = true;
    owner->is_unkept = true;
    rows = store_begin(domain->options.store);
    domain_delete_rows(rows, STORE_LOGIN, STORE_LOGIN_OWNER, &owner->id);
    domain_delete_rows(rows, STORE_API_KEY, STORE_API_KEY_OWNER, &owner->id);
    domain_delete_rows(rows, STORE_IDEMPOTENCY, STORE_IDEMPOTENCY_OWNER, &owner->id);
    domain_delete_rows(rows, STORE_SECRET, STORE_SECRET_OWNER, &owner->id);
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->owner_deleting)
            domain_modules[i]->owner_deleting(domain, rows, &owner->id);
    domain_delete_rows(rows, STORE_OWNER, STORE_OWNER_ID, &owner->id);
    owner_add_event(change, rows, owner, "user.deleted");
    domain_change_commit(&change->base, rows);
}
