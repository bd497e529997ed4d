#include "registry/registry_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/encoding/encode.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/number.h"
#include "registry/registry_challenge.h"
#include "registry/registry_document.h"
#include "registry/registry_exchange.h"

#define LINE_MAX_SIZE        ((size_t) 512)
#define RANGE_SIZE           64
#define RETRY_AFTER_S        UINT64_C(86400)        /* more is not believed */
#define REGISTRY_DOCUMENT_MS ((uint64_t) 60 * 1000) /* for a whole token */
#define STATUS_SUCCESS       200
#define STATUS_PART          206
#define STATUS_OUTSIDE       416

struct registry_client {
    struct registry_client_settings settings;
    struct registry_link link;
    struct text authorization; /* for the registry; "": none */
    bool has_answered;
};

/* One thing while it is being got. */
struct fetch {
    struct registry_client *client;
    const struct registry_wanted *wanted;
    uint64_t received;
};

enum outcome { OUTCOME_DONE, OUTCOME_AGAIN, OUTCOME_FAILED };

static const struct {
    int status;
    enum err_code code;
    bool is_transient;
    const char *text;
} failures[] = {
    {401, ERR_UNAUTHENTICATED, false, "it wants other credentials, or there is no such image"},
    {403, ERR_FORBIDDEN, false, "it does not let us"},
    {404, ERR_NOT_FOUND, false, "there is no such image"},
    {408, ERR_UPSTREAM_TIMEOUT, true, "it was too slow for itself"},
    {416, ERR_UPSTREAM, true, "it has less than it says"},
    {429, ERR_RATE_LIMITED, true, "it is asked too often"},
    {500, ERR_UPSTREAM, true, "it failed"},
    {502, ERR_UPSTREAM, true, "what is behind it failed"},
    {503, ERR_UPSTREAM, true, "it is not available"},
    {504, ERR_UPSTREAM_TIMEOUT, true, "what is behind it is too slow"},
};

/* --- life ------------------------------------------------------------------------------------ */

static int check_scheme(struct registry_client_settings *settings, struct error *err)
{
    struct registry_reference *reference = &settings->reference;

    if (settings->plain_http && !reference->has_scheme)
        reference->is_plain = true;
    if (reference->is_plain && !reference->is_loopback && !settings->plain_http)
        return error_set(err, ERR_INVALID, 0,
                         "'%s' is not this machine: plain http only with --plain-http",
                         reference->authority);
    return 0;
}

int registry_client_new(const struct registry_client_settings *settings,
                        struct registry_client **ret_client, struct error *err)
{
    AUTO(registry_client) struct registry_client *client = mem_alloc(sizeof(*client));

    client->settings = *settings;
    client->authorization.maximum = REGISTRY_TOKEN_MAX + REGISTRY_CREDENTIALS_MAX * 2;
    if (check_scheme(&client->settings, err) < 0 ||
        registry_link_init(&client->link, &client->settings.reference, settings->allow,
                           settings->ca_file, err) < 0)
        return -1;
    *ret_client = TAKE_PTR(client);
    return 0;
}

void registry_client_free(struct registry_client *client)
{
    if (!client)
        return;
    registry_link_done(&client->link);
    text_done(&client->authorization);
    free(client);
}

/* --- who we are ------------------------------------------------------------------------------ */

static void set_basic(const char *credentials, struct text *out)
{
    size_t length = strlen(credentials);
    AUTO(free) char *encoded = mem_alloc(BASE64_TEXT_SIZE(length));

    (void) base64_encode(BASE64_STANDARD, credentials, length, encoded);
    text_clear(out);
    text_format(out, "Basic %s", encoded);
}

/* Whether the token server could read another scope from this realm than the one that we append:
 * one in its query (also in disguise), or a '#' that makes ours no part of the request. */
static bool realm_could_override_scope(const char *realm)
{
    const char *at = strchr(realm, '?');

    if (strchr(realm, '#'))
        return true;
    while (at) {
        size_t length = strcspn(++at, "=&;");

        if (memchr(at, '%', length) ||
            (length == strlen("scope") && strncasecmp(at, "scope", length) == 0))
            return true;
        at = strpbrk(at, "&;");
    }
    return false;
}

static const char *token_url(const struct registry_client *client,
                             const struct registry_challenge *challenge, struct pool *pool)
{
    const struct registry_client_settings *settings = &client->settings;
    AUTO(text) struct text url = TEXT_INIT(URL_LENGTH_MAX);
    AUTO(text) struct text scope = TEXT_INIT(URL_LENGTH_MAX);

    text_append(&url, challenge->realm);
    text_append_char(&url, strchr(challenge->realm, '?') ? '&' : '?');
    if (*challenge->service) {
        text_append(&url, "service=");
        url_encode(&url, challenge->service, strlen(challenge->service));
        text_append_char(&url, '&');
    }
    /* With credentials it is us who say what they are good for. */
    if (settings->credentials || !*challenge->scope)
        text_format(&scope, "repository:%s:pull", settings->reference.path);
    else
        text_append(&scope, challenge->scope);
    text_append(&url, "scope=");
    url_encode(&url, text_string(&scope), scope.length);
    return url.overflowed || scope.overflowed ? NULL : pool_copy_text(pool, text_string(&url));
}

/* What a token server said. */
static enum outcome take_token(struct registry_client *client, const struct outbound_answer *answer,
                               struct error *err)
{
    AUTO(json) json_t *document = NULL;
    const char *token;

    if (answer->status == 401 || answer->status == 403) {
        (void) error_set(err, ERR_UNAUTHENTICATED, 0, "the token server refuses %s",
                         client->settings.credentials ? "these credentials" : "who has none");
        return OUTCOME_FAILED;
    }
    if (answer->status != 200) {
        (void) error_set(err, ERR_UPSTREAM, 0, "the token server answers with status %d",
                         answer->status);
        return answer->status == 429 || answer->status >= 500 ? OUTCOME_AGAIN : OUTCOME_FAILED;
    }
    document = registry_document_read(text_string(&answer->body), answer->body.length, err);
    if (!document || registry_token_read(document, &token, err) < 0)
        return OUTCOME_FAILED;
    text_clear(&client->authorization);
    text_format(&client->authorization, "Bearer %s", token);
    return OUTCOME_DONE;
}

static enum outcome get_token(struct registry_client *client,
                              const struct registry_challenge *challenge, struct error *err)
{
    AUTO(outbound_answer)
    struct outbound_answer answer = OUTBOUND_ANSWER_INIT(REGISTRY_DOCUMENT_MAX);
    AUTO(text) struct text basic = TEXT_INIT(REGISTRY_CREDENTIALS_MAX * 2);
    AUTO(pool) struct pool pool = POOL_INIT;
    struct registry_request request = {.url = token_url(client, challenge, &pool),
                                       .total_ms = REGISTRY_DOCUMENT_MS};
    bool is_stranger;

    if (realm_could_override_scope(challenge->realm)) {
        (void) error_set(err, ERR_UPSTREAM, 0,
                         "the URL of the registry's token server has a scope of its own");
        return OUTCOME_FAILED;
    }
    if (!request.url) {
        (void) error_set(err, ERR_UPSTREAM, 0, "the registry's token server has a URL too long");
        return OUTCOME_FAILED;
    }
    if (client->settings.credentials) {
        set_basic(client->settings.credentials, &basic);
        request.authorization = text_string(&basic);
    }
    if (registry_exchange(&client->link, &request, &answer, &is_stranger, err) < 0) {
        (void) error_wrap(err, "the token server");
        return outbound_may_retry(&answer, err) ? OUTCOME_AGAIN : OUTCOME_FAILED;
    }
    return take_token(client, &answer, err);
}

static enum outcome authorize(struct registry_client *client,
                              const struct registry_challenge *challenge, struct error *err)
{
    if (challenge->kind == REGISTRY_CHALLENGE_BEARER)
        return get_token(client, challenge, err);
    if (challenge->kind == REGISTRY_CHALLENGE_BASIC && client->settings.credentials) {
        set_basic(client->settings.credentials, &client->authorization);
        return OUTCOME_DONE;
    }
    (void) error_set(err, ERR_UNAUTHENTICATED, 0,
                     challenge->kind == REGISTRY_CHALLENGE_BASIC
                         ? "the registry wants a name and a password: --user or --credentials"
                         : "the registry wants to know who we are in a way that we do not know");
    return OUTCOME_FAILED;
}

/* --- one attempt ----------------------------------------------------------------------------- */

/* "bytes 100-199/200": it must begin where we asked. */
static int take_head(void *context, const struct outbound_answer *answer, struct error *err)
{
    struct fetch *fetch = context;
    const char *range = outbound_answer_header(answer, "content-range");
    char wanted[RANGE_SIZE];

    if (answer->status == STATUS_PART) {
        (void) snprintf(wanted, sizeof(wanted), "bytes %" PRIu64 "-", fetch->received);
        if (!range || strncmp(range, wanted, strlen(wanted)) != 0)
            return error_set(err, ERR_UPSTREAM, 0,
                             "the registry answers with another part than was asked for");
        if (fetch->received)
            return 0; /* it goes on */
    }
    fetch->received = 0;
    return fetch->wanted->restart(fetch->wanted->context, err);
}

static int take_bytes(void *context, const void *bytes, size_t length, struct error *err)
{
    struct fetch *fetch = context;
    const struct registry_wanted *wanted = fetch->wanted;
    bool is_known = wanted->size != REGISTRY_SIZE_UNKNOWN;

    if (length > (is_known ? wanted->size : wanted->size_max) - fetch->received)
        return error_set(err, is_known ? ERR_UPSTREAM : ERR_TOO_LARGE, 0,
                         "the registry gives more than %" PRIu64
                         " bytes, which is all there may be",
                         is_known ? wanted->size : wanted->size_max);
    fetch->received += length;
    return wanted->take(wanted->context, bytes, length, err);
}

static enum outcome settle(struct fetch *fetch, const struct outbound_answer *answer,
                           struct error *err)
{
    const struct registry_wanted *wanted = fetch->wanted;
    char why[REGISTRY_WHY_MAX];

    if (answer->status == STATUS_SUCCESS || answer->status == STATUS_PART) {
        if (wanted->size == REGISTRY_SIZE_UNKNOWN || wanted->size == fetch->received)
            return OUTCOME_DONE;
        (void) error_set(err, ERR_UPSTREAM, 0, "%" PRIu64 " of %" PRIu64 " bytes came",
                         fetch->received, wanted->size);
        return OUTCOME_AGAIN;
    }
    if (answer->status == STATUS_OUTSIDE)
        fetch->received = 0; /* what there is ends before it */
    registry_failure_read(text_string(&answer->body), answer->body.length, why);
    for (size_t i = 0; i < ARRAY_COUNT(failures); i++) {
        if (failures[i].status != answer->status)
            continue;
        (void) error_set(err, failures[i].code, 0, "the registry answers %d: %s%s%s%s",
                         answer->status, failures[i].text, *why ? " (" : "", why, *why ? ")" : "");
        return failures[i].is_transient ? OUTCOME_AGAIN : OUTCOME_FAILED;
    }
    (void) error_set(err, ERR_UPSTREAM, 0, "the registry answers with status %d%s%s",
                     answer->status, *why ? ": " : "", why);
    return OUTCOME_FAILED;
}

static uint64_t retry_after_s(const struct outbound_answer *answer)
{
    const char *text = outbound_answer_header(answer, "retry-after");
    uint64_t seconds = 0;

    /* A date is not understood: then our own pause does. */
    if (text)
        (void) number_parse_digits(text, strlen(text), RETRY_AFTER_S, &seconds);
    return seconds;
}

static void read_challenge(const struct outbound_answer *answer, struct pool *pool,
                           struct registry_challenge *challenge)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcmp(answer->headers[i].name, "www-authenticate") == 0)
            registry_challenge_read(answer->headers[i].value, pool, challenge);
    }
}

/* One request of it, wherever that leads. */
static enum outcome fetch_ask(struct fetch *fetch, const char *url, struct outbound_answer *answer,
                              bool *ret_is_stranger, struct error *err)
{
    struct registry_client *client = fetch->client;
    bool is_manifest = strcmp(fetch->wanted->kind, "manifests") == 0;
    const struct registry_request request = {
        .url = url,
        .accept = is_manifest ? REGISTRY_ACCEPT : NULL,
        .authorization = client->authorization.length ? client->authorization.data : NULL,
        .offset = fetch->received,
        .on_head = take_head,
        .on_bytes = take_bytes,
        .context = fetch,
    };

    if (registry_exchange(&client->link, &request, answer, ret_is_stranger, err) < 0)
        return outbound_may_retry(answer, err) ? OUTCOME_AGAIN : OUTCOME_FAILED;
    client->has_answered = true;
    return OUTCOME_DONE;
}

/* Ask, and say who we are when that is wanted. */
static enum outcome try_once(struct fetch *fetch, uint64_t *ret_retry_after_s, struct error *err)
{
    const struct registry_reference *reference = &fetch->client->settings.reference;
    AUTO(outbound_answer)
    struct outbound_answer answer = OUTBOUND_ANSWER_INIT(REGISTRY_DOCUMENT_MAX);
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *url = pool_format(&pool, "%s://%s/v2/%s/%s/%s",
                                  reference->is_plain ? "http" : "https", reference->authority,
                                  reference->path, fetch->wanted->kind, fetch->wanted->name);
    struct registry_challenge challenge = REGISTRY_CHALLENGE_INIT;
    bool is_stranger;
    enum outcome outcome = fetch_ask(fetch, url, &answer, &is_stranger, err);

    if (outcome == OUTCOME_DONE && answer.status == 401 && !is_stranger) {
        read_challenge(&answer, &pool, &challenge);
        outcome = authorize(fetch->client, &challenge, err);
        if (outcome == OUTCOME_DONE)
            outcome = fetch_ask(fetch, url, &answer, &is_stranger, err);
    }
    if (outcome != OUTCOME_DONE)
        return outcome;
    *ret_retry_after_s = retry_after_s(&answer);
    return settle(fetch, &answer, err);
}

/* --- until it is done ------------------------------------------------------------------------ */

/* Half of the bound, and up to as much by chance: many who failed together come back apart. */
static uint64_t pause_ms(unsigned int failures_in_row)
{
    uint64_t bound = REGISTRY_BACKOFF_MS, dice;

    for (unsigned int i = 1; i < failures_in_row && bound < REGISTRY_BACKOFF_MAX_MS; i++)
        bound *= 2;
    random_bytes(&dice, sizeof(dice));
    return bound / 2 + dice % (bound / 2 + 1);
}

static void wait_for(const struct registry_client *client, uint64_t milliseconds,
                     const struct error *reason)
{
    struct timespec left = {.tv_sec = (time_t) (milliseconds / 1000),
                            .tv_nsec = (long) (milliseconds % 1000) * 1000000};
    AUTO(text) struct text line = TEXT_INIT(LINE_MAX_SIZE);

    if (client->settings.tell) {
        text_format(&line, "trying again: %s", reason->message);
        client->settings.tell(client->settings.context, text_string(&line));
    }
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

int registry_client_get(struct registry_client *client, const struct registry_wanted *wanted,
                        struct error *err)
{
    struct fetch fetch = {.client = client, .wanted = wanted};
    unsigned int in_row = 0;
    uint64_t mark = 0;

    for (unsigned int attempt = 1;; attempt++) {
        struct error failure = ERROR_INIT;
        uint64_t asked_s = 0, pause;
        enum outcome outcome = try_once(&fetch, &asked_s, &failure);

        /* A connection that breaks behind the last byte has done all it was for. */
        if (outcome == OUTCOME_DONE ||
            (outcome == OUTCOME_AGAIN && wanted->size && wanted->size == fetch.received))
            return 0;
        in_row = fetch.received >= mark + REGISTRY_FURTHER ? 1 : in_row + 1;
        mark = fetch.received;
        if (outcome == OUTCOME_FAILED || attempt >= REGISTRY_TOTAL_ATTEMPTS ||
            asked_s > REGISTRY_RETRY_AFTER_MAX ||
            in_row >= (client->has_answered ? REGISTRY_ATTEMPTS_MAX : REGISTRY_FIRST_ATTEMPTS)) {
            *err = failure;
            return -1;
        }
        pause = pause_ms(in_row);
        wait_for(client, asked_s * 1000 > pause ? asked_s * 1000 : pause, &failure);
    }
}
