#include "keeper/tree/first_copies.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "sys/file/sys_tree.h"

int first_copies_open(struct first_copies *firsts)
{
    int result;

    if (firsts->folder >= 0)
        return 0;
    result = sys_file_temporary_name(firsts->name);
    if (result < 0)
        return result;
    if (mkdirat(firsts->top, firsts->name, 0700) < 0)
        return -errno;
    firsts->folder =
        sys_file_open(firsts->top, firsts->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return firsts->folder < 0 ? firsts->folder : 0;
}

bool first_copies_is_folder(const struct first_copies *firsts, const char *name)
{
    return firsts->folder >= 0 && strcmp(name, firsts->name) == 0;
}

int first_copies_close(struct first_copies *firsts)
{
    if (firsts->folder < 0)
        return 0;
    firsts->folder = fd_close(firsts->folder);
    return sys_tree_delete(firsts->top, firsts->name);
}
