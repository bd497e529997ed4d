#!/usr/bin/python3
# timeout: 1200
"""Cloudflare's published clients through the daemon: the whole case table over all transports, in a
real sandbox, by way of /burrow/v1/sandboxes/ID/container."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from client_cases import CLIENTS, SECONDS  # noqa: E402
from control_plane import NATIVE, ControlPlane  # noqa: E402
from launcher import need_launcher  # noqa: E402
from tap import main, skip, test  # noqa: E402

WORDS = [word for word in os.environ.get("BURROW_CASES", "").split(",") if word]


def run_table(transport):
    need_launcher()
    if not shutil.which("node"):
        skip("node")
    if not os.path.isdir(os.path.join(CLIENTS, "node_modules")):
        skip("the clients (packaging/install-clients)")
    with ControlPlane() as plane:
        box = plane.create("client", limits={"memory": "2G", "pids": 1024})
        place = f"{plane.address}{NATIVE}/sandboxes/{box['id']}/container"
        done = subprocess.run(["node", "--import", "./register.mjs", "run.mjs", transport, place,
                               "/workspace", *WORDS], cwd=CLIENTS, timeout=SECONDS, check=False,
                              env={**os.environ, "BURROW_KEY": plane.key}, stdout=subprocess.PIPE)
        output = done.stdout.decode(errors="replace")
        # Its results are ours: the first line of every failure, and how many there were.
        print("\n".join(f"# {line}" for line in output.splitlines()
                        if not line.startswith("ok ") and not line.startswith("1..")), flush=True)
        passed = sum(line.startswith("ok ") for line in output.splitlines())
        print(f"# {transport}: {passed} passed", flush=True)
        assert done.returncode == 0 and passed, f"{transport} ended with {done.returncode}"


@test
def the_table_holds_over_http():
    run_table("http")


@test
def the_table_holds_over_a_websocket():
    run_table("websocket")


@test
def the_table_holds_over_capnweb():
    run_table("rpc")


main()
