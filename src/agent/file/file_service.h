/* Files: the operations on them, for every transport. */
#pragma once

#include "agent/operation.h"

extern const struct operation_table file_operations;
