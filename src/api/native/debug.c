/* What the processes did last about one request or sandbox, merged, and what they have now. For
 * administrators: it tells of everybody's sandboxes.
 *
 *     our ring ──► the launcher's ──► agents' of the sandboxes that these name ──► sorted, answered
 *
 * A process that does not answer is left out, and `missing` says why: a trace is asked for when
 * something hangs. Nobody is woken for it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/agent/agents.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "base/memory.h"
#include "domain/sandbox/sandboxes.h"
#include "json/trace_json.h"
#include "net/http/http_server.h"

#define STATE_MAX   ((size_t) 16 * 1024 * 1024)
#define MISSING_MAX ((size_t) 16 * 1024)
#define AGENTS_ASK  16 /* of the sandboxes that a request was about */

/* A launcher that hangs is what one wants to see: it is not waited for longer than this. */
#define PATIENCE_MS 2000

/* provider_inspect, answered in time: by the provider, or with a failure, and then its answer is
 * dropped when it comes after all. */
struct patient_look {
    struct deadline deadline;
    provider_inspect_done *done;
    void *context;
    bool is_told, is_answered, is_closed;
};

struct trace_look {
    struct pending *pending;
    struct api *api;
    struct trace_context about;
    struct id own;               /* the request that asks: what is done for it is left out */
    struct trace_entry *entries; /* owned */
    size_t count;
    struct id sandboxes[AGENTS_ASK];
    size_t sandbox_count, asked;
    struct text missing;
};

static void look_free(struct trace_look *look)
{
    text_done(&look->missing);
    free(look->entries);
    free(look);
}

/* --- in time --------------------------------------------------------------------------------- */

static void patient_look_free(struct patient_look *patient)
{
    if (patient->is_answered && patient->is_closed)
        free(patient);
}

static void patient_look_closed(struct deadline *deadline)
{
    struct patient_look *patient = CONTAINER_OF(deadline, struct patient_look, deadline);

    patient->is_closed = true;
    patient_look_free(patient);
}

static void patient_look_tell(struct patient_look *patient, const struct error *failure, int file)
{
    if (patient->is_told)
        return;
    patient->is_told = true;
    patient->done(patient->context, failure, file);
    deadline_close(&patient->deadline, patient_look_closed);
}

static void patient_look_answered(void *context, const struct error *failure, int file)
{
    struct patient_look *patient = context;

    patient_look_tell(patient, failure, file);
    patient->is_answered = true;
    patient_look_free(patient);
}

static void patient_look_late(struct deadline *deadline)
{
    struct error error = ERROR_INIT;

    (void) error_set(&error, ERR_UPSTREAM_TIMEOUT, 0, "does not answer within %d ms", PATIENCE_MS);
    patient_look_tell(CONTAINER_OF(deadline, struct patient_look, deadline), &error, -EBADF);
}

static void look_patiently(struct api *api, bool state, const struct trace_context *about,
                           provider_inspect_done *done, void *context)
{
    struct provider *provider = domain_provider(api->domain);
    struct patient_look *patient;
    struct error error = ERROR_INIT;

    if (!provider) {
        (void) error_set(&error, ERR_UNAVAILABLE, 0, "there is none");
        done(context, &error, -EBADF);
        return;
    }
    patient = mem_alloc(sizeof(*patient));
    patient->done = done;
    patient->context = context;
    deadline_init(api->loop, &patient->deadline, patient_look_late);
    deadline_set(&patient->deadline, PATIENCE_MS);
    provider_inspect(provider, state, about, patient_look_answered, patient);
}

/* --- entries --------------------------------------------------------------------------------- */

/* At most what all rings together hold. */
static void add_entries(struct trace_look *look, const struct trace_entry *entries, size_t count)
{
    look->entries = mem_resize(look->entries, (look->count + count) * sizeof(*entries));
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].context.request.text, look->own.text) != 0)
            look->entries[look->count++] = entries[i];
}

static void note_missing(struct trace_look *look, const char *process, const struct error *failure)
{
    if (look->missing.length)
        text_append(&look->missing, "; ");
    text_format(&look->missing, "%s: %s", process, failure->message);
}

static int by_time(const void *a, const void *b)
{
    const struct trace_entry *one = a, *other = b;

    if (one->time_ns != other->time_ns)
        return one->time_ns < other->time_ns ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

static void look_answer(struct trace_look *look)
{
    struct http_request *request = pending_take(look->pending);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin(&answer);
    if (request) {
        qsort(look->entries, look->count, sizeof(*look->entries), by_time);
        json_key(&answer.json, "entries");
        trace_json_write(&answer.json, look->entries, look->count);
        if (look->missing.length)
            json_add_text(&answer.json, "missing", text_string(&look->missing));
        native_answer_send(&answer, request, 200);
    }
    look_free(look);
}

/* --- agents ---------------------------------------------------------------------------------- */

static void ask_next_agent(struct trace_look *look);

static int take_reply(struct trace_look *look, const char *text, struct error *err)
{
    AUTO(json) json_t *body = json_read(text, strlen(text), NULL, err);
    AUTO(free) struct trace_entry *entries = mem_alloc_array(TRACE_AGENT, sizeof(*entries));
    struct json_place root;
    ssize_t count;

    if (!body || json_root_object(body, &root, err) < 0)
        return -1;
    count = trace_json_read(&root, entries, TRACE_AGENT, err);
    for (ssize_t i = 0; i < count; i++) {
        /* Its word counts for when and what, not for who. */
        memset(entries[i].process, 0, sizeof(entries[i].process));
        memcpy(entries[i].process, "agent", sizeof("agent"));
        entries[i].context.sandbox = look->sandboxes[look->asked - 1];
    }
    if (count > 0)
        add_entries(look, entries, (size_t) count);
    return count < 0 ? -1 : 0;
}

static void agent_answered(void *context, const struct error *failure, const char *text)
{
    struct trace_look *look = context;
    struct error err = ERROR_INIT;

    if (failure)
        note_missing(look, "agent", failure);
    else if (take_reply(look, text, &err) < 0)
        note_missing(look, "agent", &err);
    ask_next_agent(look);
}

static bool is_running(const struct trace_look *look, const struct id *id)
{
    struct caller system = caller_system();
    const struct sandbox *sandbox = sandbox_find(look->api->domain, &system, id->text, NULL);

    return sandbox && sandbox->status == SANDBOX_RUNNING;
}

/* One after the other: few, and each answers at once. */
static void ask_next_agent(struct trace_look *look)
{
    while (look->asked < look->sandbox_count) {
        const struct id *id = &look->sandboxes[look->asked++];

        if (!is_running(look, id))
            continue;
        agents_ask_trace(look->api->agents, id, &look->about.request, agent_answered, look);
        return;
    }
    look_answer(look);
}

static void add_sandbox(struct trace_look *look, const struct id *id)
{
    for (size_t i = 0; i < look->sandbox_count; i++)
        if (strcmp(look->sandboxes[i].text, id->text) == 0)
            return;
    if (id->text[0] && look->sandbox_count < AGENTS_ASK)
        look->sandboxes[look->sandbox_count++] = *id;
}

static void find_sandboxes(struct trace_look *look)
{
    if (look->about.sandbox.text[0])
        add_sandbox(look, &look->about.sandbox);
    for (size_t i = 0; i < look->count && look->about.request.text[0]; i++)
        add_sandbox(look, &look->entries[i].context.sandbox);
}

/* --- the launcher ---------------------------------------------------------------------------- */

/* Of a program of ours, but read as it comes. */
static void read_ring(struct trace_look *look, int file)
{
    struct trace_entry entry;

    while (read(file, &entry, sizeof(entry)) == (ssize_t) sizeof(entry)) {
        trace_entry_clean(&entry);
        add_entries(look, &entry, 1);
    }
}

static void launcher_answered(void *context, const struct error *failure, int file)
{
    struct trace_look *look = context;

    if (failure)
        note_missing(look, "launcher", failure);
    else
        read_ring(look, file);
    find_sandboxes(look);
    ask_next_agent(look);
}

/* --- routes ---------------------------------------------------------------------------------- */

static int read_about(struct http_request *request, struct trace_context *ret_about,
                      struct error *err)
{
    const char *id = http_request_query(request, "request");
    const char *name = http_request_query(request, "sandbox");
    struct sandbox *sandbox;

    *ret_about = (struct trace_context){.request = {""}};
    if (id && !id_is_valid(id))
        return error_set(err, ERR_INVALID, 0,
                         "'%.64s' is no id of a request: 26 letters and digits, as X-Request-Id of "
                         "its reply has them",
                         id);
    if (id)
        memcpy(ret_about->request.text, id, ID_SIZE);
    /* One that is gone is known by its id alone. */
    if (name && id_is_valid(name)) {
        memcpy(ret_about->sandbox.text, name, ID_SIZE);
    } else if (name) {
        sandbox = sandbox_find(api_of(request)->domain, request_caller(request), name, err);
        if (!sandbox)
            return -1;
        ret_about->sandbox = sandbox->id;
    }
    return 0;
}

void native_debug_trace(struct http_request *request)
{
    struct api *api = api_of(request);
    AUTO(free) struct trace_entry *entries = NULL;
    struct error error = ERROR_INIT;
    struct trace_context about;
    struct trace_look *look;

    if (read_about(request, &about, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    look = mem_alloc(sizeof(*look));
    *look = (struct trace_look){
        .api = api, .about = about, .own = request->id, .missing = TEXT_INIT(MISSING_MAX)};
    look->pending = pending_new(request);
    entries = mem_alloc_array(TRACE_DAEMON, sizeof(*entries));
    add_entries(look, entries, trace_read(&about, entries, TRACE_DAEMON));
    look_patiently(api, false, &about, launcher_answered, look);
}

/* --- state ----------------------------------------------------------------------------------- */

static void add_file(struct text *out, int file)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(file, bytes, sizeof(bytes))) > 0)
        text_append_bytes(out, bytes, (size_t) got);
}

static void describe_daemon(struct http_request *request, struct text *out)
{
    const struct domain *domain = api_of(request)->domain;

    text_format(out, "http: %zu connections\n",
                http_server_connections(http_request_server(request)));
    domain_describe(domain, out);
    sandboxes_describe(domain, out);
}

static void state_answered(void *context, const struct error *failure, int file)
{
    struct http_request *request = pending_take(context);
    AUTO(text) struct text out = TEXT_INIT(STATE_MAX);

    if (!request)
        return;
    describe_daemon(request, &out);
    if (failure)
        text_format(&out, "launcher: %s\n", failure->message);
    else
        add_file(&out, file);
    http_reply(request, 200, "text/plain; charset=utf-8", text_string(&out), out.length);
}

void native_debug_state(struct http_request *request)
{
    static const struct trace_context anybody;

    look_patiently(api_of(request), true, &anybody, state_answered, pending_new(request));
}
