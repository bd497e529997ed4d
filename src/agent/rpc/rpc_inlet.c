#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "base/memory.h"

enum piece_kind { PIECE_BYTES, PIECE_CLOSE, PIECE_ABORT };

/* One message to the pipe. Its answer is what tells the peer to send more. */
struct rpc_inlet_piece {
    struct rpc_answer answer;
    struct list link; /* in inlet->pieces until it is answered */
    enum piece_kind kind;
    char *bytes; /* owned, or NULL */
    size_t length;
};

static struct rpc_inlet_piece *first_piece(const struct rpc_inlet *inlet)
{
    struct list *link = list_first(&inlet->pieces);

    return link ? CONTAINER_OF(link, struct rpc_inlet_piece, link) : NULL;
}

static void piece_dropped(struct rpc_answer *answer)
{
    struct rpc_inlet_piece *piece = CONTAINER_OF(answer, struct rpc_inlet_piece, answer);

    list_remove(&piece->link);
    free(piece->bytes);
    free(piece);
}

/* Its bytes are not needed any more; the answer may still wait for the port. */
static void forget_bytes(struct rpc_inlet_piece *piece)
{
    piece->answer.session->input -= piece->length;
    piece->length = 0;
    free(piece->bytes);
    piece->bytes = NULL;
}

static void accept_piece(struct rpc_inlet_piece *piece)
{
    list_remove(&piece->link);
    forget_bytes(piece);
    rpc_answer_give_undefined(&piece->answer);
}

static void reject_piece(struct rpc_inlet_piece *piece)
{
    list_remove(&piece->link);
    forget_bytes(piece);
    rpc_answer_fail_text(&piece->answer, API_OPERATION_INTERRUPTED, "Nobody reads this stream");
}

void rpc_inlet_new(struct rpc_session *session, int64_t id)
{
    struct rpc_inlet *inlet = mem_alloc(sizeof(*inlet));
    const struct rpc_slot slot = {.id = id, .kind = RPC_EXPORT_INLET, .object = inlet};

    inlet->session = session;
    inlet->id = id;
    inlet->references = 1;
    list_init(&inlet->pieces);
    list_append(&session->inlets, &inlet->link);
    rpc_table_add(&session->exports, &slot);
}

/* --- pieces come ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum piece_kind kind;
} methods[] = {{"write", PIECE_BYTES}, {"close", PIECE_CLOSE}, {"abort", PIECE_ABORT}};

static int read_piece(struct rpc_inlet_piece *piece, const struct rpc_pipeline *pipeline,
                      struct error *err)
{
    const char *name = json_string_value(json_array_get(pipeline->path, 0));

    if (!name || json_array_size(pipeline->path) != 1 || !pipeline->arguments)
        return error_set(err, ERR_INVALID, 0, "a pipe has write, close and abort");
    for (size_t i = 0; i < ARRAY_COUNT(methods); i++) {
        if (strcmp(methods[i].name, name) != 0)
            continue;
        piece->kind = methods[i].kind;
        if (piece->kind != PIECE_BYTES)
            return 0;
        return rpc_expression_bytes(json_array_get(pipeline->arguments, 0), &piece->bytes,
                                    &piece->length, err);
    }
    return error_set(err, ERR_INVALID, 0, "a pipe has write, close and abort");
}

void rpc_inlet_take(struct rpc_inlet *inlet, int64_t id, const struct rpc_pipeline *pipeline)
{
    struct rpc_inlet_piece *piece = mem_alloc(sizeof(*piece));
    struct error err = ERROR_INIT;

    rpc_answer_init(&piece->answer, inlet->session, id, true, piece_dropped);
    list_init(&piece->link);
    if (read_piece(piece, pipeline, &err) < 0) {
        piece->length = 0;
        rpc_answer_fail_text(&piece->answer, API_VALIDATION_FAILED, "%s", err.message);
        return;
    }
    inlet->session->input += piece->length;
    if (inlet->refused || inlet->ended) {
        if (piece->kind == PIECE_BYTES)
            reject_piece(piece);
        else
            accept_piece(piece);
        return;
    }
    list_append(&inlet->pieces, &piece->link);
    rpc_inlet_deliver(inlet);
}

/* --- and go ---------------------------------------------------------------------------------- */

static void rpc_inlet_tell_end(struct rpc_inlet *inlet, bool complete)
{
    struct rpc_call *reader = inlet->reader;

    inlet->ended = true;
    inlet->wanted = false;
    if (reader && reader->running && reader->call.on_input_end)
        reader->call.on_input_end(&reader->call, complete);
}

/* The reader may pause the input at any of these, or answer its call and leave: the piece is not in
 * the list meanwhile. A paused reader keeps the peer waiting for the answer to what it was given.
 */
static void deliver_bytes(struct rpc_inlet *inlet, struct rpc_inlet_piece *piece)
{
    struct rpc_call *reader = inlet->reader;

    if (piece->length)
        reader->call.on_input(&reader->call, piece->bytes, piece->length);
    forget_bytes(piece);
    if (inlet->wanted || inlet->refused)
        accept_piece(piece);
    else
        list_append(inlet->pieces.next, &piece->link); /* at the front */
}

/* Handed over, but not answered. */
static bool is_delivered(const struct rpc_inlet_piece *piece)
{
    return piece->kind == PIECE_BYTES && !piece->bytes;
}

static void deliver_first(struct rpc_inlet *inlet, struct rpc_inlet_piece *piece)
{
    list_remove(&piece->link);
    if (is_delivered(piece)) {
        accept_piece(piece);
    } else if (piece->kind == PIECE_BYTES) {
        deliver_bytes(inlet, piece);
    } else {
        rpc_inlet_tell_end(inlet, piece->kind == PIECE_CLOSE);
        accept_piece(piece);
    }
}

void rpc_inlet_deliver(struct rpc_inlet *inlet)
{
    struct rpc_inlet_piece *piece;

    while (inlet->reader && inlet->wanted && (piece = first_piece(inlet)))
        deliver_first(inlet, piece);
    if (inlet->reader && inlet->wanted && !inlet->id)
        rpc_inlet_tell_end(inlet, false); /* the peer let go of a pipe that it did not close */
}

int rpc_inlet_attach(struct rpc_inlet *inlet, struct rpc_call *reader)
{
    if (inlet->taken || inlet->refused)
        return -1;
    inlet->taken = true;
    inlet->reader = reader;
    return 0;
}

void rpc_inlet_refuse(struct rpc_inlet *inlet)
{
    struct rpc_inlet_piece *piece;

    inlet->refused = true;
    inlet->wanted = false;
    inlet->reader = NULL;
    while ((piece = first_piece(inlet))) {
        if (piece->kind == PIECE_BYTES && !is_delivered(piece))
            reject_piece(piece);
        else
            accept_piece(piece);
    }
}

void rpc_inlet_want(struct rpc_inlet *inlet, bool wanted)
{
    inlet->wanted = wanted && !inlet->ended;
    if (wanted)
        rpc_wake(inlet->session);
}

/* The peer cannot write to it any more, but what it wrote counts. */
int rpc_inlet_release(struct rpc_inlet *inlet, int64_t count)
{
    if (count > inlet->references)
        return -1;
    inlet->references -= count;
    if (inlet->references)
        return 0;
    rpc_table_remove(&inlet->session->exports, inlet->id);
    inlet->id = 0;
    rpc_wake(inlet->session);
    return 0;
}

bool rpc_inlet_reap(struct rpc_inlet *inlet)
{
    if (inlet->id || inlet->reader)
        return false;
    rpc_inlet_refuse(inlet);
    rpc_inlet_free(inlet);
    return true;
}

void rpc_inlet_free(struct rpc_inlet *inlet)
{
    struct rpc_inlet_piece *piece;

    if (inlet->id)
        rpc_table_remove(&inlet->session->exports, inlet->id);
    while ((piece = first_piece(inlet))) {
        list_remove(&piece->link);
        forget_bytes(piece);
        rpc_answer_drop(&piece->answer);
    }
    list_remove(&inlet->link);
    free(inlet);
}
