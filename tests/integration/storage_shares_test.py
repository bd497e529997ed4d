#!/usr/bin/python3
"""What one owner stores, and asks to be stored, does not get in another's way: keeper jobs take turns,
and what fills a disk is in a quota.

One daemon serves all tests; each test has owners of its own."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
SECONDS = 120
BACKUPS = 24
OF_ONE = 16  # jobs on disks that one owner may have: the share disk_jobs


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def run(name, command, key):
    done = PLANE.execute(name, command, key=key, timeout=SECONDS)
    equal(done["exitCode"], 0, f"{command}: {done['stderr']}")
    return done["stdout"]


class Asked(threading.Thread):
    """One request on its way; `answer` is None until it was answered."""

    def __init__(self, method, path, body, key):
        super().__init__(daemon=True)
        self.answer = None
        self.asked = (method, path, body, key)
        self.start()

    def run(self):
        method, path, body, key = self.asked
        try:
            self.answer = PLANE.ask(method, path, body, key=key, timeout=SECONDS)
        except OSError:  # the daemon left first, with the test
            return


@test
def many_backups_of_one_owner_leave_turns_for_others():
    many, other = PLANE.user("many"), PLANE.user("other")
    PLANE.create("many", key=many)
    PLANE.create("other", key=other)
    run("many", "mkdir -p big && cd big && head -c 4000000 /dev/urandom | split -a 4 -b 2000", many)
    asked = [Asked("POST", of("many", "/backups"), {"dir": "/workspace", "compression": "xz"}, many)
             for _ in range(BACKUPS)]
    for one in asked[:]:  # those who are too many are told at once, and which limit that is
        if len([each for each in asked if each.answer]) >= BACKUPS - OF_ONE:
            break
        one.join(0.5)
    PLANE.call("POST", of("other", "/backups"), {}, key=other, timeout=SECONDS)
    waiting = [one for one in asked if not one.answer]
    refused = [one.answer for one in asked if one.answer and one.answer.status == 429]
    assert len(waiting) >= OF_ONE // 2, f"only {len(waiting)} of {BACKUPS} still wait"
    assert refused, "more than may wait were taken"
    assert all(b"disk_jobs: 16 of at most 16" in answer.body for answer in refused), refused[0].body
    PLANE.call("DELETE", of("many"), key=many, timeout=SECONDS)


if __name__ == "__main__":
    sys.exit(main_with_plane("storage_shares"))
