#!/usr/bin/python3
"""docs/soak-results.md as tools/soak_results.py writes and reads it."""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lib"), os.path.join(HERE, "../../tools")]

import soak_results  # noqa: E402
from outcome import FAILED, PASSED, Outcome  # noqa: E402
from tap import main, test  # noqa: E402


def outcome(*statuses):
    made = Outcome()
    for status in statuses:
        made.add(status, "a step")
    return made


@test
def the_newest_commit_that_passed_a_part_is_found():
    with tempfile.TemporaryDirectory() as folder:
        soak_results.PATH = os.path.join(folder, "soak-results.md")
        assert soak_results.newest_passed("lint") == ""
        for commit, part, statuses in [("aaaaaaa", "lint", [PASSED]), ("bbbbbbb", "lint", [PASSED, PASSED]),
                                       ("ccccccc", "lint", [PASSED, FAILED]), ("ddddddd+", "lint", [PASSED]),
                                       ("eeeeeee", "tsan", [PASSED])]:
            soak_results.commit = lambda commit=commit: commit
            soak_results.add_row(part, 90, outcome(*statuses))
        # Neither one that failed, nor one of files that no commit has, nor another part.
        assert soak_results.newest_passed("lint") == "bbbbbbb"
        assert soak_results.newest_passed("tsan") == "eeeeeee"


if __name__ == "__main__":
    main()
