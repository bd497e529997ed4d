/* For tests of capnweb sessions only: what the next frame must be. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/rpc/rpc_testing.h"

static inline void expect(struct testing *testing, const char *frame)
{
    const char *sent = testing_next(testing);

    if (!sent || strcmp(sent, frame) != 0)
        fail_msg("expected %s\n     got %s", frame, sent ? sent : "nothing");
}

static inline void expect_part(struct testing *testing, const char *part)
{
    const char *sent = testing_next(testing);

    if (!sent || !strstr(sent, part))
        fail_msg("expected ...%s...\n     got %s", part, sent ? sent : "nothing");
}

static inline void expect_silence(struct testing *testing)
{
    const char *sent = testing_next(testing);

    if (sent)
        fail_msg("expected nothing\n     got %s", sent);
}

/* Nothing is left of what was done: a client sees one import and one export. */
static inline void expect_clean(struct testing *testing)
{
    struct rpc_session_counts counts;

    expect_silence(testing);
    rpc_session_count(testing->session, &counts);
    assert_int_equal(counts.exports, 0);
    assert_int_equal(counts.imports, 0);
    assert_int_equal(counts.calls, 0);
    assert_int_equal(counts.kept, 0);
    assert_int_equal(counts.input, 0);
    assert_false(testing->closed);
}
