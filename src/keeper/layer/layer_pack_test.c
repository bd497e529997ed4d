#include "base/rounds_testing.h"
#include "keeper/layer/layer_test_kit.h"

static void empty_trees_pack_and_unpack(void **state)
{
    char id[LAYER_ID_SIZE], again[LAYER_ID_SIZE];
    AUTO(close) int layer = -EBADF, second = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    layer = pack_layer(set.newer, -EBADF, id);
    unpack_layer(set.target, layer, id);
    check_same_tree(set.newer, set.target);
    second = pack_layer(set.target, -EBADF, again);
    assert_string_equal(id, again);
    place_set_done(&set);
}

static void go_there_and_back(uint64_t seed)
{
    char id[LAYER_ID_SIZE], again[LAYER_ID_SIZE];
    AUTO(close) int layer = -EBADF, second = -EBADF;
    struct place_set set;

    place_set_init(&set);
    grow_tree(set.newer, seed, seed <= 4 ? 250 : 40);
    layer = pack_layer(set.newer, -EBADF, id);
    unpack_layer(set.target, layer, id);
    check_same_tree(set.newer, set.target);
    second = pack_layer(set.target, -EBADF, again);
    CHECK(strcmp(id, again) == 0);
    place_set_done(&set);
}

/* The base's layer and then the delta, onto the target. */
static void go_by_a_delta(uint64_t seed)
{
    char base[LAYER_ID_SIZE], delta[LAYER_ID_SIZE], whole[LAYER_ID_SIZE], again[LAYER_ID_SIZE];
    AUTO(close) int first = -EBADF, second = -EBADF, third = -EBADF, fourth = -EBADF;
    struct place_set set;

    place_set_init(&set);
    grow_tree(set.copied, seed, 30);
    copy_tree(set.copied, set.older); /* which leaves sockets out */
    copy_tree(set.older, set.newer);
    change_tree(set.newer, seed, 1 + (int) (seed % 12));
    first = pack_layer(set.older, -EBADF, base);
    second = pack_layer(set.newer, set.older, delta);
    unpack_layer(set.target, first, base);
    unpack_layer(set.target, second, delta);
    check_same_tree(set.newer, set.target);
    third = pack_layer(set.newer, -EBADF, whole);
    fourth = pack_layer(set.target, -EBADF, again);
    CHECK(strcmp(whole, again) == 0);
    place_set_done(&set);
}

/* A disk that was stored again and again: one list, and in the end one layer of the same. */
static void go_by_a_list(uint64_t seed)
{
    char id[LAYER_ID_SIZE], whole[LAYER_ID_SIZE], again[LAYER_ID_SIZE];
    AUTO(close) int base = -EBADF, first = -EBADF, second = -EBADF;
    struct place_set set;

    place_set_init(&set);
    grow_tree(set.copied, seed, 30);
    copy_tree(set.copied, set.older);
    copy_tree(set.older, set.newer);
    base = pack_layer(set.older, -EBADF, id);
    unpack_layer(set.target, base, id);
    for (uint64_t i = 0; i < 6; i++) {
        AUTO(close) int delta = -EBADF;

        change_tree(set.newer, seed * 100 + i, 1 + (int) ((seed + i) % 8));
        delta = pack_layer(set.newer, set.older, id);
        unpack_layer(set.target, delta, id);
        check_same_tree(set.newer, set.target);
        CHECK_EQUAL(sys_tree_empty(set.older), 0);
        copy_tree(set.newer, set.older);
    }
    first = pack_layer(set.newer, -EBADF, whole);
    second = pack_layer(set.target, -EBADF, again);
    CHECK(strcmp(whole, again) == 0);
    place_set_done(&set);
}

/* The first seeds on whatever /tmp is. */
static void what_was_unpacked_packs_to_the_same_layer(void **state)
{
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(6, 12); seed++)
        go_there_and_back(seed);
}

static void base_and_delta_give_the_new_tree(void **state)
{
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(12, 24); seed++)
        go_by_a_delta(seed);
}

/* The others in memory, some at a time: a child has a time limit, also with sanitizers. */
static void a_list_of_deltas_gives_the_newest_tree(void **state)
{
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(2, 8); seed++)
        go_by_a_list(seed);
}

static void go_many_ways(uint64_t first)
{
    enter_memory();
    for (uint64_t seed = first; seed < first + rounds_of(6, 12); seed++)
        go_there_and_back(seed);
    for (uint64_t seed = first; seed < first + rounds_of(20, 40); seed++)
        go_by_a_delta(seed);
}

static void go_from_100(void)
{
    go_many_ways(100);
}

static void go_from_200(void)
{
    go_many_ways(200);
}

static void go_from_300(void)
{
    go_many_ways(300);
}

static void go_from_400(void)
{
    go_many_ways(400);
}

static void go_from_500(void)
{
    go_many_ways(500);
}

static void many_random_trees_come_back(void **state)
{
    static void (*const parts[])(void) = {go_from_100, go_from_200, go_from_300, go_from_400,
                                          go_from_500};

    (void) state;
    for (size_t i = 0; i < rounds_of(1, ARRAY_COUNT(parts)); i++)
        run_in_child(parts[i], NEEDS_MOUNTS);
}

static void say_layer(int tree, int base, json_t **ret_layer)
{
    struct error err = ERROR_INIT;
    AUTO(close) int file = make_memory();
    AUTO(free)
    char *said =
        SAID(layer_pack(TREE_OF(tree), base < 0 ? NULL : TREE_OF(base), file, output, &err));

    assert_int_equal(said_result, 0);
    *ret_layer = said_layer(said);
}

static int64_t count_of(json_t *layer, const char *key)
{
    json_t *value = json_object_get(layer, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void an_unchanged_tree_is_a_delta_of_nothing(void **state)
{
    AUTO(json) json_t *layer = NULL;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    grow_tree(set.copied, 7, 200);
    copy_tree(set.copied, set.older);
    copy_tree(set.older, set.newer);
    say_layer(set.newer, set.older, &layer);
    assert_int_equal(count_of(layer, "entries"), 1); /* the top */
    assert_int_equal(count_of(layer, "files"), 0);
    assert_true(count_of(layer, "bytes") < 1000);
    place_set_done(&set);
}

static void a_file_with_its_old_time_is_told(void **state)
{
    struct timespec times[] = {{1000, 0}, {1000, 5}};
    AUTO(json) json_t *layer = NULL;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.older, "a", "one");
    assert_int_equal(utimensat(set.older, "a", times, 0), 0);
    copy_tree(set.older, set.newer);
    assert_int_equal(unlinkat(set.newer, "a", 0), 0);
    make_content(set.newer, "a", "two");
    assert_int_equal(utimensat(set.newer, "a", times, 0), 0);
    say_layer(set.newer, set.older, &layer);
    assert_int_equal(count_of(layer, "files"), 1);
    place_set_done(&set);
}

static void a_change_of_mode_is_told_without_the_content(void **state)
{
    AUTO(json) json_t *layer = NULL;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.older, "a", "content");
    copy_tree(set.older, set.newer);
    assert_int_equal(fchmodat(set.newer, "a", 0444, 0), 0);
    say_layer(set.newer, set.older, &layer);
    assert_int_equal(count_of(layer, "files"), 0);
    assert_int_equal(count_of(layer, "entries"), 2);
    place_set_done(&set);
}

static void the_owner_alone_makes_a_difference(void **state)
{
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.older, "a", "content");
    copy_tree(set.older, set.newer);
    for (int i = 0; i < 2; i++) {
        AUTO(json) json_t *layer = NULL;

        if (fchownat(set.newer, "a", i == 0 ? 5 : 0, i == 1 ? 5 : 0, 0) < 0) {
            place_set_done(&set);
            skip_without("giving files away (root)");
        }
        say_layer(set.newer, set.older, &layer);
        assert_int_equal(count_of(layer, "entries"), 2);
    }
    place_set_done(&set);
}

static void zeros_and_holes_are_the_same(void **state)
{
    char id[LAYER_ID_SIZE], other[LAYER_ID_SIZE], zeros[20000] = "begin";
    struct timespec times[] = {{1000, 0}, {1000, 0}};
    AUTO(close) int layer = -EBADF, second = -EBADF, fd = -EBADF;
    struct place_set set;
    struct stat status;

    (void) state;
    place_set_init(&set);
    assert_int_equal(sys_file_replace(set.older, "a", zeros, sizeof(zeros), 0600), 0);
    fd = openat(set.newer, "a", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(sys_file_pwrite_full(fd, "begin", 5, 0), 0);
    assert_int_equal(ftruncate(fd, sizeof(zeros)), 0);
    for (int i = 0; i < 2; i++) {
        int folder = i ? set.newer : set.older;

        assert_int_equal(utimensat(folder, "a", times, 0), 0);
        assert_int_equal(utimensat(folder, ".", times, 0), 0);
    }
    layer = pack_layer(set.older, -EBADF, id);
    second = pack_layer(set.newer, -EBADF, other);
    assert_string_equal(id, other);
    unpack_layer(set.target, layer, id);
    assert_int_equal(fstatat(set.target, "a", &status, 0), 0);
    assert_int_equal(status.st_size, sizeof(zeros));
    assert_true(status.st_blocks <= 8);
    assert_true(is_same_content(set.older, set.target, "a"));
    place_set_done(&set);
}

static void sockets_are_skipped_and_counted(void **state)
{
    AUTO(json) json_t *layer = NULL;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    assert_int_equal(mknodat(set.newer, "socket", S_IFSOCK | 0600, 0), 0);
    make_content(set.newer, "a", "1");
    say_layer(set.newer, -EBADF, &layer);
    assert_int_equal(count_of(layer, "skipped"), 1);
    assert_int_equal(count_of(layer, "files"), 1);
    assert_int_equal(count_of(layer, "entries"), 2);
    place_set_done(&set);
}

/* A file where a socket was, and the other way round: a socket is nothing to a layer. */
static void sockets_count_as_absent_in_a_delta(void **state)
{
    AUTO(json) json_t *layer = NULL;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    assert_int_equal(mknodat(set.older, "a", S_IFSOCK | 0600, 0), 0);
    make_content(set.older, "b", "1");
    make_content(set.newer, "a", "1");
    assert_int_equal(mknodat(set.newer, "b", S_IFSOCK | 0600, 0), 0);
    say_layer(set.newer, set.older, &layer);
    assert_int_equal(count_of(layer, "files"), 1);
    assert_int_equal(count_of(layer, "removed"), 1);
    place_set_done(&set);
}

static void a_reader_that_is_gone_is_told(void **state)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    struct place_set set;
    int ends[2];

    (void) state;
    place_set_init(&set);
    (void) signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) close(ends[0]);
    said = SAID(layer_pack(TREE_OF(set.newer), NULL, ends[1], output, &err));
    assert_int_equal(said_result, -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    assert_string_equal(said, "");
    (void) close(ends[1]);
    place_set_done(&set);
}

/* Enormous and empty: packed and unpacked in an instant. And so deep that no path could name it. */
static void pack_giants(void)
{
    char id[LAYER_ID_SIZE], again[LAYER_ID_SIZE];
    AUTO(close) int source = -EBADF, target = -EBADF, fd = -EBADF, layer = -EBADF, second = -EBADF;
    struct stat status;
    int before;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    fd = openat(source, "giant", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQUAL(ftruncate(fd, INT64_C(1) << 62), 0);
    CHECK_EQUAL(sys_file_pwrite_full(fd, "middle", 6, INT64_C(1) << 61), 0);
    grow_chain(source, 10000);
    before = count_descriptors();
    layer = pack_layer(source, -EBADF, id);
    unpack_layer(target, layer, id);
    second = pack_layer(target, -EBADF, again);
    CHECK(strcmp(id, again) == 0);
    CHECK_EQUAL(count_descriptors(), before + 2);
    CHECK_EQUAL(fstatat(target, "giant", &status, 0), 0);
    CHECK_EQUAL(status.st_size, INT64_C(1) << 62);
    CHECK(status.st_blocks <= 16);
}

static void giants_are_no_work(void **state)
{
    (void) state;
    run_in_child(pack_giants, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trees_pack_and_unpack),
        cmocka_unit_test(what_was_unpacked_packs_to_the_same_layer),
        cmocka_unit_test(base_and_delta_give_the_new_tree),
        cmocka_unit_test(a_list_of_deltas_gives_the_newest_tree),
        cmocka_unit_test(many_random_trees_come_back),
        cmocka_unit_test(an_unchanged_tree_is_a_delta_of_nothing),
        cmocka_unit_test(a_file_with_its_old_time_is_told),
        cmocka_unit_test(a_change_of_mode_is_told_without_the_content),
        cmocka_unit_test(the_owner_alone_makes_a_difference),
        cmocka_unit_test(zeros_and_holes_are_the_same),
        cmocka_unit_test(sockets_are_skipped_and_counted),
        cmocka_unit_test(sockets_count_as_absent_in_a_delta),
        cmocka_unit_test(a_reader_that_is_gone_is_told),
        cmocka_unit_test(giants_are_no_work),
    };

    return cmocka_run_group_tests_name("layer_pack", tests, NULL, NULL);
}
