#!/usr/bin/python3
# timeout: 240
"""The package goes: removed it keeps what was kept, purged it leaves nothing."""

import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, burrow, create, inside, is_alive, is_ready, start_inside, status_of  # noqa: E402
from host_state import changes  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

APT = "DEBIAN_FRONTEND=noninteractive apt-get -y"


@test
def a_removed_package_has_stopped_sandboxes_and_kept_their_disks():
    create("kept", network="nat")
    inside("kept", "echo here >/workspace/file; sync")
    pid = start_inside("kept")[0]
    MACHINE.good(f"{APT} remove burrow")
    equal(is_alive(pid), False, "a process of a sandbox")
    equal(MACHINE.run("pgrep -l burrow").out, "", "processes")
    equal(MACHINE.run("ls -d /sys/fs/cgroup/system.slice/burrow*").out, "", "groups")
    MACHINE.good("test -e /var/lib/burrow/pool && test -e /etc/burrow/burrow.ini")


@test
def installed_again_it_has_them_back():
    MACHINE.good(f"{APT} install --no-install-recommends /root/burrow.deb")
    wait_until(is_ready, "it serves", 90)
    equal(status_of("kept"), "stopped")
    burrow("start", "kept")
    equal(inside("kept", "cat /workspace/file"), "here\n")


@test
def a_purged_package_leaves_nothing():
    pid = start_inside("kept")[0]
    MACHINE.good(f"{APT} purge burrow")
    equal(is_alive(pid), False, "a process of a sandbox")
    found = changes(MACHINE)
    # It stays on, as operations.md says: others may rely on it by now.
    forwarding = [line for line in found.pop("sysctls", []) if not re.search(r"/ipv4/.*forward(ing)? [01]$", line)]
    equal((found, forwarding), ({}, []), "what is different from before it was installed")


main()
