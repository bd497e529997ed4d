#!/usr/bin/python3
# timeout: 3600
"""Nothing stored is lost: rounds of kill -9 of the daemon, the launcher or both, while clients make
snapshots, forks and backups, go back, restore, sleep, stop and delete, and write down what they were
told. Afterwards every acknowledged snapshot opens with its contents, every acknowledged backup can be
restored, what was under way has happened or has not, nothing else is on the host, and `burrow fsck`
finds nothing lost.

    BURROW_FULL=1        200 rounds instead of 20
    BURROW_SEED=N        the rounds of an earlier run again (their number is printed)
    BURROW_ROUNDS=N
"""

import http.client
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from collections import Counter  # noqa: E402

from control_plane import NATIVE, Refused  # noqa: E402
from launcher import need_launcher  # noqa: E402
from outpost import cgroup, groups_of  # noqa: E402
from program import wait_until  # noqa: E402
from stored import StoredPlane, sum_of  # noqa: E402
from tap import equal, main, test  # noqa: E402

FULL = os.environ.get("BURROW_FULL") == "1"
ROUNDS = int(os.environ.get("BURROW_ROUNDS", 200 if FULL else 20))
SEED = int(os.environ.get("BURROW_SEED", random.SystemRandom().randrange(1 << 32)))
CLIENTS = 3
BOXES_EACH, SHOTS_EACH, BACKUPS_EACH = 3, 4, 3  # at most, per client
CALL_SECONDS = 30.0
SIZES = (1, 5000, 300000)
FLAGS = ("--stock", "0", "--hibernate-after", "500ms")
KINDS = (("daemon",), ("launcher",), ("launcher", "daemon"), ("daemon", "launcher"))
# Who answers so has not done it, or nobody knows: the ledger says "maybe".
UNSURE = (499, 500, 502, 503, 504)


class Lost(Exception):
    """The answer did not come: what was asked for may have happened."""


class Idle(Exception):
    """There is nothing to do that with."""


class Thing:
    """What a client was told about one sandbox, snapshot or backup. `worlds` are the contents that
    it may have, one of them for sure."""

    def __init__(self, kind, name, worlds):
        self.kind, self.name, self.id = kind, name, None
        self.worlds = list(worlds)
        self.fate = "maybe"  # here, gone, maybe
        self.status = "running"  # of a sandbox; "unsure": it is left alone until the round is over
        self.is_new = True  # nobody looked into it yet


class Client:
    """One that works for itself and remembers."""

    def __init__(self, plane, number, rng, over):
        self.plane, self.number, self.rng, self.over = plane, number, rng, over
        self.things, self.made = [], 0
        self.saved = {}  # id of a snapshot that a rollback made: worlds
        self.counts = Counter()
        self.problem = None

    # --- asking ------------------------------------------------------------------------------

    def ask(self, method, path, body=None):
        """The JSON of a success; Refused for an answer that is sure, else Lost."""
        try:
            return self.plane.call(method, f"{NATIVE}/{path}", body, timeout=CALL_SECONDS)
        except Refused as refused:
            if refused.status in UNSURE:
                raise Lost(str(refused)) from None
            raise
        except (OSError, EOFError, http.client.HTTPException, ValueError) as error:
            raise Lost(repr(error)) from None

    def ask_of(self, box, verb, body=None, method="POST"):
        """Of a sandbox that nobody knows much about until the answer is there."""
        status, box.status = box.status, "unsure"
        answer = self.ask(method, f"sandboxes/{box.name}{verb}", {} if body is None else body)
        box.status = status
        return answer

    def new(self, kind, worlds):
        self.made += 1
        thing = Thing(kind, f"{kind}{self.number}-{self.made}", worlds)
        self.things.append(thing)
        return thing

    def here(self, kind):
        return [thing for thing in self.things if thing.kind == kind and thing.fate == "here"]

    def room(self, kind, most):
        if sum(thing.kind == kind and thing.fate != "gone" for thing in self.things) >= most:
            raise Idle

    def one(self, kind, *statuses):
        fine = [thing for thing in self.here(kind)
                if thing.status != "unsure" and (not statuses or thing.status in statuses)]
        if not fine:
            raise Idle
        return self.rng.choice(fine)

    # --- work --------------------------------------------------------------------------------

    def run(self):
        steps = (self.create, self.write, self.write, self.snapshot, self.snapshot, self.fork,
                 self.fork_snapshot, self.roll_back, self.roll_back, self.sleep, self.wake,
                 self.stop, self.start, self.back_up, self.restore, self.delete_snapshot,
                 self.delete_backup, self.destroy)
        while not self.over.is_set():
            step = self.rng.choice(steps)
            try:
                step()
                self.counts[step.__name__] += 1
            except Idle:
                self.over.wait(0.001)
            except Lost:
                self.counts["lost"] += 1
                self.over.wait(0.02)
            except Exception as error:  # pylint: disable=broad-except
                self.problem = self.problem or f"client {self.number}, {step.__name__}: {error!r}"
                return

    def acknowledge(self, thing, answer):
        thing.id, thing.fate = answer["id"], "here"

    def create(self):
        self.room("box", BOXES_EACH)
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
        self.room("shot", SHOTS_EACH)
        box = self.one("box")
        shot = self.new("shot", box.worlds)
        self.acknowledge(shot, self.ask_of(box, "/snapshots", {
            "name": shot.name, "freeze": self.rng.random() < 0.3}))

    def fork(self):
        self.room("box", BOXES_EACH)
        origin = self.one("box")
        box = self.new("box", origin.worlds)
        self.acknowledge(box, self.ask_of(origin, "/fork", {"name": box.name})["sandboxes"][0])

    def fork_snapshot(self):
        self.room("box", BOXES_EACH)
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
        box = self.one("box", "running")
        self.ask_of(box, "/sleep")

    def wake(self):
        box = self.one("box", "running")
        self.ask_of(box, "/wake")

    def stop(self):
        box = self.one("box", "running")
        self.ask_of(box, "/stop")
        box.status = "stopped"

    def start(self):
        box = self.one("box", "stopped")
        self.ask_of(box, "/start")
        box.status = "running"

    def back_up(self):
        self.room("backup", BACKUPS_EACH)
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

    # --- afterwards --------------------------------------------------------------------------

    def settle(self, found, look_into_all):
        """The ledger against what is there; `found` is {name: what is listed}."""
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

    def check(self, thing, there, look_into_all):
        if thing.id:
            equal(there["id"], thing.id, f"id of {thing.name}")
        thing.id, was_unsure = there["id"], thing.fate == "maybe"
        thing.fate = "here"
        if thing.kind == "box":
            self.check_box(thing, there)
        elif thing.is_new or was_unsure or look_into_all:
            if thing.kind == "shot":
                equal(there["state"], "ready", f"state of {thing.name}")
                found = self.plane.snapshot_contents(thing.id)
            else:
                found = self.plane.backup_contents(thing.id)
            self.compare(thing, found)

    def check_box(self, box, there):
        assert there["status"] not in ("error", "unknown"), f"{box.name} is broken: {there}"
        if there["status"] == "stopped":
            assert box.status in ("stopped", "unsure"), f"{box.name} is stopped"
            self.ask("POST", f"sandboxes/{box.name}/start", {})
        box.status = "running"
        self.compare(box, self.plane.contents(box.id))

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


# --- rounds --------------------------------------------------------------------------------------


def strike(plane, clients, rng, kind, over):
    over.clear()
    workers = [threading.Thread(target=client.run) for client in clients]
    for worker in workers:
        worker.start()
    try:
        time.sleep(rng.random() * 0.9)
        plane.kill_hard(*kind)
        time.sleep(rng.random() * 0.2)
    finally:
        over.set()
        for worker in workers:
            worker.join()
    equal([client.problem for client in clients if client.problem], [], "problems")


def settle(plane, clients, look_into_all):
    shots = {one["id"]: one for one in plane.listed("snapshots")}
    named = [one for one in shots.values() if one["name"]]
    found = {one["name"]: one for one in
             (*plane.listed("sandboxes"), *plane.listed("backups"), *named)}
    for client in clients:
        client.settle(found, look_into_all)
        client.check_saved(shots)
    equal(list(found), [], "things nobody asked for")
    for one in shots.values():
        if not one["name"]:
            equal(one["reason"], "rollback", "why a snapshot without a name is kept")
            plane.call("DELETE", f"{NATIVE}/snapshots/{one['id']}", timeout=CALL_SECONDS)
    plane.wait_without_strays()
    plane.check_promises()


def clear(plane):
    for kind in ("sandboxes", "snapshots", "backups"):
        for one in plane.listed(kind):
            plane.call("DELETE", f"{NATIVE}/{kind}/{one['id']}", timeout=CALL_SECONDS)
    plane.wait_without_strays()


def kinds_of(rng):
    while True:
        yield from rng.sample(KINDS, len(KINDS))


@test
def what_was_stored_is_there_whatever_is_killed():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {ROUNDS} rounds", flush=True)
    rng, over = random.Random(SEED), threading.Event()
    with StoredPlane(*FLAGS) as plane:
        try:
            clients = [Client(plane, number, random.Random(f"{SEED} {number}"), over)
                       for number in range(CLIENTS)]
            total = Counter()
            for number, kind in zip(range(ROUNDS), kinds_of(rng)):
                strike(plane, clients, rng, kind, over)
                settle(plane, clients, number == ROUNDS - 1)
                told = sum((client.counts for client in clients), Counter())
                for client in clients:
                    client.counts.clear()
                total += told
                print(f"# round {number}: kill -9 of {' and '.join(kind)}; {dict(told)}", flush=True)
            print(f"# all rounds: {dict(total)}", flush=True)
            clear(plane)
        except BaseException:
            plane.print_log()
            raise


@test
def the_end_leaves_nothing():
    need_launcher()
    wait_until(lambda: not groups_of(cgroup()), "groups are gone")


main()
