/* Real jobs of the real burrow-keeper on real disks: what they do and how they end. */
#include "launcher/image/image_layers.h"
#include "launcher/keeper/keeper_job_test_kit.h"

/* --- what jobs do --------------------------------------------------------------------------- */

/* The lines of a list that are about the upper folder. */
static void keep_upper(char *said)
{
    char *from = strstr(said, "{\"path\":\"u\""), *end = strstr(said, "{\"path\":\"w\"");

    CHECK(from != NULL && end != NULL && from < end);
    *end = '\0';
    memmove(said, from, strlen(from) + 1);
}

static void copy_and_compare(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY};
    struct keeper_disk copied;
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL, *source = NULL, *target = NULL;

    set_stage(&stage, &small_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    spec.target = make_keeper_disk(&stage, 64 * MEGABYTE);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    fill_disk(upper);
    said = run_job(&stage, &spec, 0);
    check_says(said, "{\"folders\":3,\"files\":4,\"links\":1,\"fifos\":1,\"whiteouts\":1,"
                     "\"hard_links\":1,");
    copied = spec.target;
    spec = (struct keeper_spec){.task = KEEPER_LIST, .disk = spec.disk};
    source = run_job(&stage, &spec, 0);
    spec.disk = copied;
    target = run_job(&stage, &spec, 0);
    keep_upper(source);
    keep_upper(target);
    check_says(source, "\"mode\":\"6755\",\"uid\":1000,\"gid\":1000,"); /* as inside the sandbox */
    check_says(source, "\"attributes\":[\"user.overlay.opaque\"]");
    CHECK_EQUAL(count_lines(source), 11);
    CHECK_EQUAL(strcmp(source, target), 0);
    free(said);
    spec.task = KEEPER_MEASURE;
    said = run_job(&stage, &spec, 0);
    check_says(said, "{\"files\":4,\"folders\":5,\"links\":1,\"others\":2,");
    strike_stage(&stage);
}

static void grow_chain(int top, int depth)
{
    int at = fcntl(top, F_DUPFD_CLOEXEC, 0);

    for (int i = 0; i < depth; i++) {
        int next;

        CHECK_EQUAL(mkdirat(at, "deeper", i % 3 ? 0 : 0700), 0);
        next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        CHECK_EQUAL(fchown(next, (uid_t) i % 100, 0), 0);
        (void) close(at);
        at = next;
    }
    (void) close(at);
}

static void delete_from_a_plain_pool(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_DELETE};
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL, *list = NULL;

    set_stage(&stage, &plain_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    fill_disk(upper);
    fill_much(upper);
    grow_chain(upper, 5000);
    said = run_job(&stage, &spec, 0);
    CHECK_EQUAL(strcmp(said, "{\"deleted\":true}\n"), 0);
    spec.task = KEEPER_LIST;
    list = run_job(&stage, &spec, 0);
    CHECK_EQUAL(count_lines(list), 2); /* the folder itself, and the count */
    CHECK_OK(disk_pool_delete(stage.host.pool, &spec.disk.id, &test_error));
    CHECK_OK(disk_pool_empty_trash(stage.host.pool, &test_error));
    strike_stage(&stage);
}

/* The sandbox ends while its disk is copied, and somebody makes a snapshot of it: what was the
 * upper folder is a layer from then on. */
static void copy_what_becomes_a_layer(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY_LIVE};
    struct keeper_job job = KEEPER_JOB_INIT;
    struct id snapshot = id_new();
    struct sys_exit ended;
    AUTO(close) int upper = -EBADF, copy = -EBADF;
    AUTO(free) char *said = NULL;
    int reader;

    set_stage(&stage, &plain_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    spec.target = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    fill_disk(upper);
    start_whole_job(&stage, &spec, "1\n", -EBADF, &job, &reader);
    CHECK_EQUAL(sys_process_kill(job.pidfd, SIGSTOP), 0); /* before it has opened anything */
    CHECK_OK(disk_pool_snapshot(stage.host.pool, &spec.disk.id, &snapshot, NULL, &test_error));
    CHECK_EQUAL(disk_pool_height(stage.host.pool, DISK_POOL_DISKS, &spec.disk.id), 1);
    CHECK_EQUAL(sys_process_kill(job.pidfd, SIGCONT), 0);
    said = read_said(reader);
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 0);
    copy = open_part(&stage, &spec.target.id, DISK_UPPER);
    CHECK_EQUAL(faccessat(copy, "sticky/of another", F_OK, 0), 0);
    CHECK_EQUAL(faccessat(copy, "link", F_OK, AT_SYMLINK_NOFOLLOW), 0);
    strike_stage(&stage);
}

/* A disk that is too small for the copy: the limit holds for the keeper too. */
static void fail_inside(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY};
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL;
    int error;

    set_stage(&stage, &small_pool);
    if (!disk_pool_is_limited(stage.host.pool))
        _exit(CHILD_UNABLE);
    spec.disk = make_keeper_disk(&stage, 0);
    spec.target = make_keeper_disk(&stage, DISK_LIMIT_MIN);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    CHECK_EQUAL(write_file(upper, "large", 40 * MEGABYTE, &error), 40 * MEGABYTE);
    said = run_job(&stage, &spec, 1);
    check_says(said, "{\"error\":{\"code\":\"");
    check_says(said, "copy 'large': Disk quota exceeded");
    strike_stage(&stage);
}

static void fail_to_start(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY};
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;

    set_stage(&stage, &small_pool);
    spec.disk = spec.target = make_keeper_disk(&stage, 0);
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, &no_streams, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
    spec.target.id = id_new();
    spec.limits.pids = 8;
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, &no_streams, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    spec.task = KEEPER_LIST;
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, &no_streams, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID); /* a list has no target */
    spec.target.id.text[0] = '\0';
    spec.disk.id = id_new();
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, &no_streams, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);

    spec.disk = make_keeper_disk(&stage, 0);
    stage.host.program = sys_memfd_from_bytes("keeper", SYS_MEMFD_PROGRAM, "no program", 10);
    CHECK_OK(keeper_job_start(&stage.host, &spec, &no_streams, &job, &test_error));
    CHECK(sys_file_poll(job.pidfd, POLLIN, PATIENCE_MS) > 0);
    CHECK_EQUAL(keeper_job_finish(&stage.host, &job, &ended, &test_error), -1);
    check_says(test_error.message, "start the keeper: Exec format error");
    (void) close(stage.host.program);
    strike_stage(&stage);
}

static const char *const workspace = "{\"folder\":\"/workspace\"}\n";

/* What the sandbox saw: of the disk, and of the image under it. */
static void look_at_a_view(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_SCAN, .image = "test"};
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL;

    set_stage(&stage, &small_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    make_view(&stage, upper);
    said = run_whole_job(&stage, &spec, workspace, -EBADF, 0);
    check_says(said, "{\"path\":\"of the image\",\"type\":\"file\",\"mode\":\"0600\"");
    check_says(said, "{\"path\":\"new\",\"type\":\"file\",\"mode\":\"0400\"");
    check_says(said, "{\"path\":\"changed\",\"type\":\"file\",\"mode\":\"0600\"");
    check_says(said, "{\"path\":\"hidden\",\"type\":\"folder\"");
    CHECK(strstr(said, "deleted") == NULL && strstr(said, "by the disk") == NULL);
    check_says(said, "{\"scanned\":{\"files\":3,\"folders\":2,");
    free(said);
    spec.image = "nowhere";
    {
        struct keeper_job job = KEEPER_JOB_INIT;

        CHECK_EQUAL(keeper_job_start(&stage.host, &spec, &no_streams, &job, &test_error), -1);
        CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    }
    /* Contents of the view, as frames. */
    {
        AUTO(close) int data = sys_memfd_create("data", SYS_MEMFD_DATA);
        char frames[256] = "";

        spec.image = "test";
        spec.task = KEEPER_READ;
        said = run_whole_job(&stage, &spec,
                             "{\"folder\":\"/workspace\"}\n{\"path\":\"of the image\"}\n"
                             "{\"path\":\"deleted\"}\n{\"path\":\"new\"}\n",
                             data, 0);
        check_says(said, "{\"read\":{\"files\":2,\"missing\":1,");
        CHECK_EQUAL(pread(data, frames, sizeof(frames), 0), 8 + 12 + 8 + 8 + 3);
        CHECK_EQUAL(memcmp(frames, "\x0c\0\0\0\0\0\0\0of the image", 20), 0);
        CHECK_EQUAL(memcmp(frames + 20, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 0);
    }
    strike_stage(&stage);
}

/* A snapshot as a layer, the layer as a disk, and that is the same as the snapshot. */
static void pack_and_unpack(void)
{
    struct stage stage;
    struct id sandbox;
    struct keeper_disk snapshot = {.set = DISK_POOL_SNAPSHOTS, .id = id_new()};
    struct keeper_spec spec = {.task = KEEPER_PACK, .disk = snapshot}, diff;
    struct keeper_job job = KEEPER_JOB_INIT;
    AUTO(close) int upper = -EBADF, layer = -EBADF;
    AUTO(free) char *packed = NULL, *unpacked = NULL, *said = NULL;
    struct keeper_streams streams = {-EBADF, -EBADF, -EBADF};
    struct sys_exit ended;
    int ends[2];

    set_stage(&stage, &small_pool);
    sandbox = make_disk(stage.host.pool, 0);
    upper = open_part(&stage, &sandbox, DISK_UPPER);
    fill_disk(upper);
    CHECK_OK(disk_pool_snapshot(stage.host.pool, &sandbox, &snapshot.id, NULL, &test_error));
    put(upper, "later", 0, 0644);
    layer = sys_memfd_create("layer", SYS_MEMFD_DATA);
    packed = run_whole_job(&stage, &spec, NULL, layer, 0);
    check_says(packed, "{\"layer\":{\"id\":\"");

    spec = (struct keeper_spec){.task = KEEPER_UNPACK, .target = make_keeper_disk(&stage, 0)};
    CHECK_EQUAL(lseek(layer, 0, SEEK_SET), 0);
    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    streams.input = layer;
    streams.output = ends[1];
    CHECK_OK(keeper_job_start(&stage.host, &spec, &streams, &job, &test_error));
    (void) close(ends[1]);
    unpacked = read_said(ends[0]);
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.value, 0);
    CHECK_EQUAL(strncmp(packed, unpacked, 80), 0); /* the same id */

    diff = (struct keeper_spec){
        .task = KEEPER_DIFF, .disk = {DISK_POOL_DISKS, spec.target.id}, .base = snapshot};
    said = run_job(&stage, &diff, 0);
    check_says(said, "{\"diff\":{\"added\":0,\"changed\":0,\"removed\":0}}");
    free(said);
    diff.disk.id = sandbox;
    said = run_job(&stage, &diff, 0);
    check_says(said, "{\"added\":\"later\"}");
    strike_stage(&stage);
}

/* A folder of a view as an archive, and the archive as tar, by jobs that see no disk at all. */
static void archive_and_back(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_ARCHIVE, .image = "test"};
    struct keeper_job job = KEEPER_JOB_INIT;
    AUTO(close) int upper = -EBADF, archive = -EBADF, tar = -EBADF;
    AUTO(free) char *said = NULL;
    struct keeper_streams streams = {-EBADF, -EBADF, -EBADF};
    char stream[8192] = "";
    ssize_t length;

    set_stage(&stage, &small_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    make_view(&stage, upper);
    archive = sys_memfd_create("archive", SYS_MEMFD_DATA);
    said = run_whole_job(&stage, &spec, workspace, archive, 0);
    check_says(said, "{\"archived\":{\"files\":3,\"folders\":2,");
    tar = sys_memfd_create("tar", SYS_MEMFD_DATA);
    streams.input = archive;
    streams.data = tar;
    spec = (struct keeper_spec){.task = KEEPER_UNARCHIVE};
    CHECK_OK(keeper_job_start(&stage.host, &spec, &streams, &job, &test_error));
    CHECK_EQUAL(finish_job(&stage, &job).value, 0);
    length = pread(tar, stream, sizeof(stream), 0);
    CHECK(length > 1024 && length % 512 == 0);
    CHECK(memmem(stream, (size_t) length, "of the image", 12) != NULL);
    CHECK(memmem(stream, (size_t) length, "deleted", 7) == NULL);
    strike_stage(&stage);
}

/* --- how jobs end --------------------------------------------------------------------------- */

/* A list of many files that waits for its reader. */
static void start_waiting_job(struct stage *stage, struct keeper_job *job, int *ret_reader)
{
    struct keeper_spec spec = {.task = KEEPER_LIST, .disk = make_keeper_disk(stage, 0)};
    AUTO(close) int upper = open_part(stage, &spec.disk.id, DISK_UPPER);

    fill_much(upper);
    start_job(stage, &spec, job, ret_reader);
    CHECK(sys_file_poll(*ret_reader, POLLIN, PATIENCE_MS) > 0);
}

static void cancel_jobs(void)
{
    struct stage stage;
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;
    int reader;

    set_stage(&stage, &small_pool);
    start_waiting_job(&stage, &job, &reader);
    (void) close(reader);
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 1);

    start_waiting_job(&stage, &job, &reader);
    keeper_job_cancel(&job);
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.kind, SYS_EXIT_SIGNAL);
    CHECK_EQUAL(ended.value, SIGKILL);
    (void) close(reader);
    strike_stage(&stage);
}

/* In a process of its own, which then dies without a word. Whoever reads the job's output stays
 * alive, so that this is not what ends the keeper. */
static _Noreturn void be_launcher(struct stage *stage, int output, int writer)
{
    struct keeper_spec spec = {.task = KEEPER_LIST, .disk = make_keeper_disk(stage, 0)};
    struct keeper_job job = KEEPER_JOB_INIT;
    AUTO(close) int upper = open_part(stage, &spec.disk.id, DISK_UPPER);

    fill_much(upper);
    CHECK_OK(keeper_job_start(&stage->host, &spec, &(struct keeper_streams){-EBADF, output, -EBADF},
                              &job, &test_error));
    CHECK_EQUAL(sys_file_write_full(writer, &job.pid, sizeof(job.pid)), 0);
    for (;;)
        (void) pause();
}

static void lose_the_launcher(void)
{
    struct stage stage;
    AUTO(close) int keeper = -EBADF;
    pid_t launcher, pid;
    int ends[2], output[2], status;

    set_stage(&stage, &small_pool);
    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(output, O_CLOEXEC), 0);
    launcher = fork();
    CHECK(launcher >= 0);
    if (launcher == 0)
        be_launcher(&stage, output[1], ends[1]);
    CHECK_EQUAL(sys_file_read_full(ends[0], &pid, sizeof(pid)), sizeof(pid));
    keeper = sys_process_open(pid);
    CHECK(keeper >= 0);
    CHECK(sys_file_poll(output[0], POLLIN, PATIENCE_MS) > 0);
    CHECK_EQUAL(sys_file_poll(keeper, POLLIN, 50), 0); /* it lives as long as the launcher does */
    CHECK_EQUAL(kill(launcher, SIGKILL), 0);
    CHECK_EQUAL(waitpid(launcher, &status, 0), launcher);
    CHECK(sys_file_poll(keeper, POLLIN, PATIENCE_MS) > 0);
    for (int i = 0; i < 2; i++) {
        (void) close(ends[i]);
        (void) close(output[i]);
    }
    cgroup_host_remove_base(stage.cgroups);
    cgroup_host_free(stage.cgroups);
    id_range_table_free(stage.host.ids);
    CHECK_OK(disk_pool_unmount(stage.host.pool, &test_error));
}

/* --- the tests ------------------------------------------------------------------------------ */

static void a_copy_is_the_same_to_the_sandbox(void **state)
{
    (void) state;
    run_with_keeper(copy_and_compare);
}

/* The same with an image of several layers: the upper ones are on top. */
static void look_at_layers(void)
{
    static const char *const digests[] = {
        "1111111111111111111111111111111111111111111111111111111111111111",
        "2222222222222222222222222222222222222222222222222222222222222222",
    };
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_SCAN, .image = "layers"};
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    AUTO(close) int upper = -EBADF, layers = -EBADF;
    AUTO(free) char *said = NULL;

    set_stage(&stage, &small_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    make_view(&stage, upper);
    layers = image_layers_open(stage.host.images, &test_error);
    CHECK(layers >= 0);
    for (size_t i = 0; i < ARRAY_COUNT(digests); i++) {
        AUTO(close) int layer = -EBADF, folder = -EBADF;

        CHECK_EQUAL(mkdirat(layers, digests[i], 0755), 0);
        layer = openat(layers, digests[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_EQUAL(mkdirat(layer, "workspace", 0755), 0);
        folder = openat(layer, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        put(folder, "both", 0, i ? 0600 : 0644);
        put(folder, i ? "upper" : "lower", 0, 0644);
        if (i)
            CHECK_EQUAL(mknodat(folder, "gone", S_IFCHR, 0), 0);
        else
            put(folder, "gone", 0, 0644);
        CHECK_OK(wire_image_add(&image, WIRE_IMAGE_LAYER, digests[i], &test_error));
    }
    CHECK_OK(image_put(stage.host.images, "layers", &image, &test_error));
    said = run_whole_job(&stage, &spec, workspace, -EBADF, 0);
    check_says(said, "{\"path\":\"both\",\"type\":\"file\",\"mode\":\"0600\"");
    check_says(said, "{\"path\":\"upper\",");
    check_says(said, "{\"path\":\"lower\",");
    check_says(said, "{\"path\":\"new\",");
    CHECK(strstr(said, "gone") == NULL);
    strike_stage(&stage);
}

static void a_view_of_several_layers_is_what_the_sandbox_saw(void **state)
{
    (void) state;
    run_with_keeper(look_at_layers);
}

static void a_view_is_what_the_sandbox_saw(void **state)
{
    (void) state;
    run_with_keeper(look_at_a_view);
}

static void a_snapshot_becomes_a_layer_and_a_disk(void **state)
{
    (void) state;
    run_with_keeper(pack_and_unpack);
}

static void a_folder_becomes_an_archive_and_a_stream(void **state)
{
    (void) state;
    run_with_keeper(archive_and_back);
}

static void a_disk_of_a_plain_pool_is_deleted(void **state)
{
    (void) state;
    run_with_keeper(delete_from_a_plain_pool);
}

static void a_live_copy_is_of_the_folder_that_was_there(void **state)
{
    (void) state;
    run_with_keeper(copy_what_becomes_a_layer);
}

static void the_limit_of_the_target_holds(void **state)
{
    (void) state;
    run_with_keeper(fail_inside);
}

static void what_cannot_start_is_told_and_leaves_nothing(void **state)
{
    (void) state;
    run_in_child(fail_to_start, NEEDS_KEEPER);
}

static void jobs_end_when_cancelled_or_unread(void **state)
{
    (void) state;
    run_with_keeper(cancel_jobs);
}

static void a_job_dies_with_its_launcher(void **state)
{
    (void) state;
    run_with_keeper(lose_the_launcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_copy_is_the_same_to_the_sandbox, remove_groups),
        cmocka_unit_test_teardown(a_view_is_what_the_sandbox_saw, remove_groups),
        cmocka_unit_test_teardown(a_view_of_several_layers_is_what_the_sandbox_saw, remove_groups),
        cmocka_unit_test_teardown(a_snapshot_becomes_a_layer_and_a_disk, remove_groups),
        cmocka_unit_test_teardown(a_folder_becomes_an_archive_and_a_stream, remove_groups),
        cmocka_unit_test_teardown(a_disk_of_a_plain_pool_is_deleted, remove_groups),
        cmocka_unit_test_teardown(a_live_copy_is_of_the_folder_that_was_there, remove_groups),
        cmocka_unit_test_teardown(the_limit_of_the_target_holds, remove_groups),
        cmocka_unit_test_teardown(what_cannot_start_is_told_and_leaves_nothing, remove_groups),
        cmocka_unit_test_teardown(jobs_end_when_cancelled_or_unread, remove_groups),
        cmocka_unit_test_teardown(a_job_dies_with_its_launcher, remove_groups),
    };

    load_program();
    return cmocka_run_group_tests_name("keeper_job", tests, NULL, NULL);
}
