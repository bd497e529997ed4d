"""One test program as a process that cannot outlive its test.

It runs in its own session with a unique mark in its environment, so that whatever it starts is
found again, even what called setsid() or lost its parent.
"""

import ctypes
import os
import signal
import subprocess
import tempfile
import time
import uuid

MARK = "BURROW_TEST_MARK"
GRACE_SECONDS = 1.0  # for children that are already on their way out
INTERRUPT_SECONDS = 30  # sandboxes, networks and disks take a moment
PR_SET_PDEATHSIG = 1
ADDR_NO_RANDOMIZE = 0x0040000
LIBC = ctypes.CDLL(None, use_errno=True)


class TestProcess:
    def __init__(self, command, environment, timeout, without_aslr=False):
        self.mark = uuid.uuid4().hex
        self.started = time.monotonic()
        self.timeout = timeout
        self.output = tempfile.TemporaryFile()
        self.ending = ""  # how it ended badly; "" after exit status 0
        self.seconds = 0.0

        def in_child():
            # Not even a killed runner leaves its test behind.
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            # Who runs us in the background may have it ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if without_aslr:
                LIBC.personality(ADDR_NO_RANDOMIZE)  # where forbidden, sanitizers mostly cope

        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            env={**environment, MARK: self.mark}, start_new_session=True, preexec_fn=in_child)

    def is_over(self):
        """Also enforces the timeout."""
        late = time.monotonic() - self.started > self.timeout
        if self.process.poll() is None and not late:
            return False
        self.seconds = time.monotonic() - self.started
        if self.process.returncode is None:
            self.kill()
            self.ending = f"timed out after {self.timeout:.0f} s"
        else:
            self.ending = describe(self.process.returncode)
        return True

    def leftovers(self):
        """Names of processes that outlived the test (they are killed now)."""
        deadline = time.monotonic() + GRACE_SECONDS
        while (left := self.members()) and time.monotonic() < deadline:
            time.sleep(0.05)
        names = [f"{name} (pid {pid})" for pid, name in left]
        self.kill()
        return names

    def interrupt(self):
        """As Ctrl-C does: time to take down what it made, then the rest is killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(INTERRUPT_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        """Kill the program and all it started, also what is forked meanwhile."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if self.process.poll() is None:
                self.process.kill()
            members = self.members()
            for pid, _ in members:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not members and self.process.poll() is not None:
                return
            time.sleep(0.02)

    def members(self):
        """[(pid, name)] of living processes that belong to this test."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                name = self.member_name(entry)
                if name is not None:
                    found.append((int(entry), name))
        return found

    def member_name(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            state, _, _, session = rest.split()[:4]
            if state in "ZX":
                return None
            if int(session) == self.process.pid:
                return name
            with open(f"/proc/{pid}/environ", "rb") as file:
                return name if f"{MARK}={self.mark}".encode() in file.read() else None
        except OSError:  # gone meanwhile, or another user's
            return None

    def text(self):
        self.output.seek(0)
        return self.output.read().decode("utf-8", "replace")


def describe(returncode):
    if returncode == 0:
        return ""
    if returncode < 0:
        return f"killed by {signal.Signals(-returncode).name}"
    return f"exit status {returncode}"
