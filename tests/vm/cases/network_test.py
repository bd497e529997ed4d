#!/usr/bin/python3
# timeout: 240
"""Networks of sandboxes on a host with systemd-networkd: out through it, and not into it."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, create, destroy_all, execute, inside  # noqa: E402
from tap import equal, main, test  # noqa: E402
from world import HOST, HOST6, NAME, WEB, WEB6, close_world, open_world  # noqa: E402

# A connection: "yes", or the name of the error.
CONNECT = """python3 -c '
import errno, socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 4).close()
    print("yes")
except OSError as error:
    print(errno.errorcode.get(error.errno, "time"))' {} {}"""


def connect(box, address, port):
    return inside(box, CONNECT.format(address, port)).strip()


@test
def a_sandbox_with_nat_reaches_the_world_by_address_and_by_name():
    destroy_all()
    open_world(MACHINE)
    create("out", network="nat")
    equal(inside("out", f"curl -s --max-time 60 http://{WEB}/"), f"{HOST}\n", "whom the server sees")
    equal(inside("out", f"curl -s --max-time 60 http://{NAME}/"), f"{HOST}\n", "by name")


@test
def it_reaches_no_address_of_the_host():
    for address, port in ((HOST, 22), ("10.0.2.15", 22), ("10.0.2.15", 8787), ("10.0.2.2", 22),
                          ("169.254.169.254", 80), (HOST6, 22)):
        assert connect("out", address, port) != "yes", (address, port)
    # All but the last would be reached from outside of a sandbox.
    equal(MACHINE.good(CONNECT.format(HOST, 22)), "yes\n", "the host itself")
    equal(MACHINE.good(CONNECT.format(HOST6, 22)), "yes\n", "the host itself, by IPv6")


@test
def it_has_no_ipv6_although_the_host_has():
    equal(MACHINE.good(f"curl -s 'http://[{WEB6}]/'"), f"{HOST6}\n", "the host itself")
    assert connect("out", WEB6, 80) != "yes"
    equal(inside("out", "grep -v ' lo$' /proc/net/if_inet6 || true"), "", "addresses")


@test
def two_sandboxes_do_not_reach_each_other():
    create("near", network="nat")
    inside("near", "python3 -m http.server 8080 >/dev/null 2>&1 &")
    address = inside("near", "ip -4 -o address show scope global").split()[3].split("/")[0]
    inside("near", f"curl -s -o /dev/null --retry 30 --retry-all-errors --retry-delay 1 http://{address}:8080/")
    assert connect("out", address, 8080) != "yes", address


@test
def one_without_a_network_has_none():
    create("alone")
    assert connect("alone", WEB, 80) != "yes"
    equal(inside("alone", "ls /proc/sys/net/ipv4/conf").split(), ["all", "default", "lo"], "devices")


@test
def a_single_run_has_a_network_of_its_own():
    equal(MACHINE.good(f"burrow run --net nat -- curl -s --max-time 60 http://{NAME}/"), f"{HOST}\n")


@test
def traffic_goes_on_over_a_restart():
    inside("out", f"(while :; do curl -s --max-time 9 http://{WEB}/ >>/workspace/log; sleep 0.3; done) >/dev/null 2>&1 &")
    MACHINE.good("systemctl restart burrow")
    MACHINE.good("curl -fs -o /dev/null --retry 60 --retry-all-errors --retry-delay 1 http://127.0.0.1:8787/ready")
    equal(inside("out", f"curl -s --max-time 60 http://{NAME}/"), f"{HOST}\n", "afterwards")
    equal(set(execute("out", "cat /workspace/log")["stdout"].split()), {HOST}, "meanwhile")
    destroy_all()
    close_world(MACHINE)


main()
