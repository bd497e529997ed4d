/* Failures in words for people who have no business knowing where the store is. */
#include <stdio.h>
#include <string.h>

#include "objects/objects_internal.h"

#define TEXT_MIN_SHOWN 120 /* backends cut longer ones somewhere behind that */

static const char *sentence_of(enum err_code code)
{
    static const struct {
        enum err_code code;
        const char *text;
    } sentences[] = {
        {ERR_NOT_FOUND, "the object store does not have it"},
        {ERR_CONFLICT, "somebody else changed it in the object store"},
        {ERR_NO_SPACE, "the object store is full"},
        {ERR_TOO_LARGE, "it is too large for the object store"},
        {ERR_FORBIDDEN, "the object store refuses the daemon"},
        {ERR_UPSTREAM, "what the object store gave is damaged, or makes no sense"},
        {ERR_UPSTREAM_TIMEOUT, "the object store does not answer in time"},
        {ERR_UNAVAILABLE, "the object store is not available"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(sentences); i++)
        if (sentences[i].code == code)
            return sentences[i].text;
    return "the object store failed";
}

/* How much of what stands before the place is worth keeping: "put the archive: ", "write 'key' in
 * ".
 */
static size_t step_length(const char *message, const char *place)
{
    static const char *const joints[] = {" in ", ": "};
    size_t length = (size_t) (place - message);

    for (size_t i = 0; i < ARRAY_COUNT(joints); i++) {
        size_t joint = strlen(joints[i]);

        if (length >= joint && memcmp(message + length - joint, joints[i], joint) == 0)
            return length - joint;
    }
    return length;
}

bool objects_make_plain(const struct objects *objects, struct error *err)
{
    struct error said = *err;
    char text[TEXT_MIN_SHOWN + 1];
    const char *place;
    size_t step;

    (void) snprintf(text, sizeof(text), "%s", objects_text(objects));
    place = *text ? strstr(said.message, text) : NULL;
    if (!place)
        return false;
    step = step_length(said.message, place);
    error_fill(err, said.code, 0, "%.*s%s%s; the daemon's log says more", (int) step, said.message,
               step ? ": " : "", sentence_of(said.code));
    err->system = said.system;
    return true;
}
