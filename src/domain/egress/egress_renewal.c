/* Credentials whose value expires and is asked for anew: refresh tokens of OAuth, and installations of
 * an app of GitHub's.
 *
 * Five minutes early, one at a time for each credential: a refresh token may be good only once. What
 * comes back is kept before anybody uses it, so that a daemon that dies never has a refresh token that
 * was spent. Whoever needs a value meanwhile waits for the same answer. What fails is told as an event,
 * and tried again later and later; a value that is still good is used until it expires. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/egress/egress_internal.h"
#include "domain/event/event.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define EARLY_MS       (INT64_C(5) * 60 * 1000)
#define LIFE_MS        (INT64_C(60) * 60 * 1000) /* when an answer does not say it */
#define APP_LIFE_S     600
#define APP_BACK_S     60
#define AGAIN_NS       (UINT64_C(5) * 1000 * 1000 * 1000)
#define AGAIN_MAX      6 /* 5 s, and twice as long each time, up to 5 min */
#define FORM_MAX       ((size_t) 128 * 1024)
#define EVENT_DATA_MAX 1024
#define GITHUB_BASE    "https://api.github.com"
#define EXPIRES_MAX_S  (INT64_C(400) * 24 * 3600)

struct egress_waiting {
    struct list link; /* of a credential */
    domain_done *done;
    void *context;
};

struct renewal {
    struct domain *domain;
    struct egress_credential *credential; /* held */
    char *value, *refresh_token;          /* owned: what came; NULL: as it was */
    int64_t expires_ms;
};

static bool is_renewed(const struct egress_credential *credential)
{
    return credential->kind == EGRESS_OAUTH || credential->kind == EGRESS_GITHUB_APP;
}

static bool has_expired(const struct domain *domain, const struct egress_credential *credential)
{
    return credential->expires_ms && credential->expires_ms <= domain_wall_ms(domain);
}

bool egress_needs_renewal(const struct domain *domain, const struct egress_credential *credential)
{
    return is_renewed(credential) && (!credential->value || has_expired(domain, credential));
}

/* --- the end --------------------------------------------------------------------------------- */

void egress_renewal_end(struct egress_credential *credential, const struct error *failure)
{
    struct list *link;

    while ((link = list_first(&credential->waiting))) {
        struct egress_waiting *waiting = CONTAINER_OF(link, struct egress_waiting, link);

        list_remove(link);
        waiting->done(waiting->context, failure);
        free(waiting);
    }
}

static void renewal_told(void *context, const struct error *failure,
                         const struct store_receipt *receipt)
{
    if (!failure)
        event_kept(context, receipt);
}

static void renewal_tell(struct domain *domain, const struct egress_credential *credential,
                         const struct error *failure)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct caller system = caller_system();
    struct store_transaction *rows;
    struct json_writer json;

    LOG_WARNING(domain->options.log, "a credential could not be renewed",
                log_text("owner", credential->owner.text), log_text("name", credential->name),
                log_text("error", failure->message));
    if (domain->stage != DOMAIN_OPEN)
        return;
    json_document_begin(&json, &data);
    json_add_text(&json, "credential", credential->name);
    json_add_text(&json, "error", failure->message);
    (void) json_document_end(&json); /* both texts are short: they fit */
    rows = store_begin(domain->options.store);
    event_add(domain, rows, &system, &credential->owner, "system", "credential.renewal_failed",
              text_string(&data));
    domain_commit(domain, rows, renewal_told, domain);
}

static void renewal_failed(struct domain *domain, struct egress_credential *credential,
                           const struct error *failure)
{
    unsigned int times = credential->failed < AGAIN_MAX ? credential->failed : AGAIN_MAX;

    credential->renew_ns = domain_now_ns(domain) + (AGAIN_NS << times);
    /* The same failure again is no news. */
    if (!credential->failure || strcmp(credential->failure, failure->message) != 0)
        renewal_tell(domain, credential, failure);
    credential->failed++;
    free(credential->failure);
    credential->failure = mem_copy_text(failure->message);
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void renewal_free(struct renewal *renewal, const struct error *failure)
{
    struct egress_credential *credential = renewal->credential;
    struct domain *domain = renewal->domain;

    credential->is_renewing = false;
    if (failure && !credential->is_gone)
        renewal_failed(domain, credential, failure);
    egress_renewal_end(credential, failure);
    credential->holds--;
    egress_credential_release(credential);
    wipe(renewal->value);
    wipe(renewal->refresh_token);
    free(renewal);
    domain->works--;
    domain_check_gone(domain);
}

/* --- what came ------------------------------------------------------------------------------- */

static void renewal_take(struct renewal *renewal)
{
    struct egress_credential *credential = renewal->credential;

    wipe(credential->value);
    credential->value = TAKE_PTR(renewal->value);
    if (renewal->refresh_token) {
        wipe(credential->refresh_token);
        credential->refresh_token = TAKE_PTR(renewal->refresh_token);
    }
    credential->expires_ms = renewal->expires_ms;
    credential->updated_ms = domain_wall_ms(renewal->domain);
    credential->failed = 0;
    free(TAKE_PTR(credential->failure));
}

/* In the store, so it may be used. */
static void renewal_kept(void *context, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct renewal *renewal = context;
    struct egress_credential *credential = renewal->credential;
    struct error gone = ERROR_INIT;

    (void) receipt;
    if (!failure && !credential->is_gone)
        renewal_take(renewal);
    if (!failure && credential->is_gone) {
        (void) error_set(&gone, ERR_NOT_FOUND, 0, "credential '%s' is gone", credential->name);
        failure = &gone;
    }
    renewal_free(renewal, failure);
}

/* The row as it will be: the credential has the old values until it is kept. */
static void renewal_keep(struct renewal *renewal)
{
    struct egress_credential *credential = renewal->credential;
    struct egress_credential next = *credential;
    struct store_transaction *rows;
    struct error changed = ERROR_INIT;

    if (credential->is_gone || credential->changes || renewal->domain->stage != DOMAIN_OPEN) {
        (void) error_set(&changed, ERR_CONFLICT, 0, "credential '%s' is another one now",
                         credential->name);
        renewal_free(renewal, &changed);
        return;
    }
    next.value = renewal->value;
    next.refresh_token =
        renewal->refresh_token ? renewal->refresh_token : credential->refresh_token;
    next.expires_ms = renewal->expires_ms;
    rows = store_begin(renewal->domain->options.store);
    egress_credential_add_row(rows, &next);
    domain_commit(renewal->domain, rows, renewal_kept, renewal);
}

static bool is_token(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char) *at <= ' ' || (unsigned char) *at >= 0x7f)
            return false;
    return *text && strlen(text) <= EGRESS_SECRET_MAX;
}

/* {"access_token", "refresh_token", "expires_in"} of OAuth, {"token", "expires_at"} of GitHub. No
 * message repeats what came: it may be a secret. */
static int renewal_read(struct renewal *renewal, const char *body, struct error *err)
{
    AUTO(json) json_t *read = json_read(body, strlen(body), NULL, err);
    const char *token = json_string_value(json_object_get(read, "access_token"));
    const char *refresh = json_string_value(json_object_get(read, "refresh_token"));
    const char *until = json_string_value(json_object_get(read, "expires_at"));
    json_int_t seconds = json_integer_value(json_object_get(read, "expires_in"));
    int64_t now_ms = domain_wall_ms(renewal->domain);

    if (!token)
        token = json_string_value(json_object_get(read, "token"));
    if (!token || !is_token(token) || (refresh && !is_token(refresh)))
        return error_set(err, ERR_UPSTREAM, 0, "the answer has no access token");
    renewal->value = mem_copy_text(token);
    renewal->refresh_token = refresh ? mem_copy_text(refresh) : NULL;
    renewal->expires_ms = now_ms + LIFE_MS;
    if (seconds > 0 && seconds < EXPIRES_MAX_S)
        renewal->expires_ms = now_ms + (int64_t) seconds * 1000;
    else if (until && strlen(until) == strlen("2026-11-19T22:00:00Z")) {
        char text[CLOCK_TEXT_SIZE];

        (void) snprintf(text, sizeof(text), "%.19s.000Z", until);
        (void) clock_parse(text, &renewal->expires_ms);
    }
    return 0;
}

static void renewal_answered(void *context, const struct error *failure, int status,
                             const char *body)
{
    struct renewal *renewal = context;
    struct error err = ERROR_INIT;

    if (failure)
        err = *failure;
    else if (status < 200 || status > 299)
        (void) error_set(&err, ERR_UPSTREAM, 0, "it was answered with status %d%s", status,
                         status == 400 || status == 401 ? ": log in again, and put the credential "
                                                          "with its new refresh token"
                                                        : "");
    else if (renewal_read(renewal, body, &err) == 0) {
        renewal_keep(renewal);
        return;
    }
    (void) error_wrap(&err, "renew credential '%s'", renewal->credential->name);
    renewal_free(renewal, &err);
}

/* --- what is asked --------------------------------------------------------------------------- */

static void form_add(struct text *form, const char *name, const char *value)
{
    if (!value)
        return;
    text_format(form, "%s%s=", form->length ? "&" : "", name);
    for (const unsigned char *at = (const unsigned char *) value; *at; at++)
        if (isalnum(*at) || strchr("-._~", *at))
            text_append_char(form, (char) *at);
        else
            text_format(form, "%%%02X", *at);
}

static void renewal_ask_oauth(struct renewal *renewal)
{
    const struct egress_credential *credential = renewal->credential;
    const struct token_source *tokens = renewal->domain->options.tokens;
    AUTO(text) struct text form = TEXT_INIT(FORM_MAX);
    struct token_order order = {.url = credential->token_url};

    form_add(&form, "grant_type", "refresh_token");
    form_add(&form, "refresh_token", credential->refresh_token);
    form_add(&form, "client_id", credential->client_id);
    form_add(&form, "client_secret", credential->client_secret);
    form_add(&form, "scope", credential->scope);
    order.body = text_string(&form);
    tokens->ask(tokens->self, &order, renewal_answered, renewal);
    explicit_bzero(form.data, form.capacity);
}

static void renewal_ask_github(struct renewal *renewal)
{
    const struct egress_credential *credential = renewal->credential;
    const struct token_source *tokens = renewal->domain->options.tokens;
    int64_t now_s = domain_wall_ms(renewal->domain) / 1000;
    const struct token_claim claim = {.key = credential->private_key,
                                      .issuer = credential->app_id,
                                      .issued_s = now_s - APP_BACK_S,
                                      .expires_s = now_s + APP_LIFE_S - APP_BACK_S};
    struct error err = ERROR_INIT;
    AUTO(free) char *proof = tokens->sign(tokens->self, &claim, &err);
    AUTO(text) struct text url = TEXT_INIT(2 * EGRESS_TEXT_MAX);
    const struct token_order order = {.url = NULL, .body = "{}", .bearer = proof};
    struct token_order full = order;

    if (!proof) {
        (void) error_wrap(&err, "renew credential '%s'", credential->name);
        renewal_free(renewal, &err);
        return;
    }
    text_format(&url, "%s/app/installations/%s/access_tokens",
                credential->base ? credential->base : GITHUB_BASE, credential->installation_id);
    full.url = text_string(&url);
    tokens->ask(tokens->self, &full, renewal_answered, renewal);
}

static void renewal_begin(struct domain *domain, struct egress_credential *credential)
{
    struct renewal *renewal = mem_alloc(sizeof(*renewal));

    *renewal = (struct renewal){.domain = domain, .credential = credential};
    credential->is_renewing = true;
    credential->holds++;
    domain->works++;
    if (credential->kind == EGRESS_OAUTH)
        renewal_ask_oauth(renewal);
    else
        renewal_ask_github(renewal);
}

static int renewal_check(const struct domain *domain, const struct egress_credential *credential,
                         struct error *err)
{
    if (!domain->options.tokens)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "this daemon renews no credentials");
    if (domain->stage != DOMAIN_OPEN)
        return error_set(err, ERR_UNAVAILABLE, 0, "the daemon is ending");
    if (!credential->is_renewing && credential->failure &&
        domain_now_ns(domain) < credential->renew_ns)
        return error_set(err, ERR_UPSTREAM, 0, "%s", credential->failure);
    return 0;
}

void egress_renew(struct domain *domain, struct egress_credential *credential, domain_done *done,
                  void *context)
{
    struct egress_waiting *waiting;
    struct error err = ERROR_INIT;

    if (!egress_needs_renewal(domain, credential)) {
        done(context, NULL);
        return;
    }
    if (renewal_check(domain, credential, &err) < 0) {
        done(context, &err);
        return;
    }
    waiting = mem_alloc(sizeof(*waiting));
    *waiting = (struct egress_waiting){.done = done, .context = context};
    list_append(&credential->waiting, &waiting->link);
    if (!credential->is_renewing)
        renewal_begin(domain, credential);
}

/* One that was never used is renewed when somebody needs it. */
void egress_renewal_tick(struct domain *domain, struct egress_credential *credential)
{
    struct error err = ERROR_INIT;

    if (!is_renewed(credential) || credential->is_renewing || credential->changes ||
        !credential->expires_ms || !credential->used_ms ||
        credential->expires_ms - EARLY_MS > domain_wall_ms(domain) ||
        renewal_check(domain, credential, &err) < 0)
        return;
    renewal_begin(domain, credential);
}
