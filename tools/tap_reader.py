"""Reading what a test program printed in TAP (Test Anything Protocol).

cmocka's dialect has quirks that are settled here: one plan per group, skips written as
`not ok 3 # SKIP name`, and a failed group setup reported as test 0. Our own convention is the line
`# skip: what is missing` before a skip. Why a test failed is in comments behind it: cmocka says what
it compared and then where, Python ends a traceback. Before it: what fail_msg of cmocka writes as
ERROR, and the place and words of a check in a child of the test.
"""

import re

from outcome import FAILED, PASSED, SKIPPED

PLAN = re.compile(r"^1\.\.(\d+)")
RESULT = re.compile(r"^(not )?ok\b(?: (\d+))?(?: -)? ?(.*)$")
SKIP = re.compile(r"^(.*?) ?# SKIP\b ?(.*)$", re.IGNORECASE)
COMMENT = re.compile(r"^\s*# ?(.*)$")
SAID = re.compile(r"^(?:ERROR: |(?=\S+\.[ch]:\d+: ))(.+)$")
CMOCKA_PLACE = re.compile(r": error: Failure!$")
PYTHON_END = re.compile(r"^[A-Za-z_.]*(Error|Exception|Exit|Interrupt|Expired)\b")
REASON = re.compile(r"^\s*# skip: *(.+)$")


def read_tap(text):
    """([(status, name, detail)], planned count or None when there was no plan)"""
    results, planned, reason, said, before = [], None, "", "", ""
    for line in text.splitlines():
        if match := REASON.match(line):
            reason = match[1]
        elif match := SAID.match(line):
            said = match[1]
        elif match := PLAN.match(line):
            planned = (planned or 0) + int(match[1])
        elif match := RESULT.match(line):
            results.append(read_result(match, reason))
            reason, before = "", said
            said = ""
        elif results and results[-1][0] == FAILED and not results[-1][2]:
            comment = COMMENT.match(line)
            if comment:
                results[-1] = (FAILED, results[-1][1], read_failure(before, comment[1]))
                before = f"{before}; {comment[1]}" if before else comment[1]
    return results, planned


def read_failure(before, comment):
    """Why the test failed, if this is the comment that ends its explanation; `before` is what was
    said before it."""
    if CMOCKA_PLACE.search(comment):
        return f"{before}; {comment}" if before else comment
    return comment if PYTHON_END.match(comment) else ""


def read_result(match, reason):
    name, status, detail = match[3], FAILED if match[1] else PASSED, ""
    if skip := SKIP.match(name):
        # cmocka writes the name behind SKIP, other producers write the reason there.
        name = skip[1] or skip[2]
        detail = reason or (skip[2] if skip[1] else "")
        status = SKIPPED
        if not detail:
            status, detail = FAILED, "skipped without saying what is missing"
    return status, name, detail


def judge(text, ending):
    """All results of a program that printed `text`. `ending` says how it ended badly ("timed
    out...", "killed by SIGSEGV", "exit status 3"), "" after exit status 0. Whatever keeps the
    report from being complete is a failed test of its own."""
    results, planned = read_tap(text)
    failures = sum(1 for status, _, _ in results if status == FAILED)
    is_exit_status = ending.startswith("exit status")
    if planned is None:
        results.append((FAILED, "the program", "printed no plan" + (ending and f"; {ending}")))
    elif not results and planned == 0:
        results.append((FAILED, "the program", "ran no test"))
    elif planned != len(results):
        what = f"planned {planned} tests, reported {len(results)}" + (ending and f"; {ending}")
        results.append((FAILED, "the program", what))
    elif ending and not (is_exit_status and failures):
        results.append((FAILED, "the program", ending))
    return results
