#!/usr/bin/python3
# timeout: 120
"""The doctor says what is so, also where something is wrong."""

import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, create, destroy_all, group_of, start_inside  # noqa: E402
from tap import equal, main, test  # noqa: E402

SANDBOXES = "/system.slice/burrow-sandboxes.service"


def rows(command="burrow doctor"):
    """{name: (state, detail)}"""
    found = re.findall(r"^  (on|off|warning|missing) +([^:\n]+)(?:: (.*))?$", MACHINE.run(command).out, re.MULTILINE)
    assert len(found) > 50, found
    return {name: (state, detail) for state, name, detail in found}


@test
def groups_go_where_it_says():
    destroy_all()
    create("placed")
    said = rows()["place"]
    equal(said[0], "on")
    place = said[1].split(",")[0].removeprefix("/sys/fs/cgroup")
    assert place.startswith(SANDBOXES), said
    assert group_of(start_inside("placed")[0]).startswith(f"/sys/fs/cgroup{place}/"), said
    destroy_all()


@test
def every_controller_is_there():
    found = rows()
    equal({name: found[name] for name in ("cpu", "memory", "pids", "io", "freezer", "swap")},
          dict.fromkeys(("cpu", "memory", "pids", "io", "freezer", "swap"), ("on", "v2")))
    equal(found["threaded groups"][0], "on")


@test
def a_threaded_group_is_told():
    # What Burrow up to 249349c did to the group of its caller.
    script = "echo +cpu >/sys/fs/cgroup$(cut -d : -f 3 /proc/self/cgroup)/cgroup.subtree_control; exec burrow doctor"
    state, detail = rows(f"systemd-run -q --scope -p Delegate=yes sh -c '{script}'")["threaded groups"]
    equal(state, "warning", detail)
    assert ".scope is threaded" in detail, detail


@test
def files_are_counted_by_what_the_unit_has():
    MACHINE.good("test $(ulimit -S -n) = 1024")  # a login's
    state, detail = rows()["nofile"]
    equal(state, "on", detail)
    assert "1048576" in detail, detail


@test
def mounts_are_shared_here_and_it_would_say_if_not():
    equal(rows()["shared mounts"], ("on", "as systemd has it"))
    equal(rows("unshare --mount --propagation private burrow doctor")["shared mounts"][0], "off")
    equal(rows()["private copies of mounts"][0], "on")


@test
def a_mount_that_an_earlier_version_left_is_told():
    # Its writable /usr/local on the host's: an overlay whose root is a folder of that name.
    MACHINE.good("""mkdir -p /run/left/l /run/left/u /run/left/w /run/left/m && cd /run/left &&
        mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m && mkdir -p m/var/usrlocal &&
        mount --bind m/var/usrlocal /usr/local""")
    try:
        state, detail = rows()["mounts of sandboxes on the host"]
        equal(state, "warning", detail)
        assert "/usr/local" in detail, detail
    finally:
        MACHINE.good("umount /usr/local /run/left/m; rm -r /run/left")
    equal(rows()["no mounts of sandboxes on the host"][0], "on")


@test
def looking_changes_nothing():
    look = "ls /sys/fs/cgroup/system.slice /sys/fs/cgroup/system.slice/burrow*; cat /proc/1/mountinfo; nft list ruleset; ip -o link"
    before = MACHINE.good(look)
    rows()
    equal(MACHINE.good(look), before)


main()
