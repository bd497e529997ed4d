#include "keeper/tree/tree_diff.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "json/name_escape.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/file_compare.h"
#include "keeper/tree/tree_list.h"
#include "keeper/tree/tree_pair.h"

/* Overlay's own marks, and the one on a copy of an image's file. */
#define OVERLAY_PREFIX "user.overlay."
#define OVERLAY_ORIGIN "user.overlay.origin"

/* The other form of a whiteout, on an empty file. */
#define OVERLAY_WHITEOUT "user.overlay.whiteout"

enum line { LINE_ADDED, LINE_CHANGED, LINE_REMOVED, LINE_COUNT };

static const char *const line_texts[LINE_COUNT] = {"added", "changed", "removed"};

enum {
    WHAT_CONTENT = 1 << 0,
    WHAT_MODE = 1 << 1,
    WHAT_OWNER = 1 << 2,
    WHAT_TIME = 1 << 3,
    WHAT_TYPE = 1 << 4,
    WHAT_XATTRS = 1 << 5,
    WHAT_TARGET = 1 << 6,
    WHAT_OPAQUE = 1 << 7,
    WHAT_IMAGE = 1 << 8,
};

static const struct {
    unsigned int bit;
    const char *text;
} whats[] = {
    {WHAT_CONTENT, "content"}, {WHAT_MODE, "mode"},     {WHAT_OWNER, "owner"},
    {WHAT_TIME, "time"},       {WHAT_TYPE, "type"},     {WHAT_XATTRS, "xattrs"},
    {WHAT_TARGET, "target"},   {WHAT_OPAQUE, "opaque"}, {WHAT_IMAGE, "image"},
};

struct diff {
    struct output *output;
    struct attributes newer, older;
    struct file_compare compare;
    struct text scratch;
    /* Inside a folder that one side alone has: whether that is a copy of the image's, so that what
     * is in it may be too, and the depth of a folder in it (or 0) that is none. */
    bool is_copied;
    size_t plain_from;
    uint64_t counts[LINE_COUNT];
};

static bool has_mark(const struct tree_step *step, const char *attribute)
{
    return fchdir(step->folder) == 0 && lgetxattr(step->at, attribute, NULL, 0) >= 0;
}

/* Whether it is a copy of the image's: the lowest layer that has it decides, others have copies of
 * that one. */
static bool is_from_image(const struct tree_step *step)
{
    return fchdir(step->lowest) == 0 && lgetxattr(step->lowest_at, OVERLAY_ORIGIN, NULL, 0) >= 0;
}

static bool is_whiteout(const struct tree_step *step)
{
    const struct stat *status = &step->status;

    if (S_ISREG(status->st_mode))
        return status->st_size == 0 && has_mark(step, OVERLAY_WHITEOUT);
    return S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0);
}

/* --- lines ---------------------------------------------------------------------------------- */

static void add_escaped(struct diff *diff, struct json_writer *json, const char *key,
                        const char *bytes, size_t length)
{
    text_clear(&diff->scratch);
    name_escape(&diff->scratch, bytes, length);
    json_key(json, key);
    json_put_bytes(json, text_string(&diff->scratch), diff->scratch.length);
}

static void add_path(struct diff *diff, struct json_writer *json, enum line line,
                     const struct tree_step *step)
{
    bool is_long = step->path_length > TREE_LIST_PATH_MAX;

    if (step->depth == 0)
        json_add_text(json, line_texts[line], ".");
    else
        add_escaped(diff, json, line_texts[line], step->path, is_long ? 0 : step->path_length);
    if (is_long) {
        output_add_count(json, "depth", step->depth);
        add_escaped(diff, json, "name", step->name, strlen(step->name));
    }
}

static void tell(struct diff *diff, enum line line, const struct tree_step *step, unsigned int what)
{
    struct json_writer json;

    output_begin(diff->output, &json);
    add_path(diff, &json, line, step);
    if (line == LINE_CHANGED) {
        json_key(&json, "what");
        json_begin_array(&json);
        for (size_t i = 0; i < ARRAY_COUNT(whats); i++)
            if (what & whats[i].bit)
                json_put_text(&json, whats[i].text);
        json_end_array(&json);
    }
    output_end(diff->output, &json);
    diff->counts[line]++;
}

/* --- in one tree alone ---------------------------------------------------------------------- */

/* Which folder we are in, of those that one side alone has. */
static void follow_alone(struct diff *diff, const struct tree_step *step, bool is_inside,
                         bool is_copy)
{
    if (!is_inside) {
        diff->is_copied = is_copy;
        diff->plain_from = 0;
    } else if (step->event == TREE_ENTER && diff->is_copied && !is_copy) {
        diff->is_copied = false;
        diff->plain_from = step->depth;
    } else if (step->event == TREE_LEAVE && diff->plain_from == step->depth) {
        diff->is_copied = true;
        diff->plain_from = 0;
    }
}

/* `here` is the line for what is on this side alone, `there` for what a whiteout hides. */
static void tell_alone(struct diff *diff, const struct tree_step *step, bool is_inside,
                       enum line here, enum line there)
{
    bool shows_image = !is_inside || diff->is_copied;
    bool is_copy = shows_image && is_from_image(step);

    follow_alone(diff, step, is_inside, is_copy);
    if (step->event == TREE_LEAVE)
        return;
    if (is_copy)
        tell(diff, LINE_CHANGED, step, WHAT_IMAGE);
    else if (!is_whiteout(step))
        tell(diff, here, step, 0);
    else if (shows_image)
        tell(diff, there, step, 0);
}

/* --- in both -------------------------------------------------------------------------------- */

static bool is_own(const char *attribute)
{
    return attributes_is_copied(attribute) &&
           strncmp(attribute, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) != 0;
}

static unsigned int compare_status(const struct stat *newer, const struct stat *older)
{
    unsigned int what = 0;

    if ((newer->st_mode & 07777) != (older->st_mode & 07777))
        what |= WHAT_MODE;
    if (newer->st_uid != older->st_uid || newer->st_gid != older->st_gid)
        what |= WHAT_OWNER;
    if (!S_ISDIR(newer->st_mode) && (newer->st_mtim.tv_sec != older->st_mtim.tv_sec ||
                                     newer->st_mtim.tv_nsec != older->st_mtim.tv_nsec))
        what |= WHAT_TIME;
    return what;
}

static int compare_attributes(struct diff *diff, const struct tree_step *newer,
                              const struct tree_step *older, bool (*counts)(const char *attribute))
{
    return attributes_compare(&diff->newer, newer->folder, newer->at, &diff->older, older->folder,
                              older->at, counts);
}

static int compare_targets(const struct tree_step *newer, const struct tree_step *older)
{
    char left[PATH_MAX], right[PATH_MAX];
    ssize_t left_length = readlinkat(newer->folder, newer->at, left, sizeof(left));
    ssize_t right_length = readlinkat(older->folder, older->at, right, sizeof(right));

    if (left_length < 0 || right_length < 0)
        return -errno;
    return left_length == right_length && memcmp(left, right, (size_t) left_length) == 0;
}

static int compare_content(struct diff *diff, const struct tree_step *newer,
                           const struct tree_step *older)
{
    if (newer->status.st_size != older->status.st_size)
        return 0;
    return file_compare(&diff->compare, newer->folder, newer->at, older->folder, older->at,
                        (uint64_t) newer->status.st_size);
}

/* What is different between two things of one type. The bits, or -errno. */
static int compare_alike(struct diff *diff, const struct tree_step *newer,
                         const struct tree_step *older)
{
    mode_t format = newer->status.st_mode & S_IFMT;
    unsigned int what = compare_status(&newer->status, &older->status);
    int held = 1, own = compare_attributes(diff, newer, older, is_own), opaque = 1;

    if (format == S_IFREG)
        held = compare_content(diff, newer, older);
    else if (format == S_IFLNK)
        held = compare_targets(newer, older);
    else if (format == S_IFDIR)
        opaque = tree_step_is_opaque(newer) == tree_step_is_opaque(older);
    if (held < 0 || own < 0 || opaque < 0)
        return held < 0 ? held : own < 0 ? own : opaque;
    if (!held)
        what |= format == S_IFREG ? WHAT_CONTENT : WHAT_TARGET;
    return (int) (what | (own ? 0 : WHAT_XATTRS) | (opaque ? 0 : WHAT_OPAQUE));
}

static int tell_both(struct diff *diff, const struct tree_step *newer,
                     const struct tree_step *older, struct error *err)
{
    bool newer_gone = is_whiteout(newer), older_gone = is_whiteout(older);
    int what = WHAT_TYPE;

    diff->is_copied = false;
    diff->plain_from = 0;
    if (newer->event == TREE_LEAVE || (newer_gone && older_gone))
        return 0;
    if (newer_gone || older_gone) {
        tell(diff, newer_gone ? LINE_REMOVED : LINE_ADDED, newer_gone ? older : newer, 0);
        return 0;
    }
    if ((newer->status.st_mode & S_IFMT) == (older->status.st_mode & S_IFMT))
        what = compare_alike(diff, newer, older);
    if (what < 0)
        return tree_step_error(newer, what, "compare", err);
    if (what)
        tell(diff, LINE_CHANGED, newer, (unsigned int) what);
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int tell_step(struct diff *diff, const struct tree_pair_step *step, struct error *err)
{
    if (step->newer && step->older)
        return tell_both(diff, step->newer, step->older, err);
    if (step->newer)
        tell_alone(diff, step->newer, step->is_inside, LINE_ADDED, LINE_REMOVED);
    else
        tell_alone(diff, step->older, step->is_inside, LINE_REMOVED, LINE_ADDED);
    return 0;
}

static int tell_all(struct diff *diff, const struct tree *newer, const struct tree *older,
                    struct error *err)
{
    AUTO(tree_pair) struct tree_pair *pair = tree_pair_new(newer, older, NULL);
    struct tree_pair_step step;

    for (;;) {
        if (tree_pair_next(pair, &step, err) < 0)
            return -1;
        if (!step.newer && !step.older)
            return 0;
        if (tell_step(diff, &step, err) < 0)
            return -1;
        if (diff->output->error)
            return error_set(err, ERR_CANCELLED, diff->output->error, "write the differences");
    }
}

static void report(const struct diff *diff)
{
    struct json_writer json;

    output_begin(diff->output, &json);
    json_key(&json, "diff");
    json_begin_object(&json);
    for (size_t i = 0; i < LINE_COUNT; i++)
        output_add_count(&json, line_texts[i], diff->counts[i]);
    json_end_object(&json);
    output_end(diff->output, &json);
}

int tree_diff(const struct tree *newer, const struct tree *older, struct output *output,
              struct error *err)
{
    struct diff diff = {.output = output,
                        .scratch = TEXT_INIT((TREE_LIST_PATH_MAX + 1) * NAME_ESCAPE_FACTOR)};
    int result;

    attributes_init(&diff.newer);
    attributes_init(&diff.older);
    file_compare_init(&diff.compare, newer->layers[0], older->layers[0]);
    result = tell_all(&diff, newer, older, err);
    if (result == 0)
        report(&diff);
    attributes_done(&diff.newer);
    attributes_done(&diff.older);
    file_compare_done(&diff.compare);
    text_done(&diff.scratch);
    return result;
}
