/* What a job tells: lines of JSON on a descriptor, gathered so that few writes are needed.
 *
 * Writing blocks while the reader is slow; that is how a reader holds a job back. The first failure
 * stays: check it with output_flush. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "json/json_write.h"

#define OUTPUT_BUFFER_SIZE 65536

struct output {
    int fd;    /* borrowed */
    int error; /* 0, or the first -errno */
    size_t used;
    char buffer[OUTPUT_BUFFER_SIZE];
};

void output_init(struct output *output, int fd);

/* Begin and end a line that is one JSON object. */
void output_begin(struct output *output, struct json_writer *json);
void output_end(struct output *output, struct json_writer *json);

/* A count as a member; what JSON readers cannot hold (2^63 and more) becomes the largest they can.
 */
void output_add_count(struct json_writer *json, const char *key, uint64_t count);

/* Write what is gathered. 0, or the first failure: -EPIPE when the reader is gone. */
int output_flush(struct output *output);

/* Let the whole process end with status 1, wherever it is, soon after the reader of standard output
 * (a pipe or socket) is gone: that is how a job is cancelled. Uses SIGALRM. -errno. */
int output_end_with_reader(void);
