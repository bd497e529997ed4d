/* Many keep-alive connections that made one request each and then do nothing. */
#pragma once

#include "load/options.h"

/* Opens them, prints {"held":N}, waits until stdin ends, and prints {"lost":N}: how many the
 * server had closed by then. Ends the program when one fails. Blocks. */
void idle_run(const struct load_options *options);
