/* The page at `/`: a client of the API like any other, so that nothing here asks who somebody is. It
 * is told what it may load: its own files, previews in frames, and nothing else from anywhere. */
#pragma once

#include "api/preview/preview.h"
#include "net/http/http_route.h"

/* Served at / and /page/. `preview` (borrowed, may be NULL) says where previews are. */
struct http_mount page_mount(const struct preview *preview);
