#!/usr/bin/python3
# timeout: 240
"""Sleep: frozen, with its memory in the host's swap, without processes, in the object store; and awake again."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import (MACHINE, UNIT, api, create, destroy_all, execute, group_of, inside, is_ready,  # noqa: E402
                   number, read, start_inside, status_of)
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

SWAP = "/swapfile"
HELD = 100 << 20
# Holds memory that no compressor makes smaller, and says whether it is what it was when asked by a file.
HOLDER = """
import hashlib, os, time
held = os.urandom(%d)
was = hashlib.sha256(held).hexdigest()
open("/workspace/held", "w").write("yes")
while not os.path.exists("/workspace/ask"): time.sleep(0.2)
open("/workspace/answer", "w").write(str(hashlib.sha256(held).hexdigest() == was))
time.sleep(100000)
""" % HELD


def tier(box):
    return api("GET", f"/sandboxes/{box}")["tier"]


def box_group(pid):
    """That of the whole sandbox: above those of its agent and of its commands."""
    return os.path.dirname(group_of(pid))


@test
def a_frozen_sandbox_stands_still_and_goes_on_where_it_was():
    destroy_all()
    create("cold")
    inside("cold", "(while :; do date +%s%N >>/workspace/ticks; sleep 0.2; done) >/dev/null 2>&1 &")
    pid = start_inside("cold")[0]
    group = box_group(pid)
    api("POST", "/sandboxes/cold/sleep")
    equal(status_of("cold"), "frozen")
    assert "frozen 1" in read(f"{group}/cgroup.events"), read(f"{group}/cgroup.events")
    used = read(f"{group}/cpu.stat").split()[1]
    MACHINE.good("sleep 2")
    equal(read(f"{group}/cpu.stat").split()[1], used, "CPU time while frozen")
    before = int(inside("cold", "wc -l </workspace/ticks"))  # wakes it
    equal(status_of("cold"), "running")
    wait_until(lambda: int(inside("cold", "wc -l </workspace/ticks")) > before, "it ticks again")
    assert "frozen 0" in read(f"{group}/cgroup.events")
    api("POST", "/sandboxes/cold/sleep")
    api("POST", "/sandboxes/cold/wake")
    equal(status_of("cold"), "running", "after a wake")


@test
def the_doctor_sees_swap_come():
    assert "off      reclaim" in MACHINE.good("burrow doctor")
    MACHINE.good(f"fallocate -l 1G {SWAP} && chmod 600 {SWAP} && mkswap -q {SWAP} && swapon {SWAP}")
    assert "on       reclaim" in MACHINE.good("burrow doctor")
    MACHINE.good(f"systemctl restart {UNIT}")  # as operations.md says
    wait_until(is_ready, "it serves", 60)


@test
def reclaimed_memory_is_in_swap_and_not_in_memory():
    create("deep", freezeFor="1s", limits={"memory": "512M"})
    inside("deep", f"cat >/workspace/holder <<'END'\n{HOLDER}END\n"
                   "python3 /workspace/holder >/dev/null 2>&1 &")
    wait_until(lambda: execute("deep", "test -e /workspace/held")["exitCode"] == 0, "it holds memory", 30)
    group = box_group(start_inside("deep")[0])
    full, swapped = number(f"{group}/memory.current"), number(f"{group}/memory.swap.current")
    assert full > HELD, full
    equal(swapped, 0, "swap while it runs")
    api("POST", "/sandboxes/deep/sleep")
    wait_until(lambda: tier("deep") == "reclaimed", "it is reclaimed", 60)
    now, swapped = number(f"{group}/memory.current"), number(f"{group}/memory.swap.current")
    print(f"# memory {full >> 20} MB -> {now >> 20} MB, swap {swapped >> 20} MB")
    assert now < full / 2, (full, now)
    assert swapped > HELD / 2, swapped


@test
def what_was_in_swap_is_as_it_was():
    inside("deep", "touch /workspace/ask")
    wait_until(lambda: execute("deep", "cat /workspace/answer")["stdout"] == "True", "its memory is the same", 60)
    equal(tier("deep"), "running")


@test
def swap_can_be_taken_away_again():
    MACHINE.good(f"swapoff {SWAP} && rm {SWAP}")
    assert "off      reclaim" in MACHINE.good("burrow doctor")


@test
def one_that_is_hibernated_or_offloaded_comes_back_with_its_files():
    create("far", freezeFor="0", hibernateAfter="1s", offloadAfter="1s")
    inside("far", "seq 10000 >/workspace/numbers; ln -s numbers /workspace/link")
    pid = start_inside("far")[0]
    api("POST", "/sandboxes/far/sleep")
    wait_until(lambda: tier("far") in ("hibernated", "offloaded"), "it is hibernated", 60)
    equal(MACHINE.run(f"test -d /proc/{pid}").status != 0, True, "its processes have ended")
    wait_until(lambda: tier("far") == "offloaded", "it is offloaded", 60)
    equal(inside("far", "tail -1 /workspace/link"), "10000\n")
    equal(status_of("far"), "running")
    destroy_all()


main()
