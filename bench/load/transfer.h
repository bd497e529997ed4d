/* Large bodies, up or down, on a few keep-alive connections, each busy all the time. */
#pragma once

#include "load/options.h"

/* Repeat for `milliseconds`: GET the path and drop the body, or PUT `bytes` bytes to it. Transfers
 * under way at the end are finished, so that the server's work and the count agree. Prints
 * {"transfers":N,"bytes":N,"seconds":S}. Ends the program on any answer but a 2xx. Block. */
void transfer_download(const struct load_options *options);
void transfer_upload(const struct load_options *options);
