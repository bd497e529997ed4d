#include "agent/process/process_log.h"

#include "base/memory.h"
#include "base/text.h"

struct process_log_piece {
    struct list link;
    enum exec_output which;
    struct text bytes;
};

static struct process_log_piece *piece_at(struct list *link)
{
    return CONTAINER_OF(link, struct process_log_piece, link);
}

static struct process_log_cursor *cursor_at(struct list *link)
{
    return CONTAINER_OF(link, struct process_log_cursor, link);
}

/* The one behind it, or NULL. */
static struct process_log_piece *piece_after(const struct process_log *log,
                                             const struct process_log_piece *piece)
{
    return piece->link.next == &log->pieces ? NULL : piece_at(piece->link.next);
}

static size_t piece_cost(const struct process_log_piece *piece)
{
    return sizeof(*piece) + piece->bytes.capacity;
}

static void account(struct process_log *log, size_t more, size_t less)
{
    log->used += more - less;
    log->store->used += more - less;
}

/* --- dropping -------------------------------------------------------------------------------- */

static void skip_dropped(struct process_log_cursor *cursor, const struct process_log_piece *piece)
{
    size_t unread = piece->bytes.length - cursor->offset;

    if (cursor->piece != piece)
        return;
    cursor->dropped[piece->which] += unread;
    cursor->position += unread;
    cursor->piece = piece_after(cursor->log, piece);
    cursor->offset = 0;
}

static void drop_oldest(struct process_log *log)
{
    struct process_log_piece *piece = piece_at(list_first(&log->pieces));

    log->dropped[piece->which] += piece->bytes.length;
    LIST_EACH (&log->cursors, at)
        skip_dropped(cursor_at(at), piece);
    account(log, 0, piece_cost(piece));
    list_remove(&piece->link);
    text_done(&piece->bytes);
    free(piece);
}

static struct process_log *largest(const struct process_log_store *store)
{
    struct process_log *found = NULL;

    for (struct list *at = store->logs.next; at != &store->logs; at = at->next) {
        struct process_log *log = CONTAINER_OF(at, struct process_log, link);

        if (!found || log->used > found->used)
            found = log;
    }
    return found;
}

static void keep_within_limits(struct process_log *log)
{
    while (log->used > log->store->log_max)
        drop_oldest(log);
    while (log->store->used > log->store->total_max)
        drop_oldest(largest(log->store));
}

/* --- writing --------------------------------------------------------------------------------- */

static struct process_log_piece *add_piece(struct process_log *log, enum exec_output which)
{
    struct process_log_piece *piece = mem_alloc(sizeof(*piece));

    piece->which = which;
    piece->bytes.maximum = PROCESS_LOG_PIECE;
    list_append(&log->pieces, &piece->link);
    LIST_EACH (&log->cursors, at) {
        if (!cursor_at(at)->piece)
            cursor_at(at)->piece = piece;
    }
    account(log, piece_cost(piece), 0);
    return piece;
}

/* The last piece when more of this output fits into it, else a new one. */
static struct process_log_piece *piece_for(struct process_log *log, enum exec_output which)
{
    struct process_log_piece *last;

    if (list_is_empty(&log->pieces))
        return add_piece(log, which);
    last = piece_at(log->pieces.previous);
    return last->which == which && last->bytes.length < PROCESS_LOG_PIECE ? last
                                                                          : add_piece(log, which);
}

void process_log_append(struct process_log *log, enum exec_output which, const char *bytes,
                        size_t length)
{
    while (length) {
        struct process_log_piece *piece = piece_for(log, which);
        size_t room = PROCESS_LOG_PIECE - piece->bytes.length;
        size_t step = length < room ? length : room;
        size_t before = piece_cost(piece);

        text_append_bytes(&piece->bytes, bytes, step);
        account(log, piece_cost(piece), before);
        log->total += step;
        bytes += step;
        length -= step;
        keep_within_limits(log);
    }
}

/* --- reading --------------------------------------------------------------------------------- */

void process_log_open(struct process_log_cursor *cursor, struct process_log *log)
{
    *cursor = (struct process_log_cursor){.log = log};
    if (!list_is_empty(&log->pieces))
        cursor->piece = piece_at(list_first(&log->pieces));
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        cursor->dropped[i] = log->dropped[i];
        cursor->position += log->dropped[i];
    }
    list_append(&log->cursors, &cursor->link);
}

void process_log_close(struct process_log_cursor *cursor)
{
    list_remove(&cursor->link);
}

bool process_log_next(struct process_log_cursor *cursor, enum exec_output *ret_which,
                      const char **ret_bytes, size_t *ret_length)
{
    struct process_log_piece *piece = cursor->piece;

    if (piece && cursor->offset == piece->bytes.length && piece_after(cursor->log, piece)) {
        cursor->piece = piece = piece_after(cursor->log, piece);
        cursor->offset = 0;
    }
    if (!piece || cursor->offset == piece->bytes.length)
        return false;
    *ret_which = piece->which;
    *ret_bytes = piece->bytes.data + cursor->offset;
    *ret_length = piece->bytes.length - cursor->offset;
    cursor->position += *ret_length;
    cursor->offset = piece->bytes.length;
    return true;
}

uint64_t process_log_take_dropped(struct process_log_cursor *cursor, enum exec_output which)
{
    uint64_t dropped = cursor->dropped[which];

    cursor->dropped[which] = 0;
    return dropped;
}

/* --- life ------------------------------------------------------------------------------------ */

void process_log_store_init(struct process_log_store *store)
{
    *store =
        (struct process_log_store){.log_max = PROCESS_LOG_MAX, .total_max = PROCESS_LOG_TOTAL_MAX};
    list_init(&store->logs);
}

void process_log_init(struct process_log *log, struct process_log_store *store)
{
    *log = (struct process_log){.store = store};
    list_init(&log->pieces);
    list_init(&log->cursors);
    list_append(&store->logs, &log->link);
}

void process_log_done(struct process_log *log)
{
    while (!list_is_empty(&log->pieces))
        drop_oldest(log);
    list_remove(&log->link);
}
