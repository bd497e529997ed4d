/* What went wrong, in the form that clients of each API understand. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "domain/broker.h"

/* A whole body, JSON. `type` is a word such as "egress_denied"; NULL: the code's own. */
void refusal_write(struct text *out, enum broker_format format, const struct error *error,
                   const char *type);

/* The same as one event in the middle of a stream. */
void refusal_write_event(struct text *out, enum broker_format format, const struct error *error,
                         const char *type);
