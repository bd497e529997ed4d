#!/usr/bin/python3
# timeout: 240
"""A newer package, installed while sandboxes run: they live on and can be used."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import (MACHINE, api, create, daemon_pid, destroy_all, inside, is_alive, is_ready, main_pid,  # noqa: E402
                   start_inside, status_of)
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

NEWER = "99.0"
# The same programs with another version, and other bytes, so that dpkg replaces them.
REPACK = f"""
set -e
rm -rf /root/newer
dpkg-deb --raw-extract /root/burrow.deb /root/newer
sed -i 's/^Version: .*/Version: {NEWER}/' /root/newer/DEBIAN/control
for program in /root/newer/usr/bin/*; do echo newer >>$program; done
dpkg-deb --root-owner-group -Znone --build /root/newer /root/newer.deb >/dev/null
rm -r /root/newer
"""


@test
def sandboxes_live_on_and_can_be_used():
    destroy_all()
    for box in ("awake", "asleep"):
        create(box)
        inside(box, f"echo {box} >/workspace/mark")
    sleepers = {box: start_inside(box)[0] for box in ("awake", "asleep")}
    api("POST", "/sandboxes/asleep/sleep")
    before = main_pid(), daemon_pid()
    MACHINE.good(REPACK)
    MACHINE.good("DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /root/newer.deb")
    wait_until(is_ready, "it serves", 90)
    equal(MACHINE.good("dpkg-query -W -f '${Version}' burrow"), NEWER)
    after = main_pid(), daemon_pid()
    assert not set(before) & set(after), (before, after)
    for pid in after:
        equal(MACHINE.good(f"tail -c 6 /proc/{pid}/exe"), "newer\n", "the program that runs")
    equal((status_of("awake"), status_of("asleep")), ("running", "frozen"))
    for box, pid in sleepers.items():
        equal(inside(box, "cat /workspace/mark"), f"{box}\n")
        equal(is_alive(pid), True, f"the process of {box}")


@test
def they_can_be_copied_stopped_and_started_by_the_new_one():
    api("POST", "/sandboxes/awake/fork", {"name": "copy"})
    equal(inside("copy", "cat /workspace/mark"), "awake\n")
    for verb in ("stop", "start", "sleep", "wake"):
        api("POST", f"/sandboxes/awake/{verb}")
    equal(inside("awake", "cat /workspace/mark"), "awake\n")


@test
def the_older_one_can_be_installed_again():
    pid = start_inside("awake")[0]
    MACHINE.good("DEBIAN_FRONTEND=noninteractive apt-get install -y --allow-downgrades --no-install-recommends "
                 "/root/burrow.deb; rm /root/newer.deb")
    wait_until(is_ready, "it serves", 90)
    equal(is_alive(pid), True, "a process of a sandbox")
    equal(inside("asleep", "cat /workspace/mark"), "asleep\n")
    destroy_all()


main()
