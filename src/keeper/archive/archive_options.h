/* Inside archive_make: its options, read and checked. */
#pragma once

#include "base/pool.h"
#include "json/json_read.h"
#include "keeper/squash/squash_codec.h"

struct archive_options {
    const char *folder; /* absolute */
    const struct squash_codec_name *codec;
    int64_t level;
    int64_t threads;
    bool gitignore;
    struct json_texts excludes;

    json_t *json; /* owned: what the strings are of */
    struct pool pool;
};

/* Read them from `fd`, to its end. 0, or -1 with ERR_INVALID or ERR_TOO_LARGE; call
 * archive_options_done in any case. */
int archive_options_read(int fd, struct archive_options *ret_options, struct error *err);
void archive_options_done(struct archive_options *options);

AUTO_DEFINE(archive_options, struct archive_options, archive_options_done);
