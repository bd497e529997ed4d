"""A real `burrow serve` for integration tests.

    with Burrow() as server:                       # a free loopback port, fresh data folder
        get(server.address, "/health")
    # leaving: SIGTERM, exit status 0 within STOP_SECONDS, folder removed

    Burrow("--no-auth", unix=True)                 # a unix socket instead
    Burrow(listen=False)                           # the flags say everything themselves

    status, output = run_burrow("serve", "--listen", "nonsense")     # one that ends by itself
"""

import os
import re
import socket
import subprocess

from http_raw import get
from program import ROOT, STOP_SECONDS, Program, clean_environment, program

__all__ = ["ROOT", "Burrow", "free_port", "program", "run_burrow"]


def free_port():
    """A TCP port of 127.0.0.1 that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_burrow(*arguments, environment=None):
    """(exit status, everything printed) of a burrow that must end by itself."""
    done = subprocess.run([program(), *arguments], env=clean_environment(environment),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=STOP_SECONDS, check=False)
    return done.returncode, done.stdout.decode()


class Burrow(Program):
    def __init__(self, *flags, unix=False, listen=True, environment=None):
        super().__init__("burrow", environment=environment)
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data, 0o700)
        self.address = None
        self.arguments = ["serve", "--data", self.data, *flags]
        if listen:
            self.address = (f"unix:{self.folder}/socket" if unix
                            else f"127.0.0.1:{free_port()}")
            self.arguments += ["--listen", self.address]

    def is_ready(self):
        """When we know no address, it has printed one."""
        if not self.address or "--tls-certificate" in self.arguments:
            return "url  " in self.log()
        try:
            return get(self.address, "/health").status == 200
        except OSError:
            return False

    @property
    def key(self):
        """The administrator's key, as printed at the first start."""
        return re.search(r"^key  (\S+)$", self.log(), re.MULTILINE)[1]
