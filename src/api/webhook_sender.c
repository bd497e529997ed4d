#include "api/webhook_sender.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/encoding/hash.h"
#include "base/memory.h"
#include "domain/identity/owner.h"
#include "domain/webhook/webhook.h"
#include "net/outbound/curl_exchange.h"
#include "net/outbound/outbound.h"

#define LOOK_MS       250
#define ACTIVE_MAX    16
#define CONNECT_MS    ((uint64_t) 5 * 1000)
#define TOTAL_MS      ((uint64_t) 15 * 1000)
#define ANSWER_MAX    ((size_t) 64 * 1024)
#define SIGNATURE_MAX (64 + 2 * SHA256_SIZE)
#define SIGNED_MAX    (WEBHOOK_BODY_MAX + 64)

struct webhook_sender {
    struct loop *loop;
    struct domain *domain;
    const struct clock *clock;
    struct outbound *outbound;
    uv_timer_t timer;
    struct list sendings; /* of sending */
    size_t active;
    void (*closed)(void *context);
    void *context;
    bool is_closing;
};

struct sending {
    struct list link;
    struct webhook_sender *sender;
    struct webhook_delivery *delivery;
};

/* --- one delivery ---------------------------------------------------------------------------- */

static void webhook_sender_look(struct webhook_sender *sender);

static void sending_end(struct sending *sending, int status, const char *detail)
{
    struct webhook_sender *sender = sending->sender;

    if (sender->is_closing && !status)
        webhook_give_back(sending->delivery); /* it was us who gave up */
    else
        webhook_sent(sender->domain, sending->delivery, status, detail);
    list_remove(&sending->link);
    sender->active--;
    free(sending);
}

/* What its owner may know of it. */
static void failure_text(const struct sending *sending, const struct error *err,
                         char ret_text[static ERROR_MESSAGE_MAX])
{
    const struct owner *owner =
        owner_find(sending->sender->domain, &sending->delivery->webhook->owner);
    struct error told = *err;

    if (!owner || !owner->is_admin)
        outbound_hide_address(&told);
    (void) snprintf(ret_text, ERROR_MESSAGE_MAX, "%s", told.message);
}

static void webhook_sender_on_done(void *context, const struct outbound_answer *answer,
                                   const struct error *err)
{
    struct sending *sending = context;
    struct webhook_sender *sender = sending->sender;
    char detail[ERROR_MESSAGE_MAX];

    /* An answer that is too long or breaks off is an answer all the same. */
    if (err && !answer->status)
        failure_text(sending, err, detail);
    else
        (void) snprintf(detail, sizeof(detail), "answered with %d", answer->status);
    sending_end(sending, answer->status, detail);
    if (!sender->is_closing)
        webhook_sender_look(sender);
}

/* "t=SECONDS,v1=HEX": the time is signed, too, so that an old one cannot be shown again for ever.
 */
static void sign(const struct webhook_delivery *delivery, int64_t seconds,
                 char ret_text[static SIGNATURE_MAX])
{
    AUTO(text) struct text text = TEXT_INIT(SIGNED_MAX);
    uint8_t digest[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];

    text_format(&text, "%lld.%s", (long long) seconds, delivery->body);
    hash_hmac(delivery->webhook->secret, strlen(delivery->webhook->secret), text_string(&text),
              text.length, digest);
    (void) hex_encode(digest, sizeof(digest), hex);
    (void) snprintf(ret_text, SIGNATURE_MAX, "t=%lld,v1=%s", (long long) seconds, hex);
}

static void send_one(struct webhook_sender *sender, struct webhook_delivery *delivery)
{
    struct sending *sending = mem_alloc(sizeof(*sending));
    char signature[SIGNATURE_MAX], bearer[WEBHOOK_BEARER_MAX + 16];
    struct outbound_header headers[] = {
        {"Content-Type", "application/json"}, {"User-Agent", "burrow/" BURROW_VERSION},
        {"X-Burrow-Event", delivery->type},   {"X-Burrow-Delivery", delivery->id.text},
        {"X-Burrow-Signature", signature},    {"Authorization", bearer},
    };
    struct outbound_call call = {
        .method = "POST",
        .url = delivery->webhook->url,
        .headers = headers,
        .header_count = ARRAY_COUNT(headers) - !delivery->webhook->bearer,
        .body = delivery->body,
        .body_length = strlen(delivery->body),
        .connect_ms = CONNECT_MS,
        .total_ms = TOTAL_MS,
        .answer_max = ANSWER_MAX,
        .on_done = webhook_sender_on_done,
        .context = sending,
    };
    struct error err = ERROR_INIT;

    *sending = (struct sending){.sender = sender, .delivery = delivery};
    list_append(&sender->sendings, &sending->link);
    sender->active++;
    sign(delivery, clock_wall_ms(sender->clock) / 1000, signature);
    (void) snprintf(bearer, sizeof(bearer), "Bearer %s",
                    delivery->webhook->bearer ? delivery->webhook->bearer : "");
    if (outbound_start(sender->outbound, &call, &err) < 0)
        sending_end(sending, 0, err.message);
    explicit_bzero(bearer, sizeof(bearer));
}

static void webhook_sender_look(struct webhook_sender *sender)
{
    while (sender->active < ACTIVE_MAX) {
        struct webhook_delivery *delivery = webhook_take(sender->domain);

        if (!delivery)
            return;
        send_one(sender, delivery);
    }
}

static void timer_due(uv_timer_t *timer)
{
    webhook_sender_look(timer->data);
}

/* --- life ------------------------------------------------------------------------------------ */

struct webhook_sender *webhook_sender_new(struct loop *loop, struct domain *domain,
                                          const struct clock *clock, const char *allowed,
                                          struct error *err)
{
    struct address_rules rules = {.count = 0};
    struct webhook_sender *sender;

    if (address_rules_allow_list(&rules, allowed, err) < 0)
        return NULL;
    sender = mem_alloc(sizeof(*sender));
    *sender = (struct webhook_sender){.loop = loop,
                                      .domain = domain,
                                      .clock = clock,
                                      .outbound = outbound_new(loop, &rules, ACTIVE_MAX)};
    list_init(&sender->sendings);
    (void) uv_timer_init(&loop->uv, &sender->timer);
    sender->timer.data = sender;
    (void) uv_timer_start(&sender->timer, timer_due, LOOK_MS, LOOK_MS);
    return sender;
}

static void timer_closed(uv_handle_t *handle)
{
    struct webhook_sender *sender = handle->data;

    if (sender->closed)
        sender->closed(sender->context);
    free(sender);
}

static void outbound_closed(void *context)
{
    struct webhook_sender *sender = context;

    uv_close((uv_handle_t *) &sender->timer, timer_closed);
}

void webhook_sender_close(struct webhook_sender *sender, void (*done)(void *context), void *context)
{
    sender->is_closing = true;
    sender->closed = done;
    sender->context = context;
    (void) uv_timer_stop(&sender->timer);
    /* Each is told as failed, by webhook_sender_on_done, before the outbound is gone. */
    outbound_close(TAKE_PTR(sender->outbound), outbound_closed, sender);
}
