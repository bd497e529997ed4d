/* Long reads go one at a time for each owner: pages that take a millisecond and more of the loop and of the
 * store. Who asks for many at once waits for himself; others' requests go between them.
 *
 *     void native_list_templates(struct http_request *request)
 *     {
 *         if (!long_read_begin(request, native_list_templates))
 *             return;                    it is called again when it is its turn
 *         ...
 *     }
 *
 * A turn ends with the request, in whatever way. Uses request->ended_data and on_ended, and on_gone while
 * it waits. Of several owners who wait, one read begins in each turn of the loop. */
#pragma once

#include <stdbool.h>

#include "net/http/http_request.h"
#include "net/loop.h"

struct long_reads;

struct long_reads *long_reads_new(struct loop *loop);
/* When all requests are over. Accepts NULL. */
void long_reads_free(struct long_reads *reads);

/* Whether it may go on now. Where nothing takes turns (api.h) it always may. */
bool long_read_begin(struct http_request *request, void (*handler)(struct http_request *request));
