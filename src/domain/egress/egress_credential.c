/* One credential: read, checked, shown, and put into a request. Who keeps them is
 * egress_credential_keep.c. */
#include "domain/egress/egress_credential.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "base/pool.h"
#include "domain/domain_share.h"
#include "json/json_read.h"

#define WORD_SIZE      32
#define HEADER_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
#define PROOF_MAX      (2 * EGRESS_SECRET_MAX)

/* Anthropic's access tokens of a login begin so, and go with a header that says so. */
#define ANTHROPIC_LOGIN "sk-ant-oat"
#define ANTHROPIC_BETA  "oauth-2025-04-20"

static const char *const kind_texts[] = {EGRESS_KINDS(WORD_TEXT)};
static const char *const api_texts[] = {EGRESS_APIS(WORD_TEXT)};

#define TEXT_SECRET true
#define TEXT_SHOWN  false
#define TEXT_ROW(member, name_, KIND, needed_, allowed_)                                           \
    {.name = (name_),                                                                              \
     .offset = offsetof(struct egress_credential, member),                                         \
     .is_secret = TEXT_##KIND,                                                                     \
     .needed = (needed_),                                                                          \
     .allowed = (allowed_)},

const struct egress_text egress_texts[EGRESS_TEXT_COUNT] = {EGRESS_TEXTS(TEXT_ROW)};

const char *egress_kind_text(enum egress_kind kind)
{
    return kind_texts[kind];
}

static char **credential_text(struct egress_credential *credential, const struct egress_text *text)
{
    return (char **) (void *) ((char *) credential + text->offset);
}

void egress_credential_free(struct egress_credential *credential)
{
    if (!credential)
        return;
    for (size_t i = 0; i < EGRESS_TEXT_COUNT; i++) {
        char *text = *credential_text(credential, &egress_texts[i]);

        if (text)
            explicit_bzero(text, strlen(text));
        free(text);
    }
    share_release(&credential->claim);
    list_remove(&credential->link);
    sandbox_texts_done(&credential->hosts);
    free(credential->name);
    free(credential->failure);
    free(credential);
}

/* --- read ------------------------------------------------------------------------------------ */

/* It goes into a header: what ends a line, or is none of ASCII, has no place there. A key in PEM has
 * lines. */
static bool is_fit(const struct egress_text *text, const char *value)
{
    bool has_lines = text->offset == offsetof(struct egress_credential, private_key);

    for (const char *at = value; *at; at++)
        if ((unsigned char) *at >= 0x7f ||
            ((unsigned char) *at < ' ' && !(has_lines && (*at == '\n' || *at == '\r'))))
            return false;
    return *value != '\0';
}

static int credential_read_text(const struct json_place *body, const struct egress_text *text,
                                struct egress_credential *credential, struct error *err)
{
    unsigned int kind = 1u << credential->kind;
    const char *value = NULL;

    if (json_field_text(body, text->name, text->needed & kind ? JSON_REQUIRED : JSON_OPTIONAL,
                        text->is_secret ? EGRESS_SECRET_MAX : EGRESS_TEXT_MAX, &value, err) < 0)
        return -1;
    if (!value)
        return 0;
    if (!(text->allowed & kind))
        return error_set(err, ERR_INVALID, 0, "field '%s' means nothing for kind %s", text->name,
                         kind_texts[credential->kind]);
    if (!is_fit(text, value))
        return json_refuse_field(body, text->name, "printable characters of ASCII", err);
    *credential_text(credential, text) = mem_copy_text(value);
    return 0;
}

/* The hosts of the APIs that everybody knows; any other is said. */
static const char *const *default_hosts(const struct egress_credential *credential)
{
    static const char *const none[] = {NULL};
    static const char *const github[] = {"github.com", "api.github.com", NULL};
    static const char *const hosts[EGRESS_API_COUNT][2] = {
        [EGRESS_API_ANTHROPIC] = {"api.anthropic.com"},
        [EGRESS_API_OPENAI] = {"api.openai.com"},
        [EGRESS_API_GOOGLE] = {"generativelanguage.googleapis.com"},
    };
    enum egress_api api = egress_credential_api(credential);

    if (credential->kind == EGRESS_GITHUB_APP)
        return github;
    return api == EGRESS_API_NONE ? none : hosts[api];
}

static int read_hosts(const struct json_place *body, struct egress_credential *credential,
                      struct error *err)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts texts = {.count = 0};

    if (json_field_texts(body, "hosts", JSON_OPTIONAL, EGRESS_HOSTS_MAX, EGRESS_HOST_MAX, &pool,
                         &texts, err) < 0)
        return -1;
    for (size_t i = 0; i < texts.count; i++) {
        AUTO(free) char *host = mem_copy_text(texts.items[i]);

        for (char *at = host; *at; at++)
            *at = (char) tolower((unsigned char) *at);
        if (!egress_host_is_pattern(host) || strcmp(host, "*") == 0 ||
            (*host == '*' && !strchr(host + 2, '.')))
            return json_refuse_field(body, "hosts",
                                     "a list of names like api.example.org or *.example.org", err);
        sandbox_texts_add(&credential->hosts, host);
    }
    for (const char *const *host = default_hosts(credential); !texts.count && *host; host++)
        sandbox_texts_add(&credential->hosts, *host);
    if (!credential->hosts.count && !credential->base)
        return error_set(err, ERR_INVALID, 0,
                         "field 'hosts' must name the hosts that this credential is for");
    return 0;
}

static bool is_url(const char *url)
{
    return !url || strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
}

/* What a table of texts cannot say. */
static int check_texts(const struct json_place *body, const struct egress_credential *credential,
                       struct error *err)
{
    const char *header = credential->header;

    if (header && (strspn(header, HEADER_LETTERS) != strlen(header) || strlen(header) > 64))
        return json_refuse_field(body, "header", "the name of a header", err);
    if (!is_url(credential->base) || (credential->base && strpbrk(credential->base, "?#@ \\")))
        return json_refuse_field(body, "base", "an http:// or https:// URL", err);
    if (!is_url(credential->token_url))
        return json_refuse_field(body, "tokenUrl", "an http:// or https:// URL", err);
    if (credential->kind == EGRESS_BASIC && !strchr(credential->value, ':'))
        return json_refuse_field(body, "value", "user:password", err);
    for (size_t i = 0; credential->api && i <= ARRAY_COUNT(api_texts); i++) {
        if (i == ARRAY_COUNT(api_texts))
            return json_refuse_field(body, "api", "anthropic, openai, google or none", err);
        if (strcmp(api_texts[i], credential->api) == 0)
            break;
    }
    return 0;
}

static int read_kind(const struct json_place *body, struct egress_credential *credential,
                     struct error *err)
{
    const char *kind = NULL;

    if (json_field_text(body, "kind", JSON_REQUIRED, WORD_SIZE, &kind, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(kind_texts); i++)
        if (strcmp(kind, kind_texts[i]) == 0) {
            credential->kind = (enum egress_kind) i;
            return 0;
        }
    return json_refuse_field(
        body, "kind", "header, bearer, basic, anthropic, openai, google, oauth or github-app", err);
}

/* A time as it is shown: 2026-11-19T22:00:00.000Z. */
static int read_expiry(const struct json_place *body, struct egress_credential *credential,
                       struct error *err)
{
    const char *text = NULL;

    if (json_field_text(body, "expiresAt", JSON_OPTIONAL, CLOCK_TEXT_SIZE, &text, err) < 0)
        return -1;
    if (text && clock_parse(text, &credential->expires_ms) < 0)
        return json_refuse_field(body, "expiresAt", "a time like 2026-11-19T22:00:00.000Z", err);
    return 0;
}

struct egress_credential *egress_credential_read(const struct json_place *body, const char *name,
                                                 struct error *err)
{
    AUTO(egress_credential) struct egress_credential *credential = mem_alloc(sizeof(*credential));
    const char *known[EGRESS_TEXT_COUNT + 3] = {"kind", "hosts", "expiresAt"};

    list_init(&credential->link);
    list_init(&credential->waiting);
    for (size_t i = 0; i < EGRESS_TEXT_COUNT; i++)
        known[i + 3] = egress_texts[i].name;
    if (!egress_name_is_valid(name)) {
        (void) error_set(err, ERR_INVALID, 0,
                         "a credential's name has 1 to %d of a-z, 0-9, '.', '_' and '-', and "
                         "begins with a letter or digit",
                         EGRESS_NAME_MAX);
        return NULL;
    }
    credential->name = mem_copy_text(name);
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        read_kind(body, credential, err) < 0)
        return NULL;
    for (size_t i = 0; i < EGRESS_TEXT_COUNT; i++)
        if (credential_read_text(body, &egress_texts[i], credential, err) < 0)
            return NULL;
    if (check_texts(body, credential, err) < 0 || read_hosts(body, credential, err) < 0 ||
        read_expiry(body, credential, err) < 0)
        return NULL;
    return TAKE_PTR(credential);
}

/* --- shown ----------------------------------------------------------------------------------- */

static void write_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    if (!wall_ms)
        return;
    clock_format(wall_ms, text);
    json_add_text(json, key, text);
}

void egress_credential_write(struct json_writer *json, const struct egress_credential *credential)
{
    json_begin_object(json);
    json_add_text(json, "name", credential->name);
    json_add_text(json, "owner", credential->owner.text);
    json_add_text(json, "kind", kind_texts[credential->kind]);
    json_begin_array_at(json, "hosts");
    for (size_t i = 0; i < credential->hosts.count; i++)
        json_put_text(json, credential->hosts.items[i]);
    json_end_array(json);
    for (size_t i = 0; i < EGRESS_TEXT_COUNT; i++) {
        const char *text =
            *credential_text((struct egress_credential *) credential, &egress_texts[i]);

        if (text && !egress_texts[i].is_secret)
            json_add_text(json, egress_texts[i].name, text);
    }
    if (credential->failure)
        json_add_text(json, "failure", credential->failure);
    write_time(json, "expiresAt", credential->expires_ms);
    write_time(json, "usedAt", credential->used_ms);
    write_time(json, "createdAt", credential->created_ms);
    write_time(json, "updatedAt", credential->updated_ms);
    json_end_object(json);
}

/* --- used ------------------------------------------------------------------------------------ */

enum egress_api egress_credential_api(const struct egress_credential *credential)
{
    if (credential->kind == EGRESS_ANTHROPIC)
        return EGRESS_API_ANTHROPIC;
    if (credential->kind == EGRESS_OPENAI)
        return EGRESS_API_OPENAI;
    if (credential->kind == EGRESS_GOOGLE)
        return EGRESS_API_GOOGLE;
    for (size_t i = 0; credential->api && i < ARRAY_COUNT(api_texts); i++)
        if (strcmp(api_texts[i], credential->api) == 0)
            return (enum egress_api) i;
    return EGRESS_API_NONE;
}

bool egress_credential_is_for(const struct egress_credential *credential, const char *host)
{
    for (size_t i = 0; i < credential->hosts.count; i++)
        if (egress_host_matches(credential->hosts.items[i], host))
            return true;
    return false;
}

static void proof_add(struct egress_proof *proof, const char *name, const char *value)
{
    proof->headers[proof->count++] = (struct broker_header){.name = name, .value = value};
}

/* "SCHEME value", in memory that is wiped. */
static void proof_authorize(struct egress_proof *proof, const char *scheme, const char *value)
{
    size_t size = strlen(scheme) + strlen(value) + 2;

    proof->text = mem_alloc(size);
    (void) snprintf(proof->text, size, "%s %s", scheme, value);
    proof_add(proof, "authorization", proof->text);
}

static void proof_encode(struct egress_proof *proof, const char *user_and_password)
{
    size_t length = strlen(user_and_password), size = BASE64_TEXT_SIZE(length);
    char *encoded = mem_alloc(size);

    (void) base64_encode(BASE64_STANDARD, user_and_password, length, encoded);
    proof_authorize(proof, "Basic", encoded);
    explicit_bzero(encoded, size);
    free(encoded);
}

/* git takes a token as a password, the API as a bearer. */
static void proof_github(struct egress_proof *proof, const char *token, const char *host)
{
    AUTO(text) struct text text = TEXT_INIT(PROOF_MAX);

    if (host && strcmp(host, "github.com") == 0) {
        text_format(&text, "x-access-token:%s", token);
        proof_encode(proof, text_string(&text));
        explicit_bzero(text.data, text.capacity);
    } else {
        proof_authorize(proof, "Bearer", token);
    }
}

static void proof_anthropic(struct egress_proof *proof, const char *value, bool is_login)
{
    if (!is_login) {
        proof_add(proof, "x-api-key", value);
        return;
    }
    proof_authorize(proof, "Bearer", value);
    proof_add(proof, "anthropic-beta", ANTHROPIC_BETA);
}

static void proof_model(struct egress_proof *proof, const struct egress_credential *credential)
{
    const char *value = credential->value;
    bool is_oauth = credential->kind == EGRESS_OAUTH;

    switch (egress_credential_api(credential)) {
    case EGRESS_API_ANTHROPIC:
        proof_anthropic(proof, value,
                        is_oauth || strncmp(value, ANTHROPIC_LOGIN, strlen(ANTHROPIC_LOGIN)) == 0);
        return;
    case EGRESS_API_GOOGLE:
        if (is_oauth)
            proof_authorize(proof, "Bearer", value);
        else
            proof_add(proof, "x-goog-api-key", value);
        return;
    case EGRESS_API_OPENAI:
    case EGRESS_API_NONE:
    case EGRESS_API_COUNT:
        break;
    }
    proof_authorize(proof, "Bearer", value);
    if (credential->account)
        proof_add(proof, "chatgpt-account-id", credential->account);
}

void egress_credential_prove(const struct egress_credential *credential, const char *host,
                             struct egress_proof *ret_proof)
{
    struct egress_proof proof = {.count = 0};

    if (credential->value)
        switch (credential->kind) {
        case EGRESS_HEADER:
            proof_add(&proof, credential->header, credential->value);
            break;
        case EGRESS_BEARER:
            proof_authorize(&proof, "Bearer", credential->value);
            break;
        case EGRESS_BASIC:
            proof_encode(&proof, credential->value);
            break;
        case EGRESS_GITHUB_APP:
            proof_github(&proof, credential->value, host);
            break;
        case EGRESS_ANTHROPIC:
        case EGRESS_OPENAI:
        case EGRESS_GOOGLE:
        case EGRESS_OAUTH:
        case EGRESS_KIND_COUNT:
            proof_model(&proof, credential);
        }
    *ret_proof = proof;
}

void egress_proof_done(struct egress_proof *proof)
{
    if (proof->text)
        explicit_bzero(proof->text, strlen(proof->text));
    free(proof->text);
    *proof = (struct egress_proof){.count = 0};
}
