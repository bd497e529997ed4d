/* How a load program gives up.
 *
 * A load program that met something unexpected must not print a number: it says what happened on
 * stderr and exits with 1, and the row that started it fails. */
#pragma once

/* Prints "NAME: message" (NAME is the program) and exits. Thread-safe. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
