#!/usr/bin/python3
"""Every attempt of attacks.txt against every wall that is said to hold it.

# timeout: 600
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from tap import equal, main, test
from wall_lab import PLACE, WallLab, slowly

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attacks.txt")
ATTACK = f"{PLACE}/attack"
NEVER = "never"
# Tried in attacks on two sandboxes or two starts, not by one run (others_test.py).
ELSEWHERE = {"plant_link", "read_planted_link"}


class Row:
    def __init__(self, name, walls, missing=""):
        self.name = name
        self.walls = () if walls == NEVER else tuple(walls.split(","))
        self.missing = set(missing.split(",")) - {""}

    def settings(self):
        """Sets of walls to leave out: all of them, all but one each, none."""
        whole = frozenset(self.walls)
        return {whole, frozenset()} | {whole - {wall} for wall in self.walls}


def read_rows():
    with open(ROWS, encoding="ascii") as file:
        return [Row(*line.split()) for line in file if line.strip() and line[0] != "#"]


def try_all(lab, rows):
    """{(attempt, walls left out): what it printed}: one run for each set of walls."""
    wanted = {}
    for row in rows:
        for without in row.settings():
            wanted.setdefault(without, []).append(row.name)
    results = {}
    for without, names in wanted.items():
        printed = lab.run(sorted(without), ATTACK, *names)["stdout"]
        for line in printed.splitlines():
            name, _, result = line.partition(" ")
            results[name, without] = result
    return results


def judge(row, results):
    """(what is wrong, whether this machine has the thing at all)."""
    wrong, whole = [], frozenset(row.walls)

    def look(without):
        return results.get((row.name, without), "nothing")

    for without in row.settings() - {whole}:
        if not look(without).startswith("refused"):
            held_by = ", ".join(sorted(whole - without)) or "all walls"
            wrong.append(f"{row.name} behind {held_by}: {look(without)}")
    first, _, error = look(whole).partition(" ")
    if not row.walls or first == "succeeded":
        return wrong, True
    if first == "impossible" or error in row.missing:
        return wrong, False
    wrong.append(f"{row.name} without {', '.join(row.walls)}: {look(whole)}")
    return wrong, True


@test
def every_attempt_is_held_by_each_of_its_walls_alone_and_by_no_other():
    rows, wrong, absent = read_rows(), [], []
    with WallLab("--timeout", slowly(200)) as lab:
        results = try_all(lab, rows)
    for row in rows:
        found, is_there = judge(row, results)
        wrong += found
        absent += [] if is_there else [row.name]
    print(f"# {len(rows)} attempts, {len(results)} tries")
    for name in absent:
        print(f"# not to be had on this machine, so only seen refused: {name}")
    equal("\n".join(wrong), "")


@test
def the_first_sandbox_of_a_host_does_not_mount_on_it():
    # Mounts of later ones would be tucked beneath those of the first, where nobody sees them.
    for without, result in (([], "refused ENXIO"), (["private_mounts"], "succeeded")):
        with WallLab() as lab:
            equal(lab.run(without, ATTACK, "mount_on_host")["stdout"], f"mount_on_host {result}\n", str(without))


@test
def every_attempt_has_a_row():
    with WallLab() as lab:
        known = set(lab.run([], ATTACK, "--list")["stdout"].split())
    rows = {row.name for row in read_rows()} | ELSEWHERE
    equal((rows - known, known - rows), (set(), set()), "(no such attempt, no such row)")


@test
def an_unknown_wall_is_refused():
    with WallLab() as lab:
        answer = lab.ask("run", "hidden_prok", "/bin/true")
    equal(answer, {"error": "there is no wall 'hidden_prok'"})


main()
