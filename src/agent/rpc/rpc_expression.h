/* Expressions: how capnweb writes values as JSON.
 *
 * Scalars and objects are themselves. An array [1, 2] is wrapped, [[1, 2]], because a bare array is
 * something JSON lacks, named by its first element: ["undefined"], ["date", ms], ["bytes", base64
 * without padding], ["error", name, message, stack, properties], ["export", -1] (something of the
 * sender's that the receiver may call, and owes a release), ["readable", 3] (what comes through a
 * pipe) and more.
 *
 * Nothing here blocks or keeps anything. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/api_error.h"
#include "base/error.h"
#include "base/text.h"

/* Objects and arrays inside each other in a value we take. */
#define RPC_DEPTH_MAX 64

/* --- reading --------------------------------------------------------------------------------- */

/* The plain JSON of an expression: undefined is left out of objects and null in arrays, dates are
 * text as in JSON.stringify, what is no number is null. A new reference, which is NULL when the
 * expression itself is undefined. Returns 0, or -1 with ERR_INVALID for what has no place in an
 * argument: references, bytes, errors, \u0000 in a text, too much nesting, what is no expression.
 */
int rpc_expression_value(json_t *expression, json_t **ret_value, struct error *err);

/* The bytes of a piece of a stream: ["bytes", ...] with or without padding, or a text. Returns 0
 * and bytes the caller frees (never NULL), or -1 with ERR_INVALID. */
int rpc_expression_bytes(json_t *expression, char **ret_bytes, size_t *ret_length,
                         struct error *err);

/* Whether it is ["export", -1] or the like; then its kind and id. */
enum rpc_reference {
    RPC_NO_REFERENCE,
    RPC_STUB,     /* "export", "promise", "writable": the sender wants a release for it */
    RPC_READABLE, /* the end of a pipe that the sender made */
};

enum rpc_reference rpc_expression_reference(json_t *expression, int64_t *ret_id);

/* Call `visit` for each reference inside an expression of any shape. */
void rpc_expression_visit(json_t *expression,
                          void (*visit)(void *context, enum rpc_reference kind, int64_t id),
                          void *context);

/* --- writing --------------------------------------------------------------------------------- */

/* JSON text to an expression, in pieces: brackets outside of strings are doubled. */
struct rpc_wrap {
    bool in_string;
    bool escaped; /* behind a backslash */
};

void rpc_wrap_append(struct rpc_wrap *wrap, struct text *out, const char *json, size_t length);

/* A value as an expression. {"$raw": x} stands for the expression x (operation.h). */
void rpc_expression_write(struct text *out, json_t *value);

void rpc_expression_write_bytes(struct text *out, const void *bytes, size_t length);

/* An error with all that clients may want to know of it. */
void rpc_expression_write_error(struct text *out, const struct api_error *error);
