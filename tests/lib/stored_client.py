"""A client that uses everything that stores state, and remembers what it was told: the ledger.

    client = Client(plane, 0, random.Random(1), over)   # plane: a StoredPlane; over: an Event
    client.run()                                        # in a thread, until `over`
    client.settle(found, shots, True)                   # what is there against what was promised

What an answer promises, by operation:

    write, snapshot, fork, back_up, ...    what its name says, with these contents
    sync           the mirror has exactly the files that the workspace had
    offload        the disk is in the object store alone, and the sandbox wakes with its files
    collect        nothing that somebody was promised is taken away
    mount          the bucket is there, also after a restart; what is written and closed is an object
"""

import http.client
import itertools
import threading
from collections import Counter

from control_plane import NATIVE, Refused
from program import wait_until
from stored import LOOK, SECONDS, StoredPlane, sum_of, sums_in
from tap import equal

BOXES_MAX, SHOTS_MAX, BACKUPS_MAX = 4, 4, 3  # per client
CALL_SECONDS = 30.0
SIZES = (1, 5000, 300000)
FOLDER = "/persist"  # of mounts
# What programs are told while nobody serves a mount: after a kill, until the next daemon does.
AWAY = ("Transport endpoint is not connected", "Software caused connection abort")
# Who answers so has not done it, or nobody knows: the ledger says "maybe".
UNSURE = (499, 500, 502, 503, 504)
SETTLED = ("running", "stopped", "offloaded")  # what a sandbox must be for most operations
TIERS_FAST = {"hibernateAfter": "10ms", "offloadAfter": "10ms"}
TIERS_SLOW = {"hibernateAfter": "500ms", "offloadAfter": 0}


class Lost(Exception):
    """The answer did not come: what was asked for may have happened. Without `was_asked` nobody was
    there to hear it."""

    def __init__(self, why, status=0, was_asked=True):
        super().__init__(why)
        self.status, self.was_asked = status, was_asked


class Idle(Exception):
    """There is nothing to do that with."""


class Thing:
    """What a client was told about one sandbox, snapshot or backup. `worlds` are the contents that
    it may have, one of them for sure."""

    def __init__(self, kind, name, worlds):
        self.kind, self.name, self.id = kind, name, None
        self.worlds = list(worlds)
        self.fate = "maybe"  # here, gone, maybe
        self.is_new = True  # nobody looked into it yet

        # Of a sandbox. Status "unsure": it is left alone until the round is over; "falling": until it
        # is "offloaded"; else "running" or "stopped".
        self.status = "running"
        self.mirror = None  # worlds; None: nothing is known
        self.is_mounted = False  # None: nobody knows
        self.bucket = [{}]  # worlds of what its bucket holds


class Client:
    """One that works for itself and remembers."""

    def __init__(self, plane: StoredPlane, number, rng, over: threading.Event):
        self.plane, self.number, self.rng, self.over = plane, number, rng, over
        self.things, self.made = [], 0
        self.saved = {}  # id of a snapshot that a rollback made: worlds
        self.told, self.cut = Counter(), Counter()  # operations that were answered, that were not
        self.problem = None
        self.steps = (self.create, self.write, self.snapshot, self.fork, self.fork_snapshot,
                      self.roll_back, self.sleep, self.wake, self.stop, self.start, self.back_up,
                      self.restore, self.sync, self.sync_restore, self.fall_asleep, self.offload,
                      self.fetch, self.collect, self.mount, self.write_mounted, self.unmount,
                      self.delete_snapshot, self.delete_backup, self.destroy)

    # --- asking ------------------------------------------------------------------------------

    def ask(self, method, path, body=None):
        """The JSON of a success; Refused for an answer that is sure, else Lost."""
        try:
            return self.plane.call(method, f"{NATIVE}/{path}", body, timeout=CALL_SECONDS)
        except Refused as refused:
            if refused.status in UNSURE:
                raise Lost(str(refused), refused.status) from None
            raise
        except (OSError, EOFError, http.client.HTTPException, ValueError) as error:
            was_asked = not isinstance(error, ConnectionRefusedError)
            raise Lost(repr(error), was_asked=was_asked) from None

    def ask_of(self, box, verb, body=None, method="POST"):
        """Of a sandbox that nobody knows much about until the answer is there."""
        status, box.status = box.status, "unsure"
        answer = self.ask(method, f"sandboxes/{box.name}{verb}", {} if body is None else body)
        box.status = "running" if status == "offloaded" else status  # it was brought back
        return answer

    def new(self, kind, worlds):
        self.made += 1
        thing = Thing(kind, f"{kind}{self.number}-{self.made}", worlds)
        self.things.append(thing)
        return thing

    def room(self, kind, most):
        if sum(thing.kind == kind and thing.fate != "gone" for thing in self.things) >= most:
            raise Idle

    def one(self, kind, *statuses, where=lambda thing: True):
        fine = [thing for thing in self.things
                if thing.kind == kind and thing.fate == "here" and where(thing)
                and thing.status in (statuses or SETTLED)]
        if not fine:
            raise Idle
        return self.rng.choice(fine)

    # --- work --------------------------------------------------------------------------------

    def next_step(self, turn):
        """By chance, and rather one that was seldom done. What takes longest begins first."""
        if turn < 2:
            return self.fall_asleep
        if turn % 4 == 0 and any(thing.status == "falling" for thing in self.things):
            return self.offload
        if turn % 16 == 1 and sum(thing.kind == "box" for thing in self.things) >= BOXES_MAX:
            return self.destroy  # three operations want its place
        some = self.rng.sample(self.steps, 4)
        return min(some, key=lambda step: self.told[step.__name__] + self.cut[step.__name__])

    def run(self):
        for turn in itertools.count():
            if self.over.is_set():
                return
            step = self.next_step(turn)
            try:
                step()
                self.told[step.__name__] += 1
            except Idle:
                self.over.wait(0.001)
            except Lost as lost:
                self.cut[step.__name__] += lost.was_asked
                self.over.wait(0.02)
            except Exception as error:  # pylint: disable=broad-except
                self.problem = self.problem or f"client {self.number}, {step.__name__}: {error!r}"
                return

    def acknowledge(self, thing, answer):
        thing.id, thing.fate = answer["id"], "here"

    def create(self):
        self.room("box", BOXES_MAX)
        box = self.new("box", [{}])
        self.acknowledge(box, self.ask("POST", "sandboxes", {"name": box.name, "network": "none"}))

    def write(self):
        box = self.one("box", "running")
        path, data = self.rng.choice("xyz"), self.rng.randbytes(self.rng.choice(SIZES))
        after = [{**world, path: sum_of(data)} for world in box.worlds]
        box.worlds += after
        box.status = "unsure"
        self.ask("PUT", f"sandboxes/{box.name}/files/workspace/{path}", data)
        box.worlds, box.status = after, "running"

    def snapshot(self):
        self.room("shot", SHOTS_MAX)
        box = self.one("box")
        shot = self.new("shot", box.worlds)
        self.acknowledge(shot, self.ask_of(box, "/snapshots", {
            "name": shot.name, "freeze": self.rng.random() < 0.3}))

    def fork(self):
        self.room("box", BOXES_MAX)
        origin = self.one("box")
        box = self.new("box", origin.worlds)
        self.acknowledge(box, self.ask_of(origin, "/fork", {"name": box.name})["sandboxes"][0])

    def fork_snapshot(self):
        self.room("box", BOXES_MAX)
        shot = self.one("shot")
        box = self.new("box", shot.worlds)
        self.acknowledge(box, self.ask("POST", f"snapshots/{shot.name}/fork",
                                       {"name": box.name})["sandboxes"][0])

    def roll_back(self):
        box, shot = self.one("box"), self.one("shot")
        before = box.worlds
        box.worlds = before + shot.worlds
        saved = self.ask_of(box, "/rollback", {"snapshot": shot.name})["saved"]
        box.worlds = list(shot.worlds)
        self.saved[saved["id"]] = before

    def sleep(self):
        self.ask_of(self.one("box", "running"), "/sleep")

    def wake(self):
        self.ask_of(self.one("box", "running"), "/wake")

    def stop(self):
        box = self.one("box", "running")
        self.ask_of(box, "/stop")
        box.status = "stopped"

    def start(self):
        box = self.one("box", "stopped")
        self.ask_of(box, "/start")
        box.status = "running"

    def back_up(self):
        self.room("backup", BACKUPS_MAX)
        box = self.one("box")
        backup = self.new("backup", box.worlds)
        self.acknowledge(backup, self.ask_of(box, "/backups", {"name": backup.name}))

    def restore(self):
        box, backup = self.one("box", "running"), self.one("backup")
        box.worlds = box.worlds + backup.worlds
        self.ask_of(box, "/restore", {"backup": backup.id})
        box.worlds = list(backup.worlds)

    def delete(self, thing, place):
        if self.rng.random() < 0.5:
            raise Idle
        thing.fate = "maybe"
        self.ask("DELETE", f"{place}/{thing.id}")
        thing.fate = "gone"

    def destroy(self):
        self.delete(self.one("box"), "sandboxes")

    def delete_snapshot(self):
        self.delete(self.one("shot"), "snapshots")

    def delete_backup(self):
        self.delete(self.one("backup"), "backups")

    # --- in the object store -----------------------------------------------------------------

    def sync(self):
        box = self.one("box")
        box.mirror = None
        self.ask_of(box, "/sync")
        box.mirror = list(box.worlds)

    def sync_restore(self):
        box = self.one("box", "running", where=lambda box: box.mirror)
        box.worlds = box.worlds + box.mirror
        self.ask_of(box, "/sync/restore")
        box.worlds = list(box.mirror)

    def fall_asleep(self):
        """As deep as it goes; the steps come by themselves, a second each."""
        box = self.one("box", "running")
        self.ask_of(box, "", TIERS_FAST, "PATCH")
        self.ask_of(box, "/sleep")
        box.status = "falling"

    def offload(self):
        """See that it came to its end; one that did not when the round is over was cut off."""
        box = self.one("box", "falling")
        try:
            tier = self.ask("GET", f"sandboxes/{box.name}")["tier"]
        except Lost:
            raise Idle from None
        if tier != "offloaded":
            raise Idle
        box.status = "offloaded"

    def fetch(self):
        """Any request will do."""
        box = self.one("box", "offloaded")
        found = sums_in(self.ask_of(box, "/exec", {"command": LOOK}))
        assert found in box.worlds, f"{box.name} woke with {found}, not one of {box.worlds}"
        if self.rng.random() < 0.5:
            self.ask_of(box, "", TIERS_SLOW, "PATCH")

    def collect(self):
        try:
            self.ask("POST", "gc", {"grace": 0})
        except Lost as lost:
            if lost.status == 503:
                raise Idle from None  # a disk is on its way to the store
            raise

    def mount(self):
        box = self.one("box", "running", where=lambda box: box.is_mounted is False)
        box.is_mounted = None
        self.ask_of(box, "/mounts", {"path": FOLDER, "bucket": box.name})
        box.is_mounted = True

    def write_mounted(self):
        box = self.one("box", "running", where=lambda box: box.is_mounted)
        path, word = self.rng.choice("xyz"), self.rng.randbytes(8).hex()
        size = self.rng.choice(SIZES)
        data = (f"{word}\n".encode() * (size // len(word) + 1))[:size]
        after = [{**world, path: sum_of(data)} for world in box.bucket]
        box.bucket += after
        # Unlike a shell, cp closes once and tells when that failed.
        done = self.ask_of(box, "/exec", {
            "command": f"yes {word} | head -c {size} >/tmp/new && cp /tmp/new {FOLDER}/{path}"})
        if any(word in done["stderr"] for word in AWAY):
            raise Lost(done["stderr"])
        assert done["exitCode"] == 0, f"write to the bucket of {box.name}: {done}"
        box.bucket = after

    def unmount(self):
        box = self.one("box", "running", where=lambda box: box.is_mounted)
        box.is_mounted = None
        self.ask_of(box, f"/mounts?path={FOLDER}", method="DELETE")
        box.is_mounted = False

    # --- afterwards --------------------------------------------------------------------------

    def settle(self, found, shots, look_into_all):
        """The ledger against what is there; `found` is {name: what is listed}, `shots` {id: ...}."""
        for thing in self.things:
            there = found.pop(thing.name, None)
            if thing.fate == "gone":
                equal(there, None, f"{thing.name} was deleted and is there")
            elif thing.fate == "here":
                assert there, f"{thing.name} was acknowledged and is gone"
            if there:
                self.check(thing, there, look_into_all)
            else:
                thing.fate = "gone"
        self.things = [thing for thing in self.things if thing.fate == "here"]
        self.check_saved(shots)

    def check(self, thing, there, look_into_all):
        if thing.id:
            equal(there["id"], thing.id, f"id of {thing.name}")
        thing.id, was_unsure = there["id"], thing.fate == "maybe"
        thing.fate = "here"
        if thing.kind == "box":
            self.check_box(thing, there, look_into_all)
        elif thing.is_new or was_unsure or look_into_all:
            if thing.kind == "shot":
                equal(there["state"], "ready", f"state of {thing.name}")
                found = self.plane.snapshot_contents(thing.id)
            else:
                found = self.plane.backup_contents(thing.id)
            self.compare(thing, found)

    def check_box(self, box, there, look_into_all):
        assert there["status"] not in ("error", "unknown"), f"{box.name} is broken: {there}"
        self.cut["offload"] += box.status == "falling"
        if box.mirror is not None:
            found = self.plane.mirror_contents(box.id)
            assert found in box.mirror, f"mirror of {box.name}: {found}, not one of {box.mirror}"
        if box.status == "offloaded":
            equal(there["tier"], "offloaded", f"tier of {box.name}, which was told")
            if not look_into_all and self.rng.random() < 0.6:
                return  # who fetches it later looks into it
        if there["status"] == "stopped":
            assert box.status in ("stopped", "unsure"), f"{box.name} is stopped"
            self.ask("POST", f"sandboxes/{box.name}/start", {})
        box.status = "running"
        self.compare(box, self.plane.contents(box.id))
        self.check_mirror(box)
        self.check_mount(box)

    def check_mirror(self, box):
        """What a sync left that was cut off is mended by the next one, whenever that is."""
        if box.mirror is None and self.rng.random() < 0.3:
            self.ask("POST", f"sandboxes/{box.name}/sync", {})
            box.mirror = list(box.worlds)
            equal(self.plane.mirror_contents(box.id), box.worlds[0], f"mirror of {box.name}")

    def check_mount(self, box):
        def state():
            listed = self.ask("GET", f"sandboxes/{box.name}/mounts")["mounts"]
            return listed[0]["state"] if listed else None
        is_mounted = state() is not None
        if box.is_mounted is not None:
            equal(is_mounted, box.is_mounted, f"whether {box.name} has its mount")
        box.is_mounted = is_mounted
        if is_mounted:
            wait_until(lambda: state() == "there", f"the mount of {box.name} is back", SECONDS)
        found = self.plane.contents(box.id, FOLDER)
        if not is_mounted:
            equal(found, {}, f"{FOLDER} of {box.name}, without a mount")
            found = self.plane.bucket_contents(box.name)
        assert found in box.bucket, f"bucket of {box.name}: {found}, not one of {box.bucket}"
        equal(self.plane.bucket_contents(box.name), found, f"bucket of {box.name} in the store")
        box.bucket = [found]

    def compare(self, thing, found):
        assert found in thing.worlds, f"{thing.name} holds {found}, not one of {thing.worlds}"
        thing.worlds, thing.is_new = [found], False

    def check_saved(self, shots):
        """What rollbacks replaced is there as well, and then it goes: it would be many."""
        for name, worlds in self.saved.items():
            assert name in shots, f"what a rollback saved is gone: {name}"
            found = self.plane.snapshot_contents(name)
            assert found in worlds, f"saved {name} holds {found}, not one of {worlds}"
        self.saved = {}
