#include "domain/port/port.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/hash.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/event/audit.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"

#define EVENT_DATA_MAX 128
#define TOKEN_LETTERS  "abcdefghijklmnopqrstuvwxyz0123456789"
#define TOKEN_ALLOWED  TOKEN_LETTERS "_"

struct ports {
    struct table by_sandbox; /* of port: all of a sandbox have the same hash */
};

/* --- memory ---------------------------------------------------------------------------------- */

static struct table_link *first_of(const struct domain *domain, const struct id *sandbox)
{
    return table_find(&domain->ports->by_sandbox, domain_id_hash(domain, sandbox));
}

/* Also one that is on its way to the store. */
static struct port *find_any(const struct domain *domain, const struct id *sandbox, uint16_t number)
{
    for (struct table_link *at = first_of(domain, sandbox); at; at = table_next(at)) {
        struct port *port = CONTAINER_OF(at, struct port, by_sandbox);

        if (port->number == number && id_equal(&port->sandbox, sandbox))
            return port;
    }
    return NULL;
}

struct port *port_find(const struct domain *domain, const struct id *sandbox, uint16_t number)
{
    struct port *port = find_any(domain, sandbox, number);

    return port && port->is_kept ? port : NULL;
}

void port_each(const struct domain *domain, const struct id *sandbox,
               void (*each)(void *context, struct port *port), void *context)
{
    for (struct table_link *at = first_of(domain, sandbox), *next; at; at = next) {
        struct port *port = CONTAINER_OF(at, struct port, by_sandbox);

        next = table_next(at);
        if (port->is_kept && id_equal(&port->sandbox, sandbox))
            each(context, port);
    }
}

static struct port *port_new(struct domain *domain, const struct id *sandbox, uint16_t number)
{
    struct port *port = mem_alloc(sizeof(*port));

    port->sandbox = *sandbox;
    port->number = number;
    port->by_sandbox.hash = domain_id_hash(domain, sandbox);
    table_add(&domain->ports->by_sandbox, &port->by_sandbox);
    return port;
}

static void port_free(struct domain *domain, struct port *port)
{
    table_remove(&domain->ports->by_sandbox, &port->by_sandbox);
    free(port->name);
    free(port);
}

/* Gone once nobody needs it: not kept, and nothing of it on its way. */
static void port_release(struct domain *domain, struct port *port)
{
    if (!port->is_kept && !port->under_way)
        port_free(domain, port);
}

bool port_opens(const struct domain *domain, const struct port *port, const char *token)
{
    uint8_t given[SHA256_SIZE], right[SHA256_SIZE];

    /* Of their hashes, so that neither content nor length tells by time. */
    sha256_bytes(token, strlen(token), given);
    sha256_bytes(port->token, strlen(port->token), right);
    return hash_equal(given, right, sizeof(given)) &&
           (!port->expires_ms || port->expires_ms > domain_wall_ms(domain));
}

/* --- the module ------------------------------------------------------------------------------ */

static int port_load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct id sandbox = domain_row_id(&row[STORE_PORT_SANDBOX]);
    struct port *port = port_new(domain, &sandbox, (uint16_t) row[STORE_PORT_PORT].integer);

    (void) err;
    port->owner = domain_row_id(&row[STORE_PORT_OWNER]);
    (void) snprintf(port->token, sizeof(port->token), "%s", row[STORE_PORT_TOKEN].bytes);
    port->name = row[STORE_PORT_NAME].is_null ? NULL : mem_copy_text(row[STORE_PORT_NAME].bytes);
    port->wakes = row[STORE_PORT_WAKE].integer != 0;
    port->expires_ms = row[STORE_PORT_EXPIRES].integer;
    port->created_ms = row[STORE_PORT_CREATED].integer;
    port->is_kept = true;
    return 0;
}

static void ports_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_PORT, STORE_PORT_SANDBOX, port_load_one, done, context);
}

static void ports_begin(struct domain *domain)
{
    domain->ports = mem_alloc(sizeof(*domain->ports));
}

static void ports_destroying(struct domain *domain, struct store_transaction *change,
                             const struct sandbox *sandbox)
{
    (void) domain;
    domain_delete_rows(change, STORE_PORT, STORE_PORT_SANDBOX, &sandbox->id);
}

static void forget_all(struct domain *domain, const struct id *sandbox)
{
    for (struct table_link *at = first_of(domain, sandbox), *next; at; at = next) {
        struct port *port = CONTAINER_OF(at, struct port, by_sandbox);

        next = table_next(at);
        if (!id_equal(&port->sandbox, sandbox))
            continue;
        port->is_kept = false;
        port_release(domain, port);
    }
}

static void ports_end(struct domain *domain)
{
    struct ports *ports = TAKE_PTR(domain->ports);

    if (!ports)
        return;
    for (size_t i = 0; i < ports->by_sandbox.bucket_count; i++) {
        for (struct table_link *at = ports->by_sandbox.buckets[i], *next; at; at = next) {
            struct port *port = CONTAINER_OF(at, struct port, by_sandbox);

            next = at->next;
            free(port->name);
            free(port);
        }
    }
    table_done(&ports->by_sandbox);
    free(ports);
}

const struct domain_module domain_ports = {
    .name = "ports",
    .begin = ports_begin,
    .load = ports_load,
    .destroying = ports_destroying,
    .destroyed = forget_all,
    .end = ports_end,
};

/* --- changing -------------------------------------------------------------------------------- */

struct port_change {
    struct domain_change base;
    struct port *port;  /* NULL when it is refused */
    struct port wished; /* its name is owned */
    const char *action;
    port_done *done;
    void *context;
};

static struct port_change *port_change_new(struct domain *domain, const struct caller *caller,
                                           domain_change_end *end, const char *action,
                                           port_done *done, void *context)
{
    struct port_change *change = domain_change_new(sizeof(*change), domain, caller, end);

    change->action = action;
    change->done = done;
    change->context = context;
    return change;
}

/* What was done is in the audit log already, with its event. */
static void port_change_end(struct port_change *change, const struct error *failure)
{
    struct domain *domain = change->base.domain;
    struct port *port = change->port;

    if (failure && port)
        audit_add(domain, &change->base.caller, change->action, port->sandbox.text, failure);
    change->done(change->context, failure, failure ? NULL : port);
    if (port)
        port_release(domain, port);
    free(change->wished.name);
    free(change);
}

static int check_token(const struct domain *domain, const struct sandbox *sandbox,
                       const struct port_spec *spec, struct error *err)
{
    size_t length = strlen(spec->token);

    if (length < PORT_TOKEN_MIN || length > PORT_TOKEN_MAX ||
        strspn(spec->token, TOKEN_ALLOWED) != length)
        return error_set(err, ERR_INVALID, 0,
                         "field 'token' must have 1 to %d characters of a-z, 0-9 and _",
                         PORT_TOKEN_MAX);
    for (struct table_link *at = first_of(domain, &sandbox->id); at; at = table_next(at)) {
        const struct port *port = CONTAINER_OF(at, struct port, by_sandbox);

        if (id_equal(&port->sandbox, &sandbox->id) && port->number != spec->number &&
            strcmp(port->token, spec->token) == 0)
            return error_set(err, ERR_CONFLICT, 0, "this token is port %u's already", port->number);
    }
    return 0;
}

static size_t count_of(const struct domain *domain, const struct id *sandbox)
{
    size_t count = 0;

    for (struct table_link *at = first_of(domain, sandbox); at; at = table_next(at))
        count += id_equal(&CONTAINER_OF(at, struct port, by_sandbox)->sandbox, sandbox);
    return count;
}

static int port_check_spec(const struct domain *domain, const struct caller *caller,
                           const struct sandbox *sandbox, const struct port_spec *spec,
                           struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_enter(caller) || caller->scope == CALLER_PORT)
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not expose ports");
    if (spec->number < PORT_FIRST || spec->number == PORT_RESERVED)
        return error_set(err, ERR_INVALID, 0,
                         "field 'port' must be from %d to 65535, and not %d, which is the agent's",
                         PORT_FIRST, PORT_RESERVED);
    if (spec->name &&
        (strlen(spec->name) > PORT_NAME_MAX || !utf8_is_valid(spec->name, strlen(spec->name))))
        return error_set(err, ERR_INVALID, 0, "field 'name' must have at most %d bytes of UTF-8",
                         PORT_NAME_MAX);
    if (spec->token && check_token(domain, sandbox, spec, err) < 0)
        return -1;
    if (!find_any(domain, &sandbox->id, spec->number) &&
        count_of(domain, &sandbox->id) >= PORTS_PER_SANDBOX)
        return error_set(err, ERR_QUOTA, 0,
                         "this sandbox has %d exposed ports, which is the limit; close one",
                         PORTS_PER_SANDBOX);
    return 0;
}

static void make_token(char ret_token[static PORT_TOKEN_SIZE])
{
    uint8_t bytes[PORT_TOKEN_MAX];

    random_bytes(bytes, sizeof(bytes));
    /* 36 letters do not divide 256: the first four come a little more often, 82 bits are left. */
    for (size_t i = 0; i < PORT_TOKEN_MAX; i++)
        ret_token[i] = TOKEN_LETTERS[bytes[i] % (sizeof(TOKEN_LETTERS) - 1)];
    ret_token[PORT_TOKEN_MAX] = '\0';
}

static void port_add_row(struct store_transaction *rows, const struct port *port)
{
    const struct store_value values[STORE_PORT_COLUMN_COUNT] = {
        [STORE_PORT_SANDBOX] = store_text(port->sandbox.text),
        [STORE_PORT_PORT] = store_integer(port->number),
        [STORE_PORT_OWNER] = store_text(port->owner.text),
        [STORE_PORT_NAME] = store_text(port->name),
        [STORE_PORT_TOKEN] = store_text(port->token),
        [STORE_PORT_WAKE] = store_integer(port->wakes),
        [STORE_PORT_EXPIRES] = port->expires_ms ? store_integer(port->expires_ms) : store_null(),
        [STORE_PORT_CREATED] = store_integer(port->created_ms),
    };

    store_put(rows, STORE_PORT, values);
}

static void port_add_event(struct port_change *change, struct store_transaction *rows,
                           const char *type)
{
    const struct port *port = change->port;
    char data[EVENT_DATA_MAX];

    (void) snprintf(data, sizeof(data), "{\"sandboxId\":\"%s\",\"port\":%u}", port->sandbox.text,
                    port->number);
    event_add(change->base.domain, rows, &change->base.caller, &port->owner, port->sandbox.text,
              type, data);
}

/* The sandbox was destroyed meanwhile, and its ports before this one came: it goes after them. */
static void delete_stray(struct domain *domain, const struct port *port)
{
    struct store_transaction *rows = store_begin(domain_store(domain));
    const struct store_condition conditions[] = {
        {STORE_PORT_SANDBOX, STORE_EQUAL, store_text(port->sandbox.text)},
        {STORE_PORT_PORT, STORE_EQUAL, store_integer(port->number)},
    };

    store_delete(rows, STORE_PORT, conditions, ARRAY_COUNT(conditions));
    domain_commit(domain, rows, NULL, NULL);
}

static void port_exposed(struct domain_change *base, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct port_change *change = CONTAINER_OF(base, struct port_change, base);
    struct port *port = change->port;
    struct error gone;

    (void) receipt;
    if (!base->is_refused)
        port->under_way--;
    if (!failure && !sandbox_set_by_id(base->domain, port->sandbox.text)) {
        (void) error_set(&gone, ERR_NOT_FOUND, 0, "sandbox %s was destroyed", port->sandbox.text);
        failure = &gone;
        port->is_kept = false;
        delete_stray(base->domain, port);
    }
    if (!failure) {
        free(port->name);
        port->name = TAKE_PTR(change->wished.name);
        port->wakes = change->wished.wakes;
        port->expires_ms = change->wished.expires_ms;
        memcpy(port->token, change->wished.token, sizeof(port->token));
        port->is_kept = true;
    }
    port_change_end(change, failure);
}

void port_expose(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                 const struct port_spec *spec, port_done *done, void *context)
{
    struct port_change *change =
        port_change_new(domain, caller, port_exposed, "port.expose", done, context);
    struct store_transaction *rows;
    struct port *port;

    if (port_check_spec(domain, caller, sandbox, spec, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    port = find_any(domain, &sandbox->id, spec->number);
    if (!port) {
        port = port_new(domain, &sandbox->id, spec->number);
        port->owner = sandbox->owner;
        port->created_ms = domain_wall_ms(domain);
        make_token(port->token); /* now: a second call for it gets the same */
    }
    change->port = port;
    change->wished = *port;
    change->wished.name = spec->name ? mem_copy_text(spec->name) : NULL;
    change->wished.wakes = spec->wakes;
    change->wished.expires_ms = spec->expires_ms;
    if (spec->token)
        (void) snprintf(change->wished.token, sizeof(change->wished.token), "%s", spec->token);
    port->under_way++;
    rows = store_begin(domain_store(domain));
    port_add_row(rows, &change->wished);
    port_add_event(change, rows, "port.exposed");
    domain_change_commit(&change->base, rows);
}

static void port_closed(struct domain_change *base, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct port_change *change = CONTAINER_OF(base, struct port_change, base);

    if (change->port) {
        change->port->under_way--;
        if (receipt)
            change->port->is_kept = false;
    }
    port_change_end(change, failure);
}

void port_unexpose(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   uint16_t number, port_done *done, void *context)
{
    struct port_change *change =
        port_change_new(domain, caller, port_closed, "port.close", done, context);
    struct error *failure = &change->base.failure;
    struct port *port = port_find(domain, &sandbox->id, number);
    const struct store_condition conditions[] = {
        {STORE_PORT_SANDBOX, STORE_EQUAL, store_text(sandbox->id.text)},
        {STORE_PORT_PORT, STORE_EQUAL, store_integer(number)},
    };
    struct store_transaction *rows;

    if (domain_is_open(domain, failure) && !port)
        (void) error_set(failure, ERR_NOT_FOUND, 0, "port %u is not exposed", number);
    else if (!caller_may_enter(caller) || caller->scope == CALLER_PORT)
        (void) error_set(failure, ERR_FORBIDDEN, 0, "this key may not close ports");
    if (failure->code != ERR_NONE) {
        domain_change_refuse(&change->base);
        return;
    }
    change->port = port;
    port->under_way++;
    rows = store_begin(domain_store(domain));
    store_delete(rows, STORE_PORT, conditions, ARRAY_COUNT(conditions));
    port_add_event(change, rows, "port.closed");
    domain_change_commit(&change->base, rows);
}
