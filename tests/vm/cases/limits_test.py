#!/usr/bin/python3
# timeout: 180
"""Limits of a sandbox as systemd's groups enforce them, and changes while it runs."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import api, create, destroy_all, execute, group_of, inside, number, read, start_inside  # noqa: E402
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


main()
