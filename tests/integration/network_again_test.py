#!/usr/bin/python3
# timeout: 600
"""A network namespace that nobody used goes to the next sandbox; one that was used never does."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane  # noqa: E402
from http_raw import request  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

# The cookie of the namespace, which no other ever has; numbers are used again by the kernel.
COOKIE = ["python3", "-c", "import socket\nprint(int.from_bytes("
          "socket.socket(socket.AF_UNIX).getsockopt(socket.SOL_SOCKET, 71, 8), 'little'))"]
# Counters of packets, addresses in use, and links: what tells of another.
TRACES = "cat /proc/net/dev /proc/net/snmp /proc/net/tcp /proc/net/udp /proc/net/ip6_flowlabel"

REST_SECONDS = 0.5  # more than NETWORK_SPARES_REST_MS


def live(plane, use=lambda box: None, **fields):
    """One life: (the cookie of its network, what it saw in it)."""
    box = plane.create(**fields)["id"]
    seen = int(plane.execute(box, COOKIE)["stdout"]), plane.execute(box, TRACES)["stdout"]
    use(box)
    plane.call("DELETE", f"{NATIVE}/sandboxes/{box}")
    return seen


def give_one_back(plane):
    """Until a network was used again: they rest for a moment first. Returns what is seen in a new
    one."""
    lives = [live(plane)]
    wait_until(lambda: lives.append(live(plane)) or len({cookie for cookie, _ in lives}) < len(lives),
               "a network is used again")
    equal(lives[-1][1], lives[0][1], "what the next one sees")
    return lives[-1][1]


@test
def one_that_nobody_used_goes_to_the_next_as_new():
    need_launcher()
    with ControlPlane("--stock", "0") as plane:
        give_one_back(plane)


@test
def one_that_was_used_does_not():
    need_launcher()
    with ControlPlane("--stock", "0") as plane:
        def connect(address):
            return lambda box: plane.execute(
                box, ["bash", "-c", f"exec 3<>/dev/tcp/{address}"])

        def reach(box):
            url = plane.call("POST", f"{NATIVE}/sandboxes/{box}/ports", {"port": 8080})["url"]
            equal(request(plane.address, "GET", "/", [("Host", url.split("/")[2])]).status // 100, 5,
                  "nobody listens")
        for name, use in (("a call to itself", connect("127.0.0.1/1")),
                          ("a call to nowhere", connect("192.0.2.1/80")),
                          ("a visit from outside", reach)):
            fresh = give_one_back(plane)
            cookie, seen = live(plane, use)
            equal(seen, fresh, f"the network before {name}")
            time.sleep(REST_SECONDS)
            after = [live(plane) for _ in range(5)]
            assert cookie not in [other for other, _ in after], name
            equal({seen for _, seen in after}, {fresh}, f"the networks after {name}")


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
