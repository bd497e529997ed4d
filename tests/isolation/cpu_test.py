#!/usr/bin/python3
"""CPU time: a sandbox that takes all it can get has its quota, or its share beside others.

# timeout: 600
# alone: it compares how much of the machine's time sandboxes get, and takes all there is
"""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from bomb_lab import BombLab, expect_answers, held
from control_plane import NATIVE, ControlPlane
from launcher import need_launcher
from program import wait_until
from tap import equal, main, skip, test

CPU = 200  # thousandths; little, so that a busy machine has more to give


@test
def a_cpu_bomb_gets_its_quota_and_the_agent_answers():
    def use_over(lab, box, seconds):
        started = time.monotonic()
        first = lab.stats(box)["cpu_us"]
        time.sleep(seconds)
        return (lab.stats(box)["cpu_us"] - first) / (time.monotonic() - started) / 1000

    with BombLab("--cpu", str(CPU), "--guard-cpu", "1500") as lab:
        walled, free = lab.start([]), lab.start(["cpu_limit"])
        if "cpu_us" not in lab.stats(walled):
            skip("a controller that counts CPU time")
        with held(walled, "burners", 8):
            use = use_over(lab, walled, 1.0)
            equal(use <= CPU * 1.3, True, f"use of {use:.0f} thousandths")
            expect_answers(walled, 20)
            equal(walled.run("exit 3")["exitCode"], 3)
        with held(free, "burners", 8):
            # Others may be busy, too: some of the time must show that the quota was the wall.
            wait_until(lambda: use_over(lab, free, 0.3) > CPU * 1.4, "more than the quota")
            expect_answers(free, 20)


@test
def many_burners_leave_a_sandbox_with_one_its_share():
    """Its half, were they alone. If processes counted and not sandboxes, it would be one of seventeen."""
    with BombLab("--guard-cpu", "1000") as lab:
        greedy, modest = lab.start(["cpu_limit"]), lab.start(["cpu_limit"])
        if "cpu_us" not in lab.stats(greedy):
            skip("a controller that counts CPU time")
        with held(greedy, "burners", 16), held(modest, "burners", 1):
            first = [lab.stats(box)["cpu_us"] for box in (greedy, modest)]
            time.sleep(2)
            used = [lab.stats(box)["cpu_us"] - before
                    for box, before in zip((greedy, modest), first)]
        share = used[1] / sum(used)
        equal(share > 2 / 17, True, f"share of the one: {share:.2f}")


SPIN = "for i in 1 2; do nohup sh -c 'while :; do :; done' >/dev/null 2>&1 & done"


def group_path(plane, box, *names):
    """The first of these files that a sandbox's own group has."""
    for group in plane.groups():
        for name in names:
            path = os.path.join(group, name)
            if os.path.basename(group) == box and os.path.exists(path):
                return path
    skip("controllers that divide and count CPU time")
    return ""


def group_number(path):
    with open(path, encoding="ascii") as file:
        return int(file.read().split()[1 if path.endswith("cpu.stat") else 0])


def weight(plane, box):
    return group_number(group_path(plane, box, "cpu.weight", "cpu.shares"))


def used(plane, box):
    return group_number(group_path(plane, box, "cpuacct.usage", "cpu.stat"))


@test
def an_owner_with_many_sandboxes_has_the_part_of_one():
    need_launcher()
    with ControlPlane("--stock", "2") as plane:
        many, one = plane.user("many"), plane.user("one")
        greedy = [plane.create(f"greedy-{i}", key=many)["id"] for i in range(6)]
        modest = plane.create("modest", key=one)["id"]
        full = weight(plane, modest)

        def is_fair():
            return sum(weight(plane, box) for box in greedy) <= 1.5 * weight(plane, modest)

        def share_of_one():
            first = [used(plane, box) for box in (modest, *greedy)]
            time.sleep(1)
            taken = [used(plane, box) - before for box, before in zip((modest, *greedy), first)]
            return taken[0] / max(1, sum(taken))

        for number in range(6):
            plane.execute(f"greedy-{number}", SPIN, key=many)
        plane.execute("modest", SPIN, key=one)
        wait_until(is_fair, "six sandboxes weigh as much as one")
        equal(weight(plane, modest), full, "who has one sandbox is left alone")
        wait_until(lambda: share_of_one() > 0.35, "one beside six has more than a third")
        plane.kill_hard("launcher", "daemon")
        equal(is_fair(), True, "weights outlive a launcher")
        last = plane.create("greedy-last", key=many)["id"]
        equal(weight(plane, last) < full / 2, True, "a new one has the weight of its owner's others")
        for number in range(6):
            plane.call("DELETE", f"{NATIVE}/sandboxes/greedy-{number}", key=many)
        wait_until(lambda: weight(plane, last) == full, "what is not used is given back")


@test
def a_sandbox_of_an_earlier_launcher_weighs_what_others_do():
    """Those said no owner, and left weights as the kernel makes them."""
    need_launcher()
    with ControlPlane("--stock", "0") as plane:
        box = plane.create("old")["id"]
        path, full = group_path(plane, box, "cpu.weight", "cpu.shares"), weight(plane, box)
        record = f"{plane.run}/serve/records/{box}"
        with open(record, encoding="ascii") as file:
            text = file.read()
        earlier = re.sub("\nowner .*\n", "\n\n", text)
        assert earlier != text, text
        with open(record, "w", encoding="ascii") as file:
            file.write(earlier.ljust(len(text), "\n"))
        with open(path, "w", encoding="ascii") as file:
            file.write("100" if path.endswith("weight") else "1024")
        plane.kill_hard("launcher", "daemon")
        wait_until(lambda: weight(plane, box) == full, "it weighs what others do")
        equal(plane.execute("old", "echo alive")["stdout"], "alive\n")


main()
