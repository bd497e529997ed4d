/* Listing folders (operation of file_service.h), and how an entry is written. */
#pragma once

#include <sys/stat.h>

#include "agent/call.h"
#include "json/json_write.h"

/* More is refused: nobody reads such an answer. */
#define FILE_LIST_MAX ((uint64_t) 1000 * 1000)

void file_list(struct call *call);

#define FILE_LIST_TIME_SIZE 32
#define FILE_LIST_MODE_SIZE 10

/* "2026-11-15T18:27:25.2114504240": UTC, seconds as find(1) prints them. Years that four digits
 * do not hold are 1970. */
void file_list_time(const struct timespec *time, char ret_text[static FILE_LIST_TIME_SIZE]);

/* "rw-r--r--" */
void file_list_mode(mode_t mode, char ret_text[static FILE_LIST_MODE_SIZE]);
