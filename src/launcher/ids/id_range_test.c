#include <signal.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/fault.h"
#include "launcher/ids/id_range.h"
#include "sys/sys_test.h"

#define FIRST 0x10000000u

/* A run folder and an /etc of our own. */
struct place {
    char folder[SCRATCH_SIZE];
    char etc[SCRATCH_SIZE + 8];
    char run[SCRATCH_SIZE + 8];
    char file[SCRATCH_SIZE + 24];
    struct id_range_options options;
};

static void make_place(struct place *place)
{
    make_scratch(place->folder);
    (void) snprintf(place->etc, sizeof(place->etc), "%s/etc", place->folder);
    (void) snprintf(place->run, sizeof(place->run), "%s/run", place->folder);
    (void) snprintf(place->file, sizeof(place->file), "%s/id-ranges", place->run);
    assert_int_equal(mkdir(place->etc, 0700), 0);
    place->options = (struct id_range_options){.folder = place->run, .etc = place->etc};
}

static void write_etc(const struct place *place, const char *name, const char *text)
{
    char path[SCRATCH_SIZE + 32];
    FILE *file;

    (void) snprintf(path, sizeof(path), "%s/%s", place->etc, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct id_range_table *open_table(const struct place *place)
{
    struct id_range_table *table = NULL;
    struct error err = ERROR_INIT;

    if (id_range_table_open(&place->options, &table, &err) < 0)
        fail_msg("%s", err.message);
    return table;
}

static struct id_range take(struct id_range_table *table, const struct id *sandbox)
{
    struct id_range range = {0};
    struct error err = ERROR_INIT;

    if (id_range_take(table, sandbox, &range, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(range.count, ID_RANGE_SIZE);
    assert_int_equal(range.first % ID_RANGE_SIZE, 0);
    return range;
}

static void a_range_is_taken_found_and_released(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL, *again = NULL;
    struct id sandbox = id_new(), other = id_new(), bad = {.text = "nonsense"};
    struct id_range range, found;
    struct error err = ERROR_INIT;

    (void) state;
    make_place(&place);
    table = open_table(&place);
    range = take(table, &sandbox);
    assert_true(range.first >= ID_RANGE_FIRST && range.first < ID_RANGE_END);
    assert_int_equal(id_range_take(table, &sandbox, &found, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(id_range_take(table, &bad, &found, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    again = open_table(&place);
    assert_int_equal(id_range_find(again, &sandbox, &found, &err), 0);
    assert_int_equal(found.first, range.first);
    assert_int_equal(id_range_find(again, &other, &found, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(id_range_release(again, &sandbox, &err), 0);
    assert_int_equal(id_range_release(table, &sandbox, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    /* The same id comes to the same place. */
    assert_int_equal(take(table, &sandbox).first, range.first);
    remove_scratch(place.folder);
}

static void a_small_table_is_used_to_the_last_range(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    struct id ids[8], more = id_new();
    struct id_range range;
    struct error err = ERROR_INIT;
    unsigned int seen = 0;

    (void) state;
    make_place(&place);
    place.options.first = FIRST;
    place.options.end = FIRST + 8 * ID_RANGE_SIZE;
    table = open_table(&place);
    /* Over and over, so that every order of taken, free and never used comes about. */
    for (int round = 0; round < 50; round++) {
        seen = 0;
        for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
            ids[i] = id_new();
            seen |= 1u << ((take(table, &ids[i]).first - FIRST) / ID_RANGE_SIZE);
        }
        assert_int_equal(seen, 0xff);
        assert_int_equal(id_range_take(table, &more, &range, &err), -1);
        assert_int_equal(err.code, ERR_UNAVAILABLE);
        for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
            size_t at = (i * 3 + (size_t) round) % ARRAY_COUNT(ids);

            assert_int_equal(id_range_find(table, &ids[at], &range, &err), 0);
            assert_int_equal(id_range_release(table, &ids[at], &err), 0);
            assert_int_equal(id_range_find(table, &ids[at], &range, &err), -1);
        }
    }
    remove_scratch(place.folder);
}

static void accounts_and_promised_ranges_are_avoided(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    struct id a = id_new(), b = id_new(), c = id_new(), d = id_new();
    struct id_range range;
    struct error err = ERROR_INIT;
    unsigned int seen = 0;

    (void) state;
    make_place(&place);
    /* Ranges 1 and 3 of five are somebody's. */
    write_etc(&place, "passwd", "x:x:268500993:1\n");
    write_etc(&place, "subgid", "x:268632064:1\n");
    place.options.first = FIRST;
    place.options.end = FIRST + 5 * ID_RANGE_SIZE;
    table = open_table(&place);
    seen |= 1u << ((take(table, &a).first - FIRST) / ID_RANGE_SIZE);
    seen |= 1u << ((take(table, &b).first - FIRST) / ID_RANGE_SIZE);
    seen |= 1u << ((take(table, &c).first - FIRST) / ID_RANGE_SIZE);
    assert_int_equal(seen, 1 << 0 | 1 << 2 | 1 << 4);
    assert_int_equal(id_range_take(table, &d, &range, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    /* The account goes, its range can be used, and nobody is lost. */
    write_etc(&place, "passwd", "");
    assert_int_equal((take(table, &d).first - FIRST) / ID_RANGE_SIZE, 1);
    assert_int_equal(id_range_find(table, &a, &range, &err), 0);
    assert_int_equal(id_range_find(table, &b, &range, &err), 0);
    assert_int_equal(id_range_find(table, &c, &range, &err), 0);
    remove_scratch(place.folder);
}

static void a_reboot_frees_everything(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *before = NULL, *after = NULL;
    struct id sandbox = id_new();
    struct id_range range;
    struct error err = ERROR_INIT;

    (void) state;
    make_place(&place);
    place.options.boot = "one";
    before = open_table(&place);
    (void) take(before, &sandbox);
    place.options.boot = "two";
    after = open_table(&place);
    assert_int_equal(id_range_find(after, &sandbox, &range, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    remove_scratch(place.folder);
}

static void the_place_stays_while_ranges_are_used(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL, *other = NULL;
    struct id sandbox = id_new(), late = id_new();
    struct id_range range, found;
    struct error err = ERROR_INIT;

    (void) state;
    make_place(&place);
    table = open_table(&place);
    range = take(table, &sandbox);
    place.options.first = 0x70000000;
    place.options.end = 0x70100000;
    other = open_table(&place);
    assert_int_equal(id_range_find(other, &sandbox, &found, &err), 0);
    assert_int_equal(found.first, range.first);
    assert_int_equal(id_range_release(other, &sandbox, &err), 0);
    id_range_table_free(other);
    other = open_table(&place);
    assert_true(take(other, &late).first >= 0x70000000);
    /* The older handle follows. */
    assert_int_equal(id_range_find(table, &late, &found, &err), 0);
    assert_true(found.first >= 0x70000000);
    remove_scratch(place.folder);
}

static void bad_bounds_and_files_are_refused(void **state)
{
    static const uint32_t bounds[][2] = {
        {1, 65536}, {65536, 65537}, {0, 65536}, {0x20000000, 0x20000000}, {0x20000000, 0x10000000}};
    struct place place;
    struct id_range_table *table = NULL;
    struct error err = ERROR_INIT;
    FILE *file;

    (void) state;
    make_place(&place);
    for (size_t i = 0; i < ARRAY_COUNT(bounds); i++) {
        place.options.first = bounds[i][0];
        place.options.end = bounds[i][1];
        assert_int_equal(id_range_table_open(&place.options, &table, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    place.options.first = place.options.end = 0;
    assert_int_equal(mkdir(place.run, 0700), 0);
    file = fopen(place.file, "we");
    assert_non_null(file);
    for (int i = 0; i < 100; i++)
        assert_true(fputs("this is no table", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(place.file, 0600), 0);
    assert_int_equal(id_range_table_open(&place.options, &table, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(chmod(place.file, 0666), 0);
    assert_int_equal(id_range_table_open(&place.options, &table, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(unlink(place.file), 0);
    assert_int_equal(symlink("/etc/hostname", place.file), 0);
    assert_int_equal(id_range_table_open(&place.options, &table, &err), -1);
    assert_int_equal(unlink(place.file), 0);
    assert_int_equal(chmod(place.run, 0777), 0);
    assert_int_equal(id_range_table_open(&place.options, &table, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    remove_scratch(place.folder);
}

/* Bytes that went bad cost their range, and nothing else. */
static void a_damaged_record_is_never_handed_out(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    AUTO(free) struct id_range_entry *entries = NULL;
    AUTO(close) int file = -EBADF;
    struct id ids[4], more = id_new();
    struct id_range range;
    struct error err = ERROR_INIT;
    size_t count;

    (void) state;
    make_place(&place);
    place.options.first = FIRST;
    place.options.end = FIRST + 5 * ID_RANGE_SIZE;
    table = open_table(&place);
    file = open(place.file, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(file, "damage", 6, 64 + 2 * 64 + 10), 6);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        ids[i] = id_new();
        assert_true(take(table, &ids[i]).first != FIRST + 2 * ID_RANGE_SIZE);
    }
    assert_int_equal(id_range_take(table, &more, &range, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_int_equal(id_range_list(table, &entries, &count, &err), 0);
    assert_int_equal(count, ARRAY_COUNT(ids));
    remove_scratch(place.folder);
}

struct asked {
    struct id gone;
    int count;
};

static bool answer(void *context, const struct id *sandbox)
{
    struct asked *asked = context;

    asked->count++;
    return strcmp(sandbox->text, asked->gone.text) == 0;
}

/* In a child that dies without a word. */
static void take_and_die(const struct place *place, const struct id *sandbox)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct id_range_table *table;
        struct id_range range;
        struct error err;

        if (id_range_table_open(&place->options, &table, &err) == 0)
            (void) id_range_take(table, sandbox, &range, &err);
        (void) kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void a_range_outlives_its_taker_until_the_sandbox_is_gone(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    struct id mine = id_new(), lost = id_new(), kept = id_new();
    struct asked asked = {.gone = lost};
    struct id_range range;
    struct error err = ERROR_INIT;
    size_t released;

    (void) state;
    make_place(&place);
    table = open_table(&place);
    (void) take(table, &mine);
    take_and_die(&place, &lost);
    take_and_die(&place, &kept);
    assert_int_equal(id_range_recover(table, answer, &asked, &released, &err), 0);
    assert_int_equal(released, 1);
    /* Nobody asks for a range whose owner lives. */
    assert_int_equal(asked.count, 2);
    assert_int_equal(id_range_find(table, &lost, &range, &err), -1);
    assert_int_equal(id_range_find(table, &kept, &range, &err), 0);
    assert_int_equal(id_range_find(table, &mine, &range, &err), 0);
    /* Somebody who lives takes responsibility. */
    assert_int_equal(id_range_hand_over(table, &kept, getppid(), &err), 0);
    asked = (struct asked){.gone = kept};
    assert_int_equal(id_range_recover(table, answer, &asked, &released, &err), 0);
    assert_int_equal(released + (size_t) asked.count, 0);
    assert_int_equal(id_range_hand_over(table, &lost, getpid(), &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(id_range_hand_over(table, &kept, 0x3fffffff, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    remove_scratch(place.folder);
}

/* What a worker tells: it has, or has given back. */
struct report {
    struct id sandbox;
    uint32_t first; /* 0: given back */
};

#define WORKERS 8

static void work(const struct place *place, int reports)
{
    struct id_range_table *table;
    struct error err;
    struct report held[16] = {0};

    if (id_range_table_open(&place->options, &table, &err) < 0)
        _exit(1);
    for (unsigned int i = 0; i < 400; i++) {
        struct report *slot = &held[(i * 7 + (unsigned int) getpid()) % ARRAY_COUNT(held)];
        struct id_range range;

        if (slot->first) {
            /* First the word, then the deed: the reader never believes in what is gone. */
            slot->first = 0;
            if (write(reports, slot, sizeof(*slot)) != sizeof(*slot) ||
                id_range_release(table, &slot->sandbox, &err) < 0)
                _exit(1);
            continue;
        }
        slot->sandbox = id_new();
        if (id_range_take(table, &slot->sandbox, &range, &err) < 0)
            _exit(1);
        slot->first = range.first;
        if (write(reports, slot, sizeof(*slot)) != sizeof(*slot))
            _exit(1);
    }
    _exit(0);
}

/* Replay what was told: no range has two holders at any time. */
static void check_reports(int fd, struct id_range_table *table)
{
    static struct report holders[(ID_RANGE_END - ID_RANGE_FIRST) / ID_RANGE_SIZE];
    struct report report;
    struct error err;
    size_t count = 0;

    memset(holders, 0, sizeof(holders));
    while (read(fd, &report, sizeof(report)) == sizeof(report)) {
        struct report *holder;

        count++;
        if (report.first == 0) {
            for (size_t i = 0; i < ARRAY_COUNT(holders); i++) {
                if (strcmp(holders[i].sandbox.text, report.sandbox.text) == 0)
                    memset(&holders[i], 0, sizeof(holders[i]));
            }
            continue;
        }
        holder = &holders[(report.first - ID_RANGE_FIRST) / ID_RANGE_SIZE];
        assert_int_equal(holder->first, 0);
        *holder = report;
    }
    assert_true(count > 1000);
    for (size_t i = 0; i < ARRAY_COUNT(holders); i++) {
        struct id_range range;

        if (holders[i].first == 0)
            continue;
        assert_int_equal(id_range_find(table, &holders[i].sandbox, &range, &err), 0);
        assert_int_equal(range.first, holders[i].first);
    }
}

static void many_processes_never_share_a_range_even_when_killed(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    char path[SCRATCH_SIZE + 24];
    AUTO(close) int log = -EBADF;
    pid_t workers[WORKERS];

    (void) state;
    make_place(&place);
    /* A crowded table: 512 ranges. */
    place.options.first = ID_RANGE_FIRST;
    place.options.end = ID_RANGE_FIRST + 512 * ID_RANGE_SIZE;
    table = open_table(&place);
    (void) snprintf(path, sizeof(path), "%s/log", place.folder);
    log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        assert_true(workers[i] >= 0);
        if (workers[i] == 0)
            work(&place, log);
    }
    (void) usleep(40000);
    assert_int_equal(kill(workers[0], SIGKILL), 0);
    (void) usleep(10000);
    assert_int_equal(kill(workers[1], SIGKILL), 0);
    for (int i = 0; i < WORKERS; i++) {
        int status;

        assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
        if (i > 1)
            assert_int_equal(status, 0);
    }
    assert_int_equal(lseek(log, 0, SEEK_SET), 0);
    check_reports(log, table);
    remove_scratch(place.folder);
}

static void ten_thousand_ranges_stay_fast(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    AUTO(free) struct id *ids = calloc(10000, sizeof(*ids));
    AUTO(free) struct id_range_entry *entries = NULL;
    const struct clock *clock = clock_system();
    uint64_t start, took[4];
    struct id_range range;
    struct error err = ERROR_INIT;
    size_t count;

    (void) state;
    make_place(&place);
    table = open_table(&place);
    start = clock_monotonic_ns(clock);
    for (size_t i = 0; i < 10000; i++) {
        ids[i] = id_new();
        assert_int_equal(id_range_take(table, &ids[i], &range, &err), 0);
    }
    took[0] = clock_monotonic_ns(clock) - start;
    start = clock_monotonic_ns(clock);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(id_range_find(table, &ids[i], &range, &err), 0);
    took[1] = clock_monotonic_ns(clock) - start;
    start = clock_monotonic_ns(clock);
    assert_int_equal(id_range_list(table, &entries, &count, &err), 0);
    assert_int_equal(count, 10000);
    took[2] = clock_monotonic_ns(clock) - start;
    start = clock_monotonic_ns(clock);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(id_range_release(table, &ids[i], &err), 0);
    took[3] = clock_monotonic_ns(clock) - start;
    (void) printf(
        "# 10000 ranges: take %.1f us, find %.1f us, release %.1f us each; list %.1f ms\n",
        (double) took[0] / 1e7, (double) took[1] / 1e7, (double) took[3] / 1e7,
        (double) took[2] / 1e6);
    remove_scratch(place.folder);
}

static void a_held_lock_is_told_and_not_waited_for_ever(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL;
    AUTO(close) int other = -EBADF;
    struct id sandbox = id_new();
    struct id_range range;
    struct error err = ERROR_INIT;

    (void) state;
    make_place(&place);
    table = open_table(&place);
    other = open(place.file, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_int_equal(id_range_take(table, &sandbox, &range, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    (void) flock(other, LOCK_UN);
    (void) take(table, &sandbox);
    remove_scratch(place.folder);
}

static void a_failing_call_changes_nothing(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *table = NULL, *fresh = NULL;
    bool hit = true;
    struct error err = ERROR_INIT;

    (void) state;
    make_place(&place);
    table = open_table(&place);
    for (unsigned int nth = 1; hit; nth++) {
        struct id sandbox = id_new();
        struct id_range range, found;
        int r;

        fault_arm(FAULT_SYSTEM_CALL, nth, EIO);
        r = id_range_take(table, &sandbox, &range, &err);
        hit = fault_disarm(FAULT_SYSTEM_CALL);
        id_range_table_free(fresh);
        fresh = open_table(&place);
        assert_int_equal(id_range_find(fresh, &sandbox, &found, &err), r);
    }
    remove_scratch(place.folder);
}

/* --- one table for all launchers of a host ------------------------------------------------------ */

static bool nothing_is_left(void *context, const struct id *sandbox)
{
    (void) context;
    (void) sandbox;
    return true;
}

/* Whose "ns/pid" is another file: as in another pid namespace. */
static void make_elsewhere(const struct place *place, char *ret_process, size_t size)
{
    char path[SCRATCH_SIZE + 32];
    FILE *file;

    (void) snprintf(ret_process, size, "%s/process", place->folder);
    assert_int_equal(mkdir(ret_process, 0700), 0);
    (void) snprintf(path, sizeof(path), "%s/ns", ret_process);
    assert_int_equal(mkdir(path, 0700), 0);
    (void) snprintf(path, sizeof(path), "%s/ns/pid", ret_process);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < 2; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", ret_process, i ? "gid_map" : "uid_map");
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs("0 0 4294967295\n", file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
}

static void whose_process_cannot_be_seen_keeps_his_ranges(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *one = NULL, *other = NULL;
    struct id ours = id_new(), theirs = id_new();
    struct id_range range;
    struct error err = ERROR_INIT;
    char process[SCRATCH_SIZE + 16];
    size_t released = 0;

    (void) state;
    make_place(&place);
    make_elsewhere(&place, process, sizeof(process));
    place.options.user = "/run/other";
    take_and_die(&place, &theirs);
    place.options.user = "/run/one";
    place.options.process = process;
    take_and_die(&place, &ours);
    one = open_table(&place);
    assert_int_equal(id_range_take(one, &theirs, &range, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(id_range_recover(one, nothing_is_left, NULL, &released, &err), 0);
    assert_int_equal(released, 1);
    assert_int_equal(id_range_find(one, &ours, &range, &err), -1);
    assert_int_equal(id_range_find(one, &theirs, &range, &err), 0);
    place.options.user = "/run/other";
    other = open_table(&place);
    assert_int_equal(id_range_recover(other, nothing_is_left, NULL, &released, &err), 0);
    assert_int_equal(released, 1);
    assert_int_equal(id_range_find(one, &theirs, &range, &err), -1);
    remove_scratch(place.folder);
}

/* A launcher was killed and its run folder removed: nobody comes back for what it took. */
static void ranges_of_others_who_died_before_our_eyes_are_given_back(void **state)
{
    struct place place;
    AUTO(id_range_table) struct id_range_table *one = NULL, *other = NULL;
    struct id again = id_new(), gone = id_new(), alive = id_new();
    struct id_range range, before;
    struct error err = ERROR_INIT;
    size_t released = 0;

    (void) state;
    make_place(&place);
    place.options.user = "/run/other";
    take_and_die(&place, &again);
    take_and_die(&place, &gone);
    other = open_table(&place);
    (void) take(other, &alive);
    assert_int_equal(id_range_find(other, &again, &before, &err), 0);
    place.options.user = "/run/one";
    one = open_table(&place);
    assert_int_equal(id_range_take(one, &again, &range, &err), 0);
    assert_int_equal(range.first, before.first);
    assert_int_equal(id_range_take(one, &again, &range, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(id_range_take(one, &alive, &range, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(id_range_recover(one, nothing_is_left, NULL, &released, &err), 0);
    assert_int_equal(released, 1);
    assert_int_equal(id_range_find(one, &gone, &range, &err), -1);
    assert_int_equal(id_range_find(one, &alive, &range, &err), 0);
    remove_scratch(place.folder);
}

static void ranges_of_an_earlier_table_are_taken_over(void **state)
{
    struct place old, place;
    AUTO(id_range_table) struct id_range_table *before = NULL, *table = NULL;
    struct id living[6], dead = id_new();
    struct id_range had[6], range;
    struct error err = ERROR_INIT;

    (void) state;
    make_place(&old);
    make_place(&place);
    old.options.first = place.options.first = FIRST;
    old.options.end = place.options.end = FIRST + 8 * ID_RANGE_SIZE;
    before = open_table(&old);
    for (size_t i = 0; i < ARRAY_COUNT(living); i++) {
        living[i] = id_new();
        had[i] = take(before, &living[i]);
    }
    take_and_die(&old, &dead);
    table = open_table(&place);
    for (int turn = 0; turn < 2; turn++)
        assert_int_equal(id_range_import(table, old.run, &err), 0);
    for (size_t i = 0; i < ARRAY_COUNT(living); i++) {
        assert_int_equal(id_range_find(table, &living[i], &range, &err), 0);
        assert_int_equal(range.first, had[i].first);
    }
    assert_int_equal(id_range_find(table, &dead, &range, &err), -1);
    assert_int_equal(id_range_import(table, "/nonexistent/ids", &err), 0);
    remove_scratch(old.folder);
    remove_scratch(place.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_process_cannot_be_seen_keeps_his_ranges),
        cmocka_unit_test(ranges_of_others_who_died_before_our_eyes_are_given_back),
        cmocka_unit_test(ranges_of_an_earlier_table_are_taken_over),
        cmocka_unit_test(a_range_is_taken_found_and_released),
        cmocka_unit_test(a_small_table_is_used_to_the_last_range),
        cmocka_unit_test(accounts_and_promised_ranges_are_avoided),
        cmocka_unit_test(a_reboot_frees_everything),
        cmocka_unit_test(the_place_stays_while_ranges_are_used),
        cmocka_unit_test(bad_bounds_and_files_are_refused),
        cmocka_unit_test(a_damaged_record_is_never_handed_out),
        cmocka_unit_test(a_range_outlives_its_taker_until_the_sandbox_is_gone),
        cmocka_unit_test(many_processes_never_share_a_range_even_when_killed),
        cmocka_unit_test(ten_thousand_ranges_stay_fast),
        cmocka_unit_test(a_held_lock_is_told_and_not_waited_for_ever),
        cmocka_unit_test(a_failing_call_changes_nothing),
    };

    return cmocka_run_group_tests_name("id_range", tests, NULL, NULL);
}
