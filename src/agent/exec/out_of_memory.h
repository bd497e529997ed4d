/* Whether the kernel killed for lack of memory: a program that it chose ends like any that got
 * SIGKILL, but its group counts the victims.
 *
 * The launcher hands over the file of the commands' group that has a line "oom_kill N"
 * (memory.events, or memory.oom_control of the older groups), which can only be read. */
#pragma once

#include <stdint.h>

/* Victims so far; 0 when that cannot be told (`fd` negative, or no such file). */
uint64_t out_of_memory_kills(int fd);

/* The parser behind it. */
uint64_t out_of_memory_parse(const char *text);
