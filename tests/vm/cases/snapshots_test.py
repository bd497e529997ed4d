#!/usr/bin/python3
# timeout: 180
"""Copies of disks on the pool that a stock Debian has: a btrfs in a file on ext4."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, api, burrow, create, destroy_all, inside, run  # noqa: E402
from tap import equal, main, test  # noqa: E402

FORKS = 4


@test
def the_pool_is_a_btrfs_with_limits():
    rows = MACHINE.good("burrow doctor")
    assert "pool: /var/lib/burrow/pool: btrfs in a file, in use" in rows, rows
    assert "on       limits: " in rows, rows


@test
def a_snapshot_of_a_running_sandbox_is_compared():
    destroy_all()
    create("origin", env={"KIND": "origin"})
    inside("origin", "mkdir deep; seq 5000 >deep/numbers; echo 1 >one; chmod 640 one")
    burrow("snapshot", "create", "origin", "--name", "first")
    equal(burrow("diff", "first"), "", "nothing yet")
    inside("origin", "echo 2 >two; rm one; echo x >>deep/numbers")
    equal({line.split(" (")[0] for line in burrow("diff", "first").splitlines()},
          {"+ workspace/two", "- workspace/one", "~ workspace/deep/numbers"})


@test
def forks_have_its_files_and_names_of_their_own():
    forks = api("POST", "/snapshots/first/fork", {"count": FORKS, "name": "copy"})["sandboxes"]
    equal(len({one["id"] for one in forks}), FORKS, "ids")
    for number in range(1, FORKS + 1):
        equal(inside(f"copy-{number}", "cat one; wc -l <deep/numbers; stat -c %a one; echo $KIND").split(),
              ["1", "5000", "640", "origin"], f"copy {number}")
    inside("copy-1", "echo changed >one")
    equal(inside("copy-2", "cat one"), "1\n", "another is not touched")


@test
def a_rollback_brings_back_what_was_and_keeps_what_is():
    saved = burrow("rollback", "origin", "first").split()[-1]
    equal(inside("origin", "ls; cat one").split(), ["deep", "one", "1"])
    burrow("rollback", "origin", saved)
    equal(inside("origin", "ls; cat two").split(), ["deep", "two", "2"], "and forward again")


@test
def a_backup_outlives_its_sandbox():
    inside("origin", "mkdir -p tree/a; echo leaf >tree/a/leaf; ln -s a/leaf tree/link; chmod 4755 tree/a/leaf")
    backup = api("POST", "/sandboxes/origin/backups", {"dir": "/workspace/tree"})
    burrow("rm", "origin")
    create("heir")
    api("POST", "/sandboxes/heir/restore", {"backup": {"id": backup["id"], "dir": "/workspace/tree"}})
    equal(inside("heir", "cat tree/link; stat -c %a tree/a/leaf").split(), ["leaf", "4755"])
    equal(run("exec", "heir", "--", "test", "-e", "/workspace/two").status, 1, "only that folder")


@test
def nothing_of_it_is_lost():
    destroy_all()
    done = run("fsck", "--deep")
    equal(done.status, 0, done.out + done.err)
    assert " 0 lost" in done.out, done.out
    burrow("snapshot", "rm", *burrow("snapshot", "ls", "--quiet").split())


main()
