#!/usr/bin/python3
# timeout: 240
"""What the host sees of sandboxes: no mount, no file, and no process once they are gone."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, UNIT, api, create, destroy_all, find, inside, is_ready, start_inside  # noqa: E402
from host_state import changes, remember  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

PLANT = "echo 'echo planted' >/usr/local/bin/burrow-planted; chmod +x /usr/local/bin/burrow-planted"
MINE = ("/var/lib/burrow/", "/run/burrow/")
ROUTER = "/run/burrow/network/"  # the file that its network namespace is mounted on
BOXES = ("plain", "natted", "mounted", "asleep", "copy")


def make_all():
    for box in BOXES[:-1]:
        create(box, network="nat" if box == "natted" else "none")
        inside(box, PLANT)
        start_inside(box)
    api("POST", "/sandboxes/mounted/mounts", {"path": "/data", "bucket": "b"})
    inside("mounted", "echo x >/data/x")
    api("POST", "/sandboxes/plain/fork", {"name": "copy"})
    api("POST", "/sandboxes/asleep/sleep")


@test
def while_they_live_their_mounts_and_files_are_not_the_hosts():
    destroy_all()
    remember(MACHINE, "without sandboxes")
    make_all()
    found = changes(MACHINE, "without sandboxes")
    equal([line for line in found.get("mounts", []) if ROUTER not in line], [], "mounts")
    equal([line for line in found.get("files", []) if not line[1:].startswith(MINE)], [], "files")
    equal(found.get("local files", []), [], "files of /usr/local")
    equal(MACHINE.run("bash -lc burrow-planted").status, 127, "a program of a sandbox")
    equal(inside("plain", "burrow-planted"), "planted\n", "in the sandbox")


@test
def a_process_of_a_sandbox_shows_nothing_of_the_host():
    for path in ("/var/lib/burrow", "/etc/burrow", "/root/burrow.deb", "/sys/fs/cgroup"):
        equal(inside("plain", f"test -e {path} || echo none"), "none\n", path)
    names = inside("plain", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "systemd" not in names and "sshd" not in names, names


@test
def when_they_are_gone_nothing_is_left():
    destroy_all()
    MACHINE.good("burrow gc >/dev/null; rm -f /var/lib/burrow/daemon/buckets/*/b/x")
    equal(find("sleep [0-9]*"), [], "processes")
    MACHINE.good(f"systemctl restart {UNIT}")  # networks in stock go with it
    wait_until(is_ready, "it serves", 60)

    def left():
        found = changes(MACHINE, "without sandboxes")
        return {area: [line for line in lines if not line[1:].startswith(MINE) and ROUTER not in line]
                for area, lines in found.items() if area in ("mounts", "files", "local files", "loop devices")}
    equal({area: lines for area, lines in left().items() if lines}, {})


main()
