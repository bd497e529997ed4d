#!/usr/bin/python3
"""The guard around the tests of isolation: it holds when walls do not, and leaves nothing.

# timeout: 600
"""

import glob
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from program import STOP_SECONDS, wait_until
from tap import equal, main, test
from wall_lab import WallLab


def groups(pid):
    found = []
    for place, folders, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(place, name) for name in folders if name == f"burrow-lab-{pid}"]
    return found


def folders(pid):
    return glob.glob(f"/var/tmp/burrow-lab-{pid}-*")


def loops(pid):
    """Loop devices whose file lies in the folder of a lab."""
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path, encoding="utf-8") as file:
                found += [path] if f"burrow-lab-{pid}-" in file.read() else []
        except OSError:
            pass  # gone meanwhile
    return found


def check_nothing_left(pid):
    equal(folders(pid), [], "folders left")
    equal(groups(pid), [], "groups left")
    wait_until(lambda: not loops(pid), "the loop device is gone")


def end_by(number):
    lab = WallLab()
    with lab:
        box = lab.start([])
        box.run("(while :; do :; done) >/dev/null 2>&1 &")
        pid = lab.process.pid
        equal([bool(found(pid)) for found in (groups, folders, loops)], [True] * 3, "it has these")
        lab.process.send_signal(number)
        lab.process.wait(STOP_SECONDS)
        status = lab.process.returncode
        lab.process.returncode = 0  # as it was meant to be
    check_nothing_left(lab.process.pid)
    return status


@test
def an_ordinary_end_leaves_nothing():
    with WallLab() as lab:
        lab.start([])
    check_nothing_left(lab.process.pid)


@test
def sigterm_leaves_nothing():
    equal(end_by(signal.SIGTERM), 128 + signal.SIGTERM)


@test
def ctrl_c_leaves_nothing():
    equal(end_by(signal.SIGINT), 128 + signal.SIGINT)


@test
def the_deadline_ends_everything():
    lab = WallLab("--timeout", "2", "--", "/bin/sleep", "60")
    with subprocess.Popen(lab.command, stdin=subprocess.DEVNULL) as process:
        equal(process.wait(STOP_SECONDS), 124)
    check_nothing_left(process.pid)


@test
def what_a_killed_lab_left_is_taken_away_by_the_next():
    lab = WallLab()
    with lab:
        lab.start([])
        pid = lab.process.pid
        lab.process.kill()
        lab.process.wait()
        lab.process.returncode = 0
    with WallLab() as another:
        another.run([], "/bin/true")
        check_nothing_left(pid)


@test
def without_limits_the_guard_still_counts_processes():
    with WallLab("--guard-pids", "60") as lab:
        script = "n=0; while [ $n -lt 200 ] && sleep 1000 & [ $? = 0 ]; do n=$((n+1)); done 2>/dev/null"
        box = lab.start(["pids_limit"])
        box.run(f"({script}) >/dev/null 2>&1 & sleep 2; kill -9 -1")
        equal(box.run("echo alive")["stdout"], "alive\n")


main()
