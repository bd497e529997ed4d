/* Functions that do not compile here, each with what to use instead. The build includes this file
 * before every source file of ours; a use becomes an undeclared name that says what happened.
 *
 * strcpy, strcat, sprintf, vsprintf   unbounded: struct text, snprintf
 * strncpy, strncat                    no terminator: struct text, mem_copy_bytes
 * strtok                              hidden state: a loop
 * atoi, atol, atoll                   no error: base/number
 * gmtime, localtime, ctime, asctime   hidden state: base/clock
 * system, popen                       a shell: sys/sys_spawn
 * rand, srand                         guessable: random_bytes
 * mktemp, tmpnam                      a race: mkstemp, memfd */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(name) this_function_is_banned_see_base_banned_h_##name

#undef strcpy
#define strcpy(...) BANNED(strcpy)
#undef strcat
#define strcat(...) BANNED(strcat)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef strncpy
#define strncpy(...) BANNED(strncpy)
#undef strncat
#define strncat(...) BANNED(strncat)
#undef strtok
#define strtok(...) BANNED(strtok)
#undef atoi
#define atoi(...) BANNED(atoi)
#undef atol
#define atol(...) BANNED(atol)
#undef atoll
#define atoll(...) BANNED(atoll)
#undef gmtime
#define gmtime(...) BANNED(gmtime)
#undef localtime
#define localtime(...) BANNED(localtime)
#undef ctime
#define ctime(...) BANNED(ctime)
#undef asctime
#define asctime(...) BANNED(asctime)
#undef popen
#define popen(...) BANNED(popen)
#undef system
#define system(...) BANNED(system)
#undef rand
#define rand(...) BANNED(rand)
#undef srand
#define srand(...) BANNED(srand)
#undef mktemp
#define mktemp(...) BANNED(mktemp)
#undef tmpnam
#define tmpnam(...) BANNED(tmpnam)
