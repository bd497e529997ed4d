#include "api/access/lasting.h"
#include "domain/identity/identity_testing.h"
#include "net/http/http_testing.h"

#define HOUR_MS ((int64_t) 3600 * 1000)

/* A server whose only route never answers, and whoever asks for it. */
struct hall {
    struct house house;
    struct http_router *router;
    struct http_mount mount;
    struct http_server *server;
    struct lasting *lasting;
    struct caller caller; /* of the next request */
    bool is_drained;
    unsigned int waiting;
};

static void hall_gone(struct http_request *request)
{
    ((struct hall *) request->context)->waiting--;
}

static void hall_wait(struct http_request *request)
{
    request->on_gone = hall_gone;
    ((struct hall *) request->context)->waiting++;
}

static const struct http_route hall_routes[] = {
    {.method = "GET", .pattern = "/", .handle = hall_wait},
};

static int hall_authorize(struct http_request *request, void *data, struct error *err)
{
    struct hall *hall = data;
    struct caller *caller = pool_alloc(&request->pool, sizeof(*caller));

    (void) err;
    *caller = hall->caller;
    request->caller = caller;
    lasting_note(hall->lasting, caller);
    return 0;
}

static void hall_begin(struct hall *hall)
{
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;
    struct error err = ERROR_INIT;

    *hall = (struct hall){.router = http_router_new()};
    house_begin(&hall->house);
    hall->mount = (struct http_mount){
        .name = "hall", .routes = hall_routes, .route_count = 1, .context = hall};
    assert_int_equal(http_router_mount(hall->router, &hall->mount, &err), 0);
    options.router = hall->router;
    options.clock = clock_system();
    options.authorize = hall_authorize;
    options.admit_data = hall;
    options.caller_size = sizeof(struct caller);
    hall->server = http_server_new(&hall->house.loop, &options);
    assert_int_equal(http_server_listen(hall->server, "127.0.0.1:0", NULL, &err), 0);
    hall->lasting =
        lasting_new(&hall->house.loop, hall->house.domain, &hall->house.clock.clock, NULL);
    lasting_watch(hall->lasting, hall->server);
}

static void hall_drained(struct http_server *server, void *data)
{
    (void) server;
    ((struct hall *) data)->is_drained = true;
}

static void hall_end(struct hall *hall)
{
    http_server_drain(hall->server, 1, hall_drained, hall);
    TURN_UNTIL(&hall->house.loop, hall->is_drained);
    lasting_close(hall->lasting);
    http_server_free(hall->server);
    http_router_free(hall->router);
    house_end(&hall->house);
}

/* Somebody comes who holds this secret of a key. */
static struct raw hall_enter(struct hall *hall, const char *secret)
{
    unsigned int before = hall->waiting;
    struct raw raw = raw_connect(http_server_port(hall->server, 0));

    hall->caller = (struct caller){.scope = CALLER_NOBODY};
    assert_int_equal(api_key_check(hall->house.domain, secret, &hall->caller, NULL), 0);
    raw_send(&raw, &hall->house.loop, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    TURN_UNTIL(&hall->house.loop, hall->waiting == before + 1);
    return raw;
}

static struct api_key *hall_key(struct hall *hall, int64_t expires_ms)
{
    const struct caller system = caller_system();
    const struct api_key_spec spec = {.name = "k",
                                      .scope = CALLER_WRITE,
                                      .owner = owner_first_admin(hall->house.domain)->id,
                                      .expires_ms = expires_ms};

    assert_int_equal(house_make_key(&hall->house, &system, &spec), ERR_NONE);
    return hall->house.key;
}

static void must_be_told(struct hall *hall, struct raw *raw, const char *reason)
{
    TURN_UNTIL(&hall->house.loop, raw_is_over(raw));
    assert_true(raw_has(raw, "HTTP/1.1 401 ") && raw_has(raw, reason));
    raw_close(raw);
}

static void a_change_sends_away_whom_it_is_about(void **state)
{
    const struct caller system = caller_system();
    struct hall hall;
    struct api_key *key;
    struct raw stays, goes;

    (void) state;
    hall_begin(&hall);
    (void) house_owner(&hall.house, "Ada", NULL, true);
    (void) hall_key(&hall, 0);
    stays = hall_enter(&hall, hall.house.secret);
    key = hall_key(&hall, 0);
    goes = hall_enter(&hall, hall.house.secret);
    api_key_revoke(hall.house.domain, &system, key, house_got_key, &hall.house);
    assert_int_equal(house_wait(&hall.house), ERR_NONE);
    lasting_changed(hall.lasting);
    must_be_told(&hall, &goes, "this key was revoked");
    assert_false(raw_is_over(&stays));
    assert_int_equal(hall.waiting, 1);
    raw_close(&stays);
    hall_end(&hall);
}

/* Nobody tells of it: the time that was noted is enough, in whatever order they came. */
static void each_goes_when_his_key_expires(void **state)
{
    struct hall hall;
    struct raw first, second, third;

    (void) state;
    hall_begin(&hall);
    (void) house_owner(&hall.house, "Ada", NULL, true);
    (void) hall_key(&hall, HOUSE_NOW_MS + 2 * HOUR_MS);
    second = hall_enter(&hall, hall.house.secret);
    (void) hall_key(&hall, HOUSE_NOW_MS + HOUR_MS);
    first = hall_enter(&hall, hall.house.secret);
    (void) hall_key(&hall, 0);
    third = hall_enter(&hall, hall.house.secret);
    clock_manual_advance(&hall.house.clock, HOUR_MS);
    must_be_told(&hall, &first, "this key has expired");
    assert_int_equal(hall.waiting, 2);
    clock_manual_advance(&hall.house.clock, HOUR_MS);
    must_be_told(&hall, &second, "this key has expired");
    assert_int_equal(hall.waiting, 1);
    raw_close(&third);
    hall_end(&hall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_sends_away_whom_it_is_about),
        cmocka_unit_test(each_goes_when_his_key_expires),
    };

    (void) signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
