/* Feeds its corpus to one fuzzer, without libFuzzer, so that a build with any compiler keeps what
 * fuzzing once found.
 *
 *     NAME_replay                 tests/fuzz/corpus/NAME, from the root of the tree
 *     NAME_replay FILE|FOLDER...  these
 *
 * Speaks TAP: one test. Each input is named before it is run, so that a crash says which it was. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Negative when it cannot be read, otherwise 1. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    AUTO(free) uint8_t *data = NULL;
    struct stat facts;
    size_t size = 0;

    printf("# input: %s\n", path);
    if (!file)
        return -errno;
    /* Exactly as much memory as the input needs: reading one byte too far is seen. */
    if (fstat(fileno(file), &facts) == 0 && (data = malloc((size_t) facts.st_size)))
        size = fread(data, 1, (size_t) facts.st_size, file);
    fclose(file);
    if (!data || size != (size_t) facts.st_size)
        return -EIO;
    LLVMFuzzerTestOneInput(data, size);
    return 1;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay(const char *path);

/* How many inputs there were, or -errno: an empty folder is a corpus that was lost. */
static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort), sum = count ? 0 : -ENODATA;

    if (count < 0)
        return -errno;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        int inputs;

        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        inputs = sum < 0 ? 0 : replay(path);
        sum = inputs < 0 ? inputs : sum + inputs;
        free(entries[i]);
    }
    free(entries);
    return sum;
}

static int replay(const char *path)
{
    struct stat facts;

    if (stat(path, &facts) < 0)
        return -errno;
    return S_ISDIR(facts.st_mode) ? replay_folder(path) : replay_file(path);
}

/* How many inputs there were in all of them, or -errno. */
static int replay_all(char *const *paths)
{
    int sum = 0;

    for (; *paths && sum >= 0; paths++) {
        int inputs = replay(*paths);

        sum = inputs < 0 ? inputs : sum + inputs;
    }
    return sum;
}

int main(int argc, char **argv)
{
    const char *name = program_invocation_short_name;
    char corpus[PATH_MAX];
    int inputs;

    /* What was said must be out when the next input crashes. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("1..1");
    snprintf(corpus, sizeof(corpus), "tests/fuzz/corpus/%.*s",
             (int) (strlen(name) - strlen("_replay")), name);
    inputs = replay_all(argc > 1 ? argv + 1 : (char *[]){corpus, NULL});
    if (inputs < 0)
        printf("not ok 1 - replays its inputs\n# ERROR: %s\n", strerror(-inputs));
    else
        printf("ok 1 - replays %d inputs\n", inputs);
    return inputs < 0;
}
