/* The egress broker with a policy from a file and nothing else behind it: what it does to hostile
 * sandboxes and hostile upstreams, without any of the product. Tests drive it.
 *
 *     broker-demo --policy FILE [--ca FILE] [--allow RANGES] [--connections N] [--answer-ms N]
 *                 [--share N] [--hello-ms N] [--intercept HOST]... [--forward ADDRESS:PORT:HOST]...
 *
 * It makes a network of its own for the sandbox and says "ready PID FD" where FD is open on it. Then
 * it writes one line of JSON for everything the broker tells the domain. The policy is read anew for
 * each thing asked; a line is
 *
 *     route NAME WORD...     host NAME[:PORT] WORD...     tcp NAME[:PORT] WORD...
 *
 * with the words base=URL format=N verdict=tunnel|intercept|pass header=NAME:VALUE query=VALUE local
 * cut=N (tokens of output after which a stream is cut) deny=TYPE. First match; nothing matches: denied.
 *
 * SIGUSR1 cuts the outlet, SIGTERM closes everything. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/engine.h"
#include "json/json_write.h"

#define ANSWER_MS 1 /* so that no answer comes from inside the call */
#define HOSTS_MAX 8

struct demo {
    struct loop loop;
    struct broker_engine *engine;
    struct broker broker;
    struct broker_outlet *outlet;
    uv_signal_t cut, stop;
    const char *policy;
    uint64_t grants;
    uint64_t cut_at[4096]; /* by number of the grant */
    struct broker_forward forwards[BROKER_FORWARDS_MAX];
    const char *intercepted[HOSTS_MAX];
    struct broker_place place;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* --- what is told ----------------------------------------------------------------------------- */

static void line_end(struct json_writer *json, struct text *line)
{
    json_end_object(json);
    (void) json_writer_finish(json);
    (void) printf("%s\n", text_string(line));
    (void) fflush(stdout);
}

static void told_ended(void *self, const struct broker_record *record)
{
    AUTO(text) struct text line = TEXT_INIT(65536);
    struct json_writer json;

    (void) self;
    json_document_begin(&json, &line);
    json_add_text(&json, "told", "ended");
    json_add_integer(&json, "grant", (int64_t) record->grant);
    json_add_integer(&json, "way", record->way);
    json_add_text(&json, "route", record->route);
    json_add_text(&json, "host", record->host);
    json_add_integer(&json, "port", record->port);
    json_add_text(&json, "method", record->method);
    json_add_text(&json, "path", record->path);
    json_add_integer(&json, "status", record->status);
    json_add_integer(&json, "sent", (int64_t) record->sent);
    json_add_integer(&json, "received", (int64_t) record->received);
    json_add_text(&json, "failure", record->failure);
    json_add_boolean(&json, "partial", record->is_partial);
    json_add_boolean(&json, "known", record->usage.is_known);
    json_add_text(&json, "model", record->usage.model);
    json_add_integer(&json, "input", (int64_t) record->usage.input);
    json_add_integer(&json, "output", (int64_t) record->usage.output);
    json_add_integer(&json, "reasoning", (int64_t) record->usage.reasoning);
    json_add_integer(&json, "cache_read", (int64_t) record->usage.cache_read);
    json_add_integer(&json, "cache_write", (int64_t) record->usage.cache_write);
    line_end(&json, &line);
}

static void told_violated(void *self, const struct id *sandbox, const char *reason,
                          const char *host, uint16_t port)
{
    AUTO(text) struct text line = TEXT_INIT(65536);
    struct json_writer json;

    (void) self;
    (void) sandbox;
    json_document_begin(&json, &line);
    json_add_text(&json, "told", "violated");
    json_add_text(&json, "reason", reason);
    json_add_text(&json, "host", host);
    json_add_integer(&json, "port", port);
    line_end(&json, &line);
}

static void told_authority(void *self, const struct id *sandbox, const char *certificate,
                           const char *key)
{
    AUTO(text) struct text line = TEXT_INIT(65536);
    struct json_writer json;

    (void) self;
    (void) sandbox;
    json_document_begin(&json, &line);
    json_add_text(&json, "told", "authority");
    json_add_text(&json, "certificate", certificate);
    json_add_boolean(&json, "has_key", strstr(key, "PRIVATE KEY") != NULL);
    line_end(&json, &line);
}

static bool told_used(void *self, uint64_t grant, enum broker_format format,
                      const struct broker_usage *usage)
{
    const struct demo *demo = self;
    uint64_t cut_at = demo->cut_at[grant % ARRAY_COUNT(demo->cut_at)];

    (void) format;
    return !cut_at || usage->output < cut_at;
}

/* --- the policy ------------------------------------------------------------------------------- */

struct decision {
    uv_timer_t timer;
    struct demo *demo;
    broker_answer *done;
    void *context;
    struct broker_grant grant;
    struct error refusal;
    char *line; /* owned: what the grant points into */
};

static void word_read(struct decision *decision, char *word)
{
    struct broker_grant *grant = &decision->grant;
    char *value = strchr(word, '=');

    if (strcmp(word, "local") == 0)
        grant->may_be_local = true;
    if (!value)
        return;
    *value++ = '\0';
    if (strcmp(word, "base") == 0) {
        grant->base = value;
    } else if (strcmp(word, "format") == 0) {
        grant->format = (enum broker_format) strtoul(value, NULL, 10);
    } else if (strcmp(word, "query") == 0) {
        grant->query_key = value;
    } else if (strcmp(word, "cut") == 0) {
        decision->demo->cut_at[grant->number % ARRAY_COUNT(decision->demo->cut_at)] =
            strtoull(value, NULL, 10);
    } else if (strcmp(word, "deny") == 0) {
        grant->verdict = BROKER_DENY;
        grant->refusal_type = value;
        (void) error_set(&decision->refusal,
                         strcmp(value, "budget_exceeded") == 0 ? ERR_QUOTA : ERR_FORBIDDEN, 0,
                         "the policy says %s", value);
    } else if (strcmp(word, "verdict") == 0) {
        grant->verdict = strcmp(value, "tunnel") == 0      ? BROKER_TUNNEL
                         : strcmp(value, "intercept") == 0 ? BROKER_INTERCEPT
                                                           : BROKER_PASS;
    } else if (strcmp(word, "header") == 0 && grant->header_count < BROKER_HEADERS_MAX) {
        char *colon = strchr(value, ':');

        *colon = '\0';
        for (char *at = colon + 1; *at; at++) {
            if (*at == '+')
                *at = ' ';
        }
        grant->headers[grant->header_count++] = (struct broker_header){value, colon + 1};
    }
}

static bool line_matches(const char *kind, const char *name, const struct broker_ask *ask)
{
    char full[512];

    if (strcmp(kind, "route") == 0)
        return ask->way == BROKER_ROUTE && strcmp(ask->route, name) == 0;
    if ((strcmp(kind, "tcp") == 0) != (ask->way == BROKER_TCP) || ask->way == BROKER_ROUTE)
        return false;
    (void) snprintf(full, sizeof(full), "%s:%u", ask->host, ask->port);
    return strcmp(ask->host, name) == 0 || strcmp(full, name) == 0;
}

static void decision_make(struct decision *decision, const struct broker_ask *ask)
{
    FILE *file = fopen(decision->demo->policy, "re");
    char line[4096];

    while (file && !decision->line && fgets(line, sizeof(line), file)) {
        AUTO(free) char *copy = mem_copy_text(line);
        char *rest = NULL, *kind = strtok_r(copy, " \n", &rest);
        char *name = kind ? strtok_r(NULL, " \n", &rest) : NULL;

        if (!name || !line_matches(kind, name, ask))
            continue;
        decision->grant.verdict =
            ask->way == BROKER_CONNECT || ask->way == BROKER_TCP ? BROKER_TUNNEL : BROKER_PASS;
        for (char *word; (word = strtok_r(NULL, " \n", &rest));)
            word_read(decision, word);
        if (ask->way == BROKER_REQUEST)
            decision->grant.verdict = BROKER_PASS;
        decision->line = TAKE_PTR(copy);
    }
    if (file)
        (void) fclose(file);
}

static void decision_gone(uv_handle_t *handle)
{
    struct decision *decision = handle->data;

    free(decision->line);
    free(decision);
}

static void decision_tell(uv_timer_t *timer)
{
    struct decision *decision = timer->data;

    decision->done(decision->context, &decision->grant);
    uv_close((uv_handle_t *) timer, decision_gone);
}

static void told_ask(void *self, const struct broker_ask *ask, broker_answer *done, void *context)
{
    struct demo *demo = self;
    struct decision *decision = mem_alloc(sizeof(*decision));
    AUTO(text) struct text line = TEXT_INIT(65536);
    struct json_writer json;

    decision->demo = demo;
    decision->done = done;
    decision->context = context;
    decision->grant.number = ++demo->grants;
    decision->grant.verdict = BROKER_DENY;
    decision->grant.refusal = &decision->refusal;
    decision->grant.refusal_type = "egress_denied";
    (void) error_set(&decision->refusal, ERR_FORBIDDEN, 0,
                     "host %s is not allowed for this sandbox", ask->host ? ask->host : ask->route);
    decision_make(decision, ask);
    json_document_begin(&json, &line);
    json_add_text(&json, "told", "asked");
    json_add_integer(&json, "grant", (int64_t) decision->grant.number);
    json_add_integer(&json, "way", ask->way);
    json_add_text(&json, "route", ask->route);
    json_add_text(&json, "host", ask->host);
    json_add_integer(&json, "port", ask->port);
    json_add_text(&json, "method", ask->method);
    json_add_text(&json, "path", ask->path);
    json_add_text(&json, "placeholder", ask->placeholder);
    json_add_boolean(&json, "upgrade", ask->is_upgrade);
    line_end(&json, &line);
    (void) uv_timer_init(&demo->loop.uv, &decision->timer);
    decision->timer.data = decision;
    (void) uv_timer_start(&decision->timer, decision_tell, ANSWER_MS, 0);
}

/* --- the sandbox's network -------------------------------------------------------------------- */

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    AUTO(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        die("lo");
}

/* Sockets of a fresh network; returns a descriptor of it. */
static int network_make(int *sockets, size_t count)
{
    int outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), inside;

    if (outside < 0 || unshare(CLONE_NEWNET) < 0)
        die("unshare");
    loopback_up();
    inside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (sockets[i] < 0)
            die("socket");
    }
    if (setns(outside, CLONE_NEWNET) < 0)
        die("setns");
    (void) close(outside);
    return inside;
}

/* --- life ------------------------------------------------------------------------------------- */

static void demo_cut(uv_signal_t *handle, int number)
{
    struct demo *demo = handle->data;

    (void) number;
    demo->broker.cut(demo->broker.self, demo->outlet);
    (void) puts("{\"told\":\"cut\"}");
    (void) fflush(stdout);
}

static void demo_stop(uv_signal_t *handle, int number)
{
    struct demo *demo = handle->data;

    (void) number;
    demo->broker.close(demo->broker.self, demo->outlet);
    broker_engine_close(demo->engine, NULL, NULL);
    uv_close((uv_handle_t *) &demo->cut, NULL);
    uv_close((uv_handle_t *) &demo->stop, NULL);
}

static void demo_watch(struct demo *demo)
{
    (void) signal(SIGPIPE, SIG_IGN);
    (void) uv_signal_init(&demo->loop.uv, &demo->cut);
    (void) uv_signal_init(&demo->loop.uv, &demo->stop);
    demo->cut.data = demo->stop.data = demo;
    (void) uv_signal_start(&demo->cut, demo_cut, SIGUSR1);
    (void) uv_signal_start(&demo->stop, demo_stop, SIGTERM);
}

/* ADDRESS:PORT:HOST */
static void forward_read(struct demo *demo, char *text)
{
    char *port = strchr(text, ':'), *host = port ? strchr(port + 1, ':') : NULL;

    if (!host || demo->place.forward_count == BROKER_FORWARDS_MAX)
        die("--forward");
    *port++ = '\0';
    *host++ = '\0';
    demo->forwards[demo->place.forward_count++] = (struct broker_forward){
        .address = text, .host = host, .port = (uint16_t) strtoul(port, NULL, 10)};
}

/* What the owner of the sandbox may have, all of his sandboxes together. */
static void share_set(struct broker_engine_options *options, const char *count)
{
    char limits[64];
    struct error error;

    options->shares = shares_new(100000);
    (void) snprintf(limits, sizeof(limits), "egress_connections=%s", count);
    if (shares_set_limits(options->shares, limits, &error) < 0)
        die(error.message);
}

static void options_read(struct demo *demo, struct broker_engine_options *options, char **arguments,
                         const char **ret_ca)
{
    struct error error;

    for (; arguments[0] && arguments[1]; arguments += 2) {
        char *value = arguments[1];

        if (strcmp(arguments[0], "--policy") == 0)
            demo->policy = value;
        else if (strcmp(arguments[0], "--ca") == 0)
            *ret_ca = value;
        else if (strcmp(arguments[0], "--connections") == 0)
            options->connections_max = strtoul(value, NULL, 10);
        else if (strcmp(arguments[0], "--answer-ms") == 0)
            options->answer_ms = options->pause_ms = strtoul(value, NULL, 10);
        else if (strcmp(arguments[0], "--share") == 0)
            share_set(options, value);
        else if (strcmp(arguments[0], "--hello-ms") == 0)
            options->hello_ms = strtoul(value, NULL, 10);
        else if (strcmp(arguments[0], "--intercept") == 0)
            demo->intercepted[demo->place.intercepted_count++] = value;
        else if (strcmp(arguments[0], "--forward") == 0)
            forward_read(demo, value);
        else if (strcmp(arguments[0], "--allow") == 0 &&
                 address_rules_allow_list(&options->rules, value, &error) < 0)
            die(error.message);
    }
}

int main(int count, char **arguments)
{
    struct broker_engine_options options = BROKER_ENGINE_OPTIONS_DEFAULT;
    struct demo *demo = mem_alloc(sizeof(*demo));
    int sockets[BROKER_SOCKETS_MAX], inside;
    struct error error = ERROR_INIT;
    const char *ca = NULL;

    (void) count;
    if (loop_init(&demo->loop, NULL) < 0)
        die("loop");
    options_read(demo, &options, arguments + 1, &ca);
    options.loop = &demo->loop;
    options.clock = clock_system();
    options.tls = tls_context_client(ca, &error);
    options.host = (struct broker_host){.self = demo,
                                        .ask = told_ask,
                                        .used = told_used,
                                        .ended = told_ended,
                                        .violated = told_violated,
                                        .made_authority = told_authority};
    if (!options.tls) {
        (void) fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    demo->engine = broker_engine_new(&options);
    demo->broker = broker_engine_interface(demo->engine);
    demo->place.sandbox = demo->place.owner = id_new();
    demo->place.forwards = demo->forwards;
    demo->place.intercepted = demo->intercepted;
    inside = network_make(sockets, BROKER_SOCKETS + demo->place.forward_count);
    demo->outlet = demo->broker.open(demo->broker.self, &demo->place, sockets, &error);
    if (!demo->outlet) {
        (void) fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    demo_watch(demo);
    (void) printf("ready %d %d\n", getpid(), inside);
    (void) fflush(stdout);
    loop_run(&demo->loop);
    loop_done(&demo->loop);
    tls_context_free(options.tls);
    if (options.shares)
        shares_free(options.shares);
    (void) close(inside);
    free(demo);
    return 0;
}
