/* Reading files: as one JSON object, as events, or as raw bytes (operations of file_service.h). */
#pragma once

#include "agent/call.h"

/* The most that goes into one JSON object. */
#define FILE_READ_MAX ((uint64_t) 32 * 1024 * 1024)

/* Bytes of a file in one event; a multiple of three, so that events join to one base64 text. */
#define FILE_READ_SLICE ((size_t) 65535)

void file_read(struct call *call);
void file_read_stream(struct call *call);
