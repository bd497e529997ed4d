/* Conversations that begin, and those that go: the row says so at once, and what is left of them
 * goes in slices, so that nobody waits for it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/domain_change.h"
#include "domain/event/event.h"

#define SWEEP_SLICE      500
#define EVENT_DATA_BYTES 256

struct conversation_change {
    struct domain_change base;
    struct conversation *conversation; /* NULL when it is refused */
    conversation_done *made;
    conversation_gone *gone;
    void *context;
};

static void conversation_add_event(struct domain *domain, struct store_transaction *rows,
                                   const struct caller *caller,
                                   const struct conversation *conversation, const char *type)
{
    char data[EVENT_DATA_BYTES];

    (void) snprintf(data, sizeof(data), "{\"sandboxId\":\"%s\",\"conversationId\":\"%s\"}",
                    conversation->sandbox.text, conversation->id.text);
    event_add(domain, rows, caller, &conversation->owner, conversation_stream(conversation), type,
              data);
}

/* --- begun ----------------------------------------------------------------------------------- */

static void conversation_made(struct domain_change *base, const struct error *failure,
                              const struct store_receipt *receipt)
{
    struct conversation_change *change = CONTAINER_OF(base, struct conversation_change, base);
    struct conversation *conversation = change->conversation;

    (void) receipt;
    if (!failure)
        conversation_kept(conversation);
    change->made(change->context, failure, failure ? NULL : conversation);
    if (failure && conversation)
        conversation_dropped(change->base.domain, conversation);
    free(change);
}

static int conversation_check(struct domain *domain, const struct caller *caller,
                              const struct sandbox *sandbox, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_enter(caller) || caller->scope == CALLER_PORT ||
        !caller_sees_sandbox(caller, &sandbox->owner, &sandbox->id))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not speak with agents");
    return 0;
}

void conversation_create(struct domain *domain, const struct caller *caller,
                         struct sandbox *sandbox, const struct conversation_spec *spec,
                         conversation_done *done, void *context)
{
    struct conversation_change *change =
        domain_change_new(sizeof(*change), domain, caller, conversation_made);
    struct store_transaction *rows;

    change->made = done;
    change->context = context;
    if (conversation_check(domain, caller, sandbox, &change->base.failure) == 0)
        change->conversation = conversation_prepare(domain, &sandbox->owner, &sandbox->id, NULL,
                                                    spec, &change->base.failure);
    if (!change->conversation) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = store_begin(domain->options.store);
    conversation_put_row(rows, change->conversation);
    conversation_add_event(domain, rows, caller, change->conversation, "conversation.created");
    domain_change_commit(&change->base, rows);
}

/* --- gone ------------------------------------------------------------------------------------ */

void conversation_leave(struct domain *domain, struct conversation *conversation,
                        struct store_transaction *rows)
{
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_GONE, 0, "the conversation was deleted");
    if (!conversation->work->is_going)
        list_append(&domain->conversations->going, &conversation->work->link);
    conversation->work->is_going = true;
    conversation->updated_ms = domain_wall_ms(domain);
    if (rows)
        conversation_put_row(rows, conversation);
    turn_followers_end(conversation, &reason);
}

static void conversation_is_gone(struct domain_change *base, const struct error *failure,
                                 const struct store_receipt *receipt)
{
    struct conversation_change *change = CONTAINER_OF(base, struct conversation_change, base);

    (void) receipt;
    if (!failure)
        conversation_leave(change->base.domain, change->conversation, NULL);
    change->gone(change->context, failure);
    conversation_unref(change->base.domain, change->conversation);
    free(change);
}

static int conversation_check_delete(struct domain *domain, const struct caller *caller,
                                     const struct conversation *conversation, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_enter(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not delete conversations");
    if (*conversation->task.text)
        return error_set(err, ERR_CONFLICT, 0, "the conversation is task %s's; delete that",
                         conversation->task.text);
    if (!list_is_empty(&conversation->work->turns))
        return error_set(err, ERR_CONFLICT, 0,
                         "a turn of the conversation is not over; cancel it first");
    return 0;
}

void conversation_delete(struct domain *domain, const struct caller *caller,
                         struct conversation *conversation, conversation_gone *done, void *context)
{
    struct conversation_change *change =
        domain_change_new(sizeof(*change), domain, caller, conversation_is_gone);
    struct store_transaction *rows;

    change->conversation = conversation;
    change->gone = done;
    change->context = context;
    conversation_ref(conversation);
    if (conversation_check_delete(domain, caller, conversation, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = store_begin(domain->options.store);
    conversation->work->is_going = true; /* for the row */
    conversation_put_row(rows, conversation);
    conversation->work->is_going = false;
    conversation_add_event(domain, rows, caller, conversation, "conversation.deleted");
    domain_change_commit(&change->base, rows);
}

/* --- swept ----------------------------------------------------------------------------------- */

struct conversation_sweeping {
    struct domain *domain;
    struct conversation *conversation;
    int64_t until;
    bool is_last;
};

static void conversation_swept(void *context, const struct error *failure,
                               const struct store_receipt *receipt)
{
    AUTO(free) struct conversation_sweeping *sweeping = context;
    struct conversation_work *work = sweeping->conversation->work;

    (void) receipt; /* a failure is tried again by the tick */
    work->is_sweeping = false;
    if (!failure)
        work->swept = sweeping->until;
    if (!failure && sweeping->is_last) {
        work->is_kept = false;
        list_remove(&work->link);
    } else if (!failure && sweeping->domain->stage == DOMAIN_OPEN) {
        conversation_sweep(sweeping->domain, sweeping->conversation);
    }
    conversation_unref(sweeping->domain, sweeping->conversation);
}

void conversation_sweep(struct domain *domain, struct conversation *conversation)
{
    struct conversation_work *work = conversation->work;
    struct conversation_sweeping *sweeping;
    struct store_transaction *rows;

    if (work->is_sweeping || !list_is_empty(&work->turns) || work->is_flushing)
        return;
    if (!work->has_sequence) {
        turn_log_begin(conversation);
        return;
    }
    work->is_sweeping = true;
    conversation_ref(conversation);
    sweeping = mem_alloc(sizeof(*sweeping));
    *sweeping = (struct conversation_sweeping){.domain = domain,
                                               .conversation = conversation,
                                               .until = work->swept + SWEEP_SLICE,
                                               .is_last = work->swept >= work->sequence};
    rows = store_begin(domain->options.store);
    if (sweeping->is_last) {
        domain_delete_rows(rows, STORE_PERMISSION, STORE_PERMISSION_CONVERSATION,
                           &conversation->id);
        domain_delete_rows(rows, STORE_TURN, STORE_TURN_CONVERSATION, &conversation->id);
        domain_delete_rows(rows, STORE_CONVERSATION, STORE_CONVERSATION_ID, &conversation->id);
    } else {
        const struct store_condition slice[] = {
            {STORE_TURN_PART_CONVERSATION, STORE_EQUAL, store_text(conversation->id.text)},
            {STORE_TURN_PART_SEQUENCE, STORE_LESS, store_integer(sweeping->until + 1)},
        };

        store_delete(rows, STORE_TURN_PART, slice, ARRAY_COUNT(slice));
    }
    domain_commit(domain, rows, conversation_swept, sweeping);
}
