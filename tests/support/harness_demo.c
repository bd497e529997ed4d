/* The harness without a daemon: what is done and told goes by lines of JSON, for tests of it with real
 * agents (tests/lib/harness_demo.py).
 *
 *     harness_demo AGENT [NETNS]
 *
 * AGENT is the address of a sandbox's agent, "unix:PATH"; NETNS a file of its network namespace, our
 * own when left out. One object a line comes on stdin:
 *
 *     {"do":"ensure", PLACE}   {"do":"look"}   {"do":"quiesce"}   {"do":"forget"}
 *     {"do":"prompt"|"find", "turn":ID, "session", "title", "parts":[...], "provider", "model", "agent", PLACE}
 *     {"do":"cancel"|"leave", "turn":ID}
 *     {"do":"permission", "turn":ID, "request", "reply", "message"}
 *     {"do":"question", "turn":ID, "request", "answers":[...]}
 *
 * PLACE: "kind", "folder", "config":{}, "command", "permission", "models":{}, "startMs". On stdout every call of
 * a listener and every answer is a line, {"tells": NAME, ...}. At the end of stdin all is closed, and
 * {"tells":"closed"} is the last. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "harness/drivers.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "net/http/http_client.h"

#define LINE_MAX_BYTES ((size_t) 16 * 1024 * 1024)
#define TURNS_MAX      64

struct harness_demo;

struct demo_turn {
    struct harness_demo *demo;
    struct harness_turn *turn; /* NULL: ended or left */
    char name[ID_SIZE];
};

struct harness_demo {
    struct loop loop;
    struct log *log;
    struct http_origin *agent;
    struct drivers *drivers;
    const struct harness *harness;
    int netns;
    uv_poll_t input;
    struct text line;
    struct id sandbox;
    struct demo_turn turns[TURNS_MAX];
    size_t turn_count;
};

/* --- what is told ---------------------------------------------------------------------------- */

struct telling {
    struct text text;
    struct json_writer json;
};

static void telling_begin(struct telling *telling, const char *name, const struct demo_turn *turn)
{
    telling->text = (struct text) TEXT_INIT(LINE_MAX_BYTES);
    json_document_begin(&telling->json, &telling->text);
    json_add_text(&telling->json, "tells", name);
    if (turn)
        json_add_text(&telling->json, "turn", turn->name);
}

static void telling_failure(struct telling *telling, const struct error *failure)
{
    json_key(&telling->json, "failure");
    if (!failure) {
        json_put_null(&telling->json);
        return;
    }
    json_begin_object(&telling->json);
    json_add_text(&telling->json, "code", error_code_text(failure->code));
    json_add_text(&telling->json, "message", failure->message);
    json_end_object(&telling->json);
}

static void telling_raw(struct telling *telling, const char *key, const char *json)
{
    json_key(&telling->json, key);
    json_put_raw(&telling->json, json, strlen(json));
}

static void telling_end(struct telling *telling)
{
    if (json_document_end(&telling->json) < 0)
        abort();
    (void) fwrite(text_string(&telling->text), 1, telling->text.length, stdout);
    (void) fputc('\n', stdout);
    (void) fflush(stdout);
    text_done(&telling->text);
}

static void demo_answered(void *context, const struct error *failure)
{
    struct telling telling;

    telling_begin(&telling, context, NULL);
    telling_failure(&telling, failure);
    telling_end(&telling);
}

static void demo_add_status(struct telling *telling, const struct harness_status *status)
{
    static const char *const states[] = {"absent", "starting", "ready", "failed"};

    json_add_text(&telling->json, "state", states[status->state]);
    json_add_integer(&telling->json, "port", status->port);
    json_add_text(&telling->json, "version", status->version);
    json_add_integer(&telling->json, "starts", status->starts);
    json_add_text(&telling->json, "lastWords", status->last_words);
}

static void demo_ready(void *context, const struct error *failure,
                       const struct harness_status *status)
{
    struct telling telling;

    (void) context;
    telling_begin(&telling, "ready", NULL);
    telling_failure(&telling, failure);
    demo_add_status(&telling, status);
    telling_end(&telling);
}

/* --- the listener ---------------------------------------------------------------------------- */

static void demo_began(void *context, const char *agent_session)
{
    struct telling telling;

    telling_begin(&telling, "began", context);
    json_add_text(&telling.json, "session", agent_session);
    telling_end(&telling);
}

static void demo_delta(void *context, const char *part_id, const char *field, const char *text,
                       size_t length)
{
    struct telling telling;

    telling_begin(&telling, "delta", context);
    json_add_text(&telling.json, "part", part_id);
    json_add_text(&telling.json, "field", field);
    json_key(&telling.json, "text");
    json_put_bytes(&telling.json, text, length);
    telling_end(&telling);
}

static void demo_told(struct demo_turn *turn, const char *name, const char *id, const char *json)
{
    struct telling telling;

    telling_begin(&telling, name, turn);
    json_add_text(&telling.json, "id", id);
    telling_raw(&telling, "body", json);
    telling_end(&telling);
}

static void demo_part(void *context, const char *part_id, const char *json)
{
    demo_told(context, "part", part_id, json);
}

static void demo_permission(void *context, const char *request, const char *json)
{
    demo_told(context, "permission", request, json);
}

static void demo_question(void *context, const char *request, const char *json)
{
    demo_told(context, "question", request, json);
}

static void demo_request_answered(void *context, const char *request, const char *reply)
{
    struct telling telling;

    telling_begin(&telling, "answered", context);
    json_add_text(&telling.json, "id", request);
    json_add_text(&telling.json, "reply", reply);
    telling_end(&telling);
}

static void demo_add_usage(struct json_writer *json, const struct harness_usage *usage)
{
    json_begin_object_at(json, "usage");
    json_add_integer(json, "input", (int64_t) usage->input);
    json_add_integer(json, "output", (int64_t) usage->output);
    json_add_integer(json, "reasoning", (int64_t) usage->reasoning);
    json_add_integer(json, "cacheRead", (int64_t) usage->cache_read);
    json_add_integer(json, "cacheWrite", (int64_t) usage->cache_write);
    json_add_integer(json, "costMicros", (int64_t) usage->cost_micros);
    json_add_boolean(json, "costKnown", usage->is_cost_known);
    json_end_object(json);
}

static void demo_ended(void *context, const struct error *failure,
                       const struct harness_result *result)
{
    struct demo_turn *turn = context;
    struct telling telling;

    turn->turn = NULL;
    telling_begin(&telling, "ended", turn);
    telling_failure(&telling, failure);
    if (result) {
        json_add_text(&telling.json, "answer", result->answer);
        json_add_text(&telling.json, "provider", result->provider);
        json_add_text(&telling.json, "model", result->model);
        json_add_boolean(&telling.json, "cancelled", result->was_cancelled);
        telling_raw(&telling, "parts", result->parts);
        telling_raw(&telling, "info", result->info);
        demo_add_usage(&telling.json, &result->usage);
    }
    telling_end(&telling);
}

static const struct harness_listener listener = {
    .began = demo_began,
    .delta = demo_delta,
    .part = demo_part,
    .permission = demo_permission,
    .question = demo_question,
    .answered = demo_request_answered,
    .ended = demo_ended,
};

/* --- what is done ---------------------------------------------------------------------------- */

static const char *demo_text(const json_t *line, const char *key)
{
    return json_string_value(json_object_get(line, key));
}

/* The member as JSON, or NULL. Owned. */
static char *demo_json(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);

    return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

static struct demo_turn *demo_turn_of(struct harness_demo *demo, const json_t *line)
{
    const char *name = demo_text(line, "turn");

    for (size_t i = 0; name && i < demo->turn_count; i++) {
        if (strcmp(demo->turns[i].name, name) == 0 && demo->turns[i].turn)
            return &demo->turns[i];
    }
    return NULL;
}

static struct harness_place demo_place(struct harness_demo *demo, const json_t *line,
                                       const char *config, const char *models)
{
    return (struct harness_place){
        .sandbox = demo->sandbox,
        .kind = demo_text(line, "kind"),
        .folder = demo_text(line, "folder"),
        .config = config,
        .command = demo_text(line, "command"),
        .permission = demo_text(line, "permission"),
        .models = models,
        .start_ms = (uint64_t) json_integer_value(json_object_get(line, "startMs")),
    };
}

static void demo_ensure(struct harness_demo *demo, const json_t *line)
{
    AUTO(free) char *config = demo_json(line, "config");
    AUTO(free) char *models = demo_json(line, "models");
    struct harness_place place = demo_place(demo, line, config, models);

    demo->harness->ensure(demo->harness->self, &place, demo_ready, NULL);
}

static void demo_begin_turn(struct harness_demo *demo, const json_t *line, bool is_find)
{
    AUTO(free) char *config = demo_json(line, "config");
    AUTO(free) char *models = demo_json(line, "models");
    AUTO(free) char *parts = demo_json(line, "parts");
    struct harness_prompt prompt = {.place = demo_place(demo, line, config, models),
                                    .agent_session = demo_text(line, "session"),
                                    .title = demo_text(line, "title"),
                                    .parts = parts,
                                    .provider = demo_text(line, "provider"),
                                    .model = demo_text(line, "model"),
                                    .agent = demo_text(line, "agent")};
    struct demo_turn *turn = &demo->turns[demo->turn_count++ % TURNS_MAX];

    turn->demo = demo;
    (void) snprintf(turn->name, sizeof(turn->name), "%s", demo_text(line, "turn"));
    memcpy(prompt.turn.text, turn->name, sizeof(turn->name));
    turn->turn = (is_find ? demo->harness->find : demo->harness->prompt)(demo->harness->self,
                                                                         &prompt, &listener, turn);
}

static void demo_prompt(struct harness_demo *demo, const json_t *line)
{
    demo_begin_turn(demo, line, false);
}

static void demo_find(struct harness_demo *demo, const json_t *line)
{
    demo_begin_turn(demo, line, true);
}

static void demo_look(struct harness_demo *demo, const json_t *line)
{
    const char *kind = demo_text(line, "kind");
    struct harness_status status;
    struct telling telling;

    demo->harness->look(demo->harness->self, &demo->sandbox, kind ? kind : "opencode", &status);
    telling_begin(&telling, "look", NULL);
    demo_add_status(&telling, &status);
    telling_end(&telling);
}

static void demo_quiesce(struct harness_demo *demo, const json_t *line)
{
    (void) line;
    demo->harness->quiesce(demo->harness->self, &demo->sandbox, demo_answered, (void *) "quiesced");
}

static void demo_forget(struct harness_demo *demo, const json_t *line)
{
    (void) line;
    demo->harness->forget(demo->harness->self, &demo->sandbox);
}

static void demo_cancel(struct harness_demo *demo, const json_t *line)
{
    struct demo_turn *turn = demo_turn_of(demo, line);

    if (turn)
        demo->harness->cancel(demo->harness->self, turn->turn);
}

static void demo_leave(struct harness_demo *demo, const json_t *line)
{
    struct demo_turn *turn = demo_turn_of(demo, line);

    if (turn)
        demo->harness->leave(demo->harness->self, TAKE_PTR(turn->turn));
}

static void demo_answer_permission(struct harness_demo *demo, const json_t *line)
{
    struct demo_turn *turn = demo_turn_of(demo, line);

    if (turn)
        demo->harness->answer_permission(
            demo->harness->self, turn->turn, demo_text(line, "request"), demo_text(line, "reply"),
            demo_text(line, "message"), demo_answered, (void *) "permitted");
}

static void demo_answer_question(struct harness_demo *demo, const json_t *line)
{
    AUTO(free) char *answers = demo_json(line, "answers");
    struct demo_turn *turn = demo_turn_of(demo, line);

    if (turn)
        demo->harness->answer_question(demo->harness->self, turn->turn, demo_text(line, "request"),
                                       answers, demo_answered, (void *) "told");
}

static const struct {
    const char *name;
    void (*run)(struct harness_demo *demo, const json_t *line);
} deeds[] = {
    {"ensure", demo_ensure},
    {"look", demo_look},
    {"prompt", demo_prompt},
    {"find", demo_find},
    {"cancel", demo_cancel},
    {"leave", demo_leave},
    {"permission", demo_answer_permission},
    {"question", demo_answer_question},
    {"quiesce", demo_quiesce},
    {"forget", demo_forget},
};

static void demo_do(struct harness_demo *demo, const char *bytes, size_t length)
{
    struct error err = ERROR_INIT;
    AUTO(json) json_t *line = json_read(bytes, length, NULL, &err);
    const char *name = demo_text(line, "do");

    for (size_t i = 0; i < ARRAY_COUNT(deeds); i++) {
        if (name && strcmp(deeds[i].name, name) == 0) {
            deeds[i].run(demo, line);
            return;
        }
    }
    (void) fprintf(stderr, "harness_demo: not understood: %.*s %s\n", (int) length, bytes,
                   err.message);
}

/* --- the sandbox ----------------------------------------------------------------------------- */

static struct http_origin *demo_agent(void *self, const struct id *sandbox, struct error *err)
{
    (void) sandbox;
    (void) err;
    return ((struct harness_demo *) self)->agent;
}

static void demo_sockets(void *self, const struct id *sandbox, size_t count,
                         reach_sockets_done *done, void *context)
{
    struct harness_demo *demo = self;
    int sockets[16];
    size_t made = 0;

    (void) sandbox;
    if (demo->netns >= 0 && setns(demo->netns, CLONE_NEWNET) < 0)
        abort();
    for (; made < count && made < ARRAY_COUNT(sockets); made++)
        sockets[made] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    done(context, NULL, sockets, made);
}

/* --- life ------------------------------------------------------------------------------------ */

static void demo_agent_closed(struct http_origin *origin, void *data)
{
    struct telling telling;

    (void) origin;
    (void) data;
    telling_begin(&telling, "closed", NULL);
    telling_end(&telling);
}

static void demo_closed(void *context)
{
    struct harness_demo *demo = context;

    http_origin_close(TAKE_PTR(demo->agent), demo_agent_closed, demo);
}

static void demo_end(struct harness_demo *demo)
{
    uv_close((uv_handle_t *) &demo->input, NULL);
    drivers_close(TAKE_PTR(demo->drivers), demo_closed, demo);
}

static void demo_can_read(uv_poll_t *poll, int status, int events)
{
    struct harness_demo *demo = poll->data;
    char bytes[65536];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    char *end;

    (void) status;
    (void) events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        demo_end(demo);
        return;
    }
    text_append_bytes(&demo->line, bytes, (size_t) got);
    while ((end = memchr(text_string(&demo->line), '\n', demo->line.length))) {
        size_t length = (size_t) (end - demo->line.data);

        demo_do(demo, demo->line.data, length);
        text_consume(&demo->line, length + 1);
    }
}

int main(int argc, char **argv)
{
    struct harness_demo demo = {.netns = -1, .line = TEXT_INIT(LINE_MAX_BYTES)};
    struct drivers_options options;
    struct error err = ERROR_INIT;

    if (argc < 2 || argc > 3) {
        (void) fprintf(stderr, "usage: harness_demo AGENT [NETNS]\n");
        return 2;
    }
    (void) signal(SIGPIPE, SIG_IGN);
    demo.log = log_new(STDERR_FILENO, LOG_FORMAT_AUTO, LOG_LEVEL_INFO, clock_system());
    demo.sandbox = id_new();
    if (argc == 3 && (demo.netns = open(argv[2], O_RDONLY | O_CLOEXEC)) < 0) {
        perror(argv[2]);
        return 1;
    }
    if (loop_init(&demo.loop, demo.log) < 0)
        return 1;
    demo.agent = http_origin_new(&demo.loop, argv[1], NULL, &err);
    if (!demo.agent) {
        (void) fprintf(stderr, "harness_demo: %s\n", err.message);
        return 1;
    }
    options = (struct drivers_options){
        .loop = &demo.loop,
        .clock = clock_system(),
        .log = demo.log,
        .reach = {.self = &demo, .agent = demo_agent, .sockets = demo_sockets},
    };
    demo.drivers = drivers_new(&options);
    demo.harness = drivers_harness(demo.drivers);
    (void) uv_poll_init(&demo.loop.uv, &demo.input, STDIN_FILENO);
    demo.input.data = &demo;
    (void) uv_poll_start(&demo.input, UV_READABLE, demo_can_read);
    loop_run(&demo.loop);
    loop_done(&demo.loop);
    text_done(&demo.line);
    log_free(demo.log);
    return 0;
}
