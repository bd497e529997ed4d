/* Sandboxes in which an image is built: one at a time, each for one step, asked and waited for.
 *
 *     workshop_open(&workshop, &options, &err);             a launcher of our own
 *     workshop_begin(&workshop, "step-...", &err);          a sandbox of that image
 *     workshop_run / workshop_send                          something happens in it
 *     workshop_pack(&workshop, file, &layer, &err);         it ends, and its disk is a layer
 *     workshop_close(&workshop);
 *
 * What runs in a step is a stranger's: it has the walls and the limits of any sandbox, its answers
 * are bounded. All functions block and return 0, or -1 with `err`; after a failure the workshop can
 * only be closed. Everything in it is gone with it, and with this program. */
#pragma once

#include <stdbool.h>

#include "cli/run/run_message.h"
#include "net/loop.h"
#include "provider/launcher_process.h"
#include "provider/provider.h"

#define WORKSHOP_FREE_MIN ((uint64_t) 2 << 30)

enum workshop_network { WORKSHOP_NAT_IF_ANY, WORKSHOP_NAT, WORKSHOP_NONE };

struct workshop_options {
    const char *data, *run, *cgroup, *network_name; /* of the launcher; NULL: its defaults */
    enum workshop_network network;
    struct limits limits;
};

struct workshop {
    struct loop loop;
    struct launcher_process launcher;
    struct provider *provider; /* NULL: none */
    enum network_mode network;
    struct limits limits;
    struct id id; /* of the sandbox; "": none */
    bool is_open, is_done, is_lost, is_closing;
    bool has_failed;
    struct error failure;
    struct run_outcome outcome;
    struct deadline watch; /* looks at the disk that is packed to */
    int packed;            /* borrowed, meanwhile */
};

/* What a layer has. */
struct workshop_layer {
    uint64_t bytes;   /* before it is compressed */
    uint64_t entries; /* besides the top; 0: nothing was changed */
};

/* Start the launcher. The workshop stays where it is. */
int workshop_open(struct workshop *workshop, const struct workshop_options *options,
                  struct error *err);

/* Accepts a zeroed one. */
void workshop_close(struct workshop *workshop);

int workshop_begin(struct workshop *workshop, const char *image, struct error *err);

/* Run a command to its end, its output on ours. 0 whatever its end was: see `ret_outcome`. */
int workshop_run(struct workshop *workshop, const struct run_message_request *request,
                 struct run_outcome *ret_outcome, struct error *err);

/* Unpack the tar archive `file`, from its beginning, in a folder of the sandbox, which is made when
 * it is missing. ERR_CONFLICT: a folder is where a file should be. */
int workshop_send(struct workshop *workshop, const char *folder, int file, struct error *err);

/* A small file of the sandbox; "" when it is not there. */
int workshop_read(struct workshop *workshop, const char *path, struct text *out, struct error *err);

/* Whether a folder of the sandbox has that path, links followed. */
int workshop_is_folder(struct workshop *workshop, const char *path, bool *ret_is_folder,
                       struct error *err);

/* End the sandbox; what it changed is written to `file` as a layer. ERR_NO_SPACE when less than
 * WORKSHOP_FREE_MIN would stay free where the file is. */
int workshop_pack(struct workshop *workshop, int file, struct workshop_layer *ret_layer,
                  struct error *err);
