#include "programs/burrow/image_build.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "recipe/accounts.h"
#include "recipe/context.h"
#include "recipe/draft.h"
#include "recipe/recipe_text.h"
#include "sys/file/sys_file.h"

#define FILE_DEFAULT   "Dockerfile"
#define VARIABLES_MAX  (2 * WIRE_IMAGE_WORDS_MAX)
#define ACCOUNTS_MAX   ((size_t) 1 << 20)
#define PATH_LENGTH    (2 * WIRE_IMAGE_WORD_MAX)
#define TEMPORARY_MODE 0600

struct building {
    const struct image_build *options;
    struct pool pool;
    struct recipe recipe;
    struct context *context; /* owned */
    struct draft draft;
    struct workshop workshop;
    char parent[DRAFT_STEP_SIZE]; /* the image as it is registered between steps */
    struct error *err;
};

/* A file without a name, on the disk: layers and contexts may be large. */
static int make_temporary(struct error *err)
{
    const char *folder = getenv("TMPDIR");
    int file = sys_file_open(AT_FDCWD, folder && *folder ? folder : "/var/tmp", O_RDWR | O_TMPFILE,
                             TEMPORARY_MODE);

    return file < 0 ? error_set(err, error_code_from_errno(file), file, "make a temporary file")
                    : file;
}

/* --- the sandbox of a step ------------------------------------------------------------------ */

static int open_workshop(struct building *building)
{
    struct workshop *workshop = &building->workshop;

    if (workshop->is_open)
        return 0;
    if (workshop_open(workshop, &building->options->workshop, building->err) < 0)
        return -1;
    if (building->options->workshop.network == WORKSHOP_NAT_IF_ANY &&
        workshop->network == NETWORK_NONE)
        (void) puts("steps have no network: there is none for sandboxes here");
    return 0;
}

/* The image between two steps: what lies on what, and nothing of what its maker wants, so that
 * every sandbox of a build starts alike. */
static int image_build_remember(struct building *building, const char *name)
{
    static const enum wire_image_key kept[] = {WIRE_IMAGE_BASE, WIRE_IMAGE_LAYER};
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;

    for (size_t i = 0; i < ARRAY_COUNT(kept); i++) {
        const struct wire_image_words *words = &building->draft.image.by_key[kept[i]];

        for (size_t j = 0; j < words->count; j++) {
            if (wire_image_add(&image, kept[i], words->words[j], building->err) < 0)
                return -1;
        }
    }
    if (image_registry_set(&building->options->place, name, &image, building->err) < 0)
        return -1;
    (void) snprintf(building->parent, sizeof(building->parent), "%s", name);
    return 0;
}

/* Whether the step was done before: then its layers are the image's. */
static bool recall(struct building *building, const char *name)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    struct wire_image_words *layers = &image.by_key[WIRE_IMAGE_LAYER];
    struct wire_image_words *ours = &building->draft.image.by_key[WIRE_IMAGE_LAYER];
    struct wire_image_words before = *ours;

    if (building->options->no_cache ||
        image_registry_show(&building->options->place, name, &image, NULL) < 0)
        return false;
    *ours = *layers;
    *layers = before;
    (void) snprintf(building->parent, sizeof(building->parent), "%s", name);
    (void) puts("  done before");
    return true;
}

static int keep_layer(struct building *building, const char *name)
{
    AUTO(close) int file = make_temporary(building->err);
    struct workshop_layer layer = {.entries = 0};

    if (file < 0 || workshop_pack(&building->workshop, file, &layer, building->err) < 0 ||
        draft_count(&building->draft, layer.bytes, layer.entries, building->err) < 0)
        return -1;
    if (layer.entries && image_registry_add_layer(&building->options->place, file,
                                                  &building->draft.image, building->err) < 0)
        return -1;
    return image_build_remember(building, name);
}

/* --- RUN ------------------------------------------------------------------------------------ */

static size_t make_variables(struct building *building, struct run_variable *variables)
{
    const struct wire_image *const images[] = {&building->draft.arguments, &building->draft.image};
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_COUNT(images); i++) {
        const struct wire_image_words *words = &images[i]->by_key[WIRE_IMAGE_ENV];

        for (size_t j = 0; j < words->count; j++) {
            size_t length = strcspn(words->words[j], "=");
            const char *name = pool_copy_bytes(&building->pool, words->words[j], length);

            if (i == 0 && draft_variable(&building->draft, name))
                continue; /* ENV goes before ARG, and a name comes once */
            variables[count++] =
                (struct run_variable){.name = name, .value = words->words[j] + length + 1};
        }
    }
    return count;
}

static int image_build_judge(const struct run_outcome *outcome, struct error *err)
{
    switch (outcome->ending) {
    case RUN_ENDED_STATUS:
        return outcome->value == 0
                   ? 0
                   : error_set(err, ERR_INVALID, 0, "it ended with status %d", outcome->value);
    case RUN_ENDED_SIGNAL:
        return error_set(err, ERR_INVALID, 0, "it was ended by signal %d", outcome->value);
    default:
        return error_set(err, ERR_INVALID, 0, "%s", outcome->text);
    }
}

static int do_run(struct building *building, const struct recipe_step *step)
{
    AUTO(free)
    struct run_variable *variables = mem_alloc_array(VARIABLES_MAX, sizeof(*variables));
    const char *const line[] = {"/bin/sh", "-c", step->rest, NULL};
    const char *folder = wire_image_word(&building->draft.image, WIRE_IMAGE_WORKDIR);
    const char *user = wire_image_word(&building->draft.image, WIRE_IMAGE_USER);
    const struct run_message_request request = {
        .command = step->is_json ? step->words : line,
        .directory = *folder ? folder : "/",
        .user = *user ? user : NULL,
        .variables = variables,
        .variable_count = make_variables(building, variables),
    };
    struct run_outcome outcome;

    (void) fflush(stdout); /* what it prints goes behind what we did */
    if (workshop_run(&building->workshop, &request, &outcome, building->err) < 0)
        return -1;
    return image_build_judge(&outcome, building->err);
}

/* --- COPY ----------------------------------------------------------------------------------- */

struct image_build_copy {
    const char **sources; /* in the pool */
    size_t count;
    const char *place; /* absolute, in the pool */
    bool is_folder;    /* what is written says that the place is one */
    struct context_result seen;
};

static int read_copy(struct building *building, const struct recipe_step *step,
                     struct image_build_copy *copy)
{
    const char **words = pool_alloc(&building->pool, (step->word_count + 1) * sizeof(*words));
    AUTO(text) struct text path = TEXT_INIT(PATH_LENGTH);
    const char *last;
    size_t length;

    for (size_t i = 0; i < step->word_count; i++) {
        AUTO(text) struct text word = TEXT_INIT(RECIPE_TEXT_MAX);

        if (draft_expand(&building->draft, step->words[i], &word, building->err) < 0)
            return -1;
        words[i] = pool_copy_text(&building->pool, text_string(&word));
    }
    last = words[step->word_count - 1];
    length = strlen(last);
    draft_path(&building->draft, last, &path);
    copy->sources = words;
    copy->count = step->word_count - 1;
    copy->place = pool_copy_text(&building->pool, text_string(&path));
    copy->is_folder = copy->count > 1 || !length || last[length - 1] == '/' ||
                      strcmp(last, ".") == 0 ||
                      (length > 1 && strcmp(last + length - 2, "/.") == 0);
    return 0;
}

static int image_build_look(struct building *building, struct image_build_copy *copy)
{
    const struct context_order order = {
        .sources = copy->sources, .count = copy->count, .archive = -EBADF};

    return context_copy(building->context, &order, &copy->seen, building->err);
}

static int find_owner(struct building *building, const char *owner, struct context_order *order)
{
    AUTO(text) struct text passwd = TEXT_INIT(ACCOUNTS_MAX), group = TEXT_INIT(ACCOUNTS_MAX);
    AUTO(text) struct text word = TEXT_INIT(RECIPE_TEXT_MAX);

    if (!owner)
        return 0;
    if (draft_expand(&building->draft, owner, &word, building->err) < 0 ||
        workshop_read(&building->workshop, "/etc/passwd", &passwd, building->err) < 0 ||
        workshop_read(&building->workshop, "/etc/group", &group, building->err) < 0)
        return -1;
    return accounts_find(text_string(&word), text_string(&passwd), text_string(&group), &order->uid,
                         &order->gid, building->err);
}

/* Of a path that has one spelling: the nearest folder on the way that is there, links followed, and
 * what has to be made in it. */
static int find_folder(struct building *building, const char *path, const char **ret_there,
                       const char **ret_missing)
{
    size_t length = strlen(path);
    bool is_there = false;

    while (length > 1) {
        *ret_there = pool_copy_bytes(&building->pool, path, length);
        if (workshop_is_folder(&building->workshop, *ret_there, &is_there, building->err) < 0)
            return -1;
        if (is_there)
            break;
        while (path[--length] != '/')
            ;
    }
    if (!is_there)
        *ret_there = "/";
    *ret_missing = path + length + (path[length] == '/');
    return 0;
}

/* Into a folder of the sandbox; what is missing of it is whose the copy is. */
static int send_copy(struct building *building, const struct image_build_copy *copy,
                     struct context_order *order, const char *folder)
{
    AUTO(close) int archive = make_temporary(building->err);
    struct context_result result;
    const char *there;

    if (archive < 0 || find_folder(building, folder, &there, &order->below) < 0)
        return -1;
    order->archive = archive;
    if (context_copy(building->context, order, &result, building->err) < 0)
        return -1;
    if (memcmp(result.digest, copy->seen.digest, sizeof(result.digest)) != 0)
        return error_set(building->err, ERR_INVALID, 0, "the context changed during the build");
    return workshop_send(&building->workshop, there, archive, building->err);
}

static int do_copy(struct building *building, const struct recipe_step *step,
                   const struct image_build_copy *copy)
{
    struct context_order order = {.sources = copy->sources, .count = copy->count};
    const char *name = strrchr(copy->place, '/') + 1;
    bool is_folder = copy->is_folder || !copy->seen.is_one_file || !*name;
    size_t parent = (size_t) (name - copy->place);

    if (find_owner(building, step->owner, &order) < 0 ||
        (!is_folder &&
         workshop_is_folder(&building->workshop, copy->place, &is_folder, building->err) < 0))
        return -1;
    if (is_folder)
        return send_copy(building, copy, &order, copy->place);
    order.name = name;
    parent -= parent > 1; /* the '/' between them */
    return send_copy(building, copy, &order, pool_copy_bytes(&building->pool, copy->place, parent));
}

/* --- WORKDIR -------------------------------------------------------------------------------- */

/* An archive with nothing in it makes the folder that it goes to. */
static int do_folder(struct building *building)
{
    AUTO(close) int archive = make_temporary(building->err);

    if (archive < 0)
        return -1;
    if (ftruncate(archive, 1024) < 0)
        return error_set(building->err, ERR_INTERNAL, errno, "make an archive");
    return workshop_send(&building->workshop,
                         wire_image_word(&building->draft.image, WIRE_IMAGE_WORKDIR), archive,
                         building->err);
}

/* --- steps ---------------------------------------------------------------------------------- */

/* What lies below the layers is known by its name alone otherwise. */
static int identify_base(struct building *building)
{
    const char *base = wire_image_word(&building->draft.image, WIRE_IMAGE_BASE);
    AUTO(free) char *identity = NULL;

    if (!*base)
        return 0;
    if (image_registry_identify(&building->options->place, base, &identity, building->err) < 0)
        return -1;
    building->draft.identity = pool_copy_text(&building->pool, identity);
    return 0;
}

static int do_base(struct building *building, const struct recipe_step *step)
{
    AUTO(text) struct text name = TEXT_INIT(RECIPE_TEXT_MAX);
    char key[DRAFT_STEP_SIZE];

    if (draft_expand(&building->draft, step->words[0], &name, building->err) < 0 ||
        image_registry_show(&building->options->place, text_string(&name), &building->draft.image,
                            building->err) < 0 ||
        identify_base(building) < 0)
        return -1;
    draft_begin(&building->draft);
    draft_key(&building->draft, NULL, NULL, key);
    return image_build_remember(building, key);
}

/* A step that does something, unless it was done before. */
static int do_work(struct building *building, const struct recipe_step *step)
{
    struct image_build_copy copy = {.count = 0};
    bool is_copy = step->kind == RECIPE_COPY;
    char key[DRAFT_STEP_SIZE];
    int r;

    if (is_copy && (read_copy(building, step, &copy) < 0 || image_build_look(building, &copy) < 0))
        return -1;
    draft_key(&building->draft, step, is_copy ? copy.seen.digest : NULL, key);
    if (recall(building, key))
        return 0;
    if (open_workshop(building) < 0 ||
        workshop_begin(&building->workshop, building->parent, building->err) < 0)
        return -1;
    if (step->kind == RECIPE_RUN)
        r = do_run(building, step);
    else
        r = is_copy ? do_copy(building, step, &copy) : do_folder(building);
    return r < 0 ? -1 : keep_layer(building, key);
}

static int do_step(struct building *building, const struct recipe_step *step)
{
    if (step->kind == RECIPE_FROM)
        return do_base(building, step);
    if (draft_apply(&building->draft, step, building->err) < 0)
        return -1;
    return step->kind == RECIPE_RUN || step->kind == RECIPE_COPY || step->kind == RECIPE_WORKDIR
               ? do_work(building, step)
               : 0;
}

static int do_steps(struct building *building)
{
    for (size_t i = 0; i < building->recipe.count; i++) {
        const struct recipe_step *step = &building->recipe.steps[i];
        char *shown = pool_copy_text(&building->pool, step->text);

        utf8_make_harmless(shown);
        (void) printf("step %zu/%zu: %s\n", i + 1, building->recipe.count, shown);
        (void) fflush(stdout);
        if (do_step(building, step) < 0)
            return strncmp(building->err->message, "line ", 5) == 0
                       ? -1
                       : error_wrap(building->err, "line %zu: %s", step->line,
                                    recipe_kind_text(step->kind));
    }
    return 0;
}

/* --- all of it ------------------------------------------------------------------------------ */

/* One that whoever builds named may be anywhere; that of the context is in it. */
static int load_recipe(struct building *building, const char *path, char **ret_bytes,
                       size_t *ret_length)
{
    int r;

    if (!path)
        return context_read(building->context, FILE_DEFAULT, RECIPE_SIZE_MAX, ret_bytes, ret_length,
                            building->err);
    r = sys_file_read_all(AT_FDCWD, path, RECIPE_SIZE_MAX, ret_bytes, ret_length);
    return r < 0 ? error_set(building->err, error_code_from_errno(r), r, "read '%s'", path) : 0;
}

static int read_recipe(struct building *building)
{
    const char *path = building->options->file;
    AUTO(free) char *bytes = NULL;
    size_t length = 0;

    if (load_recipe(building, path, &bytes, &length) < 0)
        return -1;
    path = path ? path : FILE_DEFAULT;
    if (recipe_read(bytes, length, &building->pool, &building->recipe, building->err) < 0)
        return error_wrap(building->err, "%s", path);
    return 0;
}

static void building_done(struct building *building)
{
    workshop_close(&building->workshop);
    context_close(building->context);
    draft_done(&building->draft);
    pool_done(&building->pool);
}

AUTO_DEFINE(building, struct building, building_done);

int image_build(const struct image_build *options, struct error *err)
{
    AUTO(close) int held = -EBADF;
    AUTO(building)
    struct building building = {
        .options = options, .pool = POOL_INIT, .draft = DRAFT_INIT, .err = err};

    building.draft.given = options->arguments;
    building.context = context_open(options->folder, err);
    if (!building.context || read_recipe(&building) < 0 ||
        image_registry_hold(&options->place, &held, err) < 0 || do_steps(&building) < 0 ||
        image_registry_set(&options->place, options->name, &building.draft.image, err) < 0)
        return -1;
    (void) printf("image %s: %zu layers\n", options->name,
                  building.draft.image.by_key[WIRE_IMAGE_LAYER].count);
    return 0;
}
