#!/usr/bin/python3
# timeout: 600
"""Full disks: the pool, the filesystem beneath the pool, and the folder of objects. What needs space
is refused in time and by name, nothing that is there is harmed, and when there is space again
everything works, without a restart."""

import os
import subprocess
import sys
from contextlib import contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, Refused  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from launcher import need_launcher  # noqa: E402
from outpost import folder  # noqa: E402
from program import wait_until  # noqa: E402
from stored import SECONDS, StoredPlane, sum_of  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20
HOST_SIZE = 2600 * MIB
RESERVE = 1024 * MIB  # beneath a pool that grows: disk_pool.h
OBJECTS_SIZE = 8 * MIB
POOL_LEFT = 40 * MIB  # of a pool of 1 GiB: less than its sixteenth, which is the reserve
FORMAT = ["mke2fs", "-t", "ext4", "-F", "-q", "-m", "0", "-E",
          "lazy_itable_init=1,lazy_journal_init=1"]
KEPT = b"kept" * 1000


@contextmanager
def host_filesystem(size):
    """A filesystem of its own, as a folder."""
    image, place = os.path.join(folder(), "host"), os.path.join(folder(), "mounted")
    with open(image, "wb") as file:
        file.truncate(size)
    subprocess.run([*FORMAT, image], check=True)
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-o", "loop,noatime", image, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=False)
        os.unlink(image)


class Filled(StoredPlane):
    """With a sandbox, a snapshot and a backup of it."""

    def begin(self):
        self.create("box", network="none")
        self.fill("box", "kept", KEPT)
        self.shot = self.post("sandboxes/box/snapshots")["id"]
        self.backup = self.post("sandboxes/box/backups")["id"]

    def post(self, path, body=None):
        return self.call("POST", f"{NATIVE}/{path}", body or {}, timeout=SECONDS)

    def what_takes_space(self):
        """(what, how): each is refused when there is none."""
        return (("create", lambda: self.post("sandboxes", {"network": "none"})),
                ("snapshot", lambda: self.post("sandboxes/box/snapshots")),
                ("fork", lambda: self.post("sandboxes/box/fork")),
                ("fork of a snapshot", lambda: self.post(f"snapshots/{self.shot}/fork")),
                ("rollback", lambda: self.post("sandboxes/box/rollback", {"snapshot": self.shot})),
                ("backup", lambda: self.post("sandboxes/box/backups")))

    def must_refuse(self):
        before = self.counts()
        for what, ask in self.what_takes_space():
            refused(what, "no_space", ask)
            self.must_have_kept()
        equal(self.counts(), before, "how many there are of each")
        equal(self.strays(), {}, "what refused requests left")

    def counts(self):
        return {kind: len(self.listed(kind)) for kind in ("sandboxes", "snapshots", "backups")}

    def must_have_kept(self):
        """The sandbox runs, and its files are there."""
        equal(self.sandbox("box")["status"], "running", "status")
        equal(self.contents("box")["kept"], sum_of(KEPT), "the file that was there before")

    def must_work_again(self):
        """As soon as the filesystem has noticed that it has space."""
        def has_space():
            try:
                return self.post("sandboxes", {"network": "none"})
            except Refused as refusal:
                equal(refusal.body["error"]["code"], "no_space", "why not yet")
                return None
        wait_until(has_space, "sandboxes can be made again", SECONDS)
        for _, ask in self.what_takes_space():
            ask()
        self.must_have_kept()
        equal(self.snapshot_contents(self.shot)["kept"], sum_of(KEPT), "in the snapshot")
        equal(self.backup_contents(self.backup)["kept"], sum_of(KEPT), "in the backup")
        self.clear()

    def clear(self):
        for kind in ("sandboxes", "snapshots", "backups"):
            for one in self.listed(kind):
                self.call("DELETE", f"{NATIVE}/{kind}/{one['id']}", timeout=SECONDS)


def refused(what, code, ask):
    try:
        ask()
    except Refused as refusal:
        equal(refusal.body["error"]["code"], code, f"why the {what} was refused: {refusal}")
        return refusal.body["error"]["message"]
    raise AssertionError(f"the {what} was not refused")


@contextmanager
def filled_plane(**options):
    with Filled("--stock", "0", **options) as plane:
        try:
            plane.begin()
            yield plane
        except BaseException:
            plane.print_log()
            raise


@test
def a_full_pool_refuses_in_time_and_recovers():
    need_launcher()
    with filled_plane() as plane:
        plane.create("glutton", network="none", limits={"disk": 4096 * MIB})
        much = pool_free(plane) - POOL_LEFT
        equal(plane.execute("glutton", f"fallocate -l {much} /workspace/much", timeout=SECONDS)["exitCode"],
              0, "status of fallocate")
        plane.must_refuse()
        plane.fill("box", "small", b"still possible")
        # The rest of it: programs are told so, and nothing breaks.
        end = plane.execute("glutton", "cat /dev/zero > /workspace/rest", timeout=SECONDS)
        assert end["exitCode"] != 0 and "space" in end["stderr"], end
        plane.must_refuse()
        equal(plane.contents("box")["small"], sum_of(b"still possible"), "what was written last")
        plane.execute("glutton", "rm /workspace/much /workspace/rest", timeout=SECONDS)
        plane.must_work_again()


def pool_free(plane):
    status = os.statvfs(pool_store(plane.data))
    return status.f_bavail * status.f_frsize


@test
def a_full_host_stops_what_is_new_before_the_pool_breaks():
    need_launcher()
    with host_filesystem(HOST_SIZE) as host, filled_plane(data=f"{host}/data") as plane:
        status = os.statvfs(host)
        free = status.f_bavail * status.f_frsize
        subprocess.run(["fallocate", "-l", str(free - RESERVE + 8 * MIB), f"{host}/filler"], check=True)
        plane.must_refuse()
        # What runs goes on: the reserve is theirs.
        plane.execute("box", "head -c 50000000 /dev/urandom > more; sync", timeout=SECONDS)
        equal(plane.execute("box", "stat -c %s more")["stdout"].strip(), "50000000", "size")
        plane.must_refuse()
        os.unlink(f"{host}/filler")
        plane.must_work_again()


@test
def a_full_folder_of_objects_refuses_backups_and_harms_none():
    need_launcher()
    with Filled("--stock", "0") as plane:
        objects = f"{plane.data}/daemon/objects"
        plane.stop()
        owner = os.stat(objects)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={OBJECTS_SIZE},mode=700,uid={owner.st_uid},"
                        f"gid={owner.st_gid}", "objects", objects], check=True)
        plane.start()
        try:
            plane.begin()
            plane.execute("box", f"head -c {2 * OBJECTS_SIZE} /dev/urandom > much", timeout=SECONDS)
            refused("backup", "no_space", lambda: plane.post("sandboxes/box/backups"))
            wait_until(lambda: not plane.strays(), "nothing is left of it", SECONDS)
            equal(len(plane.listed("backups")), 1, "backups")
            plane.must_have_kept()
            equal(plane.backup_contents(plane.backup), {"kept": sum_of(KEPT)}, "the one before")
            plane.execute("box", "rm much")
            plane.post("sandboxes/box/backups")
            plane.clear()
        except BaseException:
            plane.print_log()
            raise


main()
