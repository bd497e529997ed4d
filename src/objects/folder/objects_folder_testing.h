/* For tests of the folder store: the contract's bench on a folder. Included by test programs only.
 */
#pragma once

#include <dirent.h>
#include <ftw.h>
#include <signal.h>

#include "objects/folder/objects_folder.h"
#include "objects/objects_testing.h"

static inline char *root_of(const struct contract *contract)
{
    return testing_path(&contract->folder, "root");
}

static inline struct objects *open_folder(struct contract *contract)
{
    AUTO(free) char *root = root_of(contract);
    struct error err = ERROR_INIT;
    struct objects *objects = objects_folder_new(&contract->loop, root, 0, &err);

    if (!objects)
        print_error("%s\n", err.message);
    return objects;
}

static inline int remove_path(const char *path, const struct stat *status, int type,
                              struct FTW *place)
{
    (void) status;
    (void) type;
    (void) place;
    return remove(path);
}

static inline void remove_folder(struct contract *contract)
{
    AUTO(free) char *root = root_of(contract);

    (void) nftw(root, remove_path, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int setup(void **state)
{
    static const struct contract_backend folder = {
        .open = open_folder,
        .end = remove_folder,
        .refuses_nested = true,
        .sums_streams = true,
        .tags_are_new = true,
    };

    (void) signal(SIGPIPE, SIG_IGN);
    *state = contract_new(&folder);
    return 0;
}

static inline int teardown(void **state)
{
    contract_free(*state);
    return 0;
}

/* How many names there are in a folder of the root. */
static inline size_t count_names(const struct contract *contract, const char *name)
{
    AUTO(free) char *root = root_of(contract);
    AUTO(text) struct text path = TEXT_INIT(4096);
    size_t count = 0;
    DIR *entries;

    text_format(&path, "%s/%s", root, name);
    entries = opendir(text_string(&path));
    assert_non_null(entries);
    while (readdir(entries))
        count++;
    (void) closedir(entries);
    return count - 2;
}
