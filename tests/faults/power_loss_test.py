#!/usr/bin/python3
# timeout: 1800
"""Power loss: the data folder, pool and database, lies on a disk whose writes and flushes are all
written down (fragile_disk.py). Clients work and remember how much was written when each answer came.
Then the disk is made as it would be after a power cut at that very moment, with what was not flushed
there or not, page by page; a fresh launcher and daemon open it, and everything that was acknowledged
before is in it. Cuts between two answers come on top. All of it on a btrfs pool, and less of it on a
plain one.

    BURROW_FULL=1        a cut at every answer instead of some
    BURROW_SEED=N|random  other cuts than the usual (their number is printed)
    BURROW_CUTS=N        so many at answers, and half as many between them; and at every restore
"""

import copy
import os
import random
import subprocess
import sys
from collections import namedtuple
from contextlib import contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE  # noqa: E402
from fragile_disk import FragileDisk  # noqa: E402
from launcher import need_launcher  # noqa: E402
from outpost import folder  # noqa: E402
from soak import FULL, SEED  # noqa: E402
from stored import SECONDS, StoredPlane, sum_of  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

CUTS = int(os.environ.get("BURROW_CUTS", 100 if FULL else 6))
DISK_SIZE = 3 << 30  # sparse; beneath a pool there must be a reserve
SIZES = (10, 5000, 400000)
RESTORE = "restore into an emptied workspace"
FORKS = 2  # at once
FORMAT = ["mke2fs", "-t", "ext4", "-F", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]


class Ledger:
    """What was acknowledged: contents by id. Those of a sandbox are promised when it has synced them,
    as on any machine; a new one is empty until then, a fork holds what its origin held, and what was
    restored is promised with the answer."""

    def __init__(self):
        self.boxes, self.snapshots, self.backups = {}, {}, {}
        self.mirrors = {}  # of workspaces, by the sandbox
        self.gone = set()  # ids of what was deleted
        self.touched = set()  # ids that the next operation is about


# An answer came: how much was in the log, what was asked for, and what was acknowledged by then.
Moment = namedtuple("Moment", "position what ledger")


class Work:
    """Operations one after the other."""

    def __init__(self, plane, disk, rng):
        self.plane, self.disk, self.rng = plane, disk, rng
        self.ledger, self.moments = Ledger(), []

    def call(self, method, path, body=None):
        return self.plane.call(method, f"{NATIVE}/{path}", body, timeout=SECONDS)

    def acknowledged(self, what):
        self.moments.append(Moment(self.disk.position(), what, copy.deepcopy(self.ledger)))

    def touch(self, thing):
        """Up to the next answer nothing is said of it."""
        self.moments[-1].ledger.touched.add(thing)

    def create(self):
        box = self.call("POST", "sandboxes", {"network": "none"})["id"]
        self.ledger.boxes[box] = {}
        self.acknowledged("create")
        return box

    def write(self, box):
        """A file, and sync of everything or of the file alone."""
        path, data = self.rng.choice("xyz"), self.rng.randbytes(self.rng.choice(SIZES))
        command = self.rng.choice(("sync", f"sync /workspace/{path}"))
        self.touch(box)
        self.plane.fill(box, path, data)
        equal(self.plane.execute(box, command, timeout=SECONDS)["exitCode"], 0, command)
        self.ledger.boxes[box] = {**self.ledger.boxes[box], path: sum_of(data)}
        self.acknowledged(f"write and {command}")

    def snapshot(self, box):
        shot = self.call("POST", f"sandboxes/{box}/snapshots", {})["id"]
        self.ledger.snapshots[shot] = self.ledger.boxes[box]
        self.acknowledged("snapshot")
        return shot

    def back_up(self, box):
        backup = self.call("POST", f"sandboxes/{box}/backups", {})["id"]
        self.ledger.backups[backup] = self.ledger.boxes[box]
        self.acknowledged("backup")
        return backup

    def mirror(self, box):
        self.touch(box)  # the mirror is of either moment until the answer
        self.call("POST", f"sandboxes/{box}/sync", {})
        self.ledger.mirrors[box] = self.ledger.boxes[box]
        self.acknowledged("sync of a workspace")

    def empty(self, box):
        self.touch(box)
        command = "find /workspace -mindepth 1 -delete && sync"
        equal(self.plane.execute(box, command, timeout=SECONDS)["exitCode"], 0, command)
        self.ledger.boxes[box] = {}
        self.acknowledged("emptied workspace")

    def restore(self, box, contents, path, body):
        """Nobody in the sandbox syncs what comes."""
        self.empty(box)
        self.touch(box)
        self.call("POST", f"sandboxes/{box}/{path}", body)
        self.ledger.boxes[box] = contents
        self.acknowledged(f"{RESTORE} by {path}")

    def roll_back(self, box, shot):
        before = self.ledger.boxes[box]
        self.touch(box)
        saved = self.call("POST", f"sandboxes/{box}/rollback", {"snapshot": shot})["saved"]["id"]
        self.ledger.boxes[box] = self.ledger.snapshots[shot]
        self.ledger.snapshots[saved] = before
        self.acknowledged("rollback")

    def fork(self, origin, contents):
        """Forks of a snapshot or sandbox: what they hold is promised with the answer."""
        for box in self.call("POST", f"{origin}/fork", {"count": FORKS})["sandboxes"]:
            self.ledger.boxes[box["id"]] = contents
        self.acknowledged(f"forks of {origin.split('/', 1)[0]}")

    def delete(self, kind, thing):
        self.touch(thing)
        self.call("DELETE", f"{kind}/{thing}")
        getattr(self.ledger, "boxes" if kind == "sandboxes" else kind).pop(thing)
        self.ledger.mirrors.pop(thing, None)
        self.ledger.gone.add(thing)
        self.acknowledged(f"delete of {kind}")

    def run(self):
        first, second = self.create(), self.create()
        for _ in range(2):
            self.write(first)
        early = self.snapshot(first)
        self.write(first)
        self.write(second)
        late, kept = self.snapshot(first), self.back_up(first)
        self.call("POST", f"sandboxes/{second}/stop", {})
        self.acknowledged("stop")
        self.fork(f"sandboxes/{second}", self.ledger.boxes[second])
        asleep = self.snapshot(second)
        self.back_up(second)
        self.roll_back(first, early)
        self.fork(f"snapshots/{late}", self.ledger.snapshots[late])
        self.roll_back(first, late)
        self.mirror(first)
        self.restore(first, self.ledger.backups[kept], "restore", {"backup": kept})
        self.write(first)
        self.mirror(first)
        self.restore(first, self.ledger.mirrors[first], "sync/restore", {})
        self.delete("snapshots", early)
        self.delete("backups", kept)
        self.delete("sandboxes", second)
        self.write(self.create())
        self.fork(f"snapshots/{asleep}", self.ledger.snapshots[asleep])
        self.write(first)
        self.snapshot(first)


# --- the disk -------------------------------------------------------------------------------------


@contextmanager
def mounted(path, name):
    """The filesystem in that file as a folder."""
    place = os.path.join(folder(), name)
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-o", "loop,noatime", path, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=False)


def check(plane, moment, is_at_answer):
    """Everything of the ledger is there; of what the next operation is about only at the answer."""
    ledger = moment.ledger
    spared = set() if is_at_answer else ledger.touched
    there = {kind: {one["id"]: one for one in plane.listed(kind)}
             for kind in ("sandboxes", "snapshots", "backups")}
    for kind, things in (("sandboxes", ledger.boxes), ("snapshots", ledger.snapshots),
                         ("backups", ledger.backups)):
        for thing, contents in things.items():
            if thing in spared:
                continue
            assert thing in there[kind], f"{thing} of {kind} is gone"
            look(plane, kind, there[kind][thing], contents)
    for box, contents in ledger.mirrors.items():
        if box not in spared:
            equal(plane.mirror_contents(box), contents, f"mirror of sandbox {box}")
    for kind in there:
        equal(ledger.gone & set(there[kind]), set(), f"{kind} that were deleted")
    plane.wait_without_strays()


def look(plane, kind, thing, contents):
    if kind == "snapshots":
        equal(thing["state"], "ready", "state of a snapshot")
        found = plane.snapshot_contents(thing["id"])
    elif kind == "backups":
        found = plane.backup_contents(thing["id"])
    else:
        if thing["status"] == "stopped":
            plane.call("POST", f"{NATIVE}/sandboxes/{thing['id']}/start", {}, timeout=SECONDS)
        found = plane.contents(thing["id"])
    equal(found, contents, f"contents of {kind} {thing['id']}")


def open_after(disk, position, moment, rng, is_at_answer, is_expected=True):
    """Look at the disk as a cut at that position leaves it."""
    image = os.path.join(folder(), "cut")
    writes, lost = disk.cut(position, rng, image)
    where = "at the answer to" if is_at_answer else "after"
    print(f"# cut {where} {moment.what}: {writes} writes not flushed, {lost} pages lost", flush=True)
    with mounted(image, "after") as place:
        with StoredPlane("--stock", "0", data=f"{place}/data") as plane:
            try:
                check(plane, moment, is_at_answer)
                for box in plane.listed("sandboxes"):
                    plane.call("DELETE", f"{NATIVE}/sandboxes/{box['id']}", timeout=SECONDS)
            except BaseException:
                if is_expected:
                    plane.print_log()
                raise
    os.unlink(image)


def at_answers(moments, rng, count):
    """Some, and each of those whose promise is the hardest to keep."""
    chosen = rng.sample(moments, min(count, len(moments)))
    return chosen + [one for one in moments if RESTORE in one.what and one not in chosen]


def between(disk, moments, rng, count):
    """(position, the last answer before it), for cuts in the middle of operations."""
    first, last = moments[0].position, moments[-1].position
    positions = [position for position in disk.positions() if first < position < last]
    for position in rng.sample(positions, min(count, len(positions))):
        yield position, [one for one in moments if one.position <= position][-1]


def work_on(disk, rng, is_plain):
    """The moments of a day's work, on a fresh filesystem."""
    subprocess.run([*FORMAT, disk.path], check=True)
    with mounted(disk.path, "before") as place:
        service = StoredPlane("--stock", "0", data=f"{place}/data")
        if is_plain:
            service.make_plain_pool()
        with service as plane:
            if is_plain:
                os.rmdir(f"{plane.data}/pool/store/disks/kept")  # it is a plain one now
            work = Work(plane, disk, rng)
            work.run()
            for box in plane.listed("sandboxes"):
                plane.call("DELETE", f"{NATIVE}/sandboxes/{box['id']}", timeout=SECONDS)
    return work.moments


def work_and_cut(is_plain, cuts):
    need_launcher()
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse")
    print(f"# BURROW_SEED={SEED}", flush=True)
    rng = random.Random(SEED)
    with FragileDisk(folder(), DISK_SIZE) as disk:
        moments = work_on(disk, rng, is_plain)
        for moment in at_answers(moments, rng, cuts):
            open_after(disk, moment.position, moment, rng, True)
        for position, moment in between(disk, moments, rng, cuts // 2):
            open_after(disk, position, moment, rng, False)
        # The same eyes see what is missing: an older disk under a newer ledger.
        try:
            open_after(disk, moments[-4].position, moments[-1], rng, True, is_expected=False)
        except AssertionError:
            return
        raise AssertionError("nobody noticed that the last snapshot was missing")


@test
def what_was_acknowledged_survives_a_power_cut():
    work_and_cut(False, CUTS)


@test
def what_was_acknowledged_survives_a_power_cut_in_a_plain_pool():
    work_and_cut(True, CUTS // 2)


main()
