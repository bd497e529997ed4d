"""The daemon's end of a conversation with a real `burrow-launcher once`, byte by byte.

    with Once() as once:                            # in an outpost (outpost.py)
        once.greet()
        once.send(message(CREATE, 3), [sealed(plan(new_id()))])
        number, request, body = once.receive()
    # leaving: the conversation is closed; the launcher cleans up and must end with status 0

The format is that of docs/wire-protocol.md.
"""

import array
import fcntl
import os
import socket
import struct
import subprocess

from outpost import cgroup, folder, network_name
from program import clean_environment, program

VERSION, PLAN_VERSION = 3, 3
HELLO, SUBSCRIBE, LIST, ADOPT, CREATE, ASSIGN, SOCKETS, FREEZE, THAW, KILL, LIMITS, STATS, \
    OPEN_MOUNT, ATTACH_MOUNT, DETACH_MOUNT, KEEPER_JOB, SNAPSHOT, DELETE_SNAPSHOT, \
    LIST_SNAPSHOTS, ROLL_BACK, DISK_USAGE, RECLAIM, SYNC, INSPECT = range(1, 25)
WELCOME, DONE, SUBSCRIBED, LISTED, SANDBOX, SOCKETS_MADE, STATS_READ, EXITED = \
    64, 66, 67, 68, 69, 70, 71, 96
PACKET_MAX = 4096
END_SECONDS = 60.0
ANSWER_SECONDS = 20.0
ID_LETTERS, ID_LAST = "abcdefghijklmnopqrstuvwxyz234567", "aeimquy4"
ALL_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def new_id(rng):
    return "".join(rng.choice(ID_LETTERS) for _ in range(25)) + rng.choice(ID_LAST)


def message(number, request, body=b"", version=VERSION, trace=bytes(26)):
    """A request, done for nobody's in particular; `hello` has no trace."""
    if number == HELLO:
        version, trace = 0, b""
    return struct.pack("<HHQ", version, number, request) + trace + body


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<H", len(value)) + value


def limits(memory=256 << 20, swap=0, pids=64, cpu=1000, disk=64 << 20, files=0):
    return struct.pack("<QQIIQI", memory, swap, pids, cpu, disk, files)


def plan(sandbox, hostname="box", image="host", flags=0, network=0, rules=None, binds=None,
         version=PLAN_VERSION, origin=None, owner=bytes(26), **limit):
    """Bytes of a plan; `rules` and `binds` are bytes of lists, `origin` those of a disk."""
    return b"".join([struct.pack("<H", version), sandbox.encode(), text(hostname), text(image),
                     struct.pack("<I", flags), origin or disk(0), limits(**limit),
                     owner, bytes([network]), rules or b"\0\0", binds or b"\0\0"])


def disk(which, name=None):
    """Bytes of a disk: of a sandbox (0) or a snapshot (1), or none."""
    return bytes([which]) + (name.encode() if name else bytes(26))


def bind(source, place):
    return text(source) + text(place)


def memfd(data, seals=ALL_SEALS):
    """A descriptor of memory with these bytes."""
    fd = os.memfd_create("plan", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class Once:
    def __init__(self, *flags, prefix=()):
        self.data, self.run_folder = f"{folder()}/data", f"{folder()}/run"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_SECONDS)
        self.socket, self.request = ours, 0
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [*prefix, program("burrow-launcher"), "once", "--socket-fd", str(theirs.fileno()),
             "--data", self.data, "--run", self.run_folder, "--cgroup", cgroup(),
             "--network-name", network_name(), "--pool-size", "1G", "--log-level", "warning", *flags],
            pass_fds=[theirs.fileno()], env=clean_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        theirs.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            output = self.end()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        if kind is None and self.process.returncode != 0:
            raise AssertionError(f"the launcher ended with {self.process.returncode}: {output}")

    def end(self):
        """What it printed."""
        self.socket.close()
        return self.process.communicate(timeout=END_SECONDS)[0].decode(errors="replace")

    def send(self, data, fds=()):
        """False: the conversation is over."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([data], ancillary)
            return True
        except OSError:
            return False

    def receive(self):
        """(number, request, body) of the next message, or None at the end; its descriptors are
        closed."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, PACKET_MAX, 64)
        except ConnectionResetError:
            return None
        for fd in fds:
            os.close(fd)
        if not data:
            return None
        _, number, request = struct.unpack_from("<HHQ", data)
        return number, request, data[12:]

    def ask(self, number, body=b"", fds=()):
        """(number, body) of the answer; events on the way are passed over."""
        self.request += 1
        self.send(message(number, self.request, body), fds)
        while answer := self.receive():
            if answer[1] == self.request:
                return answer[0], answer[2]
        return None

    def greet(self):
        hello = struct.pack("<HH", VERSION, VERSION) + text("test")
        assert self.ask(HELLO, hello)[0] == WELCOME
        assert self.ask(SUBSCRIBE)[0] == SUBSCRIBED

    def ask_plan(self, number, data, seals=ALL_SEALS):
        fd = memfd(data, seals)
        try:
            return self.ask(number, fds=[fd])
        finally:
            os.close(fd)


def code_of(answer):
    """The code of a `done`: "ok", "invalid_request", ..."""
    number, body = answer
    assert number == DONE, answer
    length = struct.unpack_from("<H", body)[0]
    return body[2:2 + length].decode()
