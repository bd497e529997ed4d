/* An error as a message, and back: how the failure of a request travels.
 *
 * Codes travel as their stable text, so that a launcher of another release may know more of them;
 * one that this program does not know becomes ERR_INTERNAL with its text in the message. Pure,
 * thread-safe. */
#pragma once

#include "wire/wire_message.h"

/* A `done` that says `failure`; NULL or an error without a code: success. Bytes of the message that
 * are not printable ASCII become '?'. */
void wire_done_set(struct wire_message *ret_message, const struct error *failure);

/* 0 for success, -1 with what the launcher said. */
int wire_done_get(const struct wire_done *done, struct error *err);
