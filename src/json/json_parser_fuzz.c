/* Our parser and jansson's take the same texts, and make the same of them. A NUL byte, which
 * jansson passes by in one place, ours never takes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_parser.h"
#include "json/json_read.h"

/* Below jansson's own limit for the text's length that is fuzzed. */
#define DEPTH_MAX 2000
#define TEXT_MAX  4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Written out, the order of keys counts, too. */
static void compare(json_t *ours, json_t *theirs)
{
    AUTO(free) char *our_text = json_dumps(ours, JSON_COMPACT);
    AUTO(free) char *their_text = json_dumps(theirs, JSON_COMPACT);

    must(our_text && their_text && strcmp(our_text, their_text) == 0);
    must(json_equal(ours, theirs));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* One bit of the input chooses the rule, and stays in it. */
    bool nul = size && data[size - 1] & 1;
    const struct json_limits limits = {.depth = DEPTH_MAX, .nul = nul};
    size_t flags = JSON_REJECT_DUPLICATES | (nul ? JSON_ALLOW_NUL : 0);
    AUTO(json) json_t *ours = NULL;
    AUTO(json) json_t *theirs = NULL;

    if (size > TEXT_MAX)
        return 0;
    ours = json_parse((const char *) data, size, &limits);
    theirs = json_loadb((const char *) data, size, flags, NULL);
    if (ours)
        compare(ours, theirs);
    else /* jansson loses a NUL that it has looked at behind a number */
        must(!theirs || memchr(data, '\0', size));
    return 0;
}
