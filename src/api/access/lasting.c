#include "api/access/lasting.h"

#include "base/memory.h"
#include "domain/standing.h"

/* After a change: whoever asked for it is answered by then, also when it is his own key. */
#define LASTING_SOON_MS 20
/* The longest wait for an expiry: the clock on the wall may be set. */
#define LASTING_WAIT_MS 500

struct lasting {
    struct loop *loop;
    struct domain *domain;
    const struct clock *clock;
    struct log *log;
    struct http_server *servers[LASTING_SERVERS_MAX];
    size_t server_count;
    struct deadline deadline;
    int64_t until_ms; /* wall: when the first credential of those who last expires; 0: none does */
    bool has_changed; /* look at everybody, whatever the time */
};

static void note_until(struct lasting *lasting, int64_t until_ms)
{
    if (until_ms && (!lasting->until_ms || until_ms < lasting->until_ms))
        lasting->until_ms = until_ms;
}

static int review(void *data, const void *caller, struct error *err)
{
    struct lasting *lasting = data;
    int64_t until_ms;

    if (standing_check(lasting->domain, caller, &until_ms, err) < 0)
        return -1;
    note_until(lasting, until_ms);
    return 0;
}

/* For whoever comes first: a change, the time that was noted, or a look at the clock. */
static void set_deadline(struct lasting *lasting)
{
    int64_t left_ms = lasting->until_ms - clock_wall_ms(lasting->clock);

    if (lasting->has_changed || !lasting->until_ms)
        return; /* it comes soon enough, or never */
    if (left_ms > LASTING_WAIT_MS)
        left_ms = LASTING_WAIT_MS;
    if (left_ms < 0)
        left_ms = 0;
    if (!lasting->deadline.due ||
        lasting->deadline.due > loop_now(lasting->loop) + (uint64_t) left_ms)
        deadline_set(&lasting->deadline, (uint64_t) left_ms);
}

static void look_at_all(struct lasting *lasting)
{
    struct http_expelled all = {.requests = 0};

    lasting->has_changed = false;
    lasting->until_ms = 0; /* review finds the next */
    for (size_t i = 0; i < lasting->server_count; i++) {
        struct http_expelled some = http_server_review(lasting->servers[i], review, lasting);

        all.requests += some.requests;
        all.guests += some.guests;
    }
    if (all.requests || all.guests)
        LOG_INFO(lasting->log, "connections were cut whose credential is good no longer",
                 log_number("requests", (int64_t) all.requests),
                 log_number("others", (int64_t) all.guests));
}

static void lasting_due(struct deadline *deadline)
{
    struct lasting *lasting = CONTAINER_OF(deadline, struct lasting, deadline);

    if (lasting->has_changed ||
        (lasting->until_ms && clock_wall_ms(lasting->clock) >= lasting->until_ms))
        look_at_all(lasting);
    set_deadline(lasting);
}

void lasting_note(struct lasting *lasting, const struct caller *caller)
{
    int64_t until_ms = 0;

    if (!lasting || standing_check(lasting->domain, caller, &until_ms, NULL) < 0)
        return;
    note_until(lasting, until_ms);
    set_deadline(lasting);
}

void lasting_changed(struct lasting *lasting)
{
    if (lasting->has_changed)
        return;
    lasting->has_changed = true;
    deadline_set(&lasting->deadline, LASTING_SOON_MS);
}

/* --- life ------------------------------------------------------------------------------------ */

struct lasting *lasting_new(struct loop *loop, struct domain *domain, const struct clock *clock,
                            struct log *log)
{
    struct lasting *lasting = mem_alloc(sizeof(*lasting));

    lasting->loop = loop;
    lasting->domain = domain;
    lasting->clock = clock;
    lasting->log = log;
    deadline_init(loop, &lasting->deadline, lasting_due);
    return lasting;
}

void lasting_watch(struct lasting *lasting, struct http_server *server)
{
    if (lasting->server_count < LASTING_SERVERS_MAX)
        lasting->servers[lasting->server_count++] = server;
}

static void lasting_closed(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct lasting, deadline));
}

void lasting_close(struct lasting *lasting)
{
    if (lasting)
        deadline_close(&lasting->deadline, lasting_closed);
}
