/* Output of commands as it goes into JSON: any bytes in, the inside of a JSON string out.
 *
 * As text, characters that are cut by the end of a piece wait for the next piece, and what is no
 * UTF-8 becomes U+FFFD. As base64, pieces join to one encoding. Either way a flush ends it; then
 * the next piece begins anew. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct output_text {
    bool base64;
    unsigned char carry[4]; /* bytes of an unfinished character or base64 group */
    size_t carried;
};

/* Append the escaped form of these bytes, without quotes, to `json`. */
void output_text_feed(struct output_text *output, struct text *json, const char *bytes,
                      size_t length);

/* Append what was held back. */
void output_text_flush(struct output_text *output, struct text *json);

/* How many bytes at the end begin a UTF-8 character that is not complete: 0 to 3. */
size_t output_text_unfinished(const char *bytes, size_t length);
