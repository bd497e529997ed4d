#!/usr/bin/python3
# timeout: 120
"""What systemd has to do with sandboxes: whose groups they are in, who dies first, what the journal says."""

import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import (KEY, MACHINE, UNIT, burrow, create, destroy_all, group_of, inside, is_ready,  # noqa: E402
                   main_pid, read, start_inside)
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

JOURNAL_SECONDS = 3.0


def delegated(group):
    """The unit whose group this is in, if it is one that systemd leaves to us."""
    for unit in re.findall(r"[^/]+\.(?:service|scope|slice)", group)[::-1]:
        if MACHINE.good(f"systemctl show -P Delegate '{unit}'").strip() == "yes":
            return unit
    return None


def above(group):
    """The group and those that it is in, the root left out."""
    while group != "/sys/fs/cgroup":
        yield group
        group = os.path.dirname(group)


@test
def groups_of_sandboxes_are_in_a_unit_that_is_delegated():
    destroy_all()
    create("unit")
    group = group_of(start_inside("unit")[0])
    assert delegated(group), group


@test
def no_group_of_them_is_threaded():
    group = group_of(start_inside("unit")[0])
    types = {one: read(f"{one}/cgroup.type") for one in above(group)}
    equal({one: kind for one, kind in types.items() if kind != "domain"}, {})
    types = MACHINE.good("grep -H . /sys/fs/cgroup/system.slice/burrow*/cgroup.type").split("\n")
    equal([line for line in types if line and not line.endswith(":domain")], [], "of the units")


@test
def systemd_can_still_put_a_process_into_the_unit():
    """A group with processes has no subgroups with controllers; only a leaf takes new ones."""
    group = group_of(main_pid())
    equal(read(f"{group}/cgroup.subtree_control"), "", f"controllers below {group}")


@test
def a_run_without_a_daemon_leaves_the_group_of_the_caller_as_it_was():
    script = "G=/sys/fs/cgroup$(cut -d : -f 3 /proc/self/cgroup); cat $G/cgroup.type $G/cgroup.subtree_control; ls -d $G/*/"
    before = MACHINE.run(script).out
    after = MACHINE.run(f"burrow run -- true; {script}").out
    equal(after, before, "the group of a login")
    equal(after.split("\n")[0], "domain", "its type")
    left = MACHINE.run(f"systemd-run -q --scope sh -c 'burrow run -- true; {script}'").out
    equal(left.split("\n")[:2], ["domain", ""], "a scope")


@test
def a_run_is_in_the_group_of_its_caller_and_limited():
    script = "burrow run --memory 64M --pids 50 -- sh -c 'cat /proc/self/cgroup'"
    equal(MACHINE.run(f"systemd-run -q --scope {script}").status, 0, "in a scope")
    equal(MACHINE.run(f"systemd-run -q --wait --pipe {script}").status, 0, "in a service")


@test
def sandboxes_die_before_the_services_of_the_host():
    pid = start_inside("unit")[0]
    mine, units = int(read(f"/proc/{pid}/oom_score_adj")), int(read(f"/proc/{main_pid()}/oom_score_adj"))
    assert mine > 0 and mine > units, (mine, units)
    equal(int(MACHINE.good("burrow run -- cat /proc/self/oom_score_adj")) > 0, True, "one of burrow run")


@test
def inside_the_group_has_no_path_to_others():
    for path in (inside("unit", "cat /proc/self/cgroup"), burrow("run", "--", "cat", "/proc/self/cgroup")):
        assert "/.." not in path and "system.slice" not in path and "user.slice" not in path, path


@test
def the_key_of_the_administrator_is_not_in_the_journal():
    assert read(KEY) not in MACHINE.good("journalctl --no-pager"), "it is"


@test
def lines_of_the_launcher_reach_the_journal_at_once():
    """Not with the next tick of the launcher's clock, which is five seconds later."""
    MACHINE.good(f"systemctl restart {UNIT}")
    wait_until(is_ready, "it serves", 60)
    lateness = [came - said for said, came in launcher_lines()]
    assert lateness, "the launcher said nothing"
    print(f"# {len(lateness)} lines, the latest after {max(lateness):.2f} s")
    assert max(lateness) < JOURNAL_SECONDS, lateness


def launcher_lines():
    """[(time it says, time it came)] of all lines of the launcher that say a time."""
    script = r"""
import datetime, json, subprocess
out = subprocess.run(["journalctl", "--no-pager", "-o", "json", "_COMM=burrow-launcher"], stdout=subprocess.PIPE).stdout
for line in out.splitlines():
    row = json.loads(line)
    try:
        said = json.loads(row["MESSAGE"])["time"].replace("Z", "+00:00")
    except (ValueError, KeyError, TypeError):
        continue
    print(datetime.datetime.fromisoformat(said).timestamp(), int(row["__REALTIME_TIMESTAMP"]) / 1e6)
"""
    return [tuple(map(float, line.split())) for line in MACHINE.good("python3 -", stdin=script.encode()).splitlines()]


main()
