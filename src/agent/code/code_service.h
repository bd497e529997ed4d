/* The code interpreter's operations: contexts, and code run in them with its output as events. */
#pragma once

#include "agent/operation.h"

/* Longest code of one run. */
#define CODE_SIZE_MAX ((size_t) 2 * 1024 * 1024)

extern const struct operation_table code_operations;
