/* The command that an image names (its Entrypoint and Cmd), as the launcher says it in
 * $BURROW_COMMAND: a word in each line, "\n" and "\\" for what would look like more.
 *
 * It is not started by itself: agents bring commands of their own. Who wants it starts a process
 * with IMAGE_COMMAND_NAME as its command, as a startup command of a sandbox may be. Pure. */
#pragma once

#define IMAGE_COMMAND_NAME "@entrypoint"

/* The words, NULL at their end; the caller frees them in one: free. NULL for a text that is NULL or
 * empty, or that the launcher does not write. */
const char **image_command_read(const char *text);
