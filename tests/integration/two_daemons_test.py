#!/usr/bin/python3
"""Two Burrows on one host: side by side when their names differ, and told which name does not.

The program is in a network namespace of its own, with an internet beyond a gateway in another one."""

import os
import subprocess
import sys
from contextlib import contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from traces import id_ranges, names_in, traces  # noqa: E402

RANGE = 65536
NAT = {"network": "nat"}
NAT_FLAGS = ("--default-network", "nat")
SERVER, PORT = "25.0.113.10", 8080  # nobody's, in here
GATEWAY, US = "10.200.0.1", "10.200.0.2"
SERVE = f"""import socket
server = socket.create_server(("{SERVER}", {PORT}))
print("listens", flush=True)
while True:
    client = server.accept()[0]
    client.sendall(b"the internet")
    client.close()
"""
ASK = f"""import socket
client = socket.create_connection(("{SERVER}", {PORT}), 20)
print(client.makefile().read())
"""


def call(*words):
    subprocess.run(words, check=True)


@contextmanager
def internet():
    """A server beyond a gateway, which knows nobody but us."""
    words = ["unshare", "--net", "sh", "-c", "echo made; exec sleep infinity"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as gateway:
        inside = ["nsenter", "--net", "--target", str(gateway.pid)]
        try:
            gateway.stdout.readline()
            call("ip", "link", "add", "world", "type", "veth", "peer", "name", "us", "netns",
                 str(gateway.pid))
            call("ip", "address", "add", f"{US}/30", "dev", "world")
            call("ip", "link", "set", "world", "up")
            call("ip", "route", "add", "default", "via", GATEWAY)
            call(*inside, "ip", "link", "set", "lo", "up")
            call(*inside, "ip", "address", "add", f"{SERVER}/32", "dev", "lo")
            call(*inside, "ip", "address", "add", f"{GATEWAY}/30", "dev", "us")
            call(*inside, "ip", "link", "set", "us", "up")
            with subprocess.Popen([*inside, sys.executable, "-c", SERVE],
                                  stdout=subprocess.PIPE) as server:
                try:
                    server.stdout.readline()
                    yield
                finally:
                    server.kill()
        finally:
            gateway.kill()


def first_id(plane, name):
    """Of the range that a sandbox has on the host."""
    return int(plane.execute(name, "cat /proc/self/uid_map")["stdout"].split()[1])


def check_ranges(planes, boxes):
    firsts = [first_id(plane, name) for plane, name in boxes]
    equal(len(set(firsts)), len(boxes), f"ranges that nobody else has: {firsts}")
    equal({first % RANGE for first in firsts}, {0}, "whole ranges")
    for plane in planes:
        ours = {box for (at, _), box in boxes.items() if at is plane}
        equal(ours <= id_ranges(plane.run), True, "the one table has the ranges of both")
        equal(names_in(f"{plane.run}/ids"), [], "and no run folder has one of its own")


def check_network(plane, name):
    done = plane.execute(name, ["python3", "-c", ASK])
    equal((done["stdout"], done["exitCode"]), ("the internet\n", 0), done["stderr"])


@test
def two_work_side_by_side_with_nat():
    need_launcher()
    with internet(), ControlPlane(*NAT_FLAGS) as one, ControlPlane(*NAT_FLAGS) as other:
        planes = (one, other)
        boxes = {(plane, name): plane.create(name, **NAT)["id"]
                 for name in ("first", "second") for plane in planes}
        check_ranges(planes, boxes)
        for plane, name in boxes:
            check_network(plane, name)
        one.kill_hard("launcher", "daemon")
        for name in ("first", "second"):
            check_network(one, name)
            one.call("DELETE", f"{NATIVE}/sandboxes/{name}")
        wait_until(lambda: not traces(one.data, one.run, one.cgroup)["network"], "its networks are gone")
        check_network(other, "first")  # what one takes down leaves the other's as it was


@test
def a_shared_group_is_refused():
    need_launcher()
    with ControlPlane() as one:
        one.create("box")
        other = ControlPlane("--cgroup", one.cgroup)
        other.expected_status = 1
        try:
            other.start()
            told = other.log()
        except AssertionError as ended:
            told = str(ended)
        finally:
            other.kill()
        equal(f"/{one.cgroup}:" in told and "--cgroup NAME" in told, True, told)
        equal(one.execute("box", "echo alive")["stdout"], "alive\n")


def unlisted(plane):
    """Records of sandboxes that nobody has, but for those of the warm pool."""
    listed = {box["id"] for box in plane.call("GET", f"{NATIVE}/sandboxes")["sandboxes"]}
    left = set()
    for name in names_in(f"{plane.run}/serve/records"):
        try:
            with open(f"{plane.run}/serve/records/{name}", encoding="ascii") as file:
                if "\npooled 1\n" not in file.read() and name not in listed:
                    left.add(name)
        except FileNotFoundError:
            continue
    return left


@test
def a_network_name_that_is_taken_is_said_and_nothing_stays():
    need_launcher()
    for stock in ("0", "2"):
        with ControlPlane("--stock", stock) as plane:
            call("ip", "link", "add", plane.network, "type", "veth", "peer", "name", "peer")
            told = ""
            try:
                plane.create("box", **NAT)
            except Refused as refused:
                told = str(refused)
            equal("network-name" in told, True, f"the setting is named: {told}")
            wait_until(lambda plane=plane: not unlisted(plane), "nothing of it is left")
            equal("cannot be taken down" in plane.log(), False, plane.log())
            call("ip", "link", "delete", plane.network)
            equal(plane.create("box", **NAT)["status"], "running", "once the name is free")


main()
