#!/usr/bin/python3
# timeout: 300
"""Copies of the disk of a sandbox that writes are of one moment: snapshots, forks, backups and
syncs. A program inside appends to many files in turn, so every moment shows in their sizes:

    file 0 ... file k    n records each
    file k+1 ... last    n - 1

With "freeze": false the same is torn, or the test would prove nothing.

BURROW_FULL=1: many more of each."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, main_with_plane  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

FULL = os.environ.get("BURROW_FULL") == "1"
FILES = 50
RECORD = 8
SECONDS = 60
PLANE = None  # the daemon

WRITER = f"""
import os
files = [os.open(f"/workspace/{{i:02}}", os.O_WRONLY | os.O_CREAT | os.O_APPEND) for i in range({FILES})]
n = 0
while True:
    n += 1
    for file in files:
        os.write(file, b"%{RECORD}d" % n)
"""


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def post(path, **fields):
    return PLANE.call("POST", path, fields, timeout=SECONDS)


def start_writer(name):
    """A sandbox in which every file has been written to."""
    box = PLANE.create(name)
    PLANE.execute(name, "cat > /tmp/writer.py", stdin=WRITER)
    post(of(name, "/processes"), command="exec python3 /tmp/writer.py")
    wait_until(lambda: sizes(disk(box["id"])).count(0) == 0, "the writer writes", SECONDS)
    return box


def disk(name):
    return f"{pool_store(PLANE.data)}/disks/{name}/u/workspace"


def snapshot_disk(name):
    """In a plain pool, and in one of btrfs."""
    folder = f"{pool_store(PLANE.data)}/snapshots/{name}"
    return f"{folder}/d/u/workspace" if os.path.exists(f"{folder}/d") else f"{folder}/u/workspace"


def sizes(folder):
    """Of all files in order; 0 where there is none."""
    found = []
    for i in range(FILES):
        try:
            found.append(os.stat(f"{folder}/{i:02}").st_size)
        except FileNotFoundError:
            found.append(0)
    return found


def is_one_moment(found):
    """Whether the writer has ever been between two writes with such files."""
    first, last = found[0], found[-1]
    turn = found.count(first)
    return (last > 0 and first % RECORD == 0 and first - last in (0, RECORD) and
            found == [first] * turn + [last] * (FILES - turn))


def check(found, what):
    assert is_one_moment(found), f"{what} is of more than one moment: {found}"


def snapshots(name, count, **fields):
    """Sizes in each of so many snapshots, and how long the sandbox stood still."""
    for _ in range(count):
        made = post(of(name, "/snapshots"), **fields)
        yield sizes(snapshot_disk(made["id"])), made["pauseMs"]
        PLANE.call("DELETE", f"{NATIVE}/snapshots/{made['id']}")


def middle(values):
    return sorted(values)[len(values) // 2]


# --- the promise ----------------------------------------------------------------------------------


@test
def a_snapshot_is_of_one_moment():
    start_writer("shot")
    pauses = []
    for found, pause in snapshots("shot", 200):
        check(found, "a snapshot")
        pauses.append(pause)
    assert min(pauses) > 0, "it stood still each time"
    print(f"# it stood still for {middle(pauses)} ms, at most for {max(pauses)} ms")
    PLANE.call("DELETE", of("shot"))


@test
def without_freezing_it_is_not():
    start_writer("live")
    torn, pauses = 0, []
    for count, (found, pause) in enumerate(snapshots("live", 200, freeze=False), 1):
        pauses.append(pause)
        torn += not is_one_moment(found)
        if torn and not FULL:
            break
    equal(set(pauses), {0}, "it never stood still")
    print(f"# {torn} of {count} snapshots were torn")
    assert torn, "the writer is too slow for this test: it cannot fail"
    PLANE.call("DELETE", of("live"))


@test
def a_fork_is_of_one_moment():
    start_writer("forked")
    for _ in range(50 if FULL else 10):
        made = post(of("forked", "/fork"))
        assert made["pauseMs"] > 0, made
        fork = made["sandboxes"][0]["id"]
        check(sizes(disk(fork)), "a fork")
        PLANE.call("DELETE", of(fork))
    PLANE.call("DELETE", of("forked"))


@test
def a_backup_is_of_one_moment():
    start_writer("backed")
    PLANE.create("quiet")
    for _ in range(20 if FULL else 5):
        backup = post(of("backed", "/backups"))
        assert backup["pauseMs"] > 0, backup
        post(of("quiet", "/restore"), backup=backup["id"])
        # Of what the agent has just written the kernel may not have told the disk yet.
        shown = PLANE.execute("quiet", "cd /workspace && stat -c %s ??", timeout=SECONDS)["stdout"]
        check([int(size) for size in shown.split()], "a backup")
        assert "pauseMs" not in PLANE.call("GET", f"{NATIVE}/backups/{backup['id']}"), "later"
    PLANE.call("DELETE", of("backed"))


@test
def a_mirror_is_of_one_moment():
    box = start_writer("mirrored")
    for _ in range(20 if FULL else 5):
        synced = post(of("mirrored", "/sync"))
        assert synced["pauseMs"] > 0, synced
        check(sizes(f"{PLANE.data}/daemon/objects/workspaces/{box['id']}"), "a mirror")
    PLANE.call("DELETE", of("mirrored"))


# --- what it costs --------------------------------------------------------------------------------


@test
def what_was_written_before_is_written_back_before_it_stands_still():
    PLANE.create("dirty", limits={"disk": "2G"})
    for turn in range(3):
        done = PLANE.execute("dirty", f"head -c 256M /dev/urandom > /workspace/{turn}",
                             timeout=SECONDS)
        equal(done["exitCode"], 0, done["stderr"])
        made = post(of("dirty", "/snapshots"))
        print(f"# of {made['tookMs']} ms it stood still for {made['pauseMs']}")
        if made["pauseMs"] < made["tookMs"] / 2:
            break
    assert made["pauseMs"] < made["tookMs"] / 2, made
    PLANE.call("DELETE", of("dirty"))


@test
def nobody_stands_still_who_did_not_ask_for_it():
    PLANE.create("going")
    for path in ("/snapshots", "/fork", "/backups", "/sync"):
        equal(post(of("going", path), freeze=False)["pauseMs"], 0, path)
        assert post(of("going", path))["pauseMs"] > 0, path
    post(of("going", "/sleep"))
    equal(PLANE.sandbox("going")["status"], "frozen", "status")
    for path in ("/snapshots", "/fork", "/backups", "/sync"):
        equal(post(of("going", path))["pauseMs"], 0, f"{path} of one that sleeps")
    equal(PLANE.sandbox("going")["status"], "frozen", "it sleeps on")
    PLANE.call("DELETE", of("going"))


sys.exit(main_with_plane("moments"))
