/* The provider `local` on a real burrow-launcher: the contract once more, and what only real
 * sandboxes can show. Data and run folders, cgroups and the router are the test's own. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "net/http/http_client.h"
#include "provider/launcher_process.h"
#include "provider/provider_contract.h"
#include "provider/provider_local.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_scratch_testing.h"
#include "sys/file/sys_tree.h"
#include "sys/process/sys_orphans_testing.h"

#define PATIENCE_MS 20000

/* Where the launchers of all tests work, one after the other: making the disk pool takes longer
 * than all the rest. */
struct place {
    char folder[64];
    char data[80], run[80];
    char cgroup[64];
};

static struct place place;

static bool can_run(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void) printf("# skip: programs without sanitizers, which the walls do not let run\n");
    return false;
#endif
    if (geteuid() == 0)
        return true;
    (void) printf("# skip: root, to start a launcher\n");
    return false;
}

static int make_place(void **state)
{
    (void) state;
    (void) signal(SIGPIPE, SIG_IGN);
    (void) snprintf(place.folder, sizeof(place.folder), "%s/burrow-provider-XXXXXX",
                    scratch_parent());
    assert_non_null(mkdtemp(place.folder));
    assert_int_equal(chmod(place.folder, 0755), 0);
    (void) snprintf(place.data, sizeof(place.data), "%s/data", place.folder);
    (void) snprintf(place.run, sizeof(place.run), "%s/run", place.folder);
    (void) snprintf(place.cgroup, sizeof(place.cgroup), "burrow-provider-test-%d", (int) getpid());
    return 0;
}

static int remove_place(void **state)
{
    AUTO(close) int parent = sys_file_open(AT_FDCWD, scratch_parent(), O_RDONLY | O_DIRECTORY, 0);

    (void) state;
    return sys_tree_delete(parent, strrchr(place.folder, '/') + 1);
}

/* The programs are a level below the tests. */
static const char *program(void)
{
    static char path[PATH_MAX];
    const char *given = getenv("BURROW_LAUNCHER");
    ssize_t length;

    if (given)
        return given;
    length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    assert_true(length > 0);
    path[length] = '\0';
    (void) snprintf(strrchr(path, '/'), 64, "/programs/burrow-launcher");
    return path;
}

/* --- the backend ----------------------------------------------------------------------------- */

static struct launcher_process *launcher_of(const struct contract *contract)
{
    return contract->more;
}

/* A launcher, and a provider that talks to it. */
static struct provider *connect_provider(struct contract *contract, size_t stock)
{
    struct launcher_process *launcher = launcher_of(contract);
    char network[16];
    struct launcher_process_options how = {.program = program(),
                                           .data = place.data,
                                           .run = place.run,
                                           .cgroup = place.cgroup,
                                           .network = network,
                                           .pool_size = "1G",
                                           .log_level = "error"};
    struct provider_local_options options = {.loop = &contract->loop, .stock = stock};
    struct error err = ERROR_INIT;

    (void) snprintf(network, sizeof(network), "bt-%d", (int) getpid());
    if (launcher_process_start(&how, launcher, &err) < 0)
        fail_msg("%s", err.message);
    options.conversation = TAKE_FD(launcher->conversation);
    options.agents = launcher->agents;
    return provider_local_new(&options, &err);
}

static struct provider *make_real_with(struct contract *contract, size_t stock)
{
    contract->more = mem_alloc(sizeof(struct launcher_process));
    *launcher_of(contract) = (struct launcher_process) LAUNCHER_PROCESS_INIT;
    return connect_provider(contract, stock);
}

/* A test that failed may have left something; the others shall not suffer from it. */
static void destroy_leftovers(struct contract *contract)
{
    struct reply reply = ask_list(contract);

    for (size_t i = 0; i < reply.count; i++)
        (void) ask_plain(contract, provider_destroy, &reply.list[i].id);
}

static struct provider *make_real(struct contract *contract)
{
    return make_real_with(contract, 0);
}

static struct provider *make_stocked(struct contract *contract)
{
    return make_real_with(contract, PROVIDER_LOCAL_STOCK_DEFAULT);
}

static void end_launcher(struct contract *contract)
{
    struct error err = ERROR_INIT;

    if (launcher_process_end(launcher_of(contract), PATIENCE_MS, &err) < 0)
        fail_msg("%s", err.message);
}

static void done_real(struct contract *contract)
{
    end_launcher(contract);
    free(contract->more);
}

static bool file_says(pid_t pid, const char *name, const char *what)
{
    AUTO(free) char *data = NULL;
    char path[64];
    size_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
    return sys_file_read_all(AT_FDCWD, path, 65536, &data, &length) == 0 && strstr(data, what);
}

/* PID 1 of the sandbox, as this process counts: in its cgroup, and 1 to itself. */
static pid_t find_init(const struct id *id)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) && !found) {
        char nested[32];
        pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || !file_says(pid, "cgroup", id->text))
            continue;
        (void) snprintf(nested, sizeof(nested), "NSpid:\t%d\t1\n", (int) pid);
        if (file_says(pid, "status", nested))
            found = pid;
    }
    (void) closedir(folder);
    return found;
}

static void kill_real(struct contract *contract, const struct id *id)
{
    pid_t pid = find_init(id);

    (void) contract;
    if (!pid)
        fail_msg("PID 1 of %s is not there", id->text);
    assert_int_equal(kill(pid, SIGKILL), 0);
}

static const struct contract_backend real = {
    .make = make_real, .kill = kill_real, .opened = destroy_leftovers, .done = done_real};
static const struct contract_backend stocked = {
    .make = make_stocked, .kill = kill_real, .opened = destroy_leftovers, .done = done_real};

/* --- what an agent says ---------------------------------------------------------------------- */

struct talk {
    struct text body;
    int status;
    bool over, closed;
};

static void on_head(struct http_exchange *exchange)
{
    struct talk *talk = http_exchange_data(exchange);

    talk->status = http_exchange_head(exchange)->status;
}

static void on_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct talk *talk = http_exchange_data(exchange);

    text_append_bytes(&talk->body, bytes, length);
}

static void on_end(struct http_exchange *exchange)
{
    ((struct talk *) http_exchange_data(exchange))->over = true;
}

static void on_failure(struct http_exchange *exchange, const struct error *error)
{
    struct talk *talk = http_exchange_data(exchange);

    text_format(&talk->body, "failed: %s", error->message);
    talk->over = true;
}

static void on_origin_closed(struct http_origin *origin, void *data)
{
    (void) origin;
    ((struct talk *) data)->closed = true;
}

/* Run a command in the sandbox; returns what the agent answered (freed by the caller). */
static char *run_inside(struct contract *contract, const struct id *id, const char *command)
{
    static const struct http_exchange_events events = {
        .on_head = on_head, .on_body = on_body, .on_end = on_end, .on_failure = on_failure};
    struct http_header headers[] = {
        {.name = "Host", .value = "agent", .name_length = 4, .value_length = 5}};
    struct talk talk = {.body = TEXT_INIT(1 << 20)};
    char address[PROVIDER_ADDRESS_MAX], body[512];
    struct error err = ERROR_INIT;
    struct http_origin *origin;
    struct http_exchange *exchange;
    int length = snprintf(body, sizeof(body),
                          "{\"command\":\"%s\",\"sessionId\":\"__DISABLE_SESSION__\"}", command);
    struct http_exchange_request request = {.method = "POST",
                                            .target = "/api/execute",
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = length};

    assert_int_equal(provider_agent_address(contract->provider, id, address, &err), 0);
    origin = http_origin_new(&contract->loop, address, NULL, &err);
    assert_non_null(origin);
    exchange = http_exchange_start(origin, &request, &events, &talk);
    http_exchange_write(exchange, body, (size_t) length);
    http_exchange_end(exchange);
    TURN_UNTIL(&contract->loop, talk.over);
    http_origin_close(origin, on_origin_closed, &talk);
    TURN_UNTIL(&contract->loop, talk.closed);
    return text_take(&talk.body);
}

static void expect_inside(struct contract *contract, const struct id *id, const char *command,
                          const char *output)
{
    AUTO(free) char *said = run_inside(contract, id, command);

    if (!strstr(said, output))
        fail_msg("'%s' said %s", command, said);
}

/* --- what only real ones show ---------------------------------------------------------------- */

static void a_command_runs_in_a_new_sandbox(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);

    expect_inside(contract, &id, "hostname", "\"demo");
}

static void files_survive_a_stop(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply;

    expect_inside(contract, &id, "echo kept > /workspace/file && echo done", "done");
    reply = ask_plain(contract, provider_stop, &id);
    expect_ok(&reply);
    assert_int_equal(find_init(&id), 0);
    reply = ask_start(contract, &id);
    expect_ok(&reply);
    expect_inside(contract, &id, "cat /workspace/file", "kept");
}

static void files_survive_an_exit(void **state)
{
    struct contract *contract = *state;
    struct id id = new_sandbox(contract);
    struct reply reply;

    expect_inside(contract, &id, "echo kept > /workspace/file && echo done", "done");
    kill_real(contract, &id);
    TURN_UNTIL(&contract->loop, contract->exit_count);
    reply = ask_start(contract, &id);
    expect_ok(&reply);
    expect_inside(contract, &id, "cat /workspace/file", "kept");
}

static void a_stocked_sandbox_becomes_what_was_asked_for(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply;

    TURN_UNTIL(&contract->loop,
               provider_local_ready(contract->provider) == PROVIDER_LOCAL_STOCK_DEFAULT);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
    spec.keep_id = false;
    spec.hostname = "special";
    spec.limits.pids = 300;
    reply = ask_create(contract, &spec);
    expect_ok(&reply);
    assert_string_not_equal(reply.sandbox.id.text, id.text);
    expect_inside(contract, &reply.sandbox.id, "hostname", "special");
    TURN_UNTIL(&contract->loop,
               provider_local_ready(contract->provider) == PROVIDER_LOCAL_STOCK_DEFAULT);
    reply = ask_plain(contract, provider_destroy, &reply.sandbox.id);
    expect_ok(&reply);
}

static void an_image_that_is_not_there_is_not_found(void **state)
{
    struct contract *contract = *state;
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct provider_bind bind = {.source = "nobody-registered-this", .place = "/opt/x"};
    struct reply reply;

    spec.image = "nobody-registered-this";
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_NOT_FOUND);
    spec.image = NULL;
    spec.binds = &bind;
    spec.bind_count = 1;
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_NOT_FOUND);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
}

/* Close, end the launcher, and begin again in the same place. */
static void begin_again(struct contract *contract)
{
    struct reply reply;

    if (contract->provider)
        contract_close(contract);
    end_launcher(contract);
    contract->provider = connect_provider(contract, 0);
    reply = contract_open(contract);
    expect_ok(&reply);
}

static void nothing_is_left_of_a_conversation(void **state)
{
    struct contract *contract = *state;
    struct id runs = new_sandbox(contract), stopped = new_sandbox(contract);
    struct id again = new_sandbox(contract), ended = new_sandbox(contract);
    struct reply reply = ask_plain(contract, provider_stop, &stopped);

    expect_ok(&reply);
    reply = ask_plain(contract, provider_stop, &again);
    expect_ok(&reply);
    reply = ask_start(contract, &again);
    expect_ok(&reply);
    kill_real(contract, &ended);
    TURN_UNTIL(&contract->loop, contract->exit_count);
    begin_again(contract);
    assert_int_equal(find_init(&runs), 0);
    assert_int_equal(find_init(&again), 0);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
}

/* The next one takes down what it left. */
static void a_killed_launcher_is_lost(void **state)
{
    struct contract *contract = *state;
    struct launcher_process *launcher = launcher_of(contract);
    struct id id = new_sandbox(contract);
    struct error err = ERROR_INIT;
    struct reply reply;

    assert_int_equal(kill(launcher->pid, SIGKILL), 0);
    TURN_UNTIL(&contract->loop, contract->losses);
    launcher_process_explain(launcher, PATIENCE_MS, &err);
    assert_int_equal(err.code, ERR_UPSTREAM);
    assert_non_null(strstr(err.message, "signal 9"));
    begin_again(contract);
    assert_int_equal(find_init(&id), 0);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 0);
}

static void a_launcher_that_cannot_start_is_explained(void **state)
{
    struct contract contract = {.backend = NULL};
    struct launcher_process_options how = {
        .program = program(), .data = "/dev/null/data", .run = "/dev/null/run"};
    struct launcher_process launcher = LAUNCHER_PROCESS_INIT;
    struct provider_local_options options = {.loop = &contract.loop, .agents = "/nowhere"};
    struct error err = ERROR_INIT;
    struct reply reply;

    (void) state;
    assert_int_equal(loop_init(&contract.loop, NULL), 0);
    assert_int_equal(launcher_process_start(&how, &launcher, &err), 0);
    options.conversation = TAKE_FD(launcher.conversation);
    contract.provider = provider_local_new(&options, &err);
    assert_non_null(contract.provider);
    reply = contract_open(&contract);
    expect_code(&reply, ERR_UNAVAILABLE);
    launcher_process_explain(&launcher, PATIENCE_MS, &reply.failure);
    assert_int_equal(reply.failure.code, ERR_UPSTREAM);
    contract_close(&contract);
    loop_run(&contract.loop);
    loop_done(&contract.loop);
    assert_int_equal(launcher_process_end(&launcher, PATIENCE_MS, &err), 0);
}

static void cannot_run(void **state)
{
    (void) state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS(&real),
        CONTRACT_TEST(a_command_runs_in_a_new_sandbox, &real),
        CONTRACT_TEST(files_survive_a_stop, &real),
        CONTRACT_TEST(files_survive_an_exit, &real),
        CONTRACT_TEST(a_stocked_sandbox_becomes_what_was_asked_for, &stocked),
        CONTRACT_TEST(an_image_that_is_not_there_is_not_found, &real),
        CONTRACT_TEST(nothing_is_left_of_a_conversation, &real),
        CONTRACT_TEST(a_killed_launcher_is_lost, &real),
        cmocka_unit_test(a_launcher_that_cannot_start_is_explained),
    };
    const struct CMUnitTest none[] = {cmocka_unit_test(cannot_run)};

    if (!can_run())
        return cmocka_run_group_tests(none, NULL, NULL);
    orphans_adopt();
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
