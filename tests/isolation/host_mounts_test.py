#!/usr/bin/python3
"""What the host sees of the mounts of sandboxes: nothing, although it shares its own.

The program's own mounts stand for the host's; tap.py makes them shared, as systemd does.

# timeout: 600
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import find_processes  # noqa: E402
from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from host_mounts import changes_since, pool_store, table  # noqa: E402
from image_place import ImagePlace  # noqa: E402
from launcher import children, need_launcher  # noqa: E402
from program import SLOW, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from traces import traces  # noqa: E402

MANY = 100 if SLOW < 2 else 20  # of everything
IMAGES = 5
MIB = 1 << 20
PLANT = "echo 'echo planted' >/usr/local/bin/burrow-planted; chmod +x /usr/local/bin/burrow-planted"
PLANTED = "/usr/local/bin/burrow-planted"
GROUPS = (" shared:", " master:", " propagate_from:")


def loops(folder):
    """Loop devices on files of that folder."""
    listed = subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"],
                            stdout=subprocess.PIPE, check=True).stdout.decode()
    return [line for line in listed.splitlines() if folder in line]


def groups_in(pid, kinds=GROUPS):
    """The mounts of a process that are in such a group with mounts of somebody else; none of one that
    ended meanwhile."""
    try:
        return [line for line in table(pid).splitlines() if any(kind in line for kind in kinds)]
    except OSError:
        return []


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


# --- one at a time -----------------------------------------------------------------------------


@test
def a_command_leaves_the_hosts_folders_alone():
    need_launcher()
    with ImagePlace() as place:
        before = table()
        for script in ("true", PLANT):
            equal(place.sandbox("host", script), (0, ""), script)
            equal(changes_since(before), "", f"the host's mounts after {script}")
        equal(os.path.exists(PLANTED), False, "a program of a sandbox on the host")
        wait_until(lambda: not loops(place.folder), "the pool's loop device is gone")


@test
def what_a_sandbox_mounts_is_in_no_group_of_the_host():
    need_launcher()
    before = table()
    # None in stock: one that is being made still has the launcher's mounts.
    with ControlPlane("--stock", "0") as plane:
        for i in range(16):
            plane.create(f"box{i}", network="none")
            plane.execute(f"box{i}", PLANT)
        equal(changes_since(before), "", "the host's mounts while sandboxes run")
        equal(os.path.exists(PLANTED), False, "a program of a sandbox on the host")
        equal(plane.execute("box3", "burrow-planted")["stdout"], "planted\n", "what the sandbox runs")
        equal(plane.execute("box3", "cat /proc/self/mountinfo")["stdout"].count("shared:"), 0, "groups")
        for pid in [plane.pid, *children(plane.pid)]:
            equal(groups_in(pid, (" shared:",)), [], f"groups of {pid}")
        for pid in sandboxes_of(plane):
            equal(groups_in(pid), [], f"groups of sandbox {pid}")


def sandboxes_of(plane):
    """Pids of all processes of sandboxes, which are in groups of their launcher's name."""
    found = set()
    for group in plane.groups():
        try:
            with open(f"{group}/cgroup.procs", encoding="ascii") as file:
                found |= {int(pid) for pid in file.read().split()}
        except OSError:
            continue  # a group that went
    assert len(found) >= 16, found
    return found


# --- many --------------------------------------------------------------------------------------


def work(plane, i):
    """One of each: a sandbox with something in it, a fork, a mount and a backup."""
    name = f"box{i}"
    plane.create(name, network="none")
    plane.execute(name, f"head -c {MIB} /dev/urandom >file; {PLANT}")
    try:
        plane.call("POST", of(name, "/mounts"), {"path": "/persist", "bucket": name})
        plane.execute(name, "cp file /persist/")
    except Refused as refusal:
        equal(refusal.status, 501, "mounts")  # a kernel that cannot map ids of FUSE mounts
    plane.call("POST", of(name, "/fork"), {"name": f"{name}-fork"}, timeout=60)
    plane.call("POST", of(name, "/backups"), {}, timeout=60)
    for one in (name, f"{name}-fork"):
        plane.call("DELETE", of(one), timeout=60)


def used(plane):
    os.sync()
    status = os.statvfs(pool_store(plane.data))
    return (status.f_blocks - status.f_bfree) * status.f_frsize


@test
def very_many_of_everything_leave_nothing():
    need_launcher()
    before = table()
    with ControlPlane() as plane:
        work(plane, "first")
        empty = used(plane)
        for i in range(MANY):
            work(plane, i)
        equal(changes_since(before), "", "the host's mounts beside a hundred sandboxes")
        wait_until(lambda: not traces(plane.data, plane.run, plane.cgroup)["trash"], "trash is emptied")
        wait_until(lambda: used(plane) < empty + MANY / 4 * MIB, "space of deleted disks is free")
        plane.stop()
        equal(changes_since(before), "", "the host's mounts after that")
        wait_until(lambda: not loops(plane.folder), "the pool's loop device is gone")
        wait_until(lambda: not plane.groups(), "groups are gone")
        wait_until(lambda: not find_processes(plane.folder), "processes are gone")


@test
def images_are_built_without_a_trace():
    need_launcher()
    with ImagePlace() as place:
        before = table()
        os.mkdir(f"{place.folder}/context")
        with open(f"{place.folder}/context/Dockerfile", "w", encoding="utf-8") as recipe:
            recipe.write("FROM host\nRUN echo made >/made\n")
        for i in range(IMAGES):
            status, out = place.image("build", *place.own_names, f"mine{i}",
                                      f"{place.folder}/context")
            equal(status, 0, out)
            equal(changes_since(before), "", "the host's mounts")
        wait_until(lambda: not loops(place.folder), "loop devices are gone")


main()
