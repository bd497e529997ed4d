#!/usr/bin/python3
# timeout: 240
"""Sandboxes live on while what made them is restarted or killed."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import (MACHINE, UNIT, api, create, daemon_pid, destroy_all, inside, is_alive, is_ready,  # noqa: E402
                   main_pid, start_inside, status_of)
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

RUNNING, FROZEN = "awake", "asleep"
SLEEPERS = {}  # box: pid


def pids():
    """Of the unit's main process and of the daemon, or None while there is no such."""
    try:
        return main_pid(), daemon_pid()
    except (AssertionError, ValueError, IndexError):
        return None


def expect_life():
    """Both are what they were, with their processes, and can be used."""
    wait_until(is_ready, "it serves", 90)
    equal((status_of(RUNNING), status_of(FROZEN)), ("running", "frozen"), "status")
    equal({box: is_alive(pid) for box, pid in SLEEPERS.items()}, {RUNNING: True, FROZEN: True}, "processes")
    equal(inside(RUNNING, "cat /workspace/mark"), f"{RUNNING}\n")
    equal(inside(FROZEN, "cat /workspace/mark"), f"{FROZEN}\n", "woken")
    equal(is_alive(SLEEPERS[FROZEN]), True, "its process after the wake")
    api("POST", f"/sandboxes/{FROZEN}/sleep")


def kill(*which):
    """With SIGKILL; others take their places."""
    wait_until(is_ready, "it serves", 90)
    before = pids()
    MACHINE.good("kill -9 " + " ".join(str(before[one]) for one in which))
    wait_until(lambda: (now := pids()) and all(now[one] != before[one] for one in which), "others in their places", 90)
    expect_life()


@test
def over_a_restart_of_the_unit():
    destroy_all()
    for box in (RUNNING, FROZEN):
        create(box)
        inside(box, f"echo {box} >/workspace/mark")
        SLEEPERS[box] = start_inside(box)[0]
    api("POST", f"/sandboxes/{FROZEN}/sleep")
    for _ in range(2):
        MACHINE.good(f"systemctl restart {UNIT}")
        equal(MACHINE.good(f"systemctl show -P Result {UNIT}"), "success\n")
        expect_life()


@test
def over_a_stop_and_a_start():
    MACHINE.good(f"systemctl stop {UNIT}")
    equal({box: is_alive(pid) for box, pid in SLEEPERS.items()}, {RUNNING: True, FROZEN: True}, "while stopped")
    MACHINE.good(f"systemctl start {UNIT}")
    expect_life()


@test
def over_the_death_of_the_daemon():
    kill(1)


@test
def over_the_death_of_the_launcher():
    kill(0)


@test
def over_the_death_of_both():
    kill(0, 1)


@test
def over_the_death_of_who_holds_their_unit():
    MACHINE.good("pkill -9 -f '^/usr/bin/burrow-launcher hold'")
    expect_life()
    MACHINE.good(f"systemctl restart {UNIT}")
    expect_life()
    equal(MACHINE.good("systemctl is-active burrow-sandboxes"), "active\n")


@test
def over_a_reload_of_systemd():
    MACHINE.good("systemctl daemon-reload && systemctl daemon-reexec")
    expect_life()
    MACHINE.good(f"systemctl restart {UNIT}")
    expect_life()


@test
def stopping_their_unit_ends_them():
    MACHINE.good("systemctl stop burrow-sandboxes")
    equal(MACHINE.run(f"systemctl is-active {UNIT}").out, "inactive\n")
    equal({box: is_alive(pid) for box, pid in SLEEPERS.items()}, {RUNNING: False, FROZEN: False}, "processes")
    MACHINE.good(f"systemctl start {UNIT}")
    wait_until(is_ready, "it serves", 90)
    equal(inside(FROZEN, "cat /workspace/mark"), f"{FROZEN}\n", "its disk")
    destroy_all()


main()
