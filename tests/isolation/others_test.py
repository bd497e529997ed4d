#!/usr/bin/python3
"""A sandbox against another one, and against the next start on its own disk.

# timeout: 600
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from tap import equal, main, test
from wall_lab import PLACE, WallLab

ATTACK = f"{PLACE}/attack"
MARK = "burrow-mark-of-the-other"

# Everything that one can reach by a path, the folders of processes included.
FIND_MARK = (f"find / -name '{MARK}*' 2>/dev/null; "
             f"for root in /proc/[0-9]*/root /proc/[0-9]*/cwd; do ls $root/workspace; done "
             f"2>/dev/null | grep '{MARK}' || true")

# The other: a file, a process, an abstract socket and a port of its own.
BE_THE_OTHER = f"""
touch /workspace/{MARK} /tmp/{MARK} /dev/shm/{MARK}
/usr/bin/python3 -c '
import socket, time
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0{MARK}")
abstract.listen()
port = socket.create_server(("127.0.0.1", 7002))
open("/workspace/{MARK}-ready", "w").close()
time.sleep(60)
' >/dev/null 2>&1 &
while ! [ -e /workspace/{MARK}-ready ]; do sleep 0.01; done
"""


def attack(box, name, **targets):
    words = " ".join(f"{key}={value}" for key, value in targets.items())
    return box.run(f"{words} {ATTACK} {name}")["stdout"].strip()


@test
def the_files_of_another_sandbox_are_nowhere():
    with WallLab() as lab:
        other, box = lab.start([]), lab.start([])
        other.run(BE_THE_OTHER)
        equal(len(other.run(FIND_MARK)["stdout"].splitlines()) >= 4, True, "the other sees its own")
        equal(box.run(FIND_MARK)["stdout"], "")


@test
def the_sockets_of_another_sandbox_are_nowhere():
    with WallLab() as lab:
        other, box = lab.start([]), lab.start([])
        other.run(BE_THE_OTHER)
        for who, answer in ((other, "succeeded"), (box, "refused ECONNREFUSED")):
            equal(attack(who, "connect_abstract", TARGET_ABSTRACT=MARK), f"connect_abstract {answer}")
            equal(attack(who, "connect_loopback", TARGET_PORT=7002), f"connect_loopback {answer}")


@test
def the_processes_of_another_sandbox_are_not_seen_and_not_hit():
    with WallLab() as lab:
        other, box = lab.start([]), lab.start([])
        other.run("(sleep 60; touch /workspace/never) >/dev/null 2>&1 &")
        seen = box.run("cat /proc/[0-9]*/comm | grep -c sleep || true")["stdout"].strip()
        equal(seen, "0")
        box.run("kill -9 -1")
        box.run("for pid in $(seq 2 400); do kill -9 $pid; done")
        equal(other.run("cat /proc/[0-9]*/comm | grep -c sleep")["stdout"].strip(), "1")


@test
def two_sandboxes_have_no_user_id_in_common():
    with WallLab() as lab:
        maps = [lab.start([]).run("cat /proc/self/uid_map /proc/self/gid_map")["stdout"].split()
                for _ in range(2)]
    for first, count in ((1, 2), (4, 5)):
        one, two = sorted(int(numbers[first]) for numbers in maps)
        equal(two - one >= int(maps[0][count]), True, "the ranges lie apart")


@test
def a_link_planted_on_the_disk_leads_the_next_start_nowhere():
    with WallLab() as lab:
        folder = lab.run([], "/usr/bin/printenv", "TARGET_FOLDER")["stdout"].strip()
        box = lab.start([])
        box.run("rm -r /var/usrlocal")
        equal(attack(box, "plant_link", TARGET_FOLDER=folder), "plant_link succeeded")
        lab.stop(box, keep=True)
        # Without the wall the host's folder is there to be read ...
        box = lab.start(["links"], disk_of=box)
        equal(attack(box, "read_planted_link"), "read_planted_link succeeded")
        lab.stop(box, keep=True)
        # ... with it, the link means a folder of the sandbox, which it has not.
        box = lab.start([], disk_of=box)
        equal(attack(box, "read_planted_link"), "read_planted_link refused ENOENT")
        equal(box.run("ls -A /usr/local; touch /usr/local/x")["stdout"], "", "nothing is there")


MOVED = "mv /var /srv/var && ln -s /srv/var /var"
ODD = ("rm -r /var/usrlocal && mkfifo /var/usrlocal", "rm -r /var/usrlocal && ln -s usrlocal /var/usrlocal",
       "rm -r /var/usrlocal && echo text > /var/usrlocal", "rm -r /var/usrlocal",
       "rm -r /var/usrlocal && ln -s /proc/self/cwd /var/usrlocal", f"{MOVED} && rm -r /srv/var",
       "rm -r /var && mkfifo /var", "rm -r /var && ln -s /../../../../.. /var")


@test
def a_var_that_is_no_folder_any_more_keeps_no_sandbox_from_starting():
    with WallLab() as lab:
        for odd in ODD:
            box = lab.start([])
            equal(box.run(odd)["exitCode"], 0, odd)
            lab.stop(box, keep=True)
            box = lab.start([], disk_of=box)
            equal(box.run("ls -A /usr/local; echo alive")["stdout"], "alive\n", odd)
            box.run("rm -rf /var; mkdir -p /var/usrlocal/bin")
            lab.stop(box, keep=True)
            box = lab.start([], disk_of=box)
            equal(box.run("ls -A /usr/local")["stdout"], "bin\n", f"mended after: {odd}")
            lab.stop(box)
        box = lab.start([])
        equal(box.run(f"echo mine > /usr/local/bin/mine && {MOVED}")["exitCode"], 0, MOVED)
        lab.stop(box, keep=True)
        box = lab.start([], disk_of=box)
        equal(box.run("cat /usr/local/bin/mine")["stdout"], "mine\n", "it may be somewhere else")


@test
def links_in_place_of_mount_points_end_the_start():
    steps = {"proc": "check the places of mounts", "dev": "check the places of mounts",
             "sys": "check the places of mounts", PLACE[1:]: "attach the bound folders"}
    for name, step in steps.items():
        with WallLab() as lab:
            box = lab.start(["seccomp.mounts", "capability.sys_admin"])
            done = box.run(f"umount -l /{name} && rmdir /{name} && ln -s /tmp /{name}")
            equal(done["exitCode"], 0, done["stderr"])
            lab.stop(box, keep=True)
            answer = lab.ask("start", "-", box.id)
            equal(step in answer.get("error", ""), True, str(answer))


main()
