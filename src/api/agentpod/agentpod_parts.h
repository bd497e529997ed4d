/* OpenCode's parts, read for what clients of this dialect are told of them. Pure; what is no such JSON
 * has nothing in it. */
#pragma once

/* The text of the first part that is text; "" when there is none. Owned by the caller, never NULL. */
char *agentpod_parts_first_text(const char *parts);

/* A text member of an object: "id" of a message's info. Owned; "" when it is not there. */
char *agentpod_parts_member(const char *object, const char *key);
