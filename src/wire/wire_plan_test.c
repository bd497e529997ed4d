#include <sys/mman.h>

#include "sys/file/sys_memfd.h"
#include "sys/sys_test.h"
#include "wire/wire_plan.h"
#include "wire/wire_testing.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct wire_plan example(void)
{
    return (struct wire_plan){
        .id = {.text = ID_A},
        .hostname = "demo",
        .image = "host",
        .flags = WIRE_BIT(WIRE_PLAN_EXISTING_DISK),
        .limits = {.memory_bytes = 512 << 20,
                   .pids = 256,
                   .cpu_millis = 1500,
                   .disk_bytes = 1 << 30,
                   .files = 4096},
        .network = NETWORK_NAT,
        .rules = {.count = 2,
                  .items = {{.allow = true,
                             .to = {.address = 0x0a010203, .bits = 32},
                             .protocol = NETWORK_TCP,
                             .ports = {.first = 80, .last = 443}},
                            {.to = {.address = 0, .bits = 0},
                             .protocol = NETWORK_ANY,
                             .ports = {.first = 0, .last = UINT16_MAX}}}},
        .binds = {.count = 1, .items = {{.source = "models", .place = "/opt/models"}}},
    };
}

static void every_plan_comes_back_as_it_was(void **state)
{
    struct fill fill = {.seed = 4711};

    (void) state;
    for (int run = 0; run < 200; run++) {
        struct error err = ERROR_INIT;
        struct wire_plan plan, back;
        struct wire_plan_bytes bytes, again;

        memset(&plan, 0, sizeof(plan));
        fill.mode = run < FILL_RANDOM ? (enum fill_mode) run : FILL_RANDOM;
        fill_record(&fill, &wire_plan_record, &plan);
        assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
        assert_ok(wire_plan_decode(bytes.bytes, bytes.length, &back, &err), &err);
        assert_ok(wire_plan_encode(&back, &again, &err), &err);
        assert_int_equal(again.length, bytes.length);
        assert_memory_equal(again.bytes, bytes.bytes, bytes.length);
        if (fill.mode == FILL_MOST)
            assert_int_equal(bytes.length, 2 + wire_record_size_max(&wire_plan_record));
    }
    assert_true(2 + wire_record_size_max(&wire_plan_record) <= WIRE_PLAN_MAX);
}

static void damaged_plans_are_refused_or_another_plan(void **state)
{
    struct wire_plan plan = example(), back;
    struct wire_plan_bytes bytes, again;
    struct error err = ERROR_INIT;

    (void) state;
    assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
    for (size_t length = 0; length < bytes.length; length++)
        assert_int_equal(wire_plan_decode(bytes.bytes, length, &back, &err), -1);
    bytes.bytes[bytes.length] = 0;
    assert_int_equal(wire_plan_decode(bytes.bytes, bytes.length + 1, &back, &err), -1);
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
        if (wire_plan_decode(bytes.bytes, bytes.length, &back, &err) == 0) {
            assert_ok(wire_plan_encode(&back, &again, &err), &err);
            assert_int_equal(again.length, bytes.length);
            assert_memory_equal(again.bytes, bytes.bytes, bytes.length);
        }
        bytes.bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
}

static void another_version_is_refused_as_such(void **state)
{
    struct wire_plan plan = example(), back;
    struct wire_plan_bytes bytes;
    struct error err = ERROR_INIT;

    (void) state;
    assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
    bytes.bytes[0]++;
    assert_int_equal(wire_plan_decode(bytes.bytes, bytes.length, &back, &err), -1);
    assert_int_equal(err.code, ERR_UPGRADE_REQUIRED);
}

static void assert_refused(const struct wire_plan *plan, const char *reason)
{
    struct wire_plan_bytes bytes;
    struct error err = ERROR_INIT;

    assert_int_equal(wire_plan_encode(plan, &bytes, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    if (!strstr(err.message, reason))
        fail_msg("'%s' does not say '%s'", err.message, reason);
}

static void an_origin_is_for_new_disks_of_others(void **state)
{
    struct wire_plan plan = example();
    struct wire_plan_bytes bytes;
    struct error err = ERROR_INIT;

    (void) state;
    plan.origin = (struct disk_ref){.id.text = "baaaaaaaaaaaaaaaaaaaaaaaaa"};
    assert_refused(&plan, "an origin for 'existing_disk'");
    plan.flags = WIRE_BIT(WIRE_PLAN_POOLED);
    assert_refused(&plan, "an origin for 'pooled'");
    plan.flags = 0;
    assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
    plan.origin.id = plan.id;
    assert_refused(&plan, "its own origin");
    plan.origin.set = DISK_OF_SNAPSHOT;
    assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
    plan.flags = WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN);
    assert_int_equal(wire_plan_encode(&plan, &(struct wire_plan_bytes){.length = 0}, &err), 0);
    plan.origin = (struct disk_ref){.id.text = ""};
    assert_refused(&plan, "no origin that could be held");
    plan.flags = 0;
    plan.origin.set = DISK_OF_SNAPSHOT;
    assert_refused(&plan, "no disk");
}

static void network_rules_must_make_sense(void **state)
{
    struct wire_plan plan = example();

    (void) state;
    plan.network = NETWORK_NONE;
    assert_refused(&plan, "network rules without nat");
    plan = example();
    plan.rules.items[0].to = (struct network_prefix){.address = 0x0a010203, .bits = 24};
    assert_refused(&plan, "rules: item 0: to: bits set beyond the first 24");
    plan.rules.items[0].to = (struct network_prefix){.address = 1, .bits = 0};
    assert_refused(&plan, "bits set beyond the first 0");
    plan.rules.items[0].to = (struct network_prefix){.address = 0, .bits = 33};
    assert_refused(&plan, "33 is not from 0 to 32");
    plan = example();
    plan.rules.items[0].ports = (struct network_ports){.first = 443, .last = 80};
    assert_refused(&plan, "ports from 443 to 80");
    plan = example();
    plan.rules.items[0].protocol = NETWORK_ANY;
    assert_refused(&plan, "ports without a protocol");
    plan = example();
    plan.rules.count = WIRE_RULES_MAX + 1;
    assert_refused(&plan, "rules: 65 items");
}

static void binds_have_places_of_their_own(void **state)
{
    static const struct {
        const char *first, *second, *reason; /* NULL: fine */
    } cases[] = {
        {"/opt/a", "/opt/b", NULL},
        {"/opt/a", "/opt/ab", NULL},
        {"/device", "/procs", NULL},
        {"/opt/a", "/opt/a", "is bound inside"},
        {"/opt/a", "/opt/a/b", "is bound inside"},
        {"/opt/a/b", "/opt/a", "is bound inside"},
        {"/opt/a", "/dev", "bound in /dev"},
        {"/proc/sys", "/opt/a", "bound in /proc"},
        {"/opt/a", "/sys/fs/cgroup", "bound in /sys"},
        {"/opt/a", "/opt/../etc", "not an absolute path"},
        {"/", "/opt/a", "not an absolute path"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct wire_plan plan = example();
        struct wire_plan_bytes bytes;
        struct error err = ERROR_INIT;

        plan.binds.count = 2;
        wire_text_set(plan.binds.items[0].source, WIRE_NAME_MAX, "a");
        wire_text_set(plan.binds.items[1].source, WIRE_NAME_MAX, "b");
        wire_text_set(plan.binds.items[0].place, WIRE_PATH_MAX, cases[i].first);
        wire_text_set(plan.binds.items[1].place, WIRE_PATH_MAX, cases[i].second);
        if (cases[i].reason)
            assert_refused(&plan, cases[i].reason);
        else
            assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
    }
}

static void sources_and_images_are_names_and_not_paths(void **state)
{
    struct wire_plan plan = example();

    (void) state;
    wire_text_set(plan.image, sizeof(plan.image), "/etc");
    assert_refused(&plan, "image: not a name");
    plan = example();
    wire_text_set(plan.binds.items[0].source, sizeof(plan.binds.items[0].source), "../etc");
    assert_refused(&plan, "source: not a name");
}

static void a_sealed_plan_is_read(void **state)
{
    int before = count_descriptors();

    (void) state;
    {
        AUTO(close) int fd = -EBADF;
        struct wire_plan plan = example(), back;
        struct error err = ERROR_INIT;

        assert_ok(wire_plan_seal(&plan, &fd, &err), &err);
        assert_int_equal(sys_memfd_get_seals(fd) & SYS_MEMFD_SEALS_ALL, SYS_MEMFD_SEALS_ALL);
        assert_true(is_close_on_exec(fd));
        /* Wherever the sender left the offset. */
        assert_int_equal(lseek(fd, 100, SEEK_SET), 100);
        assert_ok(wire_plan_read(fd, &back, &err), &err);
        assert_string_equal(back.hostname, "demo");
        assert_int_equal(ftruncate(fd, 1), -1);
        assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    }
    assert_int_equal(count_descriptors(), before);
}

static void an_unsealed_plan_is_refused(void **state)
{
    static const int seals[] = {F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    struct wire_plan plan = example(), back;
    struct wire_plan_bytes bytes;
    struct error err = ERROR_INIT;

    (void) state;
    assert_ok(wire_plan_encode(&plan, &bytes, &err), &err);
    for (size_t i = 0; i < ARRAY_COUNT(seals); i++) {
        AUTO(close) int fd = sys_memfd_create("plan", SYS_MEMFD_DATA);
        int present;

        assert_int_equal(write(fd, bytes.bytes, bytes.length), bytes.length);
        assert_int_equal(sys_memfd_add_seals(fd, SYS_MEMFD_SEALS_ALL & ~seals[i]), 0);
        present = sys_memfd_get_seals(fd);
        assert_false(present & seals[i]);
        assert_int_equal(wire_plan_read(fd, &back, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(err.system, EPERM);
    }
}

/* While the sender can still shrink or write it, it is refused; it cannot be sealed while he maps
 * it for writing. */
static void a_plan_that_can_still_change_is_refused(void **state)
{
    AUTO(close) int fd = sys_memfd_create("plan", SYS_MEMFD_DATA);
    struct wire_plan back;
    struct error err = ERROR_INIT;
    void *mapping;

    (void) state;
    assert_int_equal(ftruncate(fd, 4096), 0);
    mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mapping, MAP_FAILED);
    assert_int_equal(sys_memfd_add_seals(fd, SYS_MEMFD_SEALS_ALL), -EBUSY);
    assert_int_equal(wire_plan_read(fd, &back, &err), -1);
    assert_int_equal(err.system, EPERM);
    assert_int_equal(munmap(mapping, 4096), 0);
}

static void too_large_a_plan_is_not_read(void **state)
{
    AUTO(close) int fd = sys_memfd_create("plan", SYS_MEMFD_DATA);
    struct wire_plan back;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(ftruncate(fd, WIRE_PLAN_MAX + 1), 0);
    assert_int_equal(sys_memfd_add_seals(fd, SYS_MEMFD_SEALS_ALL), 0);
    assert_int_equal(wire_plan_read(fd, &back, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void what_is_no_memfd_is_refused_without_reading(void **state)
{
    AUTO(close) int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    AUTO(close) int empty = sys_memfd_from_bytes("plan", SYS_MEMFD_DATA, "", 0);
    struct wire_plan back;
    struct error err = ERROR_INIT;
    int ends[2];

    (void) state;
    /* Reading an empty pipe would block for ever. */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(wire_plan_read(ends[0], &back, &err), -1);
    assert_int_equal(wire_plan_read(file, &back, &err), -1);
    assert_int_equal(wire_plan_read(-1, &back, &err), -1);
    assert_int_equal(wire_plan_read(empty, &back, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    close(ends[0]);
    close(ends[1]);
}

static void a_plan_prints_every_fact(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(4096);
    struct wire_plan plan = example();

    (void) state;
    wire_plan_print(&plan, &text);
    assert_string_equal(text_string(&text), "sandbox   " ID_A "\n"
                                            "hostname  demo\n"
                                            "image     host\n"
                                            "flag      existing_disk\n"
                                            "memory    512 MiB\n"
                                            "swap      none\n"
                                            "pids      256\n"
                                            "cpus      1.500\n"
                                            "disk      1 GiB\n"
                                            "files     4096\n"
                                            "network   nat\n"
                                            "rule      allow tcp 10.1.2.3/32 ports 80-443\n"
                                            "rule      deny any 0.0.0.0/0\n"
                                            "bind      models at /opt/models\n");
    text_clear(&text);
    plan = (struct wire_plan){.id = {.text = ID_A}, .hostname = "h", .image = "i"};
    plan.limits.swap_bytes = LIMITS_SWAP_UNLIMITED;
    plan.origin = (struct disk_ref){.set = DISK_OF_SNAPSHOT, .id = plan.id};
    wire_plan_print(&plan, &text);
    assert_string_equal(text_string(&text), "sandbox   " ID_A "\n"
                                            "hostname  h\n"
                                            "image     i\n"
                                            "origin    snapshot " ID_A "\n"
                                            "memory    unlimited\n"
                                            "swap      unlimited\n"
                                            "pids      unlimited\n"
                                            "cpus      unlimited\n"
                                            "disk      unlimited\n"
                                            "files     default\n"
                                            "network   none\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_comes_back_as_it_was),
        cmocka_unit_test(damaged_plans_are_refused_or_another_plan),
        cmocka_unit_test(another_version_is_refused_as_such),
        cmocka_unit_test(an_origin_is_for_new_disks_of_others),
        cmocka_unit_test(network_rules_must_make_sense),
        cmocka_unit_test(binds_have_places_of_their_own),
        cmocka_unit_test(sources_and_images_are_names_and_not_paths),
        cmocka_unit_test(a_sealed_plan_is_read),
        cmocka_unit_test(an_unsealed_plan_is_refused),
        cmocka_unit_test(a_plan_that_can_still_change_is_refused),
        cmocka_unit_test(too_large_a_plan_is_not_read),
        cmocka_unit_test(what_is_no_memfd_is_refused_without_reading),
        cmocka_unit_test(a_plan_prints_every_fact),
    };

    return cmocka_run_group_tests_name("wire_plan", tests, NULL, NULL);
}
