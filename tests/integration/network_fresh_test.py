#!/usr/bin/python3
# timeout: 600
"""Every sandbox has a network namespace and a disk of its own, which no other had before."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane  # noqa: E402
from launcher import POOL_KIND, need_launcher  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

# The cookie of the namespace, which no other ever has; numbers are used again by the kernel.
COOKIE = ["python3", "-c", "import socket\nprint(int.from_bytes("
          "socket.socket(socket.AF_UNIX).getsockopt(socket.SOL_SOCKET, 71, 8), 'little'))"]
# Counters of packets, addresses in use, and links: what would tell of another.
TRACES = "cat /proc/net/dev /proc/net/snmp /proc/net/tcp /proc/net/udp /proc/net/ip6_flowlabel"


def live(plane, command):
    """One life: (the cookie of its network, what it saw in it before it used it)."""
    box = plane.create()["id"]
    seen = int(plane.execute(box, COOKIE)["stdout"]), plane.execute(box, TRACES)["stdout"]
    plane.execute(box, ["bash", "-c", command])
    plane.call("DELETE", f"{NATIVE}/sandboxes/{box}")
    return seen


@test
def no_sandbox_has_the_network_of_another():
    need_launcher()
    with ControlPlane("--stock", "0") as plane:
        lives = [live(plane, command) for command in
                 ("true", "exec 3<>/dev/tcp/127.0.0.1/1", "exec 3<>/dev/tcp/192.0.2.1/80") * 3]
        equal(len({cookie for cookie, _ in lives}), len(lives), "networks")
        equal(len({seen for _, seen in lives}), 1, "what they saw")


@test
def no_sandbox_has_the_disk_of_another():
    """A disk that somebody had would number its files where that one stopped."""
    need_launcher()
    if os.environ.get(POOL_KIND) == "plain":
        skip("a pool whose disks are filesystems")
    with ControlPlane("--stock", "0") as plane:
        def first_file():
            box = plane.create()["id"]
            number = plane.execute(box, "touch /workspace/x && stat -c %i /workspace/x")["stdout"]
            plane.execute(box, "cd /workspace && touch $(seq 40)")
            plane.call("DELETE", f"{NATIVE}/sandboxes/{box}")
            return int(number)

        equal(len({first_file() for _ in range(8)}), 1, "numbers of the first file on each disk")


@test
def root_inside_takes_any_port_and_changes_nothing():
    need_launcher()
    with ControlPlane("--stock", "0") as plane:
        box = plane.create()["id"]
        done = plane.execute(box, ["python3", "-c", """
import socket
socket.socket().bind(("127.0.0.1", 80))
for path in ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_unprivileged_port_start"):
    try:
        open(path, "w")
    except OSError as error:
        print(type(error).__name__, error.errno)
"""])
        equal(done["exitCode"], 0, done["stderr"])
        equal(done["stdout"], "OSError 30\nOSError 30\n", "settings")


main()
