"""A real `burrow serve` for integration tests.

    with Burrow() as server:                       # a free loopback port, fresh data folder
        get(server.address, "/health")
    # leaving: SIGTERM, exit status 0 within STOP_SECONDS, folder removed

    Burrow("--no-auth", unix=True)                 # a unix socket instead
    Burrow(listen=False)                           # the flags say everything themselves

    status, output = run_burrow("serve", "--listen", "nonsense")     # one that ends by itself

Both are the daemon alone, without a launcher, also when root runs the tests: most tests need no
sandboxes, and nothing of theirs must be left on the host. With sandboxes: launcher.py.
"""

import os
import shutil
import subprocess
import tempfile

from http_raw import get
from program import ROOT, STOP_SECONDS, Program, admin_key, clean_environment, free_port, program

NOBODY = 65534
ALONE = {"BURROW_NO_SANDBOXES": "true"}

__all__ = ["ROOT", "Burrow", "free_port", "program", "run_as_nobody", "run_burrow"]


def run_burrow(*arguments, environment=None):
    """(exit status, everything printed) of a burrow that must end by itself."""
    done = subprocess.run([program(), *arguments], env=clean_environment({**ALONE, **(environment or {})}),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=STOP_SECONDS, check=False)
    return done.returncode, done.stdout.decode()


def run_as_nobody(name, *arguments):
    """(exit status, everything printed) of a program of ours as a user with no rights. A copy of it,
    because the build may lie where nobody can go."""
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(program(name), folder)
        done = subprocess.run([copy, *arguments], env=clean_environment(), cwd="/", user=NOBODY,
                              group=NOBODY, extra_groups=[], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=STOP_SECONDS, check=False)
    return done.returncode, done.stdout.decode()


class Burrow(Program):
    def __init__(self, *flags, unix=False, listen=True, environment=None):
        super().__init__("burrow", environment={**ALONE, **(environment or {})})
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
            return get(self.address, "/ready").status == 200
        except OSError:
            return False

    @property
    def key(self):
        return admin_key(self.log())
