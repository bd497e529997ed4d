#!/usr/bin/python3
# timeout: 180
"""Limits of a sandbox as systemd's groups enforce them, and changes while it runs."""

import json
import os
import shlex
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import (  # noqa: E402
    MACHINE, api, burrow, create, destroy_all, execute, group_of, inside, number, read, start_inside)
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

KILLED = 128 + 9
# What a process gets of one CPU in so many seconds of the machine's clock.
SHARE = """python3 -c '
import time
wall, cpu = time.monotonic(), time.process_time()
while time.monotonic() - wall < 8: pass
print((time.process_time() - cpu) / (time.monotonic() - wall))'"""
# dash, because bash goes on trying for a quarter of a minute.
MANY = "exec dash -c 'for i in $(seq 100); do sleep 5 & done; wait'"
TAKE = "python3 -c 'b = bytearray({} << 20); print(len(b) >> 20)'"


def share():
    return float(inside("limited", SHARE))


def change(**limits):
    api("PATCH", "/sandboxes/limited", {"limits": limits})


@test
def a_sandbox_is_made_with_all_of_them():
    destroy_all()
    box = create("limited", limits={"memory": "128M", "cpu": 0.25, "pids": 48, "disk": "64M"})
    equal(box.get("unenforced", []), [], "not enforced")


@test
def too_much_memory_is_told_as_such():
    answer = execute("limited", "exec tail /dev/zero")
    equal((answer["exitCode"], answer.get("outOfMemory")), (KILLED, True), str(answer))
    assert api("GET", "/sandboxes/limited/stats")["outOfMemoryKills"] >= 1
    answer = execute("limited", "kill -9 $$")
    equal((answer["exitCode"], answer.get("outOfMemory", False)), (KILLED, False), "an ordinary kill")


@test
def a_quarter_of_a_cpu_is_a_quarter():
    assert 0.15 < share() < 0.33, share()


@test
def processes_beyond_the_limit_are_refused():
    answer = execute("limited", MANY)
    assert "fork" in answer["stderr"], answer
    assert api("GET", "/sandboxes/limited/stats")["pidsRefused"] > 0
    equal(inside("limited", "echo on"), "on\n", "afterwards")


@test
def a_full_disk_says_so_and_can_be_emptied():
    answer = execute("limited", "head -c 100M /dev/urandom >/workspace/big")
    assert answer["exitCode"] != 0 and ("No space" in answer["stderr"] or "quota" in answer["stderr"]), answer
    inside("limited", "rm /workspace/big")
    wait_until(lambda: execute("limited", "head -c 20M /dev/urandom >/workspace/small")["exitCode"] == 0,
               "there is room again", 30)


@test
def they_change_while_it_runs():
    pid = start_inside("limited")[0]
    equal(execute("limited", TAKE.format(200))["exitCode"], KILLED, "200 MB of 128")
    change(memory="400M", cpu=1, pids=300, disk="256M")
    equal(inside("limited", TAKE.format(200)), "200\n", "200 MB of 400")
    assert share() > 0.5, "of a whole CPU"
    equal(execute("limited", MANY)["stderr"], "", "100 of 300")
    inside("limited", "head -c 100M /dev/urandom >/workspace/big; rm /workspace/big")
    equal(group_of(start_inside("limited")[0]), group_of(pid), "the group is the same")
    top = os.path.dirname(group_of(pid))
    equal(number(f"{top}/memory.max") >= 400 << 20, True, read(f"{top}/memory.max"))
    change(memory="128M")
    equal(execute("limited", TAKE.format(200))["exitCode"], KILLED, "200 MB of 128 again")


# Connections of its own to its own, with as much on the way as the kernel takes.
FILL = """
import socket, time
server, pairs, total = socket.create_server(("127.0.0.1", 7000), backlog=500), [], 0
for _ in range(100):
    one = socket.create_connection(("127.0.0.1", 7000))
    pairs.append((one, server.accept()[0]))
    one.setblocking(False)
    try:
        while True:
            total += one.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    open("/workspace/total", "w").write(str(total))
open("/workspace/done", "w").write(str(total))
time.sleep(1000)
"""


@test
def buffers_of_tcp_are_part_of_the_memory():
    """So the limit of memory is theirs, too: 100 connections would take some 250 MB."""
    burrow("rm", "limited")
    box = create("limited", limits={"memory": "96M"})
    top = MACHINE.good(f"find /sys/fs/cgroup -type d -name {box['id']}").strip()
    inside("limited", f"cat > fill.py << 'END'\n{FILL}\nEND\nnohup python3 fill.py >/dev/null 2>&1 &")

    def is_over():
        return "done" in inside("limited", "ls") or not MACHINE.run("pgrep -f 'python3 fill[.]py'").out

    wait_until(is_over, "it has all it gets", 90)
    told = inside("limited", "cat total; echo; ls done 2>/dev/null || true").split()
    buffers = int(MACHINE.good(f"sed -n 's/^sock //p' {top}/memory.stat"))
    print(f"# {int(told[0]) >> 20} MB on the way, {buffers >> 20} MB counted, ended: {'done' not in told}")
    assert int(told[0]) < 96 << 20, told
    assert "done" not in told or buffers > 1 << 20, "buffers that nobody counts"
    destroy_all()


def as_user(key, method, path, body=None):
    words = ["curl", "-fsS", "-X", method, "-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json",
             "-d", json.dumps(body or {}), f"http://127.0.0.1:8787/burrow/v1{path}"]
    return json.loads(MACHINE.good(shlex.join(words)) or "null")


@test
def an_owner_with_many_sandboxes_has_the_part_of_one():
    spin = "for i in 1 2; do nohup sh -c 'while :; do :; done' >/dev/null 2>&1 & done"
    owner = api("POST", "/users", {"name": "many"})["id"]
    key = api("POST", "/keys", {"name": "many", "scope": "write", "user": owner})["key"]
    names = [f"greedy-{number}" for number in range(5)]
    greedy = [as_user(key, "POST", "/sandboxes", {"name": name})["id"] for name in names]
    modest = create("modest")["id"]

    def weight(box):
        return int(MACHINE.good(f"cat $(find /sys/fs/cgroup -type d -name {box})/cpu.weight"))

    try:
        full = weight(modest)
        assert full > 5, f"a weight that can be divided: {full}"
        for name in names:
            as_user(key, "POST", f"/sandboxes/{name}/exec", {"command": spin})
        execute("modest", spin)
        wait_until(lambda: sum(map(weight, greedy)) <= 1.5 * full, "five weigh as much as one", 90)
        equal(weight(modest), full, "who has one sandbox is left alone")
    finally:
        for name in names:
            as_user(key, "DELETE", f"/sandboxes/{name}")
        destroy_all()


main()
