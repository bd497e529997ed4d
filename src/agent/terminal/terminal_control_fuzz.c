/* Any text as a control message and as a number of the query: what is accepted is a size that a
 * terminal can have, and everything else has a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/terminal/terminal_control.h"
#include "base/memory.h"

static void check(bool promise)
{
    if (!promise)
        abort();
}

static bool is_possible(uint16_t count)
{
    return count >= 1 && count <= TERMINAL_SIZE_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *text = mem_copy_bytes(data, size);
    struct error err = ERROR_INIT;
    struct exec_terminal terminal;
    uint16_t count = 0;

    if (terminal_control_read(text, size, &terminal, &err) == 0)
        check(is_possible(terminal.columns) && is_possible(terminal.rows));
    else
        check(err.code == ERR_INVALID && strncmp(err.message, "Invalid control message", 23) == 0);
    err = (struct error) ERROR_INIT;
    if (terminal_count_read("cols", text, &count, &err) == 0)
        check(is_possible(count) && (unsigned long) count == strtoul(text, NULL, 10));
    else
        check(err.code == ERR_INVALID && count == 0);
    return 0;
}
