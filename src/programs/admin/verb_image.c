/* burrow-admin image|bind add|rm|ls: folders that root registers by name; and images that are
 * imported (verb_image_import.h). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "launcher/image/bind.h"
#include "launcher/image/image.h"
#include "launcher/image/image_layers.h"
#include "launcher/site.h"
#include "programs/admin/image_preparing.h"
#include "programs/admin/verb.h"
#include "programs/admin/verb_image_build.h"
#include "programs/admin/verb_image_debian.h"
#include "programs/admin/verb_image_import.h"
#include "programs/admin/verb_image_pull.h"
#include "programs/root/root_verb.h"
#include "sys/file/sys_file.h"

/* One of the two registries: the other pointer is NULL. */
struct list {
    const char *noun; /* "image" */
    const char *data;
    const char *run;
    struct image_registry *images; /* owned */
    struct bind_registry *binds;   /* owned */
    struct image_pull_options pull;
};

static const struct option long_options[] = {
    {"data", required_argument, NULL, 'd'},
    {"run", required_argument, NULL, 'r'},
    IMAGE_PULL_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool is_image(const struct list *list)
{
    return strcmp(list->noun, "image") == 0;
}

static void print_usage(const struct list *list, FILE *out)
{
    (void) fprintf(
        out,
        "usage: burrow %s [--data DIR] add NAME DIR | rm NAME | ls%s\n"
        "\n"
        "%s\n"
        "The folder must be root's alone; / /etc /root /home /proc /sys /dev and what "
        "contains them are refused.\n",
        list->noun,
        is_image(list) ? " | import NAME FILE|DIR | inspect NAME | prune\n       burrow image "
                         "build NAME DIR | prepare NAME (--help tells more)\n       burrow image "
                         "[--data DIR] " IMAGE_PULL_USAGE
                       : "",
        is_image(list)
            ? "What sandboxes may start from by name, read-only: folders with a root "
              "file system (add), and\nimages of containers (import: an archive of "
              "`docker save`, or an OCI layout as a folder or in one\nfile; pull: from a "
              "registry). Layers of images that were removed go with prune."
            : "Folders that sandboxes may be shown by name, read-only.");
}

static void close_list(struct list *list)
{
    image_registry_free(list->images);
    bind_registry_free(list->binds);
}

AUTO_DEFINE(list, struct list, close_list);

/* The data folder is everybody's to walk through: the daemon's own part lies in it. What is not
 * there is made only when `make`: to look is not to change. */
static int open_list(struct list *list, bool make, struct error *err)
{
    char path[PATH_MAX];
    int r = make ? sys_file_make_directories(AT_FDCWD, list->data, 0755) : 0;

    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make the data folder '%s'", list->data);
    if (snprintf(path, sizeof(path), "%s/%ss", list->data, list->noun) >= (int) sizeof(path))
        return error_set(err, ERR_INVALID, 0, "the path of the data folder is too long");
    if (!make && access(path, F_OK) < 0)
        return 0;
    if (is_image(list))
        return image_registry_open(path, &list->images, err);
    return bind_registry_open(list->data, list->run, &list->binds, err);
}

/* --- actions -------------------------------------------------------------------------------- */

static int run_add(struct list *list, char **words, struct error *err)
{
    AUTO(free) char *folder = realpath(words[1], NULL);

    if (!folder)
        return error_set(err, error_code_from_errno(errno), errno, "the folder '%s'", words[1]);
    return list->images ? image_add(list->images, words[0], folder, err)
                        : bind_add(list->binds, words[0], folder, err);
}

static int run_remove(struct list *list, char **words, struct error *err)
{
    if (list->images)
        return image_remove(list->images, words[0], err);
    if (list->binds)
        return bind_remove(list->binds, words[0], err);
    return error_set(err, ERR_NOT_FOUND, 0, "there is no %s '%s'", list->noun, words[0]);
}

static void print_entry(const char *name, const char *folder)
{
    const char *nowhere =
        strcmp(name, IMAGE_HOST) == 0 ? "(built in: this machine's /usr)" : "(imported)";

    (void) printf("%-24s %s\n", name, *folder ? folder : nowhere);
}

static int run_list(struct list *list, char **words, struct error *err)
{
    AUTO(free) struct folder_entry *entries = NULL;
    size_t count = 0;
    int r = 0;

    (void) words;
    if (list->images)
        r = image_list(list->images, &entries, &count, err);
    else if (list->binds)
        r = bind_list(list->binds, &entries, &count, err);
    else if (is_image(list))
        print_entry(IMAGE_HOST, "");
    for (size_t i = 0; r == 0 && i < count; i++)
        print_entry(entries[i].name, entries[i].folder);
    if (r == 0 && is_image(list))
        image_preparing_print(list->data);
    return r;
}

static int run_import(struct list *list, char **words, struct error *err)
{
    return verb_image_import(list->images, list->run, words, err);
}

static int run_pull(struct list *list, char **words, struct error *err)
{
    return verb_image_pull(list->images, list->run, &list->pull, words, err);
}

static int run_inspect(struct list *list, char **words, struct error *err)
{
    return verb_image_inspect(list->images, words, err);
}

static int run_prune(struct list *list, char **words, struct error *err)
{
    (void) words;
    return verb_image_prune(list->images, list->run, err);
}

static int run_show(struct list *list, char **words, struct error *err)
{
    return verb_image_show(list->images, words, err);
}

static int run_identify(struct list *list, char **words, struct error *err)
{
    return verb_image_identify(list->images, words, err);
}

static int run_set(struct list *list, char **words, struct error *err)
{
    return verb_image_set(list->images, words, err);
}

static int run_layer(struct list *list, char **words, struct error *err)
{
    (void) words;
    return verb_image_layer(list->images, list->run, err);
}

static int run_debian(struct list *list, char **words, struct error *err)
{
    return verb_image_debian(list->images, list->run, words, err);
}

enum {
    MAKES = 1 << 0,       /* the registry, if it is not there */
    ONLY_IMAGES = 1 << 1, /* not for binds */
    HOLDS = 1 << 2,       /* the layers: prune has to wait */
};

/* The last five are for `burrow image build`. */
static const struct {
    const char *name;
    int words;
    unsigned int flags;
    int (*run)(struct list *list, char **words, struct error *err);
} actions[] = {
    {"add", 2, MAKES, run_add},
    {"rm", 1, 0, run_remove},
    {"ls", 0, 0, run_list},
    {"import", 2, MAKES | ONLY_IMAGES | HOLDS, run_import},
    {"inspect", 1, ONLY_IMAGES, run_inspect},
    {"prune", 0, ONLY_IMAGES, run_prune},
    {"pull", 1, MAKES | ONLY_IMAGES | HOLDS, run_pull},
    {"pull", 2, MAKES | ONLY_IMAGES | HOLDS, run_pull},
    {"show", 1, MAKES | ONLY_IMAGES, run_show},
    {"set", 1, MAKES | ONLY_IMAGES | HOLDS, run_set},
    {"layer", 0, MAKES | ONLY_IMAGES | HOLDS, run_layer},
    {"debian", 4, MAKES | ONLY_IMAGES | HOLDS, run_debian},
    {"identify", 1, MAKES | ONLY_IMAGES, run_identify},
};

/* With all that it needs open. */
static int run_open(struct list *list, size_t action, char **words, struct error *err)
{
    AUTO(close) int held = -EBADF;
    unsigned int flags = actions[action].flags;

    if (open_list(list, flags & MAKES, err) < 0)
        return -1;
    if (flags & HOLDS) {
        held = image_layers_hold(list->images, err);
        if (held < 0)
            return -1;
    }
    return actions[action].run(list, words, err);
}

static int run_action(struct list *list, int count, char **words)
{
    struct error err = ERROR_INIT;

    for (size_t i = 0; count > 0 && i < ARRAY_COUNT(actions); i++) {
        if (strcmp(actions[i].name, words[0]) != 0 || actions[i].words != count - 1 ||
            ((actions[i].flags & ONLY_IMAGES) && !is_image(list)) ||
            (list->pull.is_given && actions[i].run != run_pull))
            continue;
        if (!root_verb_is_allowed(list->noun))
            return ROOT_VERB_REFUSED;
        if (run_open(list, i, words + 1, &err) == 0)
            return 0;
        utf8_make_harmless(err.message); /* it may have words of an image */
        (void) fprintf(stderr, "burrow %s: %s\n", list->noun, err.message);
        return ROOT_VERB_FAILED;
    }
    print_usage(list, stderr);
    return ROOT_VERB_REFUSED;
}

static int run_verb(const char *noun, int argc, char **argv)
{
    AUTO(list)
    struct list list = {.noun = noun, .data = SITE_DATA_DEFAULT, .run = SITE_RUN_DEFAULT};
    int option;

    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
        switch (option) {
        case 'd':
            list.data = optarg;
            break;
        case 'r':
            list.run = optarg;
            break;
        default:
            if (verb_image_pull_option(&list.pull, option, optarg))
                break;
            print_usage(&list, option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : ROOT_VERB_REFUSED;
        }
    }
    if (*list.data != '/') {
        (void) fprintf(stderr, "burrow %s: give the data folder from / on\n", noun);
        return ROOT_VERB_REFUSED;
    }
    return run_action(&list, argc - optind, argv + optind);
}

int verb_image(int argc, char **argv)
{
    return run_verb("image", argc, argv);
}

int verb_bind(int argc, char **argv)
{
    return run_verb("bind", argc, argv);
}
