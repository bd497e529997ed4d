#include "agent/filewatch/file_watch_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/filewatch/file_watch_tree_internal.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file/sys_file.h"

/* How long the second half of a move may be awaited. The kernel queues both at once, but for a
 * thread that is stopped in between. */
#define DEPARTURE_MS 100

/* Graves dug up per turn. */
#define BURY_COUNT 200

/* A folder above the top: when the next one of the way down goes, so does the tree. */
struct watch_anchor {
    struct watch_hub_link watch;
    struct watch_tree *tree;
    char *name; /* owned */
};

static struct watch_forest *forest_of(struct watch_hub *hub)
{
    return CONTAINER_OF(hub, struct watch_forest, hub);
}

void watch_place_done(struct watch_place *place)
{
    free(place->base);
    free(place->relative);
    free(place->only);
    *place = (struct watch_place){.base = NULL};
}

/* --- telling --------------------------------------------------------------------------------- */

void tree_change(struct watch_tree *tree, enum watch_change change, const char *path,
                 bool is_directory)
{
    if (!tree->ended)
        tree->options.events->on_change(tree->options.owner, change, path, is_directory);
}

static void describe_problem(int error, const char *path, char *ret_text, size_t size)
{
    char limit[WATCH_HUB_LIMIT_TEXT_SIZE];

    if (error == -ENOMEM)
        (void) snprintf(limit, sizeof(limit), "the agent's limit of %zu watched folders is reached",
                        WATCH_FOLDERS_MAX);
    else
        watch_hub_limit_text(error, limit);
    (void) snprintf(ret_text, size, "Cannot watch '%.200s': %s", path[0] ? path : ".", limit);
}

void tree_problem(struct watch_tree *tree, int error, const char *path)
{
    char text[512];

    if (tree->ended || tree->problem)
        return;
    describe_problem(error, path, text, sizeof(text));
    tree->problem = mem_copy_text(text);
    forest_wake(tree->forest);
}

void tree_end(struct watch_tree *tree, const char *reason)
{
    if (tree->ended)
        return;
    tree->ended = true;
    tree->end_reason = reason;
    forest_wake(tree->forest);
}

static void resync(struct watch_tree *tree)
{
    tree->again = false;
    tree->generation++;
    tree->top->generation = tree->generation;
    folder_queue(tree->top, tree->options.recursive ? SCAN_RESYNC : SCAN_CHECK);
}

/* What waited for the end of the turn. The owner may free the tree: it is told one thing. */
static void tell_news(struct watch_tree *tree)
{
    const struct watch_tree_events *events = tree->options.events;
    void *owner = tree->options.owner;

    if (tree->problem) {
        AUTO(free) char *text = TAKE_PTR(tree->problem);

        forest_wake(tree->forest);
        if (!tree->ended)
            events->on_problem(owner, text);
    } else if (tree->end_reason) {
        events->on_end(owner, TAKE_PTR(tree->end_reason));
    } else if (!tree->ended && tree->first_busy == 0 && !tree->is_ready) {
        tree->is_ready = true;
        forest_wake(tree->forest);
        events->on_ready(owner);
    } else if (!tree->ended && tree->busy == 0 && tree->again) {
        resync(tree);
    }
}

/* --- events ---------------------------------------------------------------------------------- */

static const struct {
    uint32_t mask;
    enum watch_change change;
} changes[] = {
    {IN_CREATE, WATCH_CREATE},        {IN_MODIFY, WATCH_MODIFY},    {IN_DELETE, WATCH_DELETE},
    {IN_MOVED_FROM, WATCH_MOVE_FROM}, {IN_MOVED_TO, WATCH_MOVE_TO}, {IN_ATTRIB, WATCH_ATTRIB},
};

static void depart(struct folder *folder, uint32_t cookie)
{
    struct watch_forest *forest = folder->tree->forest;
    enum scan_mode mode = folder->work ? folder->work->mode : SCAN_CHECK;

    folder_detach(folder);
    folder_queue(folder, mode); /* to have work, and to stop reading */
    folder->work->cookie = cookie;
    folder->work->missed = false;
    folder->work->due = loop_now(forest->loop) + DEPARTURE_MS;
    list_remove(&folder->work->link);
    list_append(&forest->departed, &folder->work->link);
    if (!forest->departure.due)
        deadline_set(&forest->departure, DEPARTURE_MS);
}

static struct folder *find_departed(const struct watch_tree *tree, uint32_t cookie)
{
    LIST_EACH (&tree->forest->departed, at) {
        struct folder_work *work = CONTAINER_OF(at, struct folder_work, link);

        if (work->folder->tree == tree && work->cookie == cookie)
            return work->folder;
    }
    return NULL;
}

static void departure_due(struct deadline *deadline)
{
    struct watch_forest *forest = CONTAINER_OF(deadline, struct watch_forest, departure);
    struct list *at;

    while ((at = list_first(&forest->departed))) {
        struct folder_work *work = CONTAINER_OF(at, struct folder_work, link);

        if (work->due > loop_now(forest->loop)) {
            deadline_set(deadline, work->due - loop_now(forest->loop));
            return;
        }
        folder_drop(work->folder);
    }
}

static void arrive(struct folder *parent, const char *name, uint32_t cookie)
{
    struct folder *known = folder_find(parent, name);
    struct folder *moved = cookie ? find_departed(parent->tree, cookie) : NULL;

    if (moved) {
        bool missed = moved->work->missed;

        if (known)
            folder_drop(known);
        folder_attach(moved, parent, name);
        folder_queue(moved, missed ? SCAN_TOUCHED : moved->work->mode);
    } else if (known) {
        if (!known->work) /* it was read already; is it the same? */
            folder_queue(known, SCAN_CHECK);
    } else {
        known = folder_new(parent->tree, parent, name);
        if (known)
            folder_queue(known, SCAN_NEW);
        else
            tree_problem(parent->tree, -ENOMEM, name);
    }
}

static void watch_tree_leave(struct folder *parent, const char *name, uint32_t cookie)
{
    struct folder *folder = folder_find(parent, name);

    if (folder && cookie)
        depart(folder, cookie);
    else if (folder)
        folder_drop(folder);
}

/* What an event about a folder does to the tree. */
static void change_tree(struct folder *parent, const struct inotify_event *event, const char *path)
{
    const struct watch_tree_options *options = &parent->tree->options;
    uint32_t cookie = event->mask & (IN_MOVED_FROM | IN_MOVED_TO) ? event->cookie : 0;

    if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
        watch_tree_leave(parent, event->name, cookie);
    } else if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
        if (!options->events->is_excluded(options->owner, path)) {
            arrive(parent, event->name, cookie);
        } else {
            struct folder *moved = cookie ? find_departed(parent->tree, cookie) : NULL;

            if (moved)
                folder_drop(moved);
        }
    }
}

/* Whether the event was told by reading the folder; and note it for a reading that is to come. */
static bool was_seen(struct folder *folder, const struct inotify_event *event)
{
    bool seen = event->mask & IN_CREATE && seen_has(folder, event->name);

    if (event->mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM))
        seen_remove(folder, event->name);
    if (event->mask & (IN_CREATE | IN_MOVED_TO) && folder->work && folder->work->mode != SCAN_CHECK)
        seen_add(folder, event->name);
    return seen;
}

/* The agent writes files beside their place and moves them there (file_writer.h). What people see
 * of it is a file that was modified. Whether this event is to be told, and as what. */
static bool is_to_be_told(struct watch_forest *forest, const struct inotify_event *event,
                          uint32_t *ret_mask)
{
    *ret_mask = event->mask;
    if (event->mask & IN_ISDIR)
        return true;
    if (sys_file_is_temporary_name(event->name)) {
        if (event->mask & IN_MOVED_FROM)
            forest->hidden_cookie = event->cookie;
        return false;
    }
    if (event->mask & IN_MOVED_TO && event->cookie == forest->hidden_cookie)
        *ret_mask = IN_MODIFY;
    return true;
}

static void entry_event(struct folder *folder, const struct inotify_event *event)
{
    struct watch_tree *tree = folder->tree;
    bool is_directory = event->mask & IN_ISDIR;
    char buffer[PATH_MAX];
    const char *path = folder_path(folder, event->name, buffer);
    uint32_t mask;

    if (!is_to_be_told(tree->forest, event, &mask))
        return;
    if (!path || (tree->options.place.only && strcmp(tree->options.place.only, event->name) != 0))
        return;
    if (!was_seen(folder, event)) {
        for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
            if (mask & changes[i].mask)
                tree_change(tree, changes[i].change, path, is_directory);
        }
    }
    if (is_directory && tree->options.recursive)
        change_tree(folder, event, path);
}

static void own_event(struct folder *folder, const struct inotify_event *event)
{
    if (folder != folder->tree->top)
        return; /* the parent tells */
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED))
        tree_end(folder->tree, event->mask & IN_UNMOUNT
                                   ? "The watched folder was unmounted"
                                   : "The watched folder was moved or deleted");
    else if (event->mask & IN_ATTRIB && !folder->tree->options.place.only)
        tree_change(folder->tree, WATCH_ATTRIB, "", true);
}

void folder_event(struct watch_hub_link *link, const struct inotify_event *event)
{
    struct folder *folder = CONTAINER_OF(link, struct folder, watch);
    struct folder *top = folder_top(folder);

    if (folder->tree->ended)
        return;
    if (top != folder->tree->top) {
        if (top->work)
            top->work->missed = true;
    } else if (event->len == 0) {
        own_event(folder, event);
    } else {
        entry_event(folder, event);
    }
}

static void anchor_event(struct watch_hub_link *link, const struct inotify_event *event)
{
    struct watch_anchor *anchor = CONTAINER_OF(link, struct watch_anchor, watch);

    if (event->mask & (IN_DELETE | IN_MOVED_FROM) && event->len > 0 &&
        strcmp(event->name, anchor->name) == 0)
        tree_end(anchor->tree, event->mask & IN_DELETE ? "The watched folder was deleted"
                                                       : "The watched folder was moved");
}

/* --- the forest ------------------------------------------------------------------------------ */

static void watch_tree_settle(struct watch_forest *forest)
{
    scan_settle(forest);
    seen_settle(forest);
    LIST_EACH (&forest->trees, at)
        tell_news(CONTAINER_OF(at, struct watch_tree, link));
    forest->on_settled(forest->owner);
}

static void watch_tree_work(struct loop_task *task)
{
    struct watch_forest *forest = CONTAINER_OF(task, struct watch_forest, task);
    bool more = scan_slice(forest);

    if (folder_bury(forest, BURY_COUNT) || more)
        forest_wake(forest);
    watch_tree_settle(forest);
}

void forest_wake(struct watch_forest *forest)
{
    loop_defer(forest->loop, &forest->task);
}

static void overflowed(struct watch_hub *hub)
{
    LIST_EACH (&forest_of(hub)->trees, at) {
        struct watch_tree *tree = CONTAINER_OF(at, struct watch_tree, link);

        if (tree->ended)
            continue;
        tree->again = true;
        tree->options.events->on_overflow(tree->options.owner);
    }
    forest_wake(forest_of(hub));
}

static void has_read(struct watch_hub *hub)
{
    forest_wake(forest_of(hub));
}

struct watch_forest *watch_forest_new(struct loop *loop, void (*on_settled)(void *owner),
                                      void *owner)
{
    struct watch_forest *forest = mem_alloc(sizeof(*forest));

    watch_hub_init(&forest->hub, loop, overflowed, has_read);
    forest->loop = loop;
    forest->on_settled = on_settled;
    forest->owner = owner;
    list_init(&forest->trees);
    list_init(&forest->queue);
    list_init(&forest->lost);
    list_init(&forest->departed);
    list_init(&forest->graves);
    list_init(&forest->seen_groups);
    loop_task_init(&forest->task, watch_tree_work);
    deadline_init(loop, &forest->departure, departure_due);
    random_bytes(&forest->seed, sizeof(forest->seed));
    return forest;
}

uint64_t watch_forest_now(const struct watch_forest *forest)
{
    return watch_hub_end(&forest->hub);
}

bool watch_forest_has_told(const struct watch_forest *forest, uint64_t place)
{
    return watch_hub_position(&forest->hub) >= place;
}

/* --- trees ----------------------------------------------------------------------------------- */

static void watch_anchor(struct watch_tree *tree, const char *path, const char *name)
{
    struct watch_anchor *anchor = &tree->anchors[tree->anchor_count];
    AUTO(close) int fd = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);

    anchor->watch.on_event = anchor_event;
    anchor->tree = tree;
    /* A folder we may not watch is not missed: then the top itself tells, though later. */
    if (fd < 0 || watch_hub_watch(&tree->forest->hub, &anchor->watch, fd, false) < 0)
        return;
    anchor->name = mem_copy_text(name);
    tree->anchor_count++;
}

static size_t count_slashes(const char *path)
{
    size_t count = 0;

    for (; *path; path++)
        count += *path == '/';
    return count;
}

/* One anchor for each name on the way from above the base down to the top. */
static void watch_anchors(struct watch_tree *tree)
{
    const struct watch_place *place = &tree->options.place;
    const char *base = place->base[1] ? place->base : "";
    AUTO(text) struct text path = TEXT_INIT((size_t) 2 * PATH_MAX);

    text_format(&path, "%s%s%s", base, place->relative[0] ? "/" : "", place->relative);
    if (path.length == 0)
        return; /* the root of all is never deleted */
    tree->anchors = mem_alloc_array(count_slashes(path.data), sizeof(*tree->anchors));
    for (char *slash = path.data + (strrchr(place->base, '/') - place->base); slash;
         slash = strchr(slash + 1, '/')) {
        AUTO(free) char *name = mem_copy_bytes(slash + 1, strcspn(slash + 1, "/"));

        *slash = '\0';
        watch_anchor(tree, slash == path.data ? "/" : path.data, name);
        *slash = '/';
    }
}

static int plant(struct watch_tree *tree)
{
    AUTO(close) int fd = -EBADF;
    int r;

    tree->top = folder_new(tree, NULL, "");
    if (!tree->top)
        return -ENOMEM;
    fd = scan_open_path(tree, "");
    r = fd < 0 ? fd : scan_bind(tree->top, fd);
    if (r < 0)
        return r;
    watch_anchors(tree);
    folder_queue(tree->top, tree->options.recursive ? SCAN_QUIET : SCAN_CHECK);
    return 0;
}

struct watch_tree *watch_tree_new(struct watch_forest *forest,
                                  const struct watch_tree_options *options, int *ret_error,
                                  char *ret_text, size_t text_size)
{
    struct watch_tree *tree = mem_alloc(sizeof(*tree));
    int r;

    tree->forest = forest;
    tree->options = *options;
    list_append(&forest->trees, &tree->link);
    r = plant(tree);
    if (r == 0)
        return tree;
    describe_problem(r, options->place.relative, ret_text, text_size);
    *ret_error = r;
    watch_tree_free(tree);
    return NULL;
}

void tree_release(struct watch_tree *tree)
{
    watch_place_done(&tree->options.place);
    table_done(&tree->folders);
    free(tree->anchors);
    free(tree->problem);
    free(tree);
}

void watch_tree_free(struct watch_tree *tree)
{
    struct folder *top;

    if (!tree)
        return;
    tree->ended = true;
    tree->end_reason = NULL;
    list_remove(&tree->link);
    for (size_t i = 0; i < tree->anchor_count; i++) {
        watch_hub_unwatch(&tree->forest->hub, &tree->anchors[i].watch);
        free(tree->anchors[i].name);
    }
    top = TAKE_PTR(tree->top); /* nothing has a path any more */
    if (top)
        folder_drop(top);
    else
        tree_release(tree);
}

bool watch_tree_is_settled(const struct watch_tree *tree)
{
    return tree->busy == 0 && !tree->again;
}
