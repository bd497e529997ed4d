"""In which order test programs run, and which of them need the machine to themselves.

    for path in longest_first(paths): ...
    alone(path)                       # "why", or "" for a program that bears neighbours

The slowest begin first, so that none is left running alone at the end. How long they take is in
tests/times.txt, which tools/run-tests --keep-times writes; it decides about the order only. A script
that measures what the whole machine has says so with a line `# alone: WHY` near its top.
"""

import os
import re

from source_files import ROOT

TIMES = os.path.join(ROOT, "tests/times.txt")
HEAD = "# Seconds of the test programs that take long, for tools/test_order.py. Written by --keep-times.\n"
WORTH_KEEPING = 1.0  # seconds
HEAD_BYTES = 2000  # where lines about a script are looked for
ALONE = re.compile(r"^# alone: (.+)$", re.MULTILINE)


def head_of(path):
    """The beginning of a script; "" of a program."""
    if not path.endswith(".py"):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read(HEAD_BYTES)


def alone(path):
    found = ALONE.search(head_of(path))
    return found[1] if found else ""


def read_times():
    """{name: seconds}"""
    try:
        with open(TIMES, encoding="utf-8") as lines:
            rows = [line.split() for line in lines if not line.startswith("#")]
    except FileNotFoundError:
        rows = []
    return {row[0]: float(row[1]) for row in rows if len(row) == 2}


def longest_first(paths):
    times = read_times()
    return sorted(paths, key=lambda path: (-times.get(os.path.basename(path), 0), path))


def keep_times(measured):
    """{name: seconds} of a run, in place of what was known of these programs."""
    times = {**read_times(), **measured}
    rows = [f"{name} {seconds:.0f}\n" for name, seconds in
            sorted(times.items(), key=lambda item: (-round(item[1]), item[0])) if seconds >= WORTH_KEEPING]
    with open(TIMES, "w", encoding="utf-8") as file:
        file.writelines([HEAD, *rows])
