"""A started program that never outlives its test: what Burrow and NetDemo have in common.

    class Mine(Program):
        def wait_until_ready(self): ...

    with Mine("name", "--flag") as mine:
        mine.memory_kb()
    # leaving: SIGTERM, exit with `expected_status` within STOP_SECONDS, folder removed

Programs come from $BURROW_BUILD (default: build/) and the folders below it that meson fills.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress

from scratch import choose_folder

choose_folder()

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD_FOLDERS = ("", "src/programs", "src/programs/agent", "tests", "bench")
# On a slow machine everything takes so many times longer (tests/vm).
SLOW = float(os.environ.get("BURROW_SLOW", "1"))
# Ends of waits for what must come. They count when something hangs, so they are far beyond what a busy
# machine needs: how long a thing takes is measured by bench/, never by a test.
PATIENCE = 60.0
START_SECONDS = PATIENCE * SLOW
STOP_SECONDS = PATIENCE * SLOW


def program(name="burrow"):
    """Path of a built program."""
    build = os.path.join(ROOT, os.environ.get("BURROW_BUILD", "build"))
    paths = [os.path.join(build, folder, name) for folder in BUILD_FOLDERS]
    found = [path for path in paths if os.path.isfile(path)]
    if not found:
        raise AssertionError(f"{name} is not built in {build}")
    return found[0]


def clean_environment(additions=None):
    """Ours without settings of burrow: a test must not depend on who runs it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
    return {**kept, **(additions or {})}


_taken_ports = []


def free_port():
    """A TCP port of 127.0.0.1 for this program alone, until it ends: below those that the kernel hands
    out, and not one of another test's, which would show in the abstract name that goes with it."""
    while True:
        port = random.SystemRandom().randrange(15000, 32000)
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                name.bind(f"\0burrow-test-port-{port}")
                probe.bind(("127.0.0.1", port))
            except OSError:
                name.close()
                continue
        _taken_ports.append(name)
        return port


def admin_key(log):
    """The administrator's key: what is no terminal is told only where it is kept."""
    path = re.search(r"^key  in (\S+)$", log, re.MULTILINE)[1]
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def wait_until(condition, what, seconds=PATIENCE):
    """The first true value of condition(); fails after `seconds`, of a machine that is not slow."""
    seconds *= SLOW
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.01)


class Program:
    def __init__(self, name, *arguments, environment=None):
        self.folder = tempfile.mkdtemp(prefix="burrow-test-")
        self.log_path = os.path.join(self.folder, "log")
        self.name = name
        self.arguments = list(arguments)
        self.environment = clean_environment(environment)
        self.process = None
        self.expected_status = 0  # of a stop

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
            elif self.process.poll() not in (None, self.expected_status):
                # The test fails because of this; its log holds the reason.
                print(f"{self.name} ended with status {self.process.poll()}:\n{self.log()}")
        finally:
            self.kill()

    @property
    def pid(self):
        return self.process.pid

    def path(self):
        """For subclasses: where the program is."""
        return program(self.name)

    def start(self):
        """Start it and wait until it is ready."""
        self.launch()
        wait_until(self.is_ready_or_fail, f"start of {self.name}")

    def launch(self):
        """Start it."""
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                [self.path(), *self.arguments], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=self.environment)

    def is_ready_or_fail(self):
        if self.process.poll() is not None:
            raise AssertionError(
                f"{self.name} ended with status {self.process.returncode}:\n{self.log()}")
        return self.is_ready()

    def is_ready(self):
        """For subclasses: whether it serves."""
        return True

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=PATIENCE):
        """The exit status, which must come within `seconds`, of a machine that is not slow."""
        try:
            return self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end:\n{self.log()}") from None

    def stop(self):
        """SIGTERM; it must end with `expected_status`."""
        if self.process.poll() is None:
            self.signal()
        status = self.wait()
        if status != self.expected_status:
            raise AssertionError(f"{self.name} ended with status {status}:\n{self.log()}")

    def kill(self):
        """Always the last call: nothing of the program stays, neither process nor folder."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        """Everything it printed."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def memory_kb(self, field="VmRSS"):
        """Resident memory in kB; field="VmHWM" for the highest so far."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as lines:
            for line in lines:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        raise AssertionError(f"/proc has no {field}")

    def cpu_seconds(self):
        """User and system time used so far."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def open_paths(self):
        """What its descriptors are; one that is closed meanwhile is none."""
        paths = []
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with suppress(FileNotFoundError):
                paths.append(os.readlink(f"/proc/{self.pid}/fd/{fd}"))
        return paths
