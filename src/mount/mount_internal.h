/* Inside mount: what its files share.
 *
 *     mount_session.c     the descriptor, dispatch, the end
 *     mount_host.c        what all sessions share
 *     mount_request.c     a request's life: its answer, waiting, asking the store
 *     mount_lookup.c      lookup, getattr: what is there
 *     mount_attributes.c  setattr, statfs
 *     mount_open.c        open, create, release, flush, fsync
 *     mount_read.c        read: blocks, read-ahead, spools; readlink
 *     mount_write.c       write, and the spool's way from and to the store
 *     mount_folder.c      opendir, readdir, mkdir, rmdir
 *     mount_remove.c      unlink, symlink, mknod
 *     mount_rename.c      rename of files and folders
 *
 * A request is answered once; its steps go on to their end also when it was answered before that,
 * because its process was killed. */
#pragma once

#include "mount/mount_cache.h"
#include "mount/mount_session.h"
#include "mount/mount_spool.h"
#include "mount/mount_tree.h"

#define MOUNT_FOLDER_TYPE "application/x-directory" /* of the object that stands for a folder */

struct mount_host {
    struct loop *loop; /* borrowed */
    struct log *log;
    const struct clock *clock;
    struct mount_cache cache;
    struct mount_spool_room room;
    struct shares *shares; /* borrowed; may be NULL */
    int folder;            /* owned */
    uint64_t floor;
};

/* The next step of a request: `result` 0 or -errno; `answer` of a store's call, else NULL. */
struct mount_request;
typedef void mount_step(struct mount_request *request, int result,
                        const struct mount_answer *answer);

struct mount_handle;

/* What a look found. */
struct mount_found {
    bool is_folder, has_marker;
    bool has_info;
    struct object_info info;  /* without metadata */
    struct mount_marks marks; /* of the object, where it has some */
};

struct mount_request {
    struct list link; /* of session->requests */
    struct mount_session *session;
    char *bytes; /* owned: the message */
    size_t size; /* of it, where it counts as held */
    struct mount_message message;
    struct mount_node *node;     /* held; NULL: none */
    struct mount_handle *handle; /* NULL: none */
    bool is_answered;
    uint64_t interrupted; /* loop_now() when its process was signalled; 0: it was not */
    mount_step *step;     /* what its wait is for */
    struct list waiting;  /* of a node's waiters, or a fetch's */
    uv_fs_t fs;
    char *buffer; /* owned: what an answer is read into */

    /* Of single operations. */
    struct mount_node *other;  /* held: the folder of a node that is removed or renamed */
    struct mount_node *kept;   /* request->node meanwhile, while another one is filled */
    struct mount_node *folder; /* of a look; held by the request's node */
    const char *name;          /* of a look */
    struct mount_found found;
    mount_step *looked, *filled, *saved, *kept_folder, *preserved;
    struct mount_spool *spool;   /* owned: being filled */
    struct mount_rename *rename; /* owned */
    uint64_t block, offset;      /* of a read: what comes next */
    size_t length, done;
};

/* An open file or folder. */
struct mount_handle {
    uint64_t id;
    size_t holders; /* the kernel, and requests */
    struct table_link link;
    struct mount_node *node; /* held */
    bool is_writing;
    uint64_t next_block; /* where a reader that reads in order goes on */
    unsigned int ahead;
    struct mount_listing *listing; /* owned: of a folder */
};

struct mount_session {
    struct mount_host *host;
    struct loop *loop;
    struct log *log;
    char *text; /* owned */
    bool read_only;
    uint32_t uid, gid;
    mode_t file_mode, folder_mode;
    int fuse; /* owned */
    uv_poll_t poll;
    uv_timer_t timer;
    bool is_polling, is_ticking, is_lost, is_over;
    unsigned int handles_open; /* of libuv */
    char *input;               /* owned: MOUNT_MESSAGE_MAX bytes, or NULL */
    struct mount_tree tree;
    struct mount_calls calls;
    struct mount_cache_user cache;
    struct mount_spool_room room;
    struct list requests, fetches, dirty;
    size_t request_count, held;
    struct table handles;
    uint64_t last_handle;
    struct mount_counters counters;
    struct loop_task lost, ended;
    void (*on_lost)(void *context);
    void *context;
    bool is_closing;
    size_t saving;      /* files that the end waits for */
    uint64_t close_due; /* loop_now() */
    size_t lost_files;
    mount_session_closed *on_closed;
    void *closed_context;
};

/* --- mount_request.c ------------------------------------------------------------------------- */

/* Answer, once, and let go of the request; its memory is gone. */
void mount_answer(struct mount_request *request, const void *bytes, size_t length);
/* `error` is -errno, or 0. */
void mount_answer_error(struct mount_request *request, int error);
/* With the attributes of its node, or as a new entry for the kernel, which is counted. */
void mount_answer_attributes(struct mount_request *request, const struct mount_node *node);
void mount_answer_entry(struct mount_request *request, struct mount_node *node);
void mount_fill_entry(struct mount_session *session, struct mount_node *node,
                      struct fuse_entry_out *ret_out);
/* Its process was signalled, or it took too long: answered with this; its steps go on. */
void mount_answer_early(struct mount_request *request, int error);

/* One without the kernel behind it, until it is given a message: nobody hears its answer. */
struct mount_request *mount_request_new(struct mount_session *session);
/* For answers that need no request: 0 or -errno. */
int mount_send(struct mount_session *session, uint64_t unique, int error, const void *bytes,
               size_t length);

/* --- mount_session.c ------------------------------------------------------------------------- */

/* A request is gone: there may be room for others, and the end may have come. */
void mount_session_look(struct mount_session *session);

/* Ask the store; `step` gets the answer. */
void mount_ask(struct mount_request *request, const struct mount_ask *ask, mount_step *step);

/* Run `step` when the node is not busy: now, or later in turn. */
void mount_when_idle(struct mount_request *request, struct mount_node *node, mount_step *step);
/* Not busy any more: who waits goes on. The node is held by the caller. */
void mount_settle(struct mount_session *session, struct mount_node *node);

/* Nanoseconds and seconds of now, into marks. */
void mount_touch(struct mount_session *session, struct mount_marks *marks);

/* --- handles: mount_open.c ------------------------------------------------------------------- */

struct mount_handle *mount_handle_find(const struct mount_session *session, uint64_t id);
/* NULL: there are too many. */
struct mount_handle *mount_handle_new(struct mount_session *session, struct mount_node *node);
/* One holder less; the last one ends it. */
void mount_handle_release(struct mount_session *session, struct mount_handle *handle);

/* --- mount_lookup.c -------------------------------------------------------------------------- */

/* Find out what the store has under this name of a folder: `step` gets 0 and request->found, or
 * -ENOENT or another failure. */
void mount_look(struct mount_request *request, struct mount_node *folder, const char *name,
                mount_step *step);
/* The node for what was found, held. One of another type or version is replaced. */
struct mount_node *mount_take_found(struct mount_request *request, struct mount_node *folder,
                                    const char *name);
/* What the store said of a node's object, now. `marks` NULL: those it has stay. */
void mount_note_object(struct mount_session *session, struct mount_node *node,
                       const struct object_info *info, const struct mount_marks *marks);
/* The marks of a file or folder that says nothing of them itself. */
struct mount_marks mount_default_marks(const struct mount_session *session, bool is_folder,
                                       int64_t modified_ms);
/* The marks of what the kernel wants to be made. */
struct mount_marks mount_new_marks(const struct mount_request *request, mode_t mode);
/* Whether what we know of it need not be asked for again. */
bool mount_is_fresh(const struct mount_session *session, const struct mount_node *node);
/* Know its node anew, unless it is fresh: `step` gets 0 or -errno. */
void mount_refresh(struct mount_request *request, mount_step *step);

/* --- mount_write.c --------------------------------------------------------------------------- */

/* The node's bytes are in a spool, to be changed. Waits while it is busy. */
void mount_fill(struct mount_request *request, mount_step *step);
/* The store has what the node has. Waits while it is busy. */
void mount_save(struct mount_request *request, mount_step *step);
void mount_mark_dirty(struct mount_session *session, struct mount_node *node);
/* What was not saved is forgotten. */
void mount_drop_changes(struct mount_session *session, struct mount_node *node);
/* Whoever has this node open keeps its bytes, although its name is about to go. `step` gets 0. */
void mount_preserve(struct mount_request *request, struct mount_node *node, mount_step *step);
/* Nobody has it open, and the store has what it has: its spool is of no use. */
void mount_drop_spool(struct mount_node *node);
/* The folder itself stays when the last thing in it goes. */
void mount_keep_folder(struct mount_request *request, struct mount_node *folder, mount_step *step);

/* --- mount_folder.c -------------------------------------------------------------------------- */

void mount_listing_free(struct mount_listing *listing);

/* --- the operations -------------------------------------------------------------------------- */

/* request->node is there, and not busy with its own end. Each answers the request, now or later. */
typedef void mount_operation(struct mount_request *request);

mount_operation mount_lookup, mount_getattr, mount_setattr, mount_readlink, mount_symlink,
    mount_mknod, mount_mkdir, mount_unlink, mount_rmdir, mount_rename, mount_open, mount_read,
    mount_write, mount_statfs, mount_release, mount_fsync, mount_flush, mount_opendir,
    mount_readdir, mount_releasedir, mount_create;

/* --- mount_rename.c -------------------------------------------------------------------------- */

void mount_rename_free(struct mount_session *session, struct mount_rename *rename);
