/* libcurl's multi interface driven by the loop: the sockets and the timer behind net/outbound.
 *
 * curl says which sockets to watch and when to wake it; this turns that into uv_poll and uv_timer
 * handles, and tells about finished transfers. on_finished is never called from inside a call of
 * libcurl, so it may add and remove transfers: what is added then begins in a later turn, so that
 * transfers that end as they begin, one after the other, do not keep the loop. All on its thread. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "net/loop.h"

struct curl_loop {
    struct loop *loop; /* borrowed: outlives us */
    CURLM *multi;      /* owned */
    uv_timer_t timer;
    struct loop_task soon; /* curl is to be called at once, but not from inside its own callback */
    unsigned int handles;  /* uv handles not yet closed: our memory is theirs until then */
    bool closing;
    void (*on_finished)(struct curl_loop *curl, CURL *easy, CURLcode result);
    void (*on_closed)(struct curl_loop *curl);
};

/* `connections` bounds what is open at the same time, `on_finished` is told about every transfer
 * that ended and must remove it from the multi. */
void curl_loop_init(struct curl_loop *curl, struct loop *loop, unsigned int connections,
                    void (*on_finished)(struct curl_loop *curl, CURL *easy, CURLcode result));

/* Close all connections; every transfer must have been removed. The memory may be reused in
 * `on_closed`, which is never called from inside this call. */
void curl_loop_close(struct curl_loop *curl, void (*on_closed)(struct curl_loop *curl));
