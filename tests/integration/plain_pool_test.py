#!/usr/bin/python3
# timeout: 600
"""Snapshots, forks, rollbacks, differences, backups and sleep on a plain pool, where disks that nobody
uses are shared as layers: the sandbox and everybody who looks at its disk see one tree, whatever it
lies on."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane, main_with_plane  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402
from traces import names_in  # noqa: E402

PLANE = None  # the daemon
SNAPSHOTS = f"{NATIVE}/snapshots"
SECONDS = 60


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def run(name, command):
    return PLANE.execute(name, command, timeout=SECONDS)["stdout"]


def stopped_snapshot(name):
    """Stop it, take a snapshot, which is a rename, and start it again."""
    PLANE.call("POST", of(name, "/stop"), {}, timeout=SECONDS)
    made = PLANE.call("POST", of(name, "/snapshots"), {}, timeout=SECONDS)
    equal(made.get("copied", False), False, "copied")
    PLANE.call("POST", of(name, "/start"), {}, timeout=SECONDS)
    return made["id"]


def layers():
    return names_in(f"{pool_store(PLANE.data)}/layers")


# What a sandbox does in three lives, with a snapshot between each two.
LIVES = (
    "mkdir -p d/e && echo 1 > d/one && echo 1 > d/e/deep && echo 1 > stays && ln stays linked && "
    "mkdir gone && echo 1 > gone/file",
    "echo 2 > d/two && rm d/one && rm -r gone && mkdir gone && echo 2 > gone/new && chmod 700 d",
    "echo 3 > d/one && rm d/two && rm -r d/e && echo 3 >> stays && mv gone moved",
)
END = "./d\n./d/one\n./linked\n./moved\n./moved/new\n./stays\n"
LOOK = "cd /workspace && find . -mindepth 1 | sort && cat d/one stays moved/new && stat -c %a d"
SEEN = END + "3\n1\n3\n2\n700\n"


def live(name):
    """Through all lives; the snapshots in between."""
    PLANE.create(name, network="none")
    made = []
    for command in LIVES:
        run(name, f"cd /workspace && {command}")
        made.append(stopped_snapshot(name))
    return made


@test
def what_was_made_in_several_lives_is_one_tree():
    snapshots = live("lives")
    assert len(layers()) >= 3, layers()
    equal(run("lives", LOOK), SEEN, "itself")
    fork = PLANE.call("POST", f"{SNAPSHOTS}/{snapshots[2]}/fork", {}, timeout=SECONDS)
    equal(run(fork["sandboxes"][0]["id"], LOOK), SEEN, "a fork")
    older = PLANE.call("POST", f"{SNAPSHOTS}/{snapshots[1]}/fork", {}, timeout=SECONDS)
    equal(run(older["sandboxes"][0]["id"], "cd /workspace && ls gone d"), "d:\ne\ntwo\n\ngone:\nnew\n",
          "a fork of an older one")


@test
def a_rollback_goes_through_layers():
    snapshots = live("back")
    PLANE.call("POST", of("back", "/rollback"), {"snapshot": snapshots[0]}, timeout=SECONDS)
    equal(run("back", "cd /workspace && cat d/one d/e/deep gone/file && stat -c %h stays"),
          "1\n1\n1\n2\n", "the first life")
    PLANE.call("POST", of("back", "/rollback"), {"snapshot": snapshots[2]}, timeout=SECONDS)
    equal(run("back", LOOK), SEEN, "the last life")


@test
def a_diff_sees_through_layers():
    snapshots = live("differs")
    answer = PLANE.call("GET", f"{SNAPSHOTS}/{snapshots[1]}/diff?against={snapshots[2]}",
                        timeout=SECONDS)
    told = {(kind, path) for line in answer["changes"] for kind, path in line.items() if kind != "what"}
    for expected in (("added", "workspace/moved/new"), ("removed", "workspace/d/two"),
                     ("removed", "workspace/d/e/deep"), ("changed", "workspace/stays")):
        assert expected in told, f"{expected} is not in {answer}"
    equal([path for _, path in told if path.endswith("/linked")], [], "what did not change")


@test
def backups_and_the_object_store_see_through_layers():
    live("kept")
    backup = PLANE.call("POST", of("kept", "/backups"), {"dir": "/workspace"}, timeout=SECONDS)
    PLANE.create("other", network="none")
    PLANE.call("POST", of("other", "/restore"), {"backup": backup}, timeout=SECONDS)
    equal(run("other", LOOK), SEEN, "from a backup")
    PLANE.call("PATCH", of("kept"), {"hibernateAfter": "100ms", "offloadAfter": "100ms"})
    run("kept", "true")
    PLANE.call("POST", of("kept", "/sleep"), {})
    wait_until(lambda: PLANE.sandbox("kept")["tier"] == "offloaded", "it is offloaded", SECONDS)
    equal(run("kept", LOOK), SEEN, "from the object store")


@test
def layers_go_with_the_last_who_has_them():
    PLANE.create("last", network="none")
    before = set(layers())
    run("last", "echo 1 > /workspace/file")
    made = stopped_snapshot("last")
    mine = set(layers()) - before
    assert mine, "no layer was made"
    PLANE.call("DELETE", f"{SNAPSHOTS}/{made}")
    PLANE.call("DELETE", of("last"))
    wait_until(lambda: not mine & set(layers()), "its layers are gone", SECONDS)


class PlainPlane(ControlPlane):
    def start(self):
        self.make_plain_pool()
        super().start()


sys.exit(main_with_plane("plain_pool", "--stock", "0", plane=PlainPlane))
