#include "api/token_client.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "net/outbound/outbound.h"

#define ACTIVE_MAX    16
#define CONNECT_MS    ((uint64_t) 10 * 1000)
#define TOTAL_MS      ((uint64_t) 30 * 1000)
#define ANSWER_MAX    ((size_t) 256 * 1024)
#define BEARER_MAX    ((size_t) 16 * 1024)
#define CLAIM_MAX     ((size_t) 1024)
#define SIGNATURE_MAX 1024 /* bytes: keys of up to 8192 bits */

AUTO_DEFINE_PTR(bio, BIO, BIO_free_all);
AUTO_DEFINE_PTR(evp_key, EVP_PKEY, EVP_PKEY_free);
AUTO_DEFINE_PTR(evp_digest, EVP_MD_CTX, EVP_MD_CTX_free);

struct token_client {
    struct token_source source;
    struct loop *loop;
    struct outbound *outbound;
    void (*closed)(void *context);
    void *context;
};

struct token_call {
    token_done *done;
    void *context;
    struct loop_task refused; /* for what could not be asked */
    struct error failure;
};

/* --- asking ---------------------------------------------------------------------------------- */

static void token_answered(void *context, const struct outbound_answer *answer,
                           const struct error *err)
{
    AUTO(free) struct token_call *call = context;

    call->done(call->context, err, err ? 0 : answer->status,
               err ? NULL : text_string(&answer->body));
}

static void token_refused(struct loop_task *task)
{
    AUTO(free) struct token_call *call = CONTAINER_OF(task, struct token_call, refused);

    call->done(call->context, &call->failure, 0, NULL);
}

static void token_ask(void *self, const struct token_order *order, token_done *done, void *context)
{
    struct token_client *client = self;
    struct token_call *call = mem_alloc(sizeof(*call));
    AUTO(text) struct text bearer = TEXT_INIT(BEARER_MAX);
    const struct outbound_header headers[] = {
        {"Content-Type",
         *order->body == '{' ? "application/json" : "application/x-www-form-urlencoded"},
        {"Accept", "application/json"},
        {"User-Agent", "burrow/" BURROW_VERSION},
        {"Authorization", NULL},
    };
    struct outbound_header sent[ARRAY_COUNT(headers)];
    struct outbound_call wanted = {
        .method = "POST",
        .url = order->url,
        .headers = sent,
        .header_count = ARRAY_COUNT(headers) - !order->bearer,
        .body = order->body,
        .body_length = strlen(order->body),
        .connect_ms = CONNECT_MS,
        .total_ms = TOTAL_MS,
        .answer_max = ANSWER_MAX,
        .on_done = token_answered,
        .context = call,
    };

    *call = (struct token_call){.done = done, .context = context};
    memcpy(sent, headers, sizeof(headers));
    if (order->bearer)
        text_format(&bearer, "Bearer %s", order->bearer);
    sent[ARRAY_COUNT(headers) - 1].value = text_string(&bearer);
    if (outbound_start(client->outbound, &wanted, &call->failure) < 0) {
        loop_task_init(&call->refused, token_refused);
        loop_defer(client->loop, &call->refused);
    }
    if (bearer.data)
        explicit_bzero(bearer.data, bearer.capacity);
}

/* --- signing --------------------------------------------------------------------------------- */

static void append_base64(struct text *text, const void *bytes, size_t length)
{
    char *at = text_reserve(text, BASE64_TEXT_SIZE(length));

    if (at)
        text_commit(text, base64_encode(BASE64_URL, bytes, length, at));
}

/* Without a question for a password: a key that has one is refused. */
static int no_password(char *buffer, int size, int is_writing, void *context)
{
    (void) buffer, (void) size, (void) is_writing, (void) context;
    return 0;
}

static EVP_PKEY *read_key(const char *pem)
{
    AUTO(bio) BIO *bio = BIO_new_mem_buf(pem, -1);
    AUTO(evp_key)
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;

    return key && EVP_PKEY_base_id(key) == EVP_PKEY_RSA ? TAKE_PTR(key) : NULL;
}

static int append_signature(struct text *token, EVP_PKEY *key)
{
    AUTO(evp_digest) EVP_MD_CTX *digest = EVP_MD_CTX_new();
    uint8_t signature[SIGNATURE_MAX];
    size_t length = sizeof(signature);

    if (!digest || EVP_DigestSignInit(digest, NULL, EVP_sha256(), NULL, key) != 1 ||
        EVP_DigestSign(digest, signature, &length, (const uint8_t *) text_string(token),
                       token->length) != 1)
        return -1;
    text_append_char(token, '.');
    append_base64(token, signature, length);
    return 0;
}

static char *token_sign(void *self, const struct token_claim *claim, struct error *err)
{
    static const char head[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
    AUTO(evp_key) EVP_PKEY *key = read_key(claim->key);
    AUTO(text) struct text body = TEXT_INIT(CLAIM_MAX);
    AUTO(text) struct text token = TEXT_INIT(BEARER_MAX);
    struct json_writer json;

    (void) self;
    json_document_begin(&json, &body);
    json_add_integer(&json, "iat", claim->issued_s);
    json_add_integer(&json, "exp", claim->expires_s);
    json_add_text(&json, "iss", claim->issuer);
    if (json_document_end(&json) == 0 && key) {
        append_base64(&token, head, strlen(head));
        text_append_char(&token, '.');
        append_base64(&token, text_string(&body), body.length);
        if (append_signature(&token, key) == 0 && !token.overflowed)
            return text_take(&token);
    }
    (void) error_set(err, ERR_INVALID, 0,
                     "privateKey is no RSA key in PEM without a password, or it cannot sign");
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------ */

struct token_client *token_client_new(struct loop *loop, const char *allowed, struct error *err)
{
    struct address_rules rules = {.count = 0};
    struct token_client *client;

    if (address_rules_allow_list(&rules, allowed, err) < 0)
        return NULL;
    client = mem_alloc(sizeof(*client));
    client->loop = loop;
    client->outbound = outbound_new(loop, &rules, ACTIVE_MAX);
    client->source = (struct token_source){.self = client, .ask = token_ask, .sign = token_sign};
    return client;
}

const struct token_source *token_client_source(const struct token_client *client)
{
    return &client->source;
}

static void token_client_closed(void *context)
{
    struct token_client *client = context;

    if (client->closed)
        client->closed(client->context);
    free(client);
}

void token_client_close(struct token_client *client, void (*done)(void *context), void *context)
{
    if (!client) {
        if (done)
            done(context);
        return;
    }
    client->closed = done;
    client->context = context;
    outbound_close(TAKE_PTR(client->outbound), token_client_closed, client);
}
