"""The burrow command line against a real daemon that all tests of a file share.

    plane()                                  # the daemon, started with the first test
    run("exec", "demo", "true")              # Done(status, out, err) of a verb
    good("ls", "--names")                    # the same, which must succeed: its stdout
    with Terminal("shell", "demo") as at:    # a verb at a terminal of its own
        at.write(b"exit 3\\r")
"""

import atexit
import collections
import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import time

from control_plane import ControlPlane
from launcher import need_launcher
from program import PATIENCE, clean_environment, program

SECONDS = 60
Done = collections.namedtuple("Done", "status out err")

_planes = []


def plane():
    need_launcher()
    if not _planes:
        _planes.append(ControlPlane().__enter__())
        atexit.register(lambda: _planes[0].__exit__(None, None, None))
    return _planes[0]


def environment(**more):
    """Ours, pointed at the daemon; HOME is empty."""
    home = os.path.join(plane().folder, "home")
    os.makedirs(home, exist_ok=True)
    return clean_environment({"HOME": home, "BURROW_URL": f"http://{plane().address}",
                              "BURROW_API_KEY": plane().key, **more})


def run(*words, stdin=b"", cwd=None, **variables):
    done = subprocess.run([program(), *words], env=environment(**variables), input=stdin, cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                          check=False)
    return Done(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def good(*words, **options):
    """Text on stdout of a verb that must succeed."""
    done = run(*words, **options)
    if done.status != 0:
        raise AssertionError(f"burrow {' '.join(words)}: status {done.status}: {done.err}")
    return done.out.decode()


def start(*words, **options):
    """A Popen with pipes."""
    # pylint: disable=consider-using-with
    return subprocess.Popen([program(), *words], env=environment(), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def folder():
    """A fresh folder below the daemon's, removed with it."""
    return tempfile.mkdtemp(dir=plane().folder)


class Terminal:
    """A verb at a terminal."""

    def __init__(self, *words, columns=80, rows=24):
        self.control, self.terminal = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.terminal)
        self.seen = b""
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        self.process = subprocess.Popen(
            [program(), *words], env=environment(TERM="xterm"), stdin=self.terminal,
            stdout=self.terminal, stderr=self.terminal, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.control)
        os.close(self.terminal)

    def resize(self, columns, rows):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data):
        os.write(self.control, data)

    def read_until(self, mark, seconds=PATIENCE):
        """What was shown up to `mark`, which is taken away."""
        deadline = time.monotonic() + seconds
        while mark not in self.seen:
            if time.monotonic() > deadline:
                raise AssertionError(f"waited for {mark!r} in vain, saw {self.seen!r}")
            if select.select([self.control], [], [], 0.1)[0]:
                self.seen += os.read(self.control, 65536)
        before, _, self.seen = self.seen.partition(mark)
        return before + mark

    def wait(self, seconds=PATIENCE):
        return self.process.wait(seconds)

    def is_restored(self):
        return termios.tcgetattr(self.terminal) == self.before
