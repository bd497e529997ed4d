/* Which message is permitted when: the states of a conversation between daemon and launcher.
 *
 *     fresh ──welcome──► greeted ──subscribed──► serving
 *                           │                       │
 *                           └──────stopping─────────┴──► draining
 *
 * fresh      nothing but a hello and its answer
 * greeted    the daemon looks at what is there (list, adopt); nothing new is started, because an
 *            exit now would be told to nobody
 * serving    everything
 * draining   the launcher is about to end: what ends or looks at things goes on, the rest is
 * refused
 *
 * All changes come from messages of the launcher, in their order: its own state changes when it
 * sends one, the daemon's when it receives it. So the launcher may be ahead and gets messages that
 * were right when they were sent; for those the table says "refuse" and never "forbid". A message
 * that is forbidden can only come from a daemon that is broken or taken over.
 *
 * Pure, thread-safe. */
#pragma once

#include "wire/wire_message.h"

/* Who is asking. */
enum wire_end { WIRE_LAUNCHER, WIRE_DAEMON };

/* "fresh", "greeted", ... */
const char *wire_state_name(enum wire_state state);

/* What the table says. WIRE_FORBID for numbers that are not in the list. */
enum wire_permission wire_permit(enum wire_state state, unsigned int number);

/* Whether this end may receive this message in this state: right direction and not forbidden. 0, or
 * -1 with ERR_FORBIDDEN and a sentence: close the connection. */
int wire_permit_receive(enum wire_end end, enum wire_state state, enum wire_number number,
                        struct error *err);

/* The state after this message of the launcher. */
enum wire_state wire_permit_after(enum wire_state state, enum wire_number number);
