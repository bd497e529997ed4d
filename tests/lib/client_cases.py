"""The case table of tests/clients over one transport, against an agent in a root of its own."""

import os
import shutil
import subprocess
import sys

from agent_root import RootAgent, can_make_roots
from program import ROOT

CLIENTS = os.path.join(ROOT, "tests/clients")
SECONDS = 600
# Inside the agent's root, written by the cases of uploads.
TRUSTED = "/run/store-ca.pem"


def missing():
    if not can_make_roots():
        return "root, to make the agent a root of its own"
    if not shutil.which("node"):
        return "node"
    if not os.path.isdir(os.path.join(CLIENTS, "node_modules")):
        return "the clients (packaging/install-clients)"
    return None


def main(transport):
    lack = missing()
    if lack:
        print(f"# skip: {lack}\nok 1 - {transport} # SKIP {lack}\n1..1")
        return
    with RootAgent(environment={"SSL_CERT_FILE": TRUSTED}) as agent:
        done = subprocess.run(["node", "--import", "./register.mjs", "run.mjs", transport,
                               agent.host, "/workspace", *sys.argv[1:]],
                              cwd=CLIENTS, timeout=SECONDS, check=False)
        if done.returncode not in (0, 1):
            print(f"not ok 1 - the runner ended with {done.returncode}\n1..1")
            sys.exit(1)
        agent.get("/api/ping")
    sys.exit(done.returncode)
