#!/usr/bin/python3
# timeout: 7200
"""Nothing stored is lost: rounds of kill -9 of the daemon, the launcher or both, while clients make
snapshots, forks and backups, go back, restore, sleep down to the object store, mirror, mount, collect
garbage and delete, and write down what they were told (stored_client.py). After every round what was
promised is there: every new snapshot opens with its contents (in the last round all of them), every
acknowledged backup can be restored, what was offloaded wakes with its files, mirrors and buckets hold
what they should; what was under way has happened or has not; nothing else is on the host, and
`burrow fsck` finds nothing lost and, behind a `burrow gc`, no garbage.

    BURROW_FULL=1        200 rounds instead of 5, and more until each operation was asked for 200 times
    BURROW_SEED=N|random  other rounds than the usual (their number is printed)
    BURROW_ROUNDS=N
"""

import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from collections import Counter  # noqa: E402

from control_plane import NATIVE  # noqa: E402
from launcher import need_launcher  # noqa: E402
from outpost import cgroup, groups_of  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL, SEED  # noqa: E402
from stored import StoredPlane  # noqa: E402
from stored_client import CALL_SECONDS, Client  # noqa: E402
from tap import equal, main, test  # noqa: E402

ROUNDS = int(os.environ.get("BURROW_ROUNDS", 200 if FULL else 5))
ASKED = ROUNDS if FULL else 1  # times, each operation, at least
ROUNDS_MAX = 5 * ROUNDS
CLIENTS = 3
STRIKE_SECONDS = (0.9, 4.0)  # the longer for what happens by the clock
FLAGS = ("--stock", "0", "--hibernate-after", "500ms")
KINDS = (("daemon",), ("launcher",), ("launcher", "daemon"), ("daemon", "launcher"))


# --- rounds --------------------------------------------------------------------------------------


def strike(plane, clients, rng, kind, over):
    over.clear()
    workers = [threading.Thread(target=client.run) for client in clients]
    for worker in workers:
        worker.start()
    try:
        time.sleep(rng.random() * rng.choice(STRIKE_SECONDS))
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
    sandboxes = plane.listed("sandboxes")
    living = {one["id"] for one in sandboxes}
    found = {one["name"]: one for one in (*sandboxes, *plane.listed("backups"), *named)}
    for client in clients:
        client.settle(found, shots, look_into_all)
    equal(list(found), [], "things nobody asked for")
    for one in shots.values():
        if one["name"]:
            continue
        if one["reason"] == "sleep":  # what the next offload tells apart from: goes with its sandbox
            assert one["sandboxId"] in living, f"{one} has outlived its sandbox"
        else:
            equal(one["reason"], "rollback", "why a snapshot without a name is kept")
            plane.call("DELETE", f"{NATIVE}/snapshots/{one['id']}", timeout=CALL_SECONDS)
    plane.wait_without_strays()
    plane.check_clean()


def clear(plane):
    for kind in ("sandboxes", "snapshots", "backups"):
        for one in plane.listed(kind):
            plane.call("DELETE", f"{NATIVE}/{kind}/{one['id']}", timeout=CALL_SECONDS)
    plane.wait_without_strays()


def kinds_of(rng):
    while True:
        yield from rng.sample(KINDS, len(KINDS))


class Tally:
    """How often each operation was answered, and how often a kill came in between."""

    def __init__(self, clients):
        self.clients, self.round = clients, 0

    def counts(self):
        """{operation: (answered, cut off)}"""
        told = sum((client.told for client in self.clients), Counter())
        cut = sum((client.cut for client in self.clients), Counter())
        return {step.__name__: (told[step.__name__], cut[step.__name__])
                for step in self.clients[0].steps}

    def seldom(self):
        """(times, operation) of the one that was asked for least."""
        return min((sum(both), name) for name, both in self.counts().items())

    def is_over(self):
        return self.round >= ROUNDS and self.seldom()[0] >= ASKED

    def rounds(self):
        """Their numbers, as many as are needed."""
        while not self.is_over():
            assert self.round < ROUNDS_MAX, f"seldom done: {self.seldom()}"
            yield self.round
            self.round += 1

    def print(self):
        for name, (told, cut) in self.counts().items():
            print(f"# {name}: {told} answered, {cut} cut off", flush=True)


@test
def what_was_stored_is_there_whatever_is_killed():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {ROUNDS} rounds", flush=True)
    rng, over = random.Random(SEED), threading.Event()
    with StoredPlane(*FLAGS) as plane:
        try:
            clients = [Client(plane, number, random.Random(f"{SEED} {number}"), over)
                       for number in range(CLIENTS)]
            tally = Tally(clients)
            for number, kind in zip(tally.rounds(), kinds_of(rng)):
                strike(plane, clients, rng, kind, over)
                settle(plane, clients, False)
                print(f"# round {number}: kill -9 of {' and '.join(kind)}; {tally.seldom()}", flush=True)
            settle(plane, clients, True)
            tally.print()
            clear(plane)
        except BaseException:
            plane.print_log()
            raise


@test
def the_end_leaves_nothing():
    need_launcher()
    wait_until(lambda: not groups_of(cgroup()), "groups are gone")


main()
