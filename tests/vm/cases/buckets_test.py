#!/usr/bin/python3
# timeout: 180
"""Buckets as folders in sandboxes, on kernels that cannot map ids of FUSE mounts (6.1) and on those that can."""

import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, api, ask, create, destroy_all, execute, inside, is_ready, start_inside  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402


def mount(box, **fields):
    return api("POST", f"/sandboxes/{box}/mounts", {"path": "/data", "bucket": "shared", **fields})


def write_later(box, path, text):
    """A mount that comes back is not there at once."""
    wait_until(lambda: execute(box, f"echo {text} >{path}")["exitCode"] == 0, f"{path} can be written", 60)


@test
def the_doctor_says_that_they_work():
    assert "on       bucket mounts" in MACHINE.good("burrow doctor")


@test
def a_file_is_written_here_and_read_there():
    destroy_all()
    for box in ("writer", "reader"):
        create(box)
    mount("writer")
    mount("reader", readOnly=True)
    inside("writer", "mkdir /data/deep; echo hello >/data/deep/file; ln -s file /data/deep/link; "
                     "head -c 3000000 /dev/urandom >/data/big")
    wait_until(lambda: execute("reader", "cat /data/deep/link")["stdout"] == "hello\n", "the other sees it")
    equal(inside("reader", "sha256sum </data/big"), inside("writer", "sha256sum </data/big"), "many bytes")
    assert execute("reader", "echo x >/data/no")["exitCode"] != 0, "it was written to"


@test
def owners_are_those_of_the_sandbox():
    equal(inside("writer", "stat -c '%u:%g' /data /data/deep/file").split(), ["0:0", "0:0"])
    inside("writer", "install -d -o 1000 -g 1000 /data/own")
    inside("writer", "setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'echo mine >/data/own/file'")
    equal(inside("writer", "stat -c %u /data/own/file"), "1000\n")


@test
def the_host_has_no_such_mount_and_cannot_look_into_it():
    equal(MACHINE.run("grep -c fuse.burrow /proc/self/mountinfo").out.strip(), "0", "mounts on the host")
    pid = start_inside("writer")[0]
    assert MACHINE.run(f"timeout 60 ls /proc/{pid}/root/data").status != 0, "root of the host saw files"


@test
def it_comes_back_after_a_restart_and_a_wake():
    MACHINE.good("systemctl restart burrow")
    wait_until(is_ready, "it serves", 60)
    write_later("writer", "/data/after-restart", "1")
    api("POST", "/sandboxes/writer/stop")
    api("POST", "/sandboxes/writer/start")
    write_later("writer", "/data/after-start", "2")
    equal(inside("writer", "cat /data/after-restart /data/deep/file").split(), ["1", "hello"])


@test
def it_ends_with_its_sandbox():
    api("DELETE", "/sandboxes/writer/mounts?path=/data")
    equal(inside("writer", "ls /data"), "", "what is beneath")
    destroy_all()
    equal(ask("GET", "/sandboxes/writer")[0], 404)
    equal(MACHINE.run("grep -l fuse.burrow /proc/[0-9]*/mountinfo").out, "", "who has such a mount")


main()
