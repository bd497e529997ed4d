/* Conversations in memory, their rows, and the module; conversation_change.c has what is done to
 * them. */
#include "domain/conversation/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/identity/owner.h"
#include "domain/sandbox/sandbox_set.h"
#include "json/json_write.h"

/* --- memory ---------------------------------------------------------------------------------- */

void conversation_set_text(char **text, const char *value)
{
    char *copy = value ? mem_copy_text(value) : NULL;

    free(*text);
    *text = copy;
}

static struct conversation *conversation_new(struct domain *domain)
{
    struct conversation *conversation = mem_alloc(sizeof(*conversation));
    struct conversation_work *work = mem_alloc(sizeof(*work));

    work->domain = domain;
    work->conversation = conversation;
    list_init(&work->turns);
    list_init(&work->followers);
    list_init(&work->pending);
    list_init(&work->link);
    list_init(&conversation->link);
    conversation->work = work;
    return conversation;
}

static void conversation_add(struct domain *domain, struct conversation *conversation)
{
    conversation->by_id.hash = domain_id_hash(domain, &conversation->id);
    table_add(&domain->conversations->by_id, &conversation->by_id);
    list_append(&domain->conversations->all, &conversation->link);
    domain_claim_anyway(domain, &conversation->owner, SHARE_CONVERSATIONS, 1,
                        &conversation->work->claim);
}

static void conversation_free(struct conversation *conversation)
{
    turn_log_done(conversation);
    list_remove(&conversation->work->link);
    list_remove(&conversation->link);
    share_release(&conversation->work->claim);
    free(conversation->title);
    free(conversation->kind);
    free(conversation->place);
    free(conversation->provider);
    free(conversation->model);
    free(conversation->agent);
    free(conversation->agent_session);
    free(conversation->work);
    free(conversation);
}

static void conversation_remove(struct domain *domain, struct conversation *conversation)
{
    table_remove(&domain->conversations->by_id, &conversation->by_id);
    conversation_free(conversation);
}

void conversation_ref(struct conversation *conversation)
{
    conversation->work->references++;
}

/* One that has gone from the store is freed with its last reference. */
void conversation_unref(struct domain *domain, struct conversation *conversation)
{
    struct conversation_work *work = conversation->work;

    work->references--;
    if (!work->references && !work->is_kept && list_is_empty(&work->turns) &&
        list_is_empty(&work->followers))
        conversation_remove(domain, conversation);
}

struct conversation *conversation_by_id(const struct domain *domain, const struct id *id)
{
    struct table_link *at = table_find(&domain->conversations->by_id, domain_id_hash(domain, id));

    for (; at; at = table_next(at)) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, by_id);

        if (id_equal(&conversation->id, id))
            return conversation;
    }
    return NULL;
}

/* --- rows ------------------------------------------------------------------------------------ */

void conversation_put_row(struct store_transaction *rows, const struct conversation *conversation)
{
    const struct conversation *at = conversation;
    const struct store_value values[STORE_CONVERSATION_COLUMN_COUNT] = {
        [STORE_CONVERSATION_ID] = store_text(at->id.text),
        [STORE_CONVERSATION_OWNER] = store_text(at->owner.text),
        [STORE_CONVERSATION_SANDBOX] = store_text(at->sandbox.text),
        [STORE_CONVERSATION_TASK] = *at->task.text ? store_text(at->task.text) : store_null(),
        [STORE_CONVERSATION_TITLE] = store_text(at->title),
        [STORE_CONVERSATION_KIND] = store_text(at->kind),
        [STORE_CONVERSATION_PLACE] = store_text(at->place),
        [STORE_CONVERSATION_PROVIDER] = store_text(at->provider),
        [STORE_CONVERSATION_MODEL] = store_text(at->model),
        [STORE_CONVERSATION_AGENT] = store_text(at->agent),
        [STORE_CONVERSATION_AGENT_SESSION] = store_text(at->agent_session),
        [STORE_CONVERSATION_ASK] = store_integer((int64_t) at->ask_ms),
        [STORE_CONVERSATION_GONE] =
            at->work->is_going ? store_integer(at->updated_ms) : store_null(),
        [STORE_CONVERSATION_CREATED] = store_integer(at->created_ms),
        [STORE_CONVERSATION_UPDATED] = store_integer(at->updated_ms),
    };

    store_put(rows, STORE_CONVERSATION, values);
}

static char *conversation_row_text(const struct store_value *value)
{
    return value->is_null ? NULL : mem_copy_text(value->bytes);
}

static int conversation_load_one(struct domain *domain, const struct store_value *row,
                                 struct error *err)
{
    struct conversation *conversation = conversation_new(domain);

    (void) err;
    conversation->id = domain_row_id(&row[STORE_CONVERSATION_ID]);
    conversation->owner = domain_row_id(&row[STORE_CONVERSATION_OWNER]);
    conversation->sandbox = domain_row_id(&row[STORE_CONVERSATION_SANDBOX]);
    conversation->task = domain_row_id(&row[STORE_CONVERSATION_TASK]);
    conversation->title = conversation_row_text(&row[STORE_CONVERSATION_TITLE]);
    conversation->kind = conversation_row_text(&row[STORE_CONVERSATION_KIND]);
    conversation->place = conversation_row_text(&row[STORE_CONVERSATION_PLACE]);
    conversation->provider = conversation_row_text(&row[STORE_CONVERSATION_PROVIDER]);
    conversation->model = conversation_row_text(&row[STORE_CONVERSATION_MODEL]);
    conversation->agent = conversation_row_text(&row[STORE_CONVERSATION_AGENT]);
    conversation->agent_session = conversation_row_text(&row[STORE_CONVERSATION_AGENT_SESSION]);
    conversation->ask_ms = (uint64_t) row[STORE_CONVERSATION_ASK].integer;
    conversation->created_ms = row[STORE_CONVERSATION_CREATED].integer;
    conversation->updated_ms = row[STORE_CONVERSATION_UPDATED].integer;
    conversation->work->is_kept = true;
    conversation->work->is_going = !row[STORE_CONVERSATION_GONE].is_null;
    conversation_add(domain, conversation);
    if (conversation->work->is_going)
        list_append(&domain->conversations->going, &conversation->work->link);
    return 0;
}

/* --- found ----------------------------------------------------------------------------------- */

static bool conversation_is_seen(const struct caller *caller,
                                 const struct conversation *conversation)
{
    return conversation->work->is_kept && !conversation->work->is_going &&
           caller_sees_sandbox(caller, &conversation->owner, &conversation->sandbox);
}

struct conversation *conversation_find(const struct domain *domain, const struct caller *caller,
                                       const struct id *sandbox, const char *id, struct error *err)
{
    struct conversation *conversation = NULL;
    struct id key;

    if (id_is_valid(id)) {
        memcpy(key.text, id, ID_SIZE);
        conversation = conversation_by_id(domain, &key);
    }
    if (conversation && conversation_is_seen(caller, conversation) &&
        (!sandbox || id_equal(sandbox, &conversation->sandbox)))
        return conversation;
    (void) error_set(err, ERR_NOT_FOUND, 0, "there is no conversation '%.40s'%s", id,
                     sandbox ? " in this sandbox" : "");
    return NULL;
}

struct conversation *conversation_find_session(const struct domain *domain,
                                               const struct caller *caller,
                                               const struct id *sandbox, const char *agent_session)
{
    struct conversation *found = NULL;

    LIST_EACH (&domain->conversations->all, at) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, link);

        if (conversation->agent_session && id_equal(&conversation->sandbox, sandbox) &&
            conversation_is_seen(caller, conversation) &&
            strcmp(conversation->agent_session, agent_session) == 0)
            found = conversation;
    }
    return found;
}

bool conversation_list(const struct domain *domain, const struct caller *caller,
                       const struct id *sandbox, const struct id *after, size_t limit,
                       void (*each)(void *context, struct conversation *conversation),
                       void *context)
{
    bool is_behind = !after;
    size_t count = 0;

    LIST_EACH (&domain->conversations->all, at) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, link);

        if (is_behind && id_equal(&conversation->sandbox, sandbox) &&
            conversation_is_seen(caller, conversation)) {
            if (count++ == limit)
                return true;
            each(context, conversation);
        }
        is_behind = is_behind || id_equal(&conversation->id, after);
    }
    return false;
}

/* --- one that is begun ------------------------------------------------------------------------ */

int conversation_check_harness(const struct domain *domain, struct error *err)
{
    if (domain->options.harness)
        return 0;
    return error_set(err, ERR_UNAVAILABLE, 0, "this daemon drives no agents");
}

void conversation_models(const struct sandbox *sandbox, struct text *models)
{
    AUTO(egress_policy) struct egress_policy policy = EGRESS_POLICY_INIT;
    const char *text = sandbox->spec.egress;
    struct json_writer json;
    bool is_empty = true;

    if (!text || egress_policy_parse(text, strlen(text), &policy, NULL) < 0)
        return;
    json_document_begin(&json, models);
    for (size_t i = 0; i < policy.route_count; i++) {
        if (policy.routes[i].api == EGRESS_API_NONE)
            continue;
        json_add_boolean(&json, policy.routes[i].name, true);
        is_empty = false;
    }
    if (json_document_end(&json) < 0 || is_empty)
        text_clear(models);
}

struct harness_place conversation_place_of(const struct sandbox *sandbox,
                                           const struct conversation_spec *spec,
                                           struct text *models)
{
    conversation_models(sandbox, models);
    return (struct harness_place){
        .sandbox = sandbox->id,
        .kind = spec->kind ? spec->kind : "opencode",
        .folder = spec->folder,
        .config = spec->config,
        .command = spec->command,
        .permission = spec->permission,
        .models = models->length ? text_string(models) : NULL,
    };
}

static char *conversation_write_place(const struct conversation_spec *spec)
{
    AUTO(text) struct text text = TEXT_INIT(CONVERSATION_PLACE_MAX * 2);
    struct json_writer json;

    json_document_begin(&json, &text);
    if (spec->folder)
        json_add_text(&json, "folder", spec->folder);
    if (spec->config)
        json_add_text(&json, "config", spec->config);
    if (spec->command)
        json_add_text(&json, "command", spec->command);
    if (spec->permission)
        json_add_text(&json, "permission", spec->permission);
    return json_document_end(&json) < 0 ? NULL : text_take(&text);
}

static int conversation_check_text(const char *text, const char *what, size_t max,
                                   struct error *err)
{
    if (text && (!*text || strlen(text) > max))
        return error_set(err, ERR_INVALID, 0, "field '%s' must have 1 to %zu bytes", what, max);
    return 0;
}

static size_t conversation_text_size(const char *text)
{
    return text ? strlen(text) : 0;
}

static int conversation_check_spec(const struct conversation_spec *spec, struct error *err)
{
    static const char *const kinds[] = {"opencode", "claude", "codex", "command"};
    bool is_known = !spec->kind;

    for (size_t i = 0; !is_known && i < ARRAY_COUNT(kinds); i++)
        is_known = strcmp(kinds[i], spec->kind) == 0;
    if (!is_known)
        return error_set(err, ERR_INVALID, 0,
                         "field 'kind' must be opencode, claude, codex or command");
    if (spec->kind && strcmp(spec->kind, "command") == 0 && !spec->command)
        return error_set(err, ERR_INVALID, 0, "an agent of the kind 'command' needs a 'command'");
    if (conversation_check_text(spec->provider, "model.providerID", CONVERSATION_NAME_MAX, err) <
            0 ||
        conversation_check_text(spec->model, "model.modelID", CONVERSATION_NAME_MAX, err) < 0 ||
        conversation_check_text(spec->agent, "agent", CONVERSATION_NAME_MAX, err) < 0)
        return -1;
    if (conversation_check_text(spec->agent_session, "agentSession", CONVERSATION_NAME_MAX, err) <
        0)
        return -1;
    if (spec->title && strlen(spec->title) > CONVERSATION_TITLE_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'title' must have at most %d bytes",
                         CONVERSATION_TITLE_MAX);
    if (!spec->provider != !spec->model)
        return error_set(err, ERR_INVALID, 0, "a model needs a provider: 'provider/model'");
    if (conversation_text_size(spec->config) + conversation_text_size(spec->permission) +
            conversation_text_size(spec->command) + conversation_text_size(spec->folder) >
        CONVERSATION_PLACE_MAX)
        return error_set(err, ERR_TOO_LARGE, 0,
                         "'config', 'permission' and 'command' may have %zu bytes together",
                         CONVERSATION_PLACE_MAX);
    if (spec->ask_ms > CONVERSATION_ASK_MS_MAX)
        return error_set(err, ERR_INVALID, 0, "'permissionTimeout' may be 24h at most");
    return 0;
}

struct conversation *conversation_prepare(struct domain *domain, const struct id *owner,
                                          const struct id *sandbox, const struct id *task,
                                          const struct conversation_spec *spec, struct error *err)
{
    AUTO(free) char *place = NULL;
    struct conversation *conversation;

    if (conversation_check_harness(domain, err) < 0 || conversation_check_spec(spec, err) < 0 ||
        domain_check_share(domain, owner, SHARE_CONVERSATIONS, 1, err) < 0)
        return NULL;
    place = conversation_write_place(spec);
    if (!place) {
        (void) error_set(err, ERR_INVALID, 0, "'config' and 'command' must be UTF-8");
        return NULL;
    }
    conversation = conversation_new(domain);
    conversation->id = id_new();
    conversation->owner = *owner;
    if (sandbox)
        conversation->sandbox = *sandbox;
    if (task)
        conversation->task = *task;
    conversation->title = mem_copy_text(spec->title ? spec->title : "");
    conversation->kind = mem_copy_text(spec->kind ? spec->kind : "opencode");
    conversation->place = TAKE_PTR(place);
    conversation_set_text(&conversation->provider, spec->provider);
    conversation_set_text(&conversation->model, spec->model);
    conversation_set_text(&conversation->agent, spec->agent);
    conversation_set_text(&conversation->agent_session, spec->agent_session);
    conversation->ask_ms = spec->ask_ms ? spec->ask_ms : CONVERSATION_ASK_MS;
    conversation->created_ms = conversation->updated_ms = domain_wall_ms(domain);
    conversation->work->has_sequence = true; /* nothing is in its log */
    conversation_add(domain, conversation);
    return conversation;
}

void conversation_kept(struct conversation *conversation)
{
    conversation->work->is_kept = true;
    turn_log_flush(conversation);
}

void conversation_dropped(struct domain *domain, struct conversation *conversation)
{
    conversation_ref(conversation);
    conversation->work->is_kept = false;
    conversation_unref(domain, conversation);
}

void conversation_set_sandbox(struct domain *domain, struct conversation *conversation,
                              struct store_transaction *rows, const struct id *sandbox)
{
    conversation->sandbox = *sandbox;
    conversation->updated_ms = domain_wall_ms(domain);
    conversation_put_row(rows, conversation);
}

const char *conversation_stream(const struct conversation *conversation)
{
    return *conversation->sandbox.text ? conversation->sandbox.text : "system";
}

/* --- the module ------------------------------------------------------------------------------ */

static void conversations_begin(struct domain *domain)
{
    struct conversations *conversations = mem_alloc(sizeof(*conversations));

    list_init(&conversations->all);
    list_init(&conversations->going);
    list_init(&conversations->live_all);
    domain->conversations = conversations;
}

struct conversations_loading {
    struct domain *domain;
    domain_done *done;
    void *context;
};

static void conversations_loaded(void *context, const struct error *failure)
{
    AUTO(free) struct conversations_loading *loading = context;

    if (failure)
        loading->done(loading->context, failure);
    else
        turns_load(loading->domain, loading->done, loading->context);
}

static void conversations_load(struct domain *domain, domain_done *done, void *context)
{
    struct conversations_loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct conversations_loading){domain, done, context};
    domain_load(domain, STORE_CONVERSATION, STORE_CONVERSATION_ID, conversation_load_one,
                conversations_loaded, loading);
}

/* Its sandbox is gone, or its owner. A task's log is kept as long as the task. */
static void conversation_orphan(struct domain *domain, struct conversation *conversation,
                                bool is_task_gone)
{
    LIST_EACH (&conversation->work->turns, at)
        turn_stop(CONTAINER_OF(at, struct live_turn, link), "agent_lost",
                  "the sandbox was destroyed");
    if ((*conversation->task.text && !is_task_gone) || conversation->work->is_going ||
        !conversation->work->is_kept)
        return;
    conversation->work->is_going = true;
    list_append(&domain->conversations->going, &conversation->work->link);
}

static void conversations_destroyed(struct domain *domain, const struct id *sandbox)
{
    LIST_EACH (&domain->conversations->all, at) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, link);

        if (id_equal(&conversation->sandbox, sandbox))
            conversation_orphan(domain, conversation, false);
    }
}

/* After a restart: sandboxes that went while nobody told us. */
static void conversations_look(struct domain *domain)
{
    LIST_EACH (&domain->conversations->all, at) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, link);

        bool is_owner_gone = owner_is_gone(domain, conversation->owner.text);

        if (is_owner_gone ||
            (*conversation->sandbox.text && !sandbox_set_by_id(domain, conversation->sandbox.text)))
            conversation_orphan(domain, conversation, is_owner_gone);
    }
}

static void conversations_tick(struct domain *domain)
{
    struct conversations *conversations = domain->conversations;

    if (!conversations->is_recovered) {
        conversations->is_recovered = true;
        turns_recover(domain);
        conversations_look(domain);
    }
    turn_run_tick(domain);
    LIST_EACH (&conversations->going, at)
        conversation_sweep(domain, CONTAINER_OF(at, struct conversation_work, link)->conversation);
}

static void conversations_later(struct domain *domain)
{
    domain->conversations->is_later = false;
    LIST_EACH (&domain->conversations->live_all, at)
        turn_parts_flush(CONTAINER_OF(at, struct live_turn, all), true);
}

/* Agents go on; their turns are found again. */
static void conversations_closing(struct domain *domain)
{
    const struct harness *harness = domain->options.harness;
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_UNAVAILABLE, 0, "the daemon is ending");
    LIST_EACH (&domain->conversations->live_all, at) {
        struct live_turn *live = CONTAINER_OF(at, struct live_turn, all);

        if (live->handle)
            harness->leave(harness->self, TAKE_PTR(live->handle));
        if (live->is_using)
            sandbox_use_end(&live->use);
        live->is_using = false;
        turn_tell_waits(live, &reason);
    }
    LIST_EACH (&domain->conversations->all, at)
        turn_followers_end(CONTAINER_OF(at, struct conversation, link), &reason);
}

static void conversations_end(struct domain *domain)
{
    struct conversations *conversations = TAKE_PTR(domain->conversations);

    if (!conversations)
        return;
    domain->conversations = conversations; /* turns leave its tables */
    LIST_EACH (&conversations->live_all, at)
        live_turn_gone(CONTAINER_OF(at, struct live_turn, all));
    LIST_EACH (&conversations->all, at)
        conversation_free(CONTAINER_OF(at, struct conversation, link));
    table_done(&conversations->by_id);
    table_done(&conversations->live);
    domain->conversations = NULL;
    free(conversations);
}

static void conversations_owner_deleted(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->conversations->all, at) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, link);

        if (id_equal(&conversation->owner, owner))
            conversation_orphan(domain, conversation, true);
    }
}

const struct domain_module domain_conversations = {
    .name = "conversations",
    .begin = conversations_begin,
    .load = conversations_load,
    .destroyed = conversations_destroyed,
    .owner_deleted = conversations_owner_deleted,
    .tick = conversations_tick,
    .later = conversations_later,
    .closing = conversations_closing,
    .end = conversations_end,
};
