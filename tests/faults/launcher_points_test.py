#!/usr/bin/python3
# timeout: 600
"""The launcher dies at every named crash point of its own (base/crash_point.h), with the helpers that
work for it, in the middle of a snapshot, a fork or a step back. Sandboxes go on meanwhile. The next
launcher finds them: one that stood still for a copy goes on, every disk is whole, what was half made
is gone, and what was acknowledged is there."""

import http.client
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import ROOT, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from traces import names_in  # noqa: E402

SECONDS = 30.0
BOX = f"{NATIVE}/sandboxes/box"


def points_in_source():
    found = set()
    for folder, _, names in os.walk(os.path.join(ROOT, "src", "launcher")):
        for name in names:
            if name.endswith(".c") and not name.endswith("_test.c"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found |= set(re.findall(r'CRASH_POINT\("([^"]+)"\)', file.read()))
    assert found, "no crash points in src/launcher"
    return found


class Doomed(ControlPlane):
    """A launcher that dies at a point. Those of plain pools are reached in such a pool: one that holds
    something without a filesystem of its own."""

    def __init__(self, point, nth):
        super().__init__("--stock", "0", environment={"BURROW_CRASH_POINT": f"{point}:{nth}"})
        if ".plain_" in point:
            self.make_plain_pool()

    def provoke(self, method, path, body):
        """The request that the launcher dies of. The daemon may still be able to say so."""
        try:
            equal(self.ask(method, path, body, timeout=SECONDS).status, 503, f"{method} {path}")
        except (OSError, EOFError, http.client.HTTPException):
            pass
        self.process.wait(timeout=SECONDS)

    def revive(self):
        del self.environment["BURROW_CRASH_POINT"]
        self.launch()
        wait_until(self.is_ready, "the launcher is started again", SECONDS)

    def unfinished(self):
        store = f"{pool_store(self.data)}/unfinished"
        return [name for owner in names_in(store) for name in names_in(f"{store}/{owner}")]

    def content(self, name):
        return self.execute(name, "cat note", timeout=SECONDS)["stdout"]

    def status(self):
        return self.sandbox("box")["status"]


# What the launcher is asked for when it dies, and whether another copy of that kind comes before it.
REQUESTS = {
    "plain_copy": ("POST", f"{BOX}/snapshots", {"name": "second"}),
    "plain_seal": ("POST", f"{NATIVE}/snapshots/first/fork", {"name": "copy"}),
    "plain_share": ("POST", f"{NATIVE}/snapshots/first/fork", {"name": "copy"}),
    "hold": ("POST", f"{BOX}/snapshots", {"name": "second", "freeze": True}),
    "snapshot": ("POST", f"{BOX}/snapshots", {"name": "second"}),
    "fork": ("POST", f"{NATIVE}/snapshots/first/fork", {"name": "copy"}),
    "fork of one that runs": ("POST", f"{BOX}/fork", {"name": "copy"}),
    "roll_back": ("POST", f"{BOX}/rollback", {"snapshot": "first"}),
}


def dies_at(point, request=None):
    what = point.split(".")[1]
    # The first snapshot, of before, passes there as well. Going back makes one of its own.
    plane = Doomed(point, 2 if what in ("hold", "snapshot", "plain_copy") else 1)
    plane.start()
    try:
        plane.create("box", network="none")
        plane.execute("box", "echo -n then > note")
        plane.call("POST", f"{BOX}/snapshots", {"name": "first", "freeze": True})
        plane.execute("box", "echo -n now > note")
        plane.provoke(*REQUESTS[request or what])
        plane.revive()
        check(plane, what)
        plane.stop()
    except BaseException:
        print("\n".join(f"# log: {line}" for line in plane.log().splitlines()[-30:]))
        raise
    finally:
        plane.kill()


def check(plane, what):
    equal(plane.unfinished(), [], "copies that were never finished")
    if what == "roll_back":
        # It was stopped for that; its disk is the old one or the new one.
        if plane.status() == "stopped":
            plane.call("POST", f"{BOX}/start", {})
        assert plane.content("box") in ("then", "now"), plane.content("box")
    else:
        equal(plane.status(), "running", "a sandbox that was copied")
        equal(plane.content("box"), "now", "what is in it")
    opened = plane.call("POST", f"{NATIVE}/snapshots/first/fork", {}, timeout=SECONDS)["sandboxes"][0]
    equal(plane.content(opened["id"]), "then", "what is in the snapshot")
    # Everything that was asked for can be asked for again.
    snapshot = plane.call("POST", f"{BOX}/snapshots", {"freeze": True}, timeout=SECONDS)
    equal(snapshot["state"], "ready", "a snapshot afterwards")


def add_test(point):
    def dies_there():
        need_launcher()
        dies_at(point)
    dies_there.__name__ = f"a_launcher_may_die_at_{point.replace('.', '_')}"
    test(dies_there)


for each in sorted(points_in_source()):
    add_test(each)


@test
def a_launcher_may_die_while_a_sandbox_stands_still_for_its_fork():
    need_launcher()
    dies_at("launcher.hold.frozen", "fork of one that runs")


@test
def a_launcher_may_die_when_a_running_sandbox_was_forked():
    need_launcher()
    dies_at("launcher.fork.placed", "fork of one that runs")

main()
