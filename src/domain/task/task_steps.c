/* How a task goes: the steps before its turn, the turn, and what is found out afterwards.
 *
 * After a restart all of it is begun again: a sandbox that was made is found by its name, a clone
 * that is whole is left alone, and a turn that was begun is waited for, without the steps before it. */
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot.h"
#include "domain/snapshot/template.h"
#include "domain/task/task_internal.h"
#include "model/spec_json.h"

#define CLONE_MS       ((uint64_t) 11 * 60 * 1000)
#define COMMAND_MS     ((uint64_t) 60 * 1000)
#define TURN_KEY       "task"
#define DIFF_LINE_MAX  ((size_t) 8192)
#define DIFF_LINES_MAX 4000

static struct live_task *task_of(void *context)
{
    return context;
}

static bool task_is_fresh(const struct live_task *live)
{
    return !*live->task.turn.text;
}

/* A step is over. One that shall end goes no further. */
void task_step_done(struct live_task *live, const struct error *failure)
{
    struct error err = ERROR_INIT;

    if (!failure && live->is_cancelled) {
        (void) error_set(&err, ERR_CANCELLED, 0, "%s", live->cancel_message);
        failure = &err;
    }
    sequence_next(&live->sequence, failure);
}

static void task_row_kept(void *context, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct live_task *live = context;

    if (!failure)
        event_kept(live->domain, receipt);
    task_step_done(live, failure);
}

static void task_keep_row(struct live_task *live)
{
    struct store_transaction *rows = store_begin(live->domain->options.store);

    task_put_row(rows, live, false);
    domain_commit(live->domain, rows, task_row_kept, live);
}

/* --- what was done before a restart ------------------------------------------------------------ */

static bool task_was_begun(const void *context)
{
    const struct live_task *live = context;

    return live->is_recovered && task_is_fresh(live);
}

static void task_turns_listed(void *context, const struct error *failure, const struct turn *turns,
                              size_t count, bool has_more)
{
    struct live_task *live = context;

    (void) has_more;
    if (!failure && count)
        live->task.turn = turns[0].id;
    task_step_done(live, failure);
}

static void task_look_for_turn(void *context)
{
    struct live_task *live = task_of(context);

    turn_list(live->domain, &live->caller, live->conversation, NULL, 1, task_turns_listed, live);
}

/* --- its sandbox ------------------------------------------------------------------------------- */

static bool task_needs_sandbox(const void *context)
{
    const struct live_task *live = context;

    return !*live->task.sandbox.text;
}

static void task_sandbox_made(void *context, const struct error *failure, struct sandbox *sandbox,
                              bool is_new)
{
    struct live_task *live = context;
    const char *label;
    struct error err = ERROR_INIT;

    if (failure) {
        task_step_done(live, failure);
        return;
    }
    label = sandbox_pairs_get(&sandbox->spec.labels, SANDBOX_LABEL_TASK);
    if (!is_new && (!label || strcmp(label, live->task.id.text) != 0)) {
        (void) error_set(&err, ERR_CONFLICT, 0, "there is a sandbox '%s' already",
                         sandbox->spec.name ? sandbox->spec.name : sandbox->id.text);
        task_step_done(live, &err);
        return;
    }
    live->task.sandbox = sandbox->id;
    live->task.owns_sandbox = true;
    task_step_done(live, NULL);
}

/* What its agent is in, unless the task says otherwise. A command needs no agent. */
static const char *task_image(const struct live_task *live)
{
    const struct task_spec *spec = &live->spec;

    if (spec->image || spec->template || (spec->kind && strcmp(spec->kind, "command") == 0))
        return spec->image;
    return live->domain->options.agent_image;
}

static void task_write_spec(const struct live_task *live, const char *name, struct text *out)
{
    const struct task_spec *spec = &live->spec;
    const char *image = task_image(live);
    struct json_writer json;

    json_document_begin(&json, out);
    json_add_text(&json, "name", name);
    if (image)
        json_add_text(&json, "image", image);
    if (spec->backend && strcmp(spec->backend, "cloudflare") == 0)
        json_add_text(&json, "sleepAfter", "10m");
    if (spec->env) {
        json_key(&json, "env");
        json_put_value(&json, spec->env);
    }
    if (spec->egress) {
        json_key(&json, "egress");
        json_put_value(&json, spec->egress);
    }
    json_begin_object_at(&json, "labels");
    json_add_text(&json, SANDBOX_LABEL_TASK, live->task.id.text);
    json_end_object(&json);
    (void) json_document_end(&json); /* it was JSON of this size before */
}

static int task_read_spec(const struct live_task *live, const char *name,
                          struct sandbox_spec *ret_spec, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(TASK_SPEC_MAX * 2);
    AUTO(json) json_t *value = NULL;
    struct json_place place;

    task_write_spec(live, name, &text);
    value = json_read(text_string(&text), text.length, NULL, err);
    if (!value || json_root_object(value, &place, err) < 0 ||
        sandbox_spec_read_api(&place, SPEC_CREATE, NULL, ret_spec, NULL, err) < 0)
        return -1;
    free(ret_spec->kind);
    ret_spec->kind = mem_copy_text(SANDBOX_KIND_TASK);
    return 0;
}

static void task_forked(void *context, const struct error *failure,
                        struct sandbox *const *sandboxes, size_t count,
                        const struct snapshot_made *how)
{
    (void) how, (void) count;
    task_sandbox_made(context, failure, failure ? NULL : sandboxes[0], true);
}

/* Its disk is a copy of the team's; one that was made before a restart is found. */
static void task_fork_base(struct live_task *live, const char *name,
                           const struct sandbox_spec *spec)
{
    AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
    struct sandbox *base = sandbox_set_by_id(live->domain, live->base.text), *found;
    struct fork_options options = {.count = 1, .name = name, .change = &change};
    struct error err = ERROR_INIT;

    found = sandbox_find(live->domain, &live->caller, name, NULL);
    if (found) {
        task_sandbox_made(live, NULL, found, false);
        return;
    }
    if (!base) {
        (void) error_set(&err, ERR_CONFLICT, 0, "the sandbox of the team is gone");
        task_step_done(live, &err);
        return;
    }
    change.spec.labels = sandbox_pairs_copy(&spec->labels);
    change.fields = SPEC_BIT(labels);
    sandbox_fork(live->domain, &live->caller, base, &options, task_forked, live);
}

static int task_begin_template(struct live_task *live, struct sandbox_spec *spec,
                               struct snapshot **ret_snapshot, struct error *err)
{
    const struct template *template;

    if (!live->spec.template)
        return 0;
    template = template_find(live->domain, &live->caller, live->spec.template, err);
    if (!template || template_spec(template, spec, err) < 0)
        return -1;
    if (!*template->snapshot.text)
        return 0;
    *ret_snapshot = snapshot_find(live->domain, &live->caller, template->snapshot.text, err);
    return *ret_snapshot ? 0 : -1;
}

static void task_make_sandbox(void *context)
{
    struct live_task *live = task_of(context);
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct snapshot *snapshot = NULL;
    struct error err = ERROR_INIT;
    char name[sizeof("task-") + ID_SIZE];

    (void) snprintf(name, sizeof(name), "task-%s", live->task.id.text);
    if (task_begin_template(live, &spec, &snapshot, &err) < 0 ||
        task_read_spec(live, live->spec.sandbox_name ? live->spec.sandbox_name : name, &spec,
                       &err) < 0) {
        task_step_done(live, &err);
        return;
    }
    if (*live->base.text)
        task_fork_base(live, spec.name, &spec);
    else if (snapshot)
        sandbox_create_from_snapshot(live->domain, &live->caller, snapshot, &spec,
                                     task_sandbox_made, live);
    else
        sandbox_create(live->domain, &live->caller, &spec, task_sandbox_made, live);
}

static bool task_is_unsaid(const void *context)
{
    const struct live_task *live = context;

    return !id_equal(&live->task.sandbox, &live->conversation->sandbox);
}

static void task_keep_sandbox(void *context)
{
    struct live_task *live = task_of(context);
    struct store_transaction *rows = store_begin(live->domain->options.store);

    task_put_row(rows, live, false);
    conversation_set_sandbox(live->domain, live->conversation, rows, &live->task.sandbox);
    domain_commit(live->domain, rows, task_row_kept, live);
}

static void task_awake(struct sandbox_use *use, const struct error *failure)
{
    struct live_task *live = CONTAINER_OF(use, struct live_task, use);

    live->is_using = !failure;
    task_step_done(live, failure);
}

static bool task_is_before_turn(const void *context)
{
    return task_is_fresh(context);
}

static void task_wake(void *context)
{
    struct live_task *live = task_of(context);
    struct sandbox *sandbox = sandbox_set_by_id(live->domain, live->task.sandbox.text);
    struct error err = ERROR_INIT;

    if (!sandbox) {
        (void) error_set(&err, ERR_NOT_FOUND, 0, "the sandbox is gone");
        task_step_done(live, &err);
        return;
    }
    sandbox_use_begin(live->domain, sandbox, &live->use, 0, task_awake);
}

/* --- what is in it ----------------------------------------------------------------------------- */

void task_git_shown(const char *url, struct text *out)
{
    const char *authority = strstr(url, "://"), *at = NULL;
    size_t length;

    if (authority && strncmp(url, "http", 4) == 0) {
        authority += 3;
        length = strcspn(authority, "/?#");
        for (size_t i = 0; i < length; i++)
            if (authority[i] == '@')
                at = authority + i + 1;
    }
    text_append_bytes(out, url, at ? (size_t) (authority - url) : strlen(url));
    if (at)
        text_append(out, at);
}

/* The last part of the URL, as git itself would call it. */
const char *task_folder(const struct task_spec *spec, struct text *out)
{
    const char *end, *begin;

    if (spec->folder)
        return spec->folder;
    if (!spec->git_url)
        return NULL;
    end = spec->git_url + strcspn(spec->git_url, "?#");
    while (end > spec->git_url && end[-1] == '/')
        end--;
    if (end - spec->git_url > 4 && strncmp(end - 4, ".git", 4) == 0)
        end -= 4;
    begin = end;
    while (begin > spec->git_url && begin[-1] != '/' && begin[-1] != ':')
        begin--;
    text_append(out, "/workspace/");
    for (; begin < end; begin++) {
        bool is_plain = (*begin >= 'a' && *begin <= 'z') || (*begin >= 'A' && *begin <= 'Z') ||
                        (*begin >= '0' && *begin <= '9') || strchr("._-", *begin);

        text_append_char(out, is_plain ? *begin : '_');
    }
    if (out->length == strlen("/workspace/") || out->data[out->length - 1] == '.')
        text_append(out, "repository");
    return text_string(out);
}

static bool task_has_checkout(const void *context)
{
    const struct live_task *live = context;

    return task_is_fresh(live) && live->spec.git_url && !*live->base.text;
}

static bool task_has_git(const void *context)
{
    const struct live_task *live = context;

    return task_is_fresh(live) && live->spec.git_url;
}

static void task_execute(struct live_task *live, const char *script, task_called *done)
{
    AUTO(text) struct text folder_text = TEXT_INIT(16384);
    AUTO(text) struct text body = TEXT_INIT(65536);
    const char *words[] = {"sh", "-c", script, "sh", task_folder(&live->spec, &folder_text)};
    struct json_writer json;

    json_document_begin(&json, &body);
    json_begin_array_at(&json, "argv");
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        json_put_text(&json, words[i]);
    json_end_array(&json);
    json_add_text(&json, "cwd", "/");
    (void) json_document_end(&json);
    task_call_begin(live, INSIDE_EXECUTE, text_string(&body), COMMAND_MS, done);
}

static bool task_said_success(const char *text)
{
    AUTO(json) json_t *value = text ? json_read(text, strlen(text), NULL, NULL) : NULL;
    json_t *code = json_object_get(value, "exitCode");

    return json_is_integer(code) && json_integer_value(code) == 0;
}

static void task_cloned(struct live_task *live, const struct error *failure, const char *text)
{
    (void) text;
    task_step_done(live, failure);
}

static void task_clone(struct live_task *live)
{
    const struct task_spec *spec = &live->spec;
    AUTO(text) struct text folder = TEXT_INIT(16384);
    AUTO(text) struct text body = TEXT_INIT(65536);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_text(&json, "repoUrl", spec->git_url);
    json_add_text(&json, "targetDir", task_folder(spec, &folder));
    if (spec->git_branch)
        json_add_text(&json, "branch", spec->git_branch);
    if (spec->git_depth)
        json_add_integer(&json, "depth", spec->git_depth);
    (void) json_document_end(&json);
    task_call_begin(live, INSIDE_CHECK_OUT, text_string(&body), CLONE_MS, task_cloned);
}

/* A clone that was cut short has the URL, but no commit. */
static void task_clone_looked(struct live_task *live, const struct error *failure, const char *text)
{
    if (!failure && !live->is_cancelled && !task_said_success(text))
        task_clone(live);
    else
        task_step_done(live, failure);
}

static void task_check_out(void *context)
{
    task_execute(task_of(context), "git --git-dir=\"$1/.git\" rev-parse -q --verify HEAD",
                 task_clone_looked);
}

static void task_marked(struct live_task *live, const struct error *failure, const char *text)
{
    (void) text;
    task_step_done(live, failure);
}

/* So that commits of the agent are in the diff as well. */
static void task_mark_beginning(void *context)
{
    task_execute(task_of(context), "git -C \"$1\" update-ref refs/burrow/before HEAD", task_marked);
}

static bool task_has_files(const void *context)
{
    const struct live_task *live = context;

    return task_is_fresh(live) && json_array_size(live->spec.files) > 0;
}

static void task_write_file(void *context);

static void task_file_written(struct live_task *live, const struct error *failure, const char *text)
{
    (void) text;
    if (!failure && !live->is_cancelled && ++live->file < json_array_size(live->spec.files))
        task_write_file(live);
    else
        task_step_done(live, failure);
}

static void task_write_file(void *context)
{
    struct live_task *live = task_of(context);
    json_t *file = json_array_get(live->spec.files, live->file);
    const char *path = json_string_value(json_object_get(file, "path"));
    const char *content = json_string_value(json_object_get(file, "content"));
    AUTO(text) struct text folder_text = TEXT_INIT(16384);
    AUTO(text) struct text place = TEXT_INIT(32768);
    AUTO(text) struct text body = TEXT_INIT(TASK_SPEC_MAX * 2);
    const char *folder = task_folder(&live->spec, &folder_text);
    struct json_writer json;

    if (*path != '/')
        text_format(&place, "%s/", folder ? folder : "/workspace");
    text_append(&place, path);
    json_document_begin(&json, &body);
    json_add_text(&json, "path", text_string(&place));
    json_add_text(&json, "content",
                  content ? content : json_string_value(json_object_get(file, "base64")));
    if (!content)
        json_add_text(&json, "encoding", "base64");
    (void) json_document_end(&json);
    task_call_begin(live, INSIDE_WRITE_FILE, text_string(&body), COMMAND_MS, task_file_written);
}

/* --- as it was before -------------------------------------------------------------------------- */

static void task_snapped(void *context, const struct error *failure, struct snapshot *snapshot,
                         const struct snapshot_made *how)
{
    struct live_task *live = context;

    (void) how;
    if (!failure)
        live->task.snapshot = snapshot->id;
    task_step_done(live, failure);
}

static void task_take_snapshot(void *context)
{
    struct live_task *live = task_of(context);
    struct sandbox *sandbox = sandbox_set_by_id(live->domain, live->task.sandbox.text);
    const struct snapshot_options options = {
        .reason = SNAPSHOT_TASK, .expires_ms = domain_wall_ms(live->domain) + TASK_KEPT_MS};
    const struct caller caller = caller_system();
    struct error err = ERROR_INIT;

    if (sandbox) {
        snapshot_make(live->domain, &caller, sandbox, &options, task_snapped, live);
        return;
    }
    (void) error_set(&err, ERR_NOT_FOUND, 0, "the sandbox is gone");
    task_step_done(live, &err);
}

/* --- its turn ---------------------------------------------------------------------------------- */

static void task_turn_made(void *context, const struct error *failure, const struct turn *turn,
                           bool is_new)
{
    struct live_task *live = context;

    (void) is_new;
    if (!failure)
        live->task.turn = turn->id;
    task_step_done(live, failure);
}

static void task_begin_turn(void *context)
{
    struct live_task *live = task_of(context);
    const struct turn_spec spec = {.text = live->spec.text,
                                   .parts = live->spec.parts,
                                   .provider = live->spec.provider,
                                   .model = live->spec.model,
                                   .agent = live->spec.agent,
                                   .key = TURN_KEY};

    live->task.state = TASK_RUNNING;
    turn_create(live->domain, &live->caller, live->conversation, &spec, task_turn_made, live);
}

static void task_keep_turn(void *context)
{
    struct live_task *live = task_of(context);

    live->task.state = TASK_RUNNING;
    task_say(live, "the agent is at work");
    task_keep_row(live);
}

static void task_turn_over(void *context, const struct error *failure, const struct turn *turn)
{
    struct live_task *live = context;
    struct task *task = &live->task;

    live->turn_wait = NULL;
    if (failure) {
        task_step_done(live, failure);
        return;
    }
    turn_set(&task->answer, turn->answer);
    turn_set(&task->provider, turn->provider);
    turn_set(&task->model, turn->model);
    turn_set(&task->error_code, turn->error_code);
    turn_set(&task->error_message, turn->error_message);
    task->usage = turn->usage;
    live->end = turn->state == TURN_DONE        ? TASK_DONE
                : turn->state == TURN_CANCELLED ? TASK_CANCELLED
                                                : TASK_FAILED;
    sequence_next(&live->sequence, NULL); /* what has changed is of interest in any case */
}

static void task_wait_for_turn(void *context)
{
    struct live_task *live = task_of(context);
    struct live_turn *turn;

    live->turn_wait =
        turn_wait_begin(live->domain, &live->caller, live->task.turn.text, task_turn_over, live);
    turn = turn_live(live->domain, live->task.turn.text);
    if (live->is_cancelled && turn)
        turn_stop(turn, live->cancel_code, live->cancel_message);
}

/* --- what has changed -------------------------------------------------------------------------- */

static bool task_has_snapshot(const void *context)
{
    const struct live_task *live = context;

    return *live->task.snapshot.text && sandbox_set_by_id(live->domain, live->task.sandbox.text);
}

/* Lines are the keeper's, which reads disks of strangers. Paths have no slash at their front. */
static void task_take_line(void *context, const char *line, size_t length)
{
    static const char *const kinds[] = {"added", "changed", "removed"};
    struct live_task *live = context;
    AUTO(json) json_t *value = length <= DIFF_LINE_MAX ? json_read(line, length, NULL, NULL) : NULL;
    AUTO(text) struct text folder_text = TEXT_INIT(16384);
    const char *folder = task_folder(&live->spec, &folder_text);
    size_t prefix;
    json_t *totals = value ? json_object_get(value, "diff") : NULL;

    if (totals) {
        json_decref(live->totals);
        live->totals = json_incref(totals);
        return;
    }
    folder = (folder ? folder : "/workspace") + 1;
    prefix = strlen(folder);
    for (size_t i = 0; value && i < ARRAY_COUNT(kinds); i++) {
        const char *path = json_string_value(json_object_get(value, kinds[i]));

        if (!path || strncmp(path, folder, prefix) != 0 || (path[prefix] && path[prefix] != '/') ||
            strstr(path, "/.git/"))
            continue;
        if (live->line_count >= DIFF_LINES_MAX || live->lines.length + length > TASK_CHANGES_MAX) {
            live->is_cut = true;
            continue;
        }
        if (live->line_count++)
            text_append_char(&live->lines, ',');
        text_append_bytes(&live->lines, line, length);
    }
}

static void task_compared(void *context, const struct error *failure)
{
    struct live_task *live = context;

    live->has_compared = !failure;
    sequence_next(&live->sequence, failure);
}

static void task_compare(void *context)
{
    struct live_task *live = task_of(context);
    struct error err = ERROR_INIT;
    const struct snapshot_place older = {
        .snapshot = snapshot_find(live->domain, &live->caller, live->task.snapshot.text, &err)};
    const struct snapshot_place newer = {
        .sandbox = sandbox_set_by_id(live->domain, live->task.sandbox.text)};

    if (!older.snapshot) {
        sequence_next(&live->sequence, &err);
        return;
    }
    text_done(&live->lines);
    live->lines = (struct text) TEXT_INIT(TASK_CHANGES_MAX * 2);
    live->line_count = 0;
    snapshot_diff(live->domain, &live->caller, older, newer, task_take_line, task_compared, live);
}

static bool task_has_patch(const void *context)
{
    const struct live_task *live = context;
    const struct sandbox *sandbox = sandbox_set_by_id(live->domain, live->task.sandbox.text);

    return live->spec.git_url && sandbox && sandbox->status == SANDBOX_RUNNING;
}

static void task_patched(struct live_task *live, const struct error *failure, const char *text)
{
    AUTO(json) json_t *value = text ? json_read(text, strlen(text), NULL, NULL) : NULL;
    const char *patch = json_string_value(json_object_get(value, "stdout"));

    if (patch && task_said_success(text)) {
        free(live->patch);
        live->patch = mem_copy_text(patch);
    }
    sequence_next(&live->sequence, failure);
}

/* In an index of its own: what the agent has staged stays as it is. */
static void task_read_patch(void *context)
{
    task_execute(task_of(context),
                 "cd \"$1\" && i=$(mktemp) && cp .git/index \"$i\" && export GIT_INDEX_FILE=\"$i\" "
                 "&& git add -A && git diff --cached refs/burrow/before | head -c 200000; "
                 "r=$?; rm -f \"$i\"; exit $r",
                 task_patched);
}

static const struct sequence_step steps[] = {
    {"look for its turn", task_look_for_turn, .when = task_was_begun},
    {"make its sandbox", task_make_sandbox, .when = task_needs_sandbox,
     .point = "task.sandbox.made"},
    {"keep which sandbox it has", task_keep_sandbox, .when = task_is_unsaid,
     .point = "task.sandbox.kept"},
    {"wake its sandbox", task_wake, .when = task_is_before_turn},
    {"check out the repository", task_check_out, .when = task_has_checkout},
    {"mark where it begins", task_mark_beginning, .when = task_has_git,
     .on_failure = SEQUENCE_WARNS},
    {"write its files", task_write_file, .when = task_has_files},
    {"take a snapshot before it", task_take_snapshot, .when = task_is_before_turn,
     .on_failure = SEQUENCE_WARNS},
    {"begin its turn", task_begin_turn, .when = task_is_before_turn, .point = "task.turn.made"},
    {"keep which turn it has", task_keep_turn, .point = "task.turn.kept"},
    {"wait for its turn", .start = task_wait_for_turn},
    {"see what has changed", task_compare, .when = task_has_snapshot, .on_failure = SEQUENCE_WARNS},
    {"see what has changed for git", task_read_patch, .when = task_has_patch,
     .on_failure = SEQUENCE_WARNS},
    {.text = NULL},
};

const struct sequence_table task_sequence = {"task.go", steps, task_finish};

/* Of a team: a checkout that its members' sandboxes are forks of. */
static const struct sequence_step base_steps[] = {
    {"make the sandbox of the team", task_make_sandbox, .when = task_needs_sandbox,
     .point = "team.base.made"},
    {"wake the sandbox of the team", .start = task_wake},
    {"check out the repository", task_check_out, .when = task_has_checkout},
    {"mark where it begins", task_mark_beginning, .when = task_has_git,
     .on_failure = SEQUENCE_WARNS},
    {.text = NULL},
};

const struct sequence_table task_base_sequence = {"team.base", base_steps, team_base_ready};
