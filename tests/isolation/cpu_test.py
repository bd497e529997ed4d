#!/usr/bin/python3
"""CPU time: a sandbox that takes all it can get has its quota, or its share beside others.

# timeout: 600
# alone: it compares how much of the machine's time sandboxes get, and takes all there is
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from bomb_lab import BombLab, expect_answers, held
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


main()
