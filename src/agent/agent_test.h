/* For the tests of agent/ only: cmocka with what it needs before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>
