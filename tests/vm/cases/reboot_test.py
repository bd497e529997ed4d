#!/usr/bin/python3
# timeout: 240
"""A reboot: running sandboxes are stopped then, frozen ones hibernated, and all have their files."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, SLOW, api, create, destroy_all, inside, is_ready, start_inside, status_of  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

BOXES = ("running", "frozen", "stopped")
# Going down took 80 s more when it waited for frozen processes. Without that it takes less than half.
DOWN_SECONDS = 60


def statuses():
    return {box: status_of(box) for box in BOXES}


@test
def the_machine_goes_down_and_comes_up_with_frozen_sandboxes():
    destroy_all()
    for box in BOXES:
        create(box)
        inside(box, f"echo {box} >/workspace/mark; sync")
        start_inside(box)
    api("POST", "/sandboxes/frozen/sleep")
    api("POST", "/sandboxes/stopped/stop")
    with open(MACHINE.console, "rb") as console:
        console.seek(0, os.SEEK_END)
        down, whole = MACHINE.reboot()
        seen = console.read().decode(errors="replace")
    print(f"# {down:.0f} s to go down, {whole:.0f} s in all, {SLOW:.1f} times slower than the host")
    assert "Waiting for process" not in seen, seen[-2000:]
    assert down < DOWN_SECONDS * max(1, SLOW / 10), down


@test
def what_was_running_is_stopped_and_what_was_frozen_is_hibernated():
    wait_until(is_ready, "it serves", 90)
    equal(statuses(), {"running": "stopped", "frozen": "hibernated", "stopped": "stopped"})


@test
def all_have_their_files():
    api("POST", "/sandboxes/stopped/start")
    for box in BOXES:
        equal(inside(box, "cat /workspace/mark"), f"{box}\n", box)
    equal(set(statuses().values()), {"running"})


@test
def nothing_is_wrong_with_the_machine():
    equal(MACHINE.good("systemctl --failed --no-legend --plain"), "", "failed units")
    equal(MACHINE.run("burrow doctor").status, 0, "doctor")
    destroy_all()


main()
