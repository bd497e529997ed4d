/* Inside keeper/layer_reader: the stream of a layer out of its file, decompressed and summed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "keeper/layer/layer_format.h"

struct layer_input;

/* The file comes from `fd`, borrowed. The caller frees it. */
struct layer_input *layer_input_new(int fd);

/* Accepts NULL. */
void layer_input_free(struct layer_input *input);

AUTO_DEFINE_PTR(layer_input, struct layer_input, layer_input_free);

/* The next `length` bytes of the stream, all of them. 0, or -1 with `err`: ERR_INVALID when there
 * are not so many or they are no zstd. */
int layer_input_read(struct layer_input *input, void *bytes, size_t length, struct error *err);

/* How many bytes were read, and their SHA-256. */
uint64_t layer_input_position(const struct layer_input *input);
void layer_input_digest(struct layer_input *input, uint8_t ret_digest[static SHA256_SIZE]);

/* The stream must end here, and the seal behind it be right. 0 and `size` and `sha256` of the sums,
 * or -1 with ERR_INVALID. */
int layer_input_finish(struct layer_input *input, struct layer_sums *sums, struct error *err);

/* After that: 1 when another layer follows, which is read from now on; 0 at the end of the file; or
 * -1. */
int layer_input_again(struct layer_input *input, struct error *err);
