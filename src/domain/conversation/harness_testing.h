/* For tests: agents that do as they are told. What an agent in a sandbox knows (who prompted what,
 * and how far it is) is in a memory of its own, which outlives the domain, as agents outlive a
 * daemon; it may be shared with a child that is killed. Included by test programs only. */
#pragma once

#include <stdio.h>

#include "domain/conversation/conversation_internal.h"
#include "domain/domain_testing.h"

#define FAKE_TURNS_MAX 512

enum fake_state { FAKE_BUSY, FAKE_DONE, FAKE_CANCELLED };

struct fake_memory {
    size_t count;
    struct fake_turn {
        struct id turn, sandbox;
        int prompts; /* how often it was sent */
        enum fake_state state;
        char input[128];
    } turns[FAKE_TURNS_MAX];
    char replies[8][64]; /* to what was asked */
    size_t reply_count;
};

struct fake_harness {
    struct harness harness;
    struct loop *loop;
    struct fake_memory *memory;
    struct list handles; /* of struct harness_turn */
    bool is_quick;       /* whoever is prompted has done it at once */
    bool is_deaf;        /* does not end what is cancelled */
    bool is_gone;        /* its server was lost with what it knew */
    enum err_code answer_failure;
    int finds, prompts, cancels, left;
};

struct harness_turn {
    struct list link;
    struct loop_task task;
    struct fake_harness *fake;
    const struct harness_listener *listener;
    void *context;
    size_t at; /* in the memory; SIZE_MAX: unknown there */
    bool has_begun, has_left;
};

static inline void fake_handle_free(struct harness_turn *handle)
{
    list_remove(&handle->link);
    free(handle);
}

static inline const struct harness_result *fake_result(bool was_cancelled)
{
    static struct harness_result result;

    result = (struct harness_result){
        .answer = was_cancelled ? "" : "the answer",
        .parts = "[{\"type\":\"text\",\"text\":\"the answer\"}]",
        .info = "{\"role\":\"assistant\"}",
        .provider = "acme",
        .model = "one",
        .usage = {.input = 10, .output = 5, .cost_micros = 7, .is_cost_known = true},
        .was_cancelled = was_cancelled,
    };
    return &result;
}

/* Tell what the agent knows, if it is over. */
static inline void fake_go_on(struct loop_task *task)
{
    struct harness_turn *handle = CONTAINER_OF(task, struct harness_turn, task);
    struct fake_harness *fake = handle->fake;
    const struct harness_listener *listener = handle->listener;
    void *context = handle->context;
    struct error lost = ERROR_INIT;
    enum fake_state state;

    if (handle->has_left) {
        free(handle);
        return;
    }
    if (handle->at == SIZE_MAX || fake->is_gone) {
        (void) error_set(&lost, ERR_AGENT_LOST, 0, "the agent knows nothing of it");
        fake_handle_free(handle);
        listener->ended(context, &lost, NULL);
        return;
    }
    if (!handle->has_begun) {
        handle->has_begun = true;
        listener->began(context, "ses_one");
    }
    if (fake->is_quick && fake->memory->turns[handle->at].state == FAKE_BUSY)
        fake->memory->turns[handle->at].state = FAKE_DONE;
    state = fake->memory->turns[handle->at].state;
    if (state == FAKE_BUSY)
        return;
    fake_handle_free(handle);
    listener->ended(context, NULL, fake_result(state == FAKE_CANCELLED));
}

static inline struct harness_turn *fake_handle_new(struct fake_harness *fake,
                                                   const struct harness_listener *listener,
                                                   void *context, size_t at)
{
    struct harness_turn *handle = mem_alloc(sizeof(*handle));

    handle->fake = fake;
    handle->listener = listener;
    handle->context = context;
    handle->at = at;
    list_append(&fake->handles, &handle->link);
    loop_task_init(&handle->task, fake_go_on);
    loop_defer(fake->loop, &handle->task);
    return handle;
}

static inline size_t fake_find_turn(const struct fake_harness *fake, const struct id *turn)
{
    for (size_t i = 0; i < fake->memory->count; i++)
        if (id_equal(&fake->memory->turns[i].turn, turn))
            return i;
    return SIZE_MAX;
}

static inline struct harness_turn *fake_prompt(void *self, const struct harness_prompt *prompt,
                                               const struct harness_listener *listener,
                                               void *context)
{
    struct fake_harness *fake = self;
    size_t at = fake_find_turn(fake, &prompt->turn);

    fake->prompts++;
    if (at == SIZE_MAX) {
        at = fake->memory->count;
        assert_true(at < FAKE_TURNS_MAX);
        fake->memory->turns[at] =
            (struct fake_turn){.turn = prompt->turn, .sandbox = prompt->place.sandbox};
        (void) snprintf(fake->memory->turns[at].input, sizeof(fake->memory->turns[at].input), "%s",
                        prompt->parts);
        fake->memory->turns[at].prompts = 1;
        fake->memory->count++;
    } else {
        fake->memory->turns[at].prompts++;
    }
    return fake_handle_new(fake, listener, context, at);
}

static inline struct harness_turn *fake_find(void *self, const struct harness_prompt *prompt,
                                             const struct harness_listener *listener, void *context)
{
    struct fake_harness *fake = self;

    fake->finds++;
    return fake_handle_new(fake, listener, context, fake_find_turn(fake, &prompt->turn));
}

static inline void fake_cancel(void *self, struct harness_turn *turn)
{
    struct fake_harness *fake = self;

    fake->cancels++;
    if (fake->is_deaf)
        return;
    if (fake->memory->turns[turn->at].state == FAKE_BUSY)
        fake->memory->turns[turn->at].state = FAKE_CANCELLED;
    loop_defer(fake->loop, &turn->task);
}

static inline void fake_leave(void *self, struct harness_turn *turn)
{
    struct fake_harness *fake = self;

    fake->left++;
    list_remove(&turn->link);
    turn->has_left = true;
    loop_defer(fake->loop, &turn->task);
}

struct fake_answer {
    struct loop_task task;
    struct fake_harness *fake;
    harness_done *done;
    void *context;
};

static inline void fake_answered(struct loop_task *task)
{
    AUTO(free) struct fake_answer *answer = CONTAINER_OF(task, struct fake_answer, task);
    struct error failure = ERROR_INIT;

    if (answer->fake->answer_failure)
        (void) error_set(&failure, answer->fake->answer_failure, 0, "the agent does not listen");
    answer->done(answer->context, failure.code ? &failure : NULL);
}

static inline void fake_reply(struct fake_harness *fake, const char *text, harness_done *done,
                              void *context)
{
    struct fake_answer *answer = mem_alloc(sizeof(*answer));
    struct fake_memory *memory = fake->memory;

    (void) snprintf(memory->replies[memory->reply_count++ % 8], 64, "%s", text);
    *answer = (struct fake_answer){.fake = fake, .done = done, .context = context};
    loop_task_init(&answer->task, fake_answered);
    loop_defer(fake->loop, &answer->task);
}

static inline void fake_answer_permission(void *self, struct harness_turn *turn,
                                          const char *request, const char *reply,
                                          const char *message, harness_done *done, void *context)
{
    char text[64];

    (void) turn;
    (void) snprintf(text, sizeof(text), "%.20s %.10s %.24s", request, reply,
                    message ? message : "-");
    fake_reply(self, text, done, context);
}

static inline void fake_answer_question(void *self, struct harness_turn *turn, const char *request,
                                        const char *answers, harness_done *done, void *context)
{
    char text[64];

    (void) turn;
    (void) snprintf(text, sizeof(text), "%.20s %.30s", request, answers ? answers : "refused");
    fake_reply(self, text, done, context);
}

static inline void fake_forget(void *self, const struct id *sandbox)
{
    (void) self, (void) sandbox;
}

static inline void fake_look(void *self, const struct id *sandbox, const char *kind,
                             struct harness_status *ret_status)
{
    (void) self, (void) sandbox, (void) kind;
    *ret_status = (struct harness_status){.state = HARNESS_READY, .version = "fake"};
}

static inline void fake_quiesce(void *self, const struct id *sandbox, harness_done *done,
                                void *context)
{
    (void) sandbox;
    fake_reply(self, "quiesce", done, context);
}

static inline void fake_harness_init(struct fake_harness *fake, struct world *world,
                                     struct fake_memory *memory)
{
    *fake = (struct fake_harness){.loop = &world->loop, .memory = memory};
    list_init(&fake->handles);
    fake->harness = (struct harness){.self = fake,
                                     .look = fake_look,
                                     .prompt = fake_prompt,
                                     .find = fake_find,
                                     .cancel = fake_cancel,
                                     .leave = fake_leave,
                                     .answer_permission = fake_answer_permission,
                                     .answer_question = fake_answer_question,
                                     .quiesce = fake_quiesce,
                                     .forget = fake_forget};
    world->options.harness = &fake->harness;
}

/* The one that is prompted last and not over. */
static inline struct harness_turn *fake_last(struct fake_harness *fake)
{
    return list_is_empty(&fake->handles)
               ? NULL
               : CONTAINER_OF(fake->handles.previous, struct harness_turn, link);
}

static inline void fake_finish(struct fake_harness *fake)
{
    struct harness_turn *handle = fake_last(fake);

    assert_non_null(handle);
    fake->memory->turns[handle->at].state = FAKE_DONE;
    loop_defer(fake->loop, &handle->task);
}

/* --- calls ------------------------------------------------------------------------------------- */

struct told_turn {
    struct told told;
    struct id id;
    enum turn_state state;
    struct harness_usage usage;
    char code[32], answer[64], message[128];
    bool is_new;
};

static inline void note_turn(struct told_turn *told, const struct error *failure,
                             const struct turn *turn)
{
    note_told(&told->told, failure, NULL);
    assert_true((failure == NULL) == (turn != NULL));
    if (!turn)
        return;
    told->id = turn->id;
    told->state = turn->state;
    told->usage = turn->usage;
    (void) snprintf(told->code, sizeof(told->code), "%s", turn->error_code);
    (void) snprintf(told->message, sizeof(told->message), "%s", turn->error_message);
    (void) snprintf(told->answer, sizeof(told->answer), "%s", turn->answer);
}

static inline void on_turn(void *context, const struct error *failure, const struct turn *turn)
{
    note_turn(context, failure, turn);
}

static inline void on_turn_created(void *context, const struct error *failure,
                                   const struct turn *turn, bool is_new)
{
    struct told_turn *told = context;

    note_turn(told, failure, turn);
    told->is_new = is_new;
}

static inline struct told_turn ask_turn(struct world *world, struct conversation *conversation,
                                        const struct turn_spec *spec)
{
    struct told_turn told = {.is_new = false};

    turn_create(world->domain, &world->caller, conversation, spec, on_turn_created, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static inline struct id begin_turn(struct world *world, struct conversation *conversation,
                                   const char *text)
{
    struct told_turn told = ask_turn(world, conversation, &(struct turn_spec){.text = text});

    expect_ok(&told.told);
    assert_true(told.is_new);
    return told.id;
}

static inline struct told_turn read_turn(struct world *world, const struct id *id)
{
    struct told_turn told = {.is_new = false};

    turn_read(world->domain, &world->caller, NULL, id->text, on_turn, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static inline struct told_turn wait_turn(struct world *world, const struct id *id)
{
    struct told_turn told = {.is_new = false};

    (void) turn_wait_begin(world->domain, &world->caller, id->text, on_turn, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static inline struct told_turn cancel_turn(struct world *world, const struct id *id)
{
    struct told_turn told = {.is_new = false};

    turn_cancel(world->domain, &world->caller, NULL, id->text, on_turn, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

struct told_conversation {
    struct told told;
    struct conversation *conversation;
};

static inline void on_conversation(void *context, const struct error *failure,
                                   struct conversation *conversation)
{
    struct told_conversation *told = context;

    note_told(&told->told, failure, NULL);
    told->conversation = conversation;
}

static inline struct told_conversation
ask_conversation(struct world *world, struct sandbox *sandbox, const struct conversation_spec *spec)
{
    struct told_conversation told = {.conversation = NULL};

    conversation_create(world->domain, &world->caller, sandbox, spec, on_conversation, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static inline struct conversation *begin_conversation(struct world *world, struct sandbox *sandbox)
{
    struct told_conversation told =
        ask_conversation(world, sandbox, &(struct conversation_spec){.title = "a talk"});

    expect_ok(&told.told);
    return told.conversation;
}
