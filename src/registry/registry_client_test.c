#include "net/outbound/outbound_test_kit.h"
#include "registry/registry_client.h"

#define WHOLE       "0123456789"
#define CREDENTIALS "friend:secret"
#define BASIC       "Basic ZnJpZW5kOnNlY3JldA=="

/* --- a registry ------------------------------------------------------------------------------ */

static bool serve_whole(struct kit_exchange *exchange)
{
    return kit_reply(exchange, "", WHOLE, strlen(WHOLE));
}

/* The first half, and the rest to who asks for it. */
static bool serve_halves(struct kit_exchange *exchange)
{
    char range[64];

    if (!kit_header(exchange->head, "range", range, sizeof(range)))
        return kit_reply(exchange, "", WHOLE, 5);
    assert_string_equal(range, "bytes=5-");
    (void) kit_say(exchange, "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n"
                             "Content-Range: bytes 5-9/10\r\n\r\n56789");
    return true;
}

/* The first half, and then another part than was asked for. */
static bool serve_wrong_part(struct kit_exchange *exchange)
{
    char range[64];

    if (!kit_header(exchange->head, "range", range, sizeof(range)))
        return kit_reply(exchange, "", WHOLE, 5);
    (void) kit_say(exchange, "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n"
                             "Content-Range: bytes 4-8/10\r\n\r\n45678");
    return true;
}

/* Wants a token, of a server whose scope is a greedy one. */
static bool serve_guarded(struct kit_exchange *exchange)
{
    char authorization[64];
    AUTO(text) struct text head = TEXT_INIT(1024);

    if (kit_header(exchange->head, "authorization", authorization, sizeof(authorization)) &&
        strcmp(authorization, "Bearer good") == 0)
        return serve_whole(exchange);
    text_format(&head,
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer "
                "realm=\"http://127.0.0.1:%u/token?x=1\",service=\"a service\",scope=\"all:*\"\r\n"
                "\r\n",
                (unsigned int) exchange->server->port);
    return kit_say(exchange, text_string(&head));
}

/* Wants a token with more rights than we ask for: `sly` names how. */
static bool serve_sly(struct kit_exchange *exchange)
{
    static const char *const realms[] = {"?scope=all:*", "?x=1&SCOPE=all:*", "?x=1;%73cope=all:*",
                                         "?x=1#", "#?x=1"};
    AUTO(text) struct text head = TEXT_INIT(1024);
    const char *number = strstr(exchange->head, "/sly-");

    text_format(&head,
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer "
                "realm=\"http://127.0.0.1:%u/token%s\"\r\n\r\n",
                (unsigned int) exchange->server->port, realms[number[strlen("/sly-")] - '0']);
    return kit_say(exchange, text_string(&head));
}

/* A token of these credentials for this one repository, or of nobody for what was said. */
static bool serve_token(struct kit_exchange *exchange)
{
    static const char token[] = "{\"token\":\"good\"}";
    char authorization[64];
    bool is_friend =
        kit_header(exchange->head, "authorization", authorization, sizeof(authorization));
    const char *wanted = is_friend ? "/token?x=1&service=a%20service&scope=repository%3Aa%3Apull "
                                   : "/token?x=1&service=a%20service&scope=all%3A%2A ";

    if ((is_friend && strcmp(authorization, BASIC) != 0) || !strstr(exchange->head, wanted)) {
        (void) kit_say(exchange, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        return true;
    }
    return kit_reply(exchange, "", token, strlen(token));
}

/* Asks who we are, and sends who said it elsewhere and back again. */
static bool serve_leaving(struct kit_exchange *exchange)
{
    AUTO(text) struct text head = TEXT_INIT(1024);
    char authorization[64];
    bool is_friend =
        kit_header(exchange->head, "authorization", authorization, sizeof(authorization));

    if (!is_friend)
        return kit_say(exchange, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n"
                                 "WWW-Authenticate: Basic realm=\"x\"\r\n\r\n");
    text_format(&head,
                "HTTP/1.1 307 Away\r\nContent-Length: 4\r\nLocation: "
                "http://localhost:%u/away\r\n\r\ngone",
                (unsigned int) exchange->server->port);
    return kit_say(exchange, text_string(&head));
}

/* By another name it is another host, which sends us back to the registry. */
static bool serve_away(struct kit_exchange *exchange)
{
    AUTO(text) struct text head = TEXT_INIT(1024);

    text_format(&head,
                "HTTP/1.1 302 Back\r\nContent-Length: 0\r\nLocation: "
                "http://127.0.0.1:%u/nobody#part\r\n\r\n",
                (unsigned int) exchange->server->port);
    return !strstr(exchange->head, "uthorization") && kit_say(exchange, text_string(&head));
}

/* A challenge there does not count any more. */
static bool serve_to_nobody(struct kit_exchange *exchange)
{
    return strstr(exchange->head, "uthorization") ? serve_leaving(exchange) : serve_whole(exchange);
}

static const struct kit_route routes[] = {
    {.path = "/v2/a/blobs/leaving", .serve = serve_leaving},
    {.path = "/away", .serve = serve_away},
    {.path = "/nobody", .serve = serve_to_nobody},
    {.path = "/v2/a/blobs/whole", .serve = serve_whole},
    {.path = "/v2/a/blobs/halves", .serve = serve_halves},
    {.path = "/v2/a/blobs/wrong-part", .serve = serve_wrong_part},
    {.path = "/v2/a/blobs/guarded", .serve = serve_guarded},
    {.path = "/v2/a/blobs/sly-0", .serve = serve_sly},
    {.path = "/v2/a/blobs/sly-1", .serve = serve_sly},
    {.path = "/v2/a/blobs/sly-2", .serve = serve_sly},
    {.path = "/v2/a/blobs/sly-3", .serve = serve_sly},
    {.path = "/v2/a/blobs/sly-4", .serve = serve_sly},
    {.path = "/token", .serve = serve_token},
    {.path = NULL},
};

static int set_up(void **state)
{
    *state = kit_server_start(routes, NULL);
    return 0;
}

static int tear_down(void **state)
{
    kit_server_stop(*state);
    return 0;
}

/* --- who pulls ------------------------------------------------------------------------------- */

struct pot {
    struct text bytes;
    unsigned int restarts;
    unsigned int told;
    bool is_broken;
};

static int restart(void *context, struct error *err)
{
    struct pot *pot = context;

    (void) err;
    pot->restarts++;
    text_clear(&pot->bytes);
    return 0;
}

static int take(void *context, const char *bytes, size_t length, struct error *err)
{
    struct pot *pot = context;

    if (pot->is_broken)
        return error_set(err, ERR_NO_SPACE, 0, "the pot is full");
    text_append_bytes(&pot->bytes, bytes, length);
    return 0;
}

static void count(void *context, const char *line)
{
    struct pot *pot = context;

    assert_true(*line);
    pot->told++;
}

static int get(const struct kit_server *server, const char *name, uint64_t size,
               const char *credentials, struct pot *pot, struct error *err)
{
    AUTO(registry_client) struct registry_client *client = NULL;
    struct registry_client_settings settings = {
        .credentials = credentials, .tell = count, .context = pot};
    const struct registry_wanted wanted = {.kind = "blobs",
                                           .name = name,
                                           .size = size,
                                           .size_max = 8,
                                           .restart = restart,
                                           .take = take,
                                           .context = pot};
    char reference[64];

    (void) snprintf(reference, sizeof(reference), "127.0.0.1:%u/a", (unsigned int) server->port);
    assert_int_equal(registry_reference_parse(reference, &settings.reference, NULL), 0);
    assert_int_equal(registry_client_new(&settings, &client, NULL), 0);
    return registry_client_get(client, &wanted, err);
}

static void check_got(struct kit_server *server, const char *name, const char *credentials,
                      unsigned int requests)
{
    struct pot pot = {.bytes = TEXT_INIT(64)};
    unsigned int before = atomic_load(&server->request_count);
    struct error err = ERROR_INIT;

    if (get(server, name, strlen(WHOLE), credentials, &pot, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    assert_string_equal(text_string(&pot.bytes), WHOLE);
    assert_int_equal(atomic_load(&server->request_count) - before, requests);
    assert_int_equal(pot.restarts, 1);
    text_done(&pot.bytes);
}

static void check_refused(struct kit_server *server, const char *name, uint64_t size,
                          bool is_broken, enum err_code code, const char *why)
{
    struct pot pot = {.bytes = TEXT_INIT(64), .is_broken = is_broken};
    struct error err = ERROR_INIT;

    assert_int_equal(get(server, name, size, NULL, &pot, &err), -1);
    if (err.code != code || !strstr(err.message, why))
        fail_msg("%s: %s", error_code_text(err.code), err.message);
    text_done(&pot.bytes);
}

static void what_is_there_comes_at_once_and_what_breaks_off_goes_on(void **state)
{
    check_got(*state, "whole", NULL, 1);
    check_got(*state, "whole", CREDENTIALS, 1);
    assert_null(strstr(kit_last_head(*state), BASIC)); /* nobody asked who we are */
    check_got(*state, "halves", NULL, 2);
}

static void wrong_answers_are_refused(void **state)
{
    check_refused(*state, "whole", 9, false, ERR_UPSTREAM, "more than 9 bytes");
    check_refused(*state, "whole", REGISTRY_SIZE_UNKNOWN, false, ERR_TOO_LARGE,
                  "more than 8 bytes");
    check_refused(*state, "wrong-part", 10, false, ERR_UPSTREAM, "another part");
    check_refused(*state, "nothing", 10, false, ERR_NOT_FOUND, "no such image");
}

static void who_takes_the_bytes_can_end_it(void **state)
{
    unsigned int before = atomic_load(&((struct kit_server *) *state)->request_count);

    check_refused(*state, "whole", 10, true, ERR_NO_SPACE, "the pot is full");
    assert_int_equal(atomic_load(&((struct kit_server *) *state)->request_count) - before, 1);
}

static void credentials_buy_a_token_for_this_repository_only(void **state)
{
    check_got(*state, "guarded", CREDENTIALS, 3);
    check_got(*state, "guarded", NULL, 3);
}

static void credentials_stay_behind_when_a_redirect_leaves_even_if_it_comes_back(void **state)
{
    check_got(*state, "leaving", CREDENTIALS, 4);
}

static void a_token_server_cannot_name_a_scope_of_its_own(void **state)
{
    static const char *const names[] = {"sly-0", "sly-1", "sly-2", "sly-3", "sly-4"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        check_refused(*state, names[i], 10, false, ERR_UPSTREAM, "a scope of its own");
}

static void plain_http_to_others_must_be_asked_for(void **state)
{
    static const struct {
        const char *reference;
        bool plain_http;
        int result;
    } rows[] = {
        {"host.example/a", false, 0},          {"host.example/a", true, 0},
        {"http://host.example/a", false, -1},  {"http://host.example/a", true, 0},
        {"https://host.example/a", true, 0},   {"http://127.0.0.1/a", false, 0},
        {"http://10.0.0.1:5000/a", false, -1},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(registry_client) struct registry_client *client = NULL;
        struct registry_client_settings settings = {.plain_http = rows[i].plain_http};
        struct error err = ERROR_INIT;

        assert_int_equal(registry_reference_parse(rows[i].reference, &settings.reference, NULL), 0);
        assert_int_equal(registry_client_new(&settings, &client, &err), rows[i].result);
        assert_int_equal(err.code, rows[i].result < 0 ? ERR_INVALID : ERR_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_there_comes_at_once_and_what_breaks_off_goes_on,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_answers_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_takes_the_bytes_can_end_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(credentials_buy_a_token_for_this_repository_only, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            credentials_stay_behind_when_a_redirect_leaves_even_if_it_comes_back, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(a_token_server_cannot_name_a_scope_of_its_own, set_up,
                                        tear_down),
        cmocka_unit_test(plain_http_to_others_must_be_asked_for),
    };
    int failed;

    if (outbound_global_init(NULL) < 0)
        return 1;
    failed = cmocka_run_group_tests_name("registry_client", tests, NULL, NULL);
    outbound_global_done();
    return failed;
}
