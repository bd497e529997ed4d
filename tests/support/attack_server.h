/* Who answers where attacks on the network aim: in the lab's internet, on its host, in a sandbox.
 *
 *     TCP 80    says the address of who asks, and keeps the connection until the other side ends it
 *     UDP 53    the question is the answer, from the address that was asked
 *     UDP 99    remembers what it was told last, whoever said it
 *     UDP 98    says what that was
 */
#pragma once

#define ATTACK_PORT_TELL     80
#define ATTACK_PORT_ECHO     53
#define ATTACK_PORT_REMEMBER 99
#define ATTACK_PORT_RECALL   98

/* Serve all addresses of the network namespace we are in, for ever; returns -errno when it cannot
 * start. Writes a byte to `ready` when it listens. */
int attack_server_run(int ready);
