#!/usr/bin/python3
# timeout: 120
"""The package, installed as a user would: the unit runs, and the doctor has nothing to complain of."""

import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from host_state import remember  # noqa: E402
from machine import Machine  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

MACHINE = Machine.running()
BAD = ("missing", "warning")


@test
def the_package_installs_and_its_unit_is_active():
    remember(MACHINE)
    with open(os.environ["BURROW_VM_PACKAGE"], "rb") as file:
        MACHINE.send("/root/burrow.deb", file.read())
    MACHINE.good("DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /root/burrow.deb")
    equal(MACHINE.good("systemctl is-enabled burrow; systemctl is-active burrow").split(), ["enabled", "active"])
    wait_until(lambda: MACHINE.run("curl -fs http://127.0.0.1:8787/ready").status == 0, "it serves")


@test
def the_doctor_finds_nothing_bad():
    done = MACHINE.run("burrow doctor")
    rows = re.findall(r"^  (on|off|warning|missing) +(.*)$", done.out, re.MULTILINE)
    assert len(rows) > 30, done.out
    equal([row for row in rows if row[0] in BAD], [], "rows")
    equal(done.status, 0, "status")
    assert done.out.rstrip().endswith("can run here"), done.out[-200:]


@test
def the_doctor_knows_what_the_unit_has():
    rows = MACHINE.run("burrow doctor").out
    for words in ("shared mounts", "private copies of mounts"):
        assert re.search(rf"^  on +{words}", rows, re.MULTILINE), rows


main()
