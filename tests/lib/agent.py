"""A real burrow-agent: alone, or as PID 1 of namespaces of its own.

    with Agent() as agent:                              # a unix socket in a fresh folder
        agent.run("echo hi")["stdout"]                  # POST /api/execute
        for event in agent.stream("make"): ...          # POST /api/execute/stream, as it arrives
    with Agent("--token", "secret", entrypoint=["sleep", "9"]) as agent: ...
    with Init() as agent: ...                           # PID 1 of pid, mount and user namespaces
"""

import contextlib
import json
import os
import subprocess

from http_raw import connect, get, request
from program import Program, program, wait_until

RUN_SECONDS = 120  # far more than anything takes; a busy machine is slow
NO_SESSION = "__DISABLE_SESSION__"  # a process of its own: what run() and stream() mean


class Agent(Program):
    def __init__(self, *flags, entrypoint=(), environment=None, headers=()):
        super().__init__("burrow-agent", environment=environment)
        self.address = f"unix:{self.folder}/socket"
        self.headers = list(headers)
        self.arguments = ["--listen", self.address, *flags]
        if entrypoint:
            self.arguments += ["--", *entrypoint]

    def is_ready(self):
        try:
            return self.get("/api/ping").status == 200
        except OSError:
            return False

    def get(self, path, timeout=RUN_SECONDS):
        return get(self.address, path, self.headers, timeout)

    def post(self, path, document, timeout=RUN_SECONDS):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return request(self.address, "POST", path, self.headers, body, timeout)

    def run(self, command=None, **fields):
        """The answer of a command that must run, whatever its status."""
        if command is not None:
            fields["command"] = command
        fields.setdefault("sessionId", NO_SESSION)
        response = self.post("/api/execute", fields)
        if response.status != 200:
            raise AssertionError(f"{fields}: {response}")
        return json.loads(response.body)

    @contextlib.contextmanager
    def open_stream(self, command, **fields):
        """A connection behind the head of a good answer to /api/execute/stream."""
        body = json.dumps({"command": command, "sessionId": NO_SESSION, **fields}).encode()
        with connect(self.address, RUN_SECONDS) as connection:
            connection.send(b"POST /api/execute/stream HTTP/1.1\r\nHost: a\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            head = connection.response_head()
            if head.status != 200 or head.headers["content-type"] != "text/event-stream":
                raise AssertionError(f"{command}: {head}")
            yield connection

    def stream(self, command, **fields):
        """The events, each as soon as it is there."""
        with self.open_stream(command, **fields) as connection:
            pending = b""
            for chunk in connection.chunks():
                *frames, pending = (pending + chunk).split(b"\n\n")
                for frame in frames:
                    yield json.loads(frame.removeprefix(b"data: "))
            if pending:
                raise AssertionError(f"the stream ended inside an event: {pending!r}")

    def activity(self):
        return json.loads(self.get("/burrow/activity").body)

    def wait_until_idle(self):
        wait_until(lambda: self.activity()["running"] == 0, "no command is running")

    def settled_files(self):
        """How many descriptors it has when only the asking connection is open and nothing runs.

        That connection stays open while they are counted: one that is going may still be seen.
        """
        with connect(self.address, 30) as connection:
            def has_settled():
                connection.send(b"GET /burrow/activity HTTP/1.1\r\nHost: a\r\n\r\n")
                activity = json.loads(connection.response().body)
                return (activity["connections"] == 1 and not activity["running"] and
                        not activity["background"])
            wait_until(has_settled, "one connection, and nothing is running")
            return self.open_files()

    def anonymous_kb(self, pid=None):
        """Memory that is neither shared with a file nor clean, of one process."""
        with open(f"/proc/{pid or self.pid}/smaps_rollup", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

    def children(self, pid=None):
        """{pid: name} of the direct children, as seen from here."""
        return {child: name for child, (parent, name) in processes().items()
                if parent == (pid or self.pid)}


def processes():
    """{pid: (parent, name)} of everything that lives."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                head, _, rest = file.read().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if state != "Z":
            found[int(name)] = (int(parent), head.partition("(")[2])
    return found


def own_time(seconds):
    """So many seconds and a little more, spelt as no other test program does: find_processes() finds
    only our own sleeps by it."""
    return f"{seconds}.{os.getpid():07d}"


def find_processes(text, beneath=None):
    """Pids of living processes whose command line holds `text`: all, or those beneath one process."""
    living, found = processes(), []

    def is_beneath(pid):
        while pid in living and pid != beneath:
            pid = living[pid][0]
        return pid == beneath
    for pid in filter(is_beneath, living) if beneath else living:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if text.encode() in file.read() and pid != os.getpid():
                    found.append(pid)
        except OSError:
            pass
    return found


def runs_in_front(text):
    """Whether a process with that command line runs and has its terminal: keys reach it."""
    for pid in find_processes(text):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                state, _, group, _, _, front = file.read().rpartition(")")[2].split()[:6]
        except OSError:
            continue
        if state in "RS" and group == front:
            return True
    return False


NAMESPACES = ["--user", "--map-root-user", "--pid", "--mount", "--fork", "--mount-proc",
              "--kill-child"]


def can_unshare():
    return subprocess.run(["unshare", *NAMESPACES, "true"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


class Init(Agent):
    """`pid` is that of the agent as seen from outside; `process` is unshare(1). Like the launcher,
    drops the right to trace."""

    def start(self):
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["unshare", *NAMESPACES, "setpriv", "--bounding-set=-sys_ptrace",
                 program(self.name), *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        wait_until(self.is_ready_or_fail, "start of the agent as PID 1")

    @property
    def pid(self):
        children = [pid for pid, (parent, _) in processes().items()
                    if parent == self.process.pid]
        return children[0]

    def signal(self, number=15):
        os.kill(self.pid, number)

    def kill(self):
        # setpriv changes credentials, which undoes --kill-child: end the inside by ourselves.
        if self.process and self.process.poll() is None:
            try:
                self.signal(9)
            except (IndexError, ProcessLookupError):
                pass  # not there yet, or not any more
        super().kill()
