/* For tests of the mover: a real store in a folder, a provider that runs the real burrow-keeper on
 * folders of the test (without walls), and agents that are tar. Included by test programs only. */
#pragma once

#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "net/net_testing.h"
#include "objects/folder/objects_folder.h"
#include "provider/provider_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
#include "vault/mover.h"

struct stage {
    struct loop loop;
    struct testing_folder folder; /* store/, spool/, disks/<id>/, agents/<id>/ */
    struct provider provider;
    struct objects *objects;
    struct inside inside;
    struct mover *mover;
    char keeper[PATH_MAX];
    int jobs;     /* that were run */
    int extracts; /* that were asked for */
    int extracting;
    bool refuse_extract;
    int flushes; /* that were asked for */
    bool refuse_flush, hold_flush;
    struct provider_call *held_flush;
};

/* Where something of the test is: FOLDER/part/name. */
static inline const char *place(struct stage *stage, const char *part, const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned int next;
    char *path = paths[next++ % ARRAY_COUNT(paths)];

    (void) snprintf(path, PATH_MAX, "%s/%s/%s", stage->folder.path, part, name);
    return path;
}

static inline void run_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void run_shell(const char *format, ...)
{
    char command[4 * PATH_MAX];
    char *const words[] = {(char *) "sh", (char *) "-c", command, NULL};
    va_list arguments;
    int status;
    pid_t pid;

    va_start(arguments, format);
    (void) vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    /* Not fork: to copy a process with sanitizers takes longer than the command. */
    assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("%s", command);
}

/* --- the provider ---------------------------------------------------------------------------- */

struct stage_job {
    uv_process_t process;
    struct stage *stage;
    struct provider_call *call;
    struct id target; /* made by this job, or empty */
    int64_t status;
    int signal;
};

static inline void stage_job_closed(uv_handle_t *handle)
{
    struct stage_job *job = handle->data;

    job->call->result.ending =
        (struct ending){.kind = job->signal ? ENDED_SIGNAL : ENDED_STATUS,
                        .value = job->signal ? job->signal : (int) job->status};
    if (job->target.text[0] && (job->signal || job->status))
        run_shell("rm -rf '%s'", place(job->stage, "disks", job->target.text));
    provider_call_answer(job->call, NULL);
    free(job);
}

static inline void stage_job_exited(uv_process_t *process, int64_t status, int signal)
{
    struct stage_job *job = process->data;

    job->status = status;
    job->signal = signal;
    uv_close((uv_handle_t *) process, stage_job_closed);
}

static inline void stage_disk_job(struct provider_call *call)
{
    const struct provider_disk_job *job = call->asked.job;
    struct stage *stage = CONTAINER_OF(call->provider, struct stage, provider);
    struct stage_job *running = mem_alloc(sizeof(*running));
    char *arguments[6] = {stage->keeper, (char *) disk_job_text(job->kind)};
    const struct id *folders[] = {&job->on.id, &job->base.id, &job->target};
    int fds[] = {job->input, job->output, STDERR_FILENO, job->data};
    uv_stdio_container_t stdio[ARRAY_COUNT(fds)];
    uv_process_options_t options = {.exit_cb = stage_job_exited,
                                    .file = stage->keeper,
                                    .args = arguments,
                                    .stdio_count = ARRAY_COUNT(fds),
                                    .stdio = stdio};
    size_t count = 2;

    stage->jobs++;
    running->stage = stage;
    running->call = call;
    running->target = call->target;
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        if (!folders[i]->text[0])
            continue;
        arguments[count++] = (char *) place(stage, "disks", folders[i]->text);
        if (i == 2 && call->target.text[0])
            assert_int_equal(mkdir(arguments[count - 1], 0755), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
        stdio[i].flags = fds[i] < 0 ? UV_IGNORE : UV_INHERIT_FD;
        stdio[i].data.fd = fds[i];
    }
    assert_int_equal(uv_spawn(&stage->loop.uv, &running->process, &options), 0);
    running->process.data = running;
}

static inline void stage_destroy(struct provider_call *call)
{
    struct stage *stage = CONTAINER_OF(call->provider, struct stage, provider);

    run_shell("rm -rf '%s'", place(stage, "disks", call->id.text));
    provider_call_answer(call, NULL);
}

/* As a restore sees it: what it promises must have been extracted by then. */
static inline void stage_sync(struct provider_call *call)
{
    struct stage *stage = CONTAINER_OF(call->provider, struct stage, provider);
    struct error err = ERROR_INIT;

    assert_int_equal(call->kind, PROVIDER_CALL_SYNC_CONTENTS);
    assert_int_equal(stage->extracting, 0);
    stage->flushes++;
    if (stage->hold_flush) {
        stage->held_flush = call;
        return;
    }
    (void) error_set(&err, ERR_INTERNAL, EIO, "write back the disk pool");
    provider_call_answer(call, stage->refuse_flush ? &err : NULL);
}

static inline void stage_open(struct provider_call *call)
{
    call->provider->capabilities = PROVIDER_DISK_JOBS;
    provider_call_answer(call, NULL);
}

static inline void stage_release(struct provider *provider)
{
    (void) provider;
}

static inline void stage_close(struct provider *provider)
{
    provider_closed(provider, stage_release);
}

static const struct provider_operations stage_operations = {
    .name = "stage",
    .calls =
        {
            [PROVIDER_CALL_OPEN] = stage_open,
            [PROVIDER_CALL_DESTROY] = stage_destroy,
            [PROVIDER_CALL_DISK_JOB] = stage_disk_job,
            [PROVIDER_CALL_SYNC_DISKS] = stage_sync,
            [PROVIDER_CALL_SYNC_CONTENTS] = stage_sync,
        },
    .close = stage_close,
};

/* --- the agents ------------------------------------------------------------------------------ */

struct stage_extract {
    uv_process_t process;
    struct stage *stage;
    struct id sandbox;
    inside_done *done;
    void *context;
    int64_t status;
};

static inline void stage_extract_closed(uv_handle_t *handle)
{
    struct stage_extract *extract = handle->data;
    const char *sandbox = extract->sandbox.text;
    struct error err = ERROR_INIT;

    if (extract->status)
        (void) error_set(&err, ERR_INVALID, 0, "tar failed");
    else
        run_shell("rm -rf '%s' && mv '%s' '%s'", place(extract->stage, "agents", sandbox),
                  place(extract->stage, "fresh", sandbox),
                  place(extract->stage, "agents", sandbox));
    extract->stage->extracting--;
    extract->done(extract->context, extract->status ? &err : NULL);
    free(extract);
}

static inline void stage_extract_exited(uv_process_t *process, int64_t status, int signal)
{
    struct stage_extract *extract = process->data;

    extract->status = status | signal;
    uv_close((uv_handle_t *) process, stage_extract_closed);
}

/* The agent keeps what it had unless all of it came. */
static inline void stage_extracts(void *self, const struct id *sandbox, const char *folder, int tar,
                                  inside_done *done, void *context)
{
    struct stage *stage = self;
    struct stage_extract *extract = mem_alloc(sizeof(*extract));
    const char *fresh = place(stage, "fresh", sandbox->text);
    /* As the real ones do: a stream without its end is none. */
    const char *arguments[] = {"sh", "-c",
                               ("cat > \"$0.tar\" && [ $(tail -c 1024 \"$0.tar\" | tr -d '\\0' | "
                                "wc -c) = 0 ] && tar -xp -C \"$0\" -f \"$0.tar\""),
                               fresh, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_INHERIT_FD, .data.fd = tar}, {.flags = UV_IGNORE}, {.flags = UV_IGNORE}};
    uv_process_options_t options = {.exit_cb = stage_extract_exited,
                                    .file = stage->refuse_extract ? "false" : "sh",
                                    .args = (char **) arguments,
                                    .stdio_count = ARRAY_COUNT(stdio),
                                    .stdio = stdio};

    assert_string_equal(folder, "/workspace");
    stage->extracts++;
    stage->extracting++;
    run_shell("rm -rf '%s' && mkdir -p '%s'", fresh, fresh);
    *extract = (struct stage_extract){
        .stage = stage, .sandbox = *sandbox, .done = done, .context = context};
    assert_int_equal(uv_spawn(&stage->loop.uv, &extract->process, &options), 0);
    extract->process.data = extract;
}

/* --- before and after ------------------------------------------------------------------------ */

struct answer {
    int times;
    bool failed;
    struct error failure;
    struct vault_archived archived;
    struct vault_layer layer;
    struct vault_synced synced;
    uint64_t files, bytes;
    struct text lines;
};

static inline void note(struct answer *answer, const struct error *failure)
{
    answer->times++;
    answer->failed = failure != NULL;
    if (failure)
        answer->failure = *failure;
}

static inline void on_done(void *context, const struct error *failure)
{
    note(context, failure);
}

#define AWAIT(stage, answer)                                                                       \
    do {                                                                                           \
        assert_int_equal((answer)->times, 0);                                                      \
        TURN_UNTIL(&(stage)->loop, (answer)->times);                                               \
        assert_int_equal((answer)->times, 1);                                                      \
    } while (0)

static inline void expect_ok(const struct answer *answer)
{
    if (answer->failed)
        fail_msg("%s: %s", error_code_text(answer->failure.code), answer->failure.message);
}

static inline void expect_code(const struct answer *answer, enum err_code code)
{
    if (!answer->failed)
        fail_msg("succeeded instead of %s", error_code_text(code));
    if (answer->failure.code != code)
        fail_msg("%s instead of %s: %s", error_code_text(answer->failure.code),
                 error_code_text(code), answer->failure.message);
}

static inline void find_keeper(struct stage *stage)
{
    char path[PATH_MAX] = "";
    const char *slash;

    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    slash = strrchr(path, '/');
    assert_true(slash && slash - path < PATH_MAX / 2);
    (void) snprintf(stage->keeper, sizeof(stage->keeper), "%.*s/programs/burrow-keeper",
                    (int) (slash - path), path);
    assert_int_equal(access(stage->keeper, X_OK), 0);
}

static inline int set_stage(void **state)
{
    static const char *const parts[] = {"spool", "disks", "agents", "fresh"};
    struct stage *stage = mem_alloc(sizeof(*stage));
    struct provider_watcher watcher = {.context = stage};
    struct mover_options options = {
        .loop = &stage->loop, .provider = &stage->provider, .inside = &stage->inside};
    struct answer opened = {.times = 0};
    struct error err = ERROR_INIT;

    (void) signal(SIGPIPE, SIG_IGN); /* as in the daemon: a keeper may end before it has read all */
    assert_int_equal(loop_init(&stage->loop, NULL), 0);
    testing_folder_make(&stage->folder);
    find_keeper(stage);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        assert_int_equal(mkdir(place(stage, parts[i], ""), 0755), 0);
    provider_init(&stage->provider, &stage_operations, &stage->loop);
    provider_open(&stage->provider, &watcher, on_done, &opened);
    AWAIT(stage, &opened);
    stage->objects = objects_folder_new(&stage->loop, place(stage, "store", ""), 0, &err);
    assert_non_null(stage->objects);
    stage->inside = (struct inside){.self = stage, .extract = stage_extracts};
    options.objects = stage->objects;
    options.spool = place(stage, "spool", "");
    stage->mover = mover_new(&options);
    *state = stage;
    return 0;
}

static inline void count_closed(void *context)
{
    *(int *) context += 1;
}

static inline int strike_stage(void **state)
{
    struct stage *stage = *state;
    struct answer objects_closed = {.times = 0}, provider_closed_answer = {.times = 0};
    int closed = 0;

    mover_close(stage->mover, count_closed, &closed);
    TURN_UNTIL(&stage->loop, closed);
    mover_free(stage->mover);
    objects_close(stage->objects, on_done, &objects_closed);
    TURN_UNTIL(&stage->loop, objects_closed.times);
    provider_close(&stage->provider, on_done, &provider_closed_answer);
    TURN_UNTIL(&stage->loop, provider_closed_answer.times);
    loop_run(&stage->loop);
    loop_done(&stage->loop);
    run_shell("rm -rf '%s'", stage->folder.path);
    free(stage);
    return 0;
}

/* A snapshot with this id, empty. */
static inline struct disk_ref new_disk(struct stage *stage)
{
    struct disk_ref disk = {.set = DISK_OF_SNAPSHOT, .id = id_new()};

    assert_int_equal(mkdir(place(stage, "disks", disk.id.text), 0755), 0);
    return disk;
}

static inline const char *disk_path(struct stage *stage, const struct disk_ref *disk)
{
    return place(stage, "disks", disk->id.text);
}

/* Contents, names, types, links, modes and times to the second. */
static inline void expect_same(const char *one, const char *other)
{
    run_shell("diff -r --no-dereference '%s' '%s'", one, other);
    run_shell(
        "list() { cd \"$1\" && find . ! -type l -printf '%%P %%m %%y %%TY%%Tm%%Td%%TH%%TM\\n' "
        "-o -printf '%%P %%l\\n' | sort; }; [ \"$(list '%s')\" = \"$(list '%s')\" ]",
        one, other);
}
