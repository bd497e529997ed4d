"""Stored state as a client sees it: what sandboxes, snapshots and backups hold, as sums.

    with StoredPlane() as plane:                        # a ControlPlane, flags as for it
        plane.create("demo")
        plane.fill("demo", "file", b"content")
        plane.contents("demo")                          # {"file": "ed7002b439e9..."}
        plane.snapshot_contents(snapshot["id"])         # of a sandbox that is made from it
        plane.backup_contents(backup["id"])             # restored into a sandbox of its own
        plane.mirror_contents(box["id"])                # what the store has after a sync
        plane.bucket_contents("bucket")                 # what programs wrote to a mount
        plane.kill_hard("launcher", "daemon")           # and wait for the next ones
        plane.check_promises()                          # fsck finds nothing lost
        plane.strays()                                  # {} unless something nobody knows is there
"""

import hashlib
import os
import time

from control_plane import NATIVE, ControlPlane, Refused
from program import wait_until
from traces import names_in, traces

SECONDS = 60.0  # for a start, or an answer of a busy machine
RESUME_SECONDS = 3.0
PAGE = 1000
LOG_LINES = 60
LOOK_IN = "cd {} 2>/dev/null && find . -type f -printf '%P\\0' | xargs -0r sha256sum"
LOOK = LOOK_IN.format("/workspace")


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def sums_in(answer):
    """{path: sum}: what LOOK told."""
    assert answer["exitCode"] == 0, f"contents: {answer}"
    return {path: total for total, path in
            (line.split("  ", 1) for line in answer["stdout"].splitlines())}


def sums_beneath(top):
    """{path: sum} of all files of a folder."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, top)] = sum_of(file.read())
    return found


class StoredPlane(ControlPlane):
    @property
    def key(self):
        """The administrator's, also of a data folder that another daemon began."""
        with open(f"{self.data}/daemon/keys/admin", encoding="ascii") as file:
            return file.read().strip()

    def fill(self, box, path, data):
        """Write a file of its workspace."""
        self.call("PUT", f"{NATIVE}/sandboxes/{box}/files/workspace/{path}", data, timeout=SECONDS)

    def contents(self, box, folder="/workspace"):
        """{path: sum} of a folder; {} when it is not there."""
        return sums_in(self._execute_soon(box, f"{LOOK_IN.format(folder)} || test ! -d {folder}"))

    def _execute_soon(self, box, command):
        """An agent that a dead daemon told to hold still is told to go on, a moment after the start."""
        deadline = time.monotonic() + RESUME_SECONDS
        while True:
            try:
                return self.execute(box, command, timeout=SECONDS)
            except Refused as refused:
                if refused.status != 503 or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def snapshot_contents(self, snapshot):
        """What a sandbox finds that is made from it."""
        made = self.call("POST", f"{NATIVE}/snapshots/{snapshot}/fork", {}, timeout=SECONDS)
        return self._take_contents(made["sandboxes"][0]["id"])

    def backup_contents(self, backup):
        """What a new sandbox finds after a restore."""
        box = self.call("POST", f"{NATIVE}/sandboxes", {"network": "none"}, timeout=SECONDS)["id"]
        self.call("POST", f"{NATIVE}/sandboxes/{box}/restore", {"backup": backup}, timeout=SECONDS)
        return self._take_contents(box)

    def mirror_contents(self, box):
        """What the store has of its workspace."""
        return sums_beneath(f"{self.data}/daemon/objects/workspaces/{box}")

    def bucket_contents(self, bucket):
        """What the store has of a bucket that one owner uses."""
        top = f"{self.data}/daemon/buckets"
        folders = [f"{top}/{owner}/{bucket}" for owner in names_in(top)]
        return sums_beneath(next(filter(os.path.isdir, folders), ""))

    def _take_contents(self, box):
        found = self.contents(box)
        self.call("DELETE", f"{NATIVE}/sandboxes/{box}", timeout=SECONDS)
        return found

    def check_promises(self, deep=True):
        """`burrow fsck`: everything that is known of is there, byte by byte."""
        found = self.call("POST", f"{NATIVE}/fsck", {"deep": deep}, timeout=SECONDS)
        lost = [one for one in found["findings"] if one["is"] == "lost"]
        assert found["lost"] == 0 and not lost, f"fsck: {found['lost']} lost: {lost}"
        return [one for one in found["findings"] if one["is"] != "lost"]

    def check_clean(self):
        """`burrow fsck`, after a `burrow gc`, finds nothing lost and no garbage."""
        def is_clean():
            if self.ask("POST", f"{NATIVE}/gc", {"grace": 0}, timeout=SECONDS).status == 200:
                return not self.check_promises(False)
            return False  # a disk is being stored
        try:
            wait_until(is_clean, "fsck finds nothing", SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.check_promises(False)}") from None
        self.check_promises()

    def listed(self, kind):
        """All "sandboxes", "snapshots" or "backups" there are, each once."""
        page = self.call("GET", f"{NATIVE}/{kind}?limit={PAGE}", timeout=SECONDS)[kind]
        assert len(page) < PAGE, f"more {kind} than a page holds"
        ids = [one["id"] for one in page]
        assert len(ids) == len(set(ids)), f"{kind} that are there twice: {ids}"
        return page

    def print_log(self):
        """The end of the log, as comments, without what went well."""
        told = [line for line in self.log().splitlines() if '"status":2' not in line]
        print("\n".join(f"# log: {line}" for line in told[-LOG_LINES:]))

    # --- the host ------------------------------------------------------------------------------

    def strays(self):
        """{kind: names} of what is on the host and belongs to nothing that is listed."""
        known = {one["id"] for kind in ("sandboxes", "snapshots") for one in self.listed(kind)}
        found = {kind: ids - known for kind, ids in
                 traces(self.data, self.run, self.cgroup).items()}
        found["backup"] = self._stored("backups") - {one["id"] for one in self.listed("backups")}
        found["mirror"] = self._stored("workspaces") - known
        for store in ("objects", "buckets"):
            found[f"unfinished of {store}"] = set(names_in(f"{self.data}/daemon/{store}/.tmp"))
        return {kind: names for kind, names in found.items() if names}

    def _stored(self, kind):
        """Ids of those that have an object; a folder that a put was about to use is none."""
        top = f"{self.data}/daemon/objects/{kind}"
        return {name for name in names_in(top) if names_in(f"{top}/{name}")}

    def wait_without_strays(self):
        """Ends are slow in places; they come to an end."""
        def is_tidy():
            return not self.strays()
        try:
            wait_until(is_tidy, "nothing on the host but what is listed", SECONDS)
        except AssertionError:
            raise AssertionError(f"left on the host: {self.strays()}") from None
